from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.packing import ClusterState, PodClass
from holokube.packing.arrays import IntArray, RowArray
from holokube.scheduler.cycle import NO_NODES, Bind, Cycle, Decision, Refuse
from holokube.scheduler.nominations import Nominations
from tests.builders import JsonObject
from tests.packing.objects import affinity_term, pod_affinity, pod_anti_affinity, spread
from tests.scheduler.objects import make_node, waiting

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def alike(cls: PodClass, pod: JsonObject, rows: RowArray) -> IntArray:
    return np.zeros(len(rows), dtype=np.int64)


def by_row(cls: PodClass, pod: JsonObject, rows: RowArray) -> IntArray:
    return rows.astype(np.int64)


def state_of(*nodes: str, **more: Any) -> ClusterState:
    state = ClusterState()
    for name in nodes:
        state.add_node(make_node(name, {"zone": name}, **more))
    return state


def cycle_on(state: ClusterState, score: Any = by_row, *, seed: int = 0, **more: Any) -> Cycle:
    return Cycle(state, more.pop("nominations", Nominations()), score, Rng(seed), **more)


def refused(decision: Decision) -> Refuse:
    assert isinstance(decision, Refuse)
    return decision


def bound_to(decision: Decision) -> str:
    assert isinstance(decision, Bind)
    return decision.node_name


def test_the_best_feasible_node_is_taken() -> None:
    state = state_of("a", "b", "c")
    state.add_pod(waiting("there", node="c", cpu="4"))
    decision = cycle_on(state).decide(waiting(cpu="1"), NOW)
    assert isinstance(decision, Bind)
    assert (decision.node_name, decision.row, decision.feasible) == ("b", 1, 2)


def test_ties_are_drawn_evenly() -> None:
    cycle = cycle_on(state_of("a", "b", "c"), alike)
    taken = [bound_to(cycle.decide(waiting(), NOW)) for _ in range(300)]
    assert all(70 <= taken.count(name) <= 130 for name in "abc"), "each about a third"
    again = cycle_on(state_of("a", "b", "c"), alike)
    assert [bound_to(again.decide(waiting(), NOW)) for _ in range(300)] == taken, "the same seed, the same draws"


def test_without_nodes_nobody_is_to_blame() -> None:
    decision = refused(cycle_on(ClusterState()).decide(waiting(), NOW))
    assert (decision.message, decision.plugins) == ("no nodes available to schedule pods", NO_NODES)


def test_a_refusal_names_filters_and_victims() -> None:
    state = state_of("a")
    state.add_pod(waiting("low", node="a", cpu="4"))
    decision = refused(cycle_on(state).decide(waiting("vip", cpu="2", priority=5), NOW))
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.plugins == {"NodeResourcesFit"} and decision.nominate == "a"
    assert [victim["metadata"]["name"] for victim in decision.victims] == ["low"]
    without = refused(cycle_on(state, preempts=False).decide(waiting("vip", cpu="2", priority=5), NOW))
    assert (without.nominate, without.victims) == (None, ())


def test_a_promised_node_is_taken_first_and_left_if_it_will_not_do() -> None:
    state = state_of("a", "b", "c")
    assert bound_to(cycle_on(state).decide(waiting(nominated="a"), NOW)) == "a"
    state.add_pod(waiting("there", node="a", cpu="4"))
    assert bound_to(cycle_on(state).decide(waiting(nominated="a", cpu="1"), NOW)) == "c"
    assert bound_to(cycle_on(state).decide(waiting(nominated="gone"), NOW)) == "c"


def test_room_promised_to_others_is_left_to_those_that_matter_as_much() -> None:
    state, nominations = state_of("a"), Nominations()
    nominations.put(waiting("vip", priority=5, cpu="3"), "a")
    cycle = cycle_on(state, nominations=nominations)
    decision = refused(cycle.decide(waiting("p", priority=5, cpu="2"), NOW))
    assert decision.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert bound_to(cycle.decide(waiting("q", priority=6, cpu="2"), NOW)) == "a"
    assert bound_to(cycle.decide(waiting("r", priority=5, cpu="1"), NOW)) == "a"
    assert bound_to(cycle.decide(waiting("vip", priority=5, cpu="3", nominated="a"), NOW)) == "a"


def test_a_friend_that_is_only_promised_is_not_relied_on() -> None:
    state, nominations = state_of("a"), Nominations()
    nominations.put(waiting("web", priority=5, labels={"app": "web"}), "a")
    near = waiting("p", affinity=pod_affinity(affinity_term("web", "zone")))
    assert refused(cycle_on(state, nominations=nominations).decide(near, NOW)).plugins == {"InterPodAffinity"}
    away = waiting("q", affinity=pod_anti_affinity(affinity_term("web", "zone")))
    assert refused(cycle_on(state, nominations=nominations).decide(away, NOW)).plugins == {"InterPodAffinity"}


def test_disabled_filters_are_not_asked() -> None:
    state = state_of("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert refused(cycle_on(state).decide(waiting(), NOW)).plugins == {"TaintToleration"}
    assert bound_to(cycle_on(state, disabled_filters=frozenset({"TaintToleration"})).decide(waiting(), NOW)) == "a"


def test_a_known_refusal_is_given_again_until_something_changes() -> None:
    state = state_of("a")
    state.add_pod(waiting("there", node="a", cpu="4"))
    cycle = cycle_on(state)
    first = refused(cycle.decide(waiting("p", cpu="1"), NOW))
    assert cycle.decide(waiting("q", cpu="1"), NOW) is first
    state.remove_pod("default/there")
    assert bound_to(cycle.decide(waiting("q", cpu="1"), NOW)) == "a"


def test_a_known_refusal_is_not_given_again_when_a_pod_that_stays_begins_to_end() -> None:
    state = state_of("a", "b")
    even = waiting("p", cpu="1", labels={"app": "x"}, topologySpreadConstraints=[spread("zone", "x")])
    # Who asks for a label comes first, or those that have it are no longer of the class they were taken for.
    state.class_of(even)
    there = waiting("there", node="a", cpu="1", labels={"app": "x"})
    state.add_pod(there)
    state.add_pod(waiting("large", node="b", cpu="4"))
    cycle = cycle_on(state)
    refused(cycle.decide(even, NOW))
    state.add_pod({**there, "metadata": {**there["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert bound_to(cycle.decide(even, NOW)) == "a"


def _pod(data: st.DataObject, number: int) -> JsonObject:
    app = data.draw(st.sampled_from("xy"))
    kind = data.draw(st.sampled_from(("plain", "plain", "near", "away", "spread")))
    more: JsonObject = {}
    if kind == "near":
        more["affinity"] = pod_affinity(affinity_term("x", "zone"))
    elif kind == "away":
        more["affinity"] = pod_anti_affinity(affinity_term(app, "zone"))
    elif kind == "spread":
        more["topologySpreadConstraints"] = [spread("zone", app)]
    priority, cpu = data.draw(st.integers(0, 2)), data.draw(st.sampled_from(("1", "2", "3")))
    return waiting(f"p{number}", priority=priority, cpu=cpu, labels={"app": app}, **more)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_remembered_changes_no_decision(data: st.DataObject) -> None:
    """A cycle with a history decides like one that sees the cluster for the first time, and leaves no trace."""
    state, nominations = state_of("a", "b", "c"), Nominations()
    cycle = cycle_on(state, nominations=nominations)
    nodes = {name: make_node(name, {"zone": name}) for name in "abc"}
    for number in range(data.draw(st.integers(1, 15))):
        pod = _pod(data, number)
        before = {key: placed.node_name for key, placed in state.pods.items()}
        decision = cycle.decide(pod, NOW)
        assert {key: placed.node_name for key, placed in state.pods.items()} == before
        fresh = ClusterState()
        for node in nodes.values():
            fresh.add_node(node)
        for placed in state.pods.values():
            assert placed.pod is not None
            fresh.assume_pod(placed.pod, fresh.node_names[placed.node_name])
        expected = cycle_on(fresh, nominations=nominations).decide(pod, NOW)
        assert type(decision) is type(expected)
        if isinstance(decision, Bind) and isinstance(expected, Bind):
            assert (decision.node_name, decision.feasible) == (expected.node_name, expected.feasible)
            state.assume_pod(pod, decision.row)
        elif isinstance(decision, Refuse) and isinstance(expected, Refuse):
            assert (decision.message, decision.plugins) == (expected.message, expected.plugins)
            assert bool(decision.victims) == bool(expected.victims)
            nominations.put(pod, decision.nominate or "")
            if data.draw(st.booleans()):
                for victim in decision.victims:
                    state.remove_pod(f"default/{victim['metadata']['name']}")


def test_pods_with_the_very_same_labels_may_still_be_of_different_kinds() -> None:
    state = state_of("a")
    cycle = cycle_on(state)
    small, large = waiting("small", labels={"app": "x"}), waiting("large", cpu="100", labels={"app": "x"})
    elsewhere = waiting("elsewhere", labels={"app": "x"})
    large["metadata"]["labels"] = elsewhere["metadata"]["labels"] = small["metadata"]["labels"]
    elsewhere["metadata"]["namespace"], elsewhere["spec"] = "other", small["spec"]
    assert bound_to(cycle.decide(small, NOW)) == "a"
    decision = cycle.decide(elsewhere, NOW)
    assert isinstance(decision, Bind)
    assert decision.cls is state.class_of(elsewhere)
    assert decision.cls is not state.class_of(small)
    assert refused(cycle.decide(large, NOW)).plugins == {"NodeResourcesFit"}


def test_a_kind_that_a_new_selector_parts_is_not_taken_from_memory() -> None:
    state = state_of("a")
    cycle = cycle_on(state)
    pod = waiting("p", labels={"app": "x"})
    first = cycle.decide(pod, NOW)
    foe = waiting("foe", node="a", affinity=pod_anti_affinity(affinity_term("x", "zone")))
    state.add_pod(foe)
    assert isinstance(first, Bind)
    assert first.cls.is_stale
    assert refused(cycle.decide(pod, NOW)).plugins == {"InterPodAffinity"}
