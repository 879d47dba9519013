"""What holds for every cluster, whatever the planner decides."""

from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_down.budgets import crop_to_budgets
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.scale_down.world import World, make_group, make_node, make_pdb, make_pod

NODE_CPU_MILLI = 4000
OWNERS = st.sampled_from([("ReplicaSet", "rs"), ("DaemonSet", "ds"), ("Job", "job"), None])
PODS = st.lists(st.tuples(st.sampled_from([100, 500, 1500]), OWNERS, st.sampled_from("abc")), max_size=4)
CLUSTERS = st.lists(PODS, min_size=1, max_size=15)


def build(cluster: list[list[tuple[int, tuple[str, str] | None, str]]], min_size: int, allowed: int) -> World:
    names = [f"n{number:02}" for number in range(len(cluster))]
    pods = [
        make_pod(f"{name}-{index}", name, cpu=f"{cpu}m", memory="0", owner=owner, labels={"app": app})
        for name, contents in zip(names, cluster, strict=True)
        for index, (cpu, owner, app) in enumerate(contents)
    ]
    group = make_group(size=len(names), min_size=min_size, members=names)
    world = World([make_node(name) for name in names], pods, groups=[group])
    world.pdbs = [make_pdb(app, app=app, allowed=allowed) for app in "ab"]
    return world


def cpu_milli(pod: JsonObject) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


def names(pods: Iterable[JsonObject]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


@settings(max_examples=60)
@given(CLUSTERS, st.integers(0, 3), st.integers(0, 3))
def test_every_candidate_is_accounted_for_and_nothing_is_broken(
    cluster: list[list[tuple[int, tuple[str, str] | None, str]]], min_size: int, allowed: int
) -> None:
    world = build(cluster, min_size, allowed)
    options = AutoscalerOptions(max_drain_parallelism=3)
    planner = ScaleDownPlanner(options, lambda: 0.0)
    planner.update(world.look())
    look = world.look(601)
    pods_before = {name: look.snapshot.pods_on(name) for name in world.nodes}
    report = planner.update(look)
    removals = planner.nodes_to_delete(world.now_s)
    assert {name: look.snapshot.pods_on(name) for name in world.nodes} == pods_before

    # Each candidate may go, stays for a reason, or was not looked at.
    stays = [found.name for found in report.unremovable]
    assert Counter([*report.unneeded, *stays, *report.skipped]) == Counter(report.candidates)

    # Whoever goes has nobody on it that must not be moved, and all the others have room for its pods.
    going = [*removals.empty, *removals.drain]
    for removal in going:
        on_node = pods_before[removal.name]
        assert all(pod["metadata"].get("ownerReferences") for pod in on_node)
        assert names(on_node) - names(removal.daemon_set_pods) <= names(removal.pods_to_reschedule)
    left = [name for name in world.nodes if name not in {removal.name for removal in going}]
    free = sum(max(0, NODE_CPU_MILLI - sum(map(cpu_milli, pods_before[name]))) for name in left)
    homeless = {pod["metadata"]["name"]: pod for removal in going for pod in removal.pods_to_reschedule
                if pod["spec"]["nodeName"] not in left}  # fmt: skip
    assert sum(map(cpu_milli, homeless.values())) <= free

    # Sizes and limits are kept.
    assert len(going) <= max(0, len(world.nodes) - min_size)
    empty, drain = crop_to_budgets(
        removals.empty, removals.drain, options=options, deletions=look.deletions, groups=look.groups,
        group_of_node=look.observation.group_of_node, nodes=look.snapshot.nodes(),
    )  # fmt: skip
    assert sum(len(batch.nodes) for batch in [*empty, *drain]) <= options.max_scale_down_parallelism
    assert sum(len(batch.nodes) for batch in drain) <= options.max_drain_parallelism


@settings(max_examples=30)
@given(CLUSTERS)
def test_the_same_cluster_gives_the_same_plan(cluster: list[list[tuple[int, tuple[str, str] | None, str]]]) -> None:
    found = []
    for _ in range(2):
        planner = ScaleDownPlanner(AutoscalerOptions(), lambda: 0.0)
        report = planner.update(build(cluster, 0, 1).look())
        found.append((report.unneeded, [stays.as_json() for stays in report.unremovable], report.candidates))
    assert found[0] == found[1]
