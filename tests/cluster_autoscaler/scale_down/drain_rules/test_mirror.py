from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, mirror
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod


def test_a_mirror_pod_is_skipped() -> None:
    pod = make_pod("p", annotations={"kubernetes.io/config.mirror": "hash"}, owner=None)
    verdict = mirror.judge(pod, make_context())
    assert verdict is not None and verdict.outcome is Outcome.SKIP


def test_other_pods_are_left_to_other_rules() -> None:
    assert mirror.judge(make_pod("p"), make_context()) is None
