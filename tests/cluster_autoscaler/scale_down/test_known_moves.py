"""What is remembered of the pods of nodes is what the drain rules say of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_down.drain import pods_to_move
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, Judge, rules_for
from holokube.cluster_autoscaler.scale_down.known_moves import KnownMoves
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.kube.timeformat import format_time
from tests.cluster_autoscaler.scale_down.world import NOW_S, SAFE_TO_EVICT, World, make_node, make_pdb, make_pod

# Owners are looked for only if this is on.
OPTIONS = AutoscalerOptions(skip_nodes_with_custom_controller_pods=True, min_replica_count=2)
RULES = rules_for(OPTIONS)
NODES = [f"n{i}" for i in range(4)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "no pod", "replicas", "gone", "budget", "guest", *["turn"] * 4]),
        st.integers(0, 7), st.integers(0, 6),
    ),
    min_size=8, max_size=40,
)  # fmt: skip


def some_pod(name: str, node: str, kind: int) -> Any:
    if kind == 0:
        return make_pod(name, node, owner=("DaemonSet", "d"))
    if kind == 1:
        return make_pod(name, node, annotations={SAFE_TO_EVICT: "on-completion"})
    if kind == 2:
        return make_pod(name, node, namespace="kube-system", age_s=3500.0)
    if kind == 3:
        pod = make_pod(name, node)
        pod["metadata"]["deletionTimestamp"] = format_time(NOW_S)
        return pod
    return make_pod(name, node, owner=("ReplicaSet", f"rs{kind}"), labels={"app": f"a{kind}"})


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_what_is_remembered_of_a_node_is_what_a_first_look_finds(steps: list[tuple[str, int, int]]) -> None:
    world = World([make_node(name) for name in NODES])
    moves, pods = KnownMoves(Judge(RULES)), {f"p{i}": some_pod(f"p{i}", NODES[i % 4], 4 + i % 3) for i in range(6)}
    controllers: dict[tuple[str, str, str], Any] = {}
    pdbs: tuple[Any, ...] = ()
    guests: list[str] = []
    for what, i, kind in [*steps, ("turn", 0, 0), ("turn", 0, 0)]:
        name = f"p{i}"
        if what == "pod":
            pods[name] = some_pod(name, NODES[(i + kind) % 4], kind)
        elif what == "no pod":
            pods.pop(name, None)
        elif what == "replicas":
            controllers = {**controllers, ("ReplicaSet", "default", f"rs{kind}"): {"spec": {"replicas": i}}}
        elif what == "gone":
            controllers = {key: found for key, found in controllers.items() if key[2] != f"rs{kind}"}
        elif what == "budget":
            pdbs = () if i > 3 else (make_pdb(app=f"a{kind}", allowed=i),)
        elif what == "guest":
            guests.append(NODES[i % 4])
        elif what == "turn":
            world.pods = list(pods.values())
            snapshot = world.look(after_s=40.0).snapshot
            for number, node in enumerate(guests):
                snapshot.force_add_pod(some_pod(f"guest{number}", "", 5), node)
            guests.clear()
            context = DrainContext(world.now_s, OPTIONS, PdbTracker(pdbs), controllers)
            for node in NODES[kind % 2 :]:
                there = snapshot.pods_on(node)
                found = moves.of(node, snapshot, context)
                assert found.moves == pods_to_move(there, RULES, context)
                assert [facts.pod for group in found.groups for facts in group] == list(found.moves.pods)
                assert found.kinds.keys() == {snapshot.kinds.kind_of(pod) for pod in there}
            moves.drop_old()


def test_nothing_is_worked_out_again_while_only_the_status_of_controllers_changes() -> None:
    world = World([make_node("n")], [make_pod("p", "n")])
    moves, key = KnownMoves(Judge(RULES)), ("ReplicaSet", "default", "rs")
    snapshot = world.look().snapshot

    def look(replicas: int, ready: int) -> Any:
        controller = {"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}}
        moves.begin()
        found = moves.of("n", snapshot, DrainContext(NOW_S, OPTIONS, PdbTracker(), {key: controller}))
        moves.drop_old()
        return found

    first = look(3, 0)
    assert look(3, 1) is first
    assert moves.controllers == {key}
    assert look(1, 1).moves.blocking_pod is not None
    assert moves.controllers is None


def test_a_planner_is_settled_once_all_pods_go_where_they_went() -> None:
    nodes = [make_node(f"n{i}") for i in range(4)]
    pods = [make_pod("big", "n0", cpu="3"), make_pod("small", "n1", owner=("ReplicaSet", "few"))]
    world = World(nodes[:2], pods)
    planner = ScaleDownPlanner(AutoscalerOptions(), lambda: 0.0)
    assert planner.settled_on() is None
    assert planner.update(world.look()).unneeded == ["n1"]
    assert planner.settled_on() is None
    assert planner.update(world.look(10.0)).unneeded == ["n1"]
    assert planner.settled_on() == {("ReplicaSet", "default", "few")}
    # Where there is no room any more, a pod has to look again.
    world.pods = [*pods, make_pod("bigger", "n0", cpu="950m")]
    assert planner.update(world.look(10.0)).unneeded == []
    assert planner.settled_on() is None
