from typing import Any

from holokube.cluster_autoscaler.cloud.provider import NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import Deletions, PlannerReport, Removals, ScaleDownPlanner
from holokube.cluster_autoscaler.taints import deletion_candidate
from tests.cluster_autoscaler.scale_down.world import (
    NOW_S,
    SAFE_TO_EVICT,
    World,
    make_group,
    make_node,
    make_pdb,
    make_pod,
)


def make_planner(**options: Any) -> ScaleDownPlanner:
    return ScaleDownPlanner(AutoscalerOptions(**options), lambda: 0.0)


def names(found: Removals) -> tuple[list[str], list[str]]:
    return [one.name for one in found.empty], [one.name for one in found.drain]


def reasons(report: PlannerReport) -> dict[str, str]:
    return {stays.name: str(stays.reason) for stays in report.unremovable}


def stays_because(planner: ScaleDownPlanner) -> dict[str, str]:
    return {stays.name: str(stays.reason) for stays in planner.unremovable()}


def test_an_empty_node_and_one_to_drain_go_after_ten_minutes() -> None:
    pods = [make_pod("busy", "busy", cpu="3"), make_pod("light", "light")]
    world = World([make_node("busy"), make_node("light"), make_node("empty")], pods)
    planner = make_planner()
    report = planner.update(world.look())
    assert report.candidates == ["empty", "busy", "light"]
    assert report.unneeded == ["empty", "light"]
    assert reasons(report) == {"busy": "NotUnderutilized"}
    assert names(planner.nodes_to_delete(world.now_s)) == ([], [])
    assert stays_because(planner) == {
        "busy": "NotUnderutilized", "empty": "NotUnneededLongEnough", "light": "NotUnneededLongEnough",
    }  # fmt: skip
    planner.update(world.look(601))
    assert names(planner.nodes_to_delete(world.now_s)) == (["empty"], ["light"])
    assert stays_because(planner) == {"busy": "NotUnderutilized"}


def test_the_snapshot_is_as_before() -> None:
    world = World([make_node("a"), make_node("b")], [make_pod("p", "a"), make_pod("q", "b")])
    given = world.look()
    before = [(name, given.snapshot.node(name), given.snapshot.pods_on(name)) for name in given.snapshot.node_names]
    make_planner().update(given)
    assert [
        (name, given.snapshot.node(name), given.snapshot.pods_on(name)) for name in given.snapshot.node_names
    ] == before


def test_pods_of_a_node_that_goes_are_not_counted_upon_elsewhere_twice() -> None:
    """Each node alone could go; both together could not."""
    pods = [make_pod("a", "a", cpu="2"), make_pod("b", "b", cpu="2"), make_pod("c", "c", cpu="2")]
    world = World([make_node("a"), make_node("b"), make_node("c")], pods)
    report = make_planner().update(world.look())
    assert report.unneeded == ["a"]
    assert reasons(report) == {"b": "NoPlaceToMovePods", "c": "NoPlaceToMovePods"}


def test_upcoming_nodes_are_no_destination() -> None:
    world = World([make_node("a")], [make_pod("p", "a")])
    given = world.look()
    given.snapshot.add_node(NodeInfo(make_node("upcoming")))
    report = make_planner().update(given)
    assert reasons(report) == {"a": "NoPlaceToMovePods"}


def test_what_was_unremovable_is_looked_at_again_after_five_minutes() -> None:
    world = World([make_node("a")], [make_pod("p", "a")])
    planner = make_planner()
    assert reasons(planner.update(world.look())) == {"a": "NoPlaceToMovePods"}
    world.nodes["b"] = make_node("b")
    world.group_of_node["b"] = "ng"
    world.pods.append(make_pod("busy", "b", cpu="3"))
    report = planner.update(world.look(299))
    assert reasons(report)["a"] == "RecentlyUnremovable"
    report = planner.update(world.look(1))
    assert report.unneeded == ["a"]


def test_nodes_in_deletion_are_neither_candidates_nor_destinations() -> None:
    world = World([make_node("a"), make_node("b")], [make_pod("p", "a")])
    world.deletions = Deletions(empty=("b",), per_group={"ng": 1})
    report = make_planner().update(world.look())
    assert report.unneeded == []
    assert reasons(report) == {"a": "NoPlaceToMovePods"}


def test_budgets_are_lowered_as_nodes_are_planned_away() -> None:
    pods = [make_pod(f"{name}{number}", name) for name in "abc" for number in range(2)]
    world = World([make_node(name) for name in "abcd"], [*pods, make_pod("x", "d", cpu="3", labels={"app": "x"})])
    world.pdbs = [make_pdb(allowed=3)]
    report = make_planner().update(world.look())
    # The second node has more pods than the one disruption that is left, the third finds none.
    assert report.unneeded == ["a", "b"]
    blocked = next(stays for stays in report.unremovable if stays.name == "c")
    assert blocked.blocking_reason == "NotEnoughPdb"


def test_nodes_whose_pods_exceed_their_budget_together_go_last() -> None:
    pods = [
        make_pod("a0", "a", labels={"app": "tight"}, nodeSelector={"pool": "x"}),
        make_pod("a1", "a", labels={"app": "tight"}, nodeSelector={"pool": "x"}),
        make_pod("b0", "b"), make_pod("x", "x", cpu="3", labels={"app": "x"}),
    ]  # fmt: skip
    world = World([make_node("a"), make_node("b"), make_node("x", labels={"pool": "x"})], pods)
    world.pdbs = [make_pdb(app="tight", allowed=1)]
    planner = make_planner(scale_down_unneeded_time_s=1)
    world.groups = {"ng": make_group(size=3, scale_down_unneeded_time_s=1)}
    assert planner.update(world.look()).unneeded == ["a", "b"]
    planner.update(world.look(2))
    found = planner.nodes_to_delete(world.now_s)
    assert names(found) == ([], ["b", "a"])
    assert [removal.is_risky for removal in found.drain] == [False, True]


def test_a_node_waits_for_its_on_completion_pods() -> None:
    job = make_pod("job", "a", annotations={SAFE_TO_EVICT: "on-completion"})
    world = World([make_node("a"), make_node("b")], [job])
    planner = make_planner()
    planner.update(world.look())
    planner.update(world.look(601))
    found = planner.nodes_to_delete(world.now_s)
    assert names(found) == (["b"], [])
    assert stays_because(planner)["a"] == "BlockedByOnCompletionPod"


def test_atomic_groups_go_as_a_whole() -> None:
    group = make_group(size=2, members=("a", "b"), zero_or_max_node_scaling=True)
    world = World([make_node("a"), make_node("b")], [make_pod("p", "b", cpu="3")], groups=[group])
    planner = make_planner()
    planner.update(world.look())
    planner.update(world.look(601))
    assert names(planner.nodes_to_delete(world.now_s)) == ([], [])
    assert stays_because(planner) == {"a": "AtomicScaleDownFailed", "b": "NotUnderutilized"}


def test_no_more_nodes_are_looked_for_than_can_go() -> None:
    nodes = [make_node(f"n{number:03}") for number in range(60)]
    world = World(nodes)
    planner = make_planner(max_scale_down_parallelism=10)
    report = planner.update(world.look())
    # Nothing is known about turns yet, so the unneeded time counts as one: 10 x 1 + 10.
    assert len(report.unneeded) == 20
    assert len(report.skipped) == 40
    assert "enough" in report.skipped_because
    report = planner.update(world.look(10))
    assert len(report.unneeded) == 40
    report = planner.update(world.look(10))
    assert len(report.unneeded) == 60


def test_the_slower_the_turns_the_fewer_nodes_are_kept_ready() -> None:
    world = World([make_node(f"n{number:03}") for number in range(60)])
    planner = make_planner(max_scale_down_parallelism=10)
    planner.update(world.look())
    for _ in range(3):
        report = planner.update(world.look(300))
    assert len(report.unneeded) == 30
    assert report.longest_skip_s == 900


def test_atomic_groups_do_not_count_against_the_limit() -> None:
    nodes = [make_node(f"n{number:03}") for number in range(30)]
    world = World(nodes, groups=[make_group(size=30, zero_or_max_node_scaling=True)])
    assert len(make_planner(max_scale_down_parallelism=1).update(world.look()).unneeded) == 30


def test_two_turns_may_share_a_moment() -> None:
    world = World([make_node("a")])
    planner = make_planner()
    planner.update(world.look())
    assert planner.update(world.look()).unneeded == ["a"]


def test_simulations_end_when_their_time_is_up() -> None:
    ticks = iter(range(0, 1000, 10))
    planner = ScaleDownPlanner(AutoscalerOptions(scale_down_simulation_timeout_s=30), lambda: float(next(ticks)))
    world = World([make_node(name) for name in "abcdef"])
    report = planner.update(world.look())
    assert report.unneeded == ["a", "b"]
    assert report.skipped == ["c", "d", "e", "f"]
    assert "time" in report.skipped_because


def test_unneeded_nodes_of_the_turn_before_come_first() -> None:
    pods = [make_pod("b", "b", cpu="1500m"), make_pod("a", "a", cpu="2500m"), make_pod("c", "c", cpu="1")]
    world = World([make_node("a"), make_node("b"), make_node("c")], pods)
    planner = make_planner()
    assert planner.update(world.look()).unneeded == ["b"]
    world.pods[1] = make_pod("a2", "a", cpu="1")
    report = planner.update(world.look(10))
    assert report.candidates[0] == "b"


def test_times_survive_a_restart_in_taints() -> None:
    node = make_node("a", taints=[deletion_candidate(NOW_S - 500)])
    for ttl_s, expected in ((0.0, []), (1800.0, ["a"])):
        world = World([node])
        planner = make_planner(node_deletion_candidate_ttl_s=ttl_s)
        planner.update(world.look())
        planner.update(world.look(101))
        assert names(planner.nodes_to_delete(world.now_s))[0] == expected


def test_an_unhealthy_cluster_makes_it_forget() -> None:
    world = World([make_node("a")])
    planner = make_planner()
    planner.update(world.look())
    planner.clear()
    assert planner.unneeded() == []
    planner.update(world.look(601))
    assert names(planner.nodes_to_delete(world.now_s)) == ([], [])


def test_pods_that_were_just_evicted_take_their_room_first() -> None:
    evicted = make_pod("e", cpu="3500m", owner=("CloneSet", "c"))
    world = World([make_node("a"), make_node("b")], [make_pod("p", "a", cpu="1")])
    assert make_planner().update(world.look()).unneeded == ["b"]
    world.evicted = (evicted,)
    report = make_planner().update(world.look())
    assert report.unneeded == []


def test_nodes_that_are_no_candidates_are_reported_apart() -> None:
    world = World([make_node("foreign"), make_node("a")])
    del world.group_of_node["foreign"]
    report = make_planner().update(world.look())
    assert report.candidates == ["a"]
    assert [(stays.name, str(stays.reason)) for stays in report.not_candidates] == [("foreign", "NotAutoscaled")]
    assert reasons(report) == {}


def test_nothing_goes_while_nobody_knows_how_many_accelerators_there_are() -> None:
    world = World([make_node("a", labels={"gpu": "k80"})])
    world.limiter = ResourceLimiter({"k80": 1})
    planner = make_planner()
    planner.update(world.look(gpu_label="gpu"))
    planner.update(world.look(601, gpu_label="gpu"))
    found = planner.nodes_to_delete(world.now_s)
    assert names(found) == ([], [])
    assert "accelerators" in found.unremovable[0].detail


def test_without_a_look_at_the_cluster_nothing_goes() -> None:
    assert make_planner().nodes_to_delete(NOW_S) == Removals()
