"""Pods that a snapshot's engine is told of when somebody looks."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import owned_pod
from tests.packing.objects import make_node

NODES = [make_node(f"n{i}") for i in range(3)]
STEPS: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"])), max_size=4)),
    st.tuples(st.sampled_from(["fork", "commit", "rollback", "look", "look at one", "turn", "replace"]), st.just([])),
)


def take(snapshot: ClusterSnapshot, what: str, pods: list[tuple[int, JsonObject]]) -> None:
    if what == "put":
        snapshot.put_later([(snapshot.kinds.facts_of(pod), index) for index, pod in pods])
    elif what == "fork":
        snapshot.fork()
    elif what in ("commit", "rollback"):
        if snapshot._saved_orders:
            getattr(snapshot, what)()
    elif what == "turn":
        snapshot.set_cluster_state(NODES, ())
    elif what == "replace":
        snapshot.replace_node({**NODES[0], "spec": {"unschedulable": True}})


def seen(snapshot: ClusterSnapshot) -> list[object]:
    state = snapshot.state
    return [
        [snapshot.pods_on(name) for name in snapshot.node_names],
        state.used("cpu").tolist(), state.used("pods").tolist(), sorted(state.pods), sorted(snapshot.touched),
    ]  # fmt: skip


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_nobody_can_tell_when_the_engine_was_told(steps: list[tuple[str, list[tuple[int, str]]]]) -> None:
    lazy, eager = ClusterSnapshot(), ClusterSnapshot()
    for snapshot in (lazy, eager):
        snapshot.set_cluster_state(NODES, ())
    made = 0
    for what, wanted in steps:
        pods = []
        for index, owner in wanted:
            made += 1
            pods.append((index, owned_pod(f"p{made}", owner, labels={"rs": owner}, requests={"cpu": "1"})))
        take(lazy, what, pods)
        take(eager, what, pods)
        # The one looks at once what became of it, the other only now and then.
        eager.state.used("cpu")
        if what == "look":
            assert seen(lazy) == seen(eager)
        elif what == "look at one":
            assert lazy.pods_on("n1") == eager.pods_on("n1")
            row = lazy.row("n1")
            assert lazy.state_of("n1").free(row) == eager.state.free(eager.row("n1"))
    assert seen(lazy) == seen(eager)


def test_a_turn_at_which_nobody_looks_costs_the_engine_nothing() -> None:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state(NODES, ())
    pod = owned_pod("p", requests={"cpu": "1"})
    snapshot.put_later([(snapshot.kinds.facts_of(pod), 1)])
    assert snapshot.mark("n1") is None, "it is not what it was"
    assert snapshot.mark("n0") is not None and snapshot.pods_on("n0") == []
    assert "default/p" not in snapshot.state_of("n0").pods
    assert snapshot.pods_on("n1") == [pod]
    assert "default/p" in snapshot.state_of("n0").pods
