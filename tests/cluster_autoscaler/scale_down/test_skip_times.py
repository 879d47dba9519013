from holokube.cluster_autoscaler.scale_down.skip_times import SkipTimes


def test_a_node_that_is_skipped_again_and_again_is_counted_from_its_last_simulation() -> None:
    times = SkipTimes()
    assert times.update([], 100.0) == 0.0
    assert times.update(["a"], 110.0) == 10.0
    assert times.update(["a", "b"], 120.0) == 20.0
    assert times.update(["b"], 130.0) == 20.0
    assert times.update([], 140.0) == 0.0
