from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.lazy import lazy
from holokube.base.rng import Rng
from holokube.karpenter.scheduling.state_node import Reading, StateNode, is_ephemeral, requests_of
from holokube.kube.resources import parse_resources
from holokube.kube.taints import Taint
from tests.karpenter.scheduling.builders import pod, spread, state_node


def _claim(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "claim", "labels": {"from": "claim"}, "annotations": {"a": "claim"}},
        "spec": {
            "taints": [{"key": "t", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
        },
        "status": {"providerID": "kwok://x", **status},
    }


def _node(labels: dict[str, str], taints: list[dict[str, str]] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "node", "labels": {"from": "node", **labels}},
        "spec": {"taints": taints or [], "providerID": "kwok://y"},
        "status": status,
    }


REGISTERED = {"karpenter.sh/registered": "true"}
READY = {**REGISTERED, "karpenter.sh/initialized": "true"}


def test_one_of_node_and_claim_is_needed() -> None:
    with pytest.raises(ValueError, match="needs a Node or a NodeClaim"):
        StateNode(None)


def test_the_claim_speaks_until_the_node_has_registered() -> None:
    for node in (None, _node({})):
        state = StateNode(node, _claim())
        assert (state.name, state.labels, state.annotations) == ("claim", {"from": "claim"}, {"a": "claim"})
        assert state.taints == (Taint("t", "", "NoSchedule"),)
        assert not state.is_registered and not state.is_initialized
    state = StateNode(_node(REGISTERED), _claim())
    assert (state.name, state.labels["from"], state.is_initialized) == ("node", "node", False)


def test_a_node_without_a_claim_is_always_ready() -> None:
    state = StateNode(_node({}, [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]))
    assert state.is_registered and state.is_initialized and not state.is_managed
    assert state.taints == (Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),)


def test_taints_of_a_node_that_is_coming_up_are_those_that_will_stay() -> None:
    taints = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, {"key": "stays", "effect": "NoSchedule"},
        {"key": "s", "effect": "NoSchedule", "value": "x"}, {"key": "readiness.k8s.io/net", "effect": "NoSchedule"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
    ]  # fmt: skip
    assert StateNode(_node(REGISTERED, taints), _claim()).taints == (Taint("stays", "", "NoSchedule"),)
    assert len(StateNode(_node(READY, taints), _claim()).taints) == 5


def test_a_restarting_node_is_expected_back() -> None:
    claim = _claim(conditions=[{"type": "Rebooting", "status": "True"}])
    state = StateNode(_node(READY, [{"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}]), claim)
    assert state.is_rebooting and state.taints == ()


def test_the_claim_fills_in_what_the_node_reports_as_zero() -> None:
    claim = _claim(capacity={"cpu": "8", "gpu": "1"}, allocatable={"cpu": "7", "gpu": "1"})
    state = StateNode(_node(REGISTERED, capacity={"cpu": "4"}, allocatable={"cpu": "3", "gpu": "0"}), claim)
    assert state.allocatable == parse_resources({"cpu": "3", "gpu": "1"})
    assert state.capacity == parse_resources({"cpu": "4", "gpu": "1", "nodes": "1"})
    assert StateNode(_node(READY, allocatable={"cpu": "3"}), claim).allocatable == parse_resources({"cpu": "3"})
    assert StateNode(None, claim).allocatable == parse_resources({"cpu": "7", "gpu": "1"})


def test_what_is_available_leaves_out_pods_that_have_ended() -> None:
    state = state_node("n", cpu="4", bound=[pod("a", "1"), pod("b", "1")])
    ended = {**state.pods[0], "status": {"phase": "Succeeded"}}
    assert state.available["cpu"] == 2000
    assert state.with_pods((ended, state.pods[1])).available["cpu"] == 3000
    assert state.available["pods"] == 108_000


def test_daemons_are_counted_apart() -> None:
    daemon = pod("d", "300m")
    daemon["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}]
    state = state_node("n", bound=[daemon, pod("a", "1")])
    assert state.daemon_requests["cpu"] == 300
    assert state.pod_requests["cpu"] == 1300


def test_a_node_is_going_when_it_is_marked_or_deleted_or_its_instance_ends() -> None:
    assert StateNode(_node({}), None, is_marked=True).is_marked_for_deletion
    gone = _node({})
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert StateNode(gone).is_marked_for_deletion
    assert not StateNode(gone, _claim()).is_marked_for_deletion
    assert StateNode(_node({}), _claim(conditions=[{"type": "InstanceTerminating", "status": "True"}])).is_deleted
    assert not StateNode(_node({}), _claim()).is_marked_for_deletion


def test_nomination_ends() -> None:
    state = StateNode(_node({}), None, nominated_until_s=20.0)
    assert state.is_nominated(19.9) and not state.is_nominated(20.0)


def test_a_pod_in_the_middle_of_a_resize_counts_with_the_larger_amount() -> None:
    resized = pod("p", "1")
    resized["status"] = {"containerStatuses": [
        {"name": "c", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}},
    ]}  # fmt: skip
    assert requests_of(resized)["cpu"] == 3000


def test_only_known_taints_go_away_by_themselves() -> None:
    assert is_ephemeral(Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"))
    assert not is_ephemeral(Taint("node.kubernetes.io/unreachable", "", "NoExecute"))


LAZY = sorted(name for name, one in vars(StateNode).items() if isinstance(one, lazy))


def _some_states(rng: Rng) -> list[StateNode]:
    """States of one instance whose objects come and go, and are sometimes the very same."""
    taints = [{"key": key, "effect": "NoSchedule"} for key in ("s", "stays", "karpenter.sh/rebooting")]
    nodes = [None] + [
        _node(rng.choice(({}, REGISTERED, READY, READY)), taints[rng.randrange(3) :], allocatable={"cpu": "4"})
        for _ in range(2)
    ]
    kinds = ("Rebooting", "Drifted", "InstanceTerminating")
    claims = [None] + [
        _claim(
            conditions=[{"type": kind, "status": "True"} for kind in kinds if rng.randrange(2)],
            allocatable={"cpu": "3"},
        )
        for _ in range(2)
    ]
    # With the very same conditions, as a deletion leaves them.
    claims += [{**one, "metadata": {**one["metadata"], "deletionTimestamp": "t"}} for one in claims if one is not None]
    # And as the note of when pods changed leaves them.
    claims += [
        {**one, "status": {**one["status"], "lastPodEventTime": str(number)}}
        for number, one in enumerate(claims)
        if one is not None
    ]
    pods = [tuple(pod(f"p{number}") for number in range(count)) for count in (0, 2, 3)]
    guarded = pod("q", topologySpreadConstraints=[spread("zone", "x")])
    guarded["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    pods.append((guarded,))
    found = []
    while len(found) < 5:
        node, claim = rng.choice(nodes), rng.choice(claims)
        if node is not None or claim is not None:
            found.append(StateNode(node, claim, rng.choice(pods), is_marked=rng.random() < 0.3))
    return found


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_what_is_carried_over_is_what_would_be_worked_out_anew(seed: int) -> None:
    rng = Rng(f"carried {seed}")
    before: StateNode | None = None
    for state in _some_states(rng):
        if before is not None:
            for name in LAZY:
                if rng.random() < 0.7:
                    getattr(before, name)
            state.carry_over(before)
        anew = StateNode(state.node, state.node_claim, state.pods, state.is_marked)
        for name in LAZY:
            if name != "facts":
                assert getattr(state, name) == getattr(anew, name), name
        before = state


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_node_that_follows_another_is_like_one_made_anew(seed: int) -> None:
    rng = Rng(f"followed {seed}")
    states = _some_states(rng)
    last = StateNode(states[0].node, states[0].node_claim, states[0].pods, states[0].is_marked, serial=7)
    readings: dict[int, Reading] = {}
    for state in states:
        for name in LAZY:
            if rng.random() < 0.7:
                getattr(last, name)
        known = {name: last.__dict__.get(name) for name in LAZY}
        is_plain = all(facts.is_ordinary for facts in state.facts)
        reading = readings.setdefault(id(state.pods), (state.pods, state.facts, is_plain))
        made = last.followed_by(state.node, state.node_claim, reading, state.is_marked, rng.random())
        anew = StateNode(state.node, state.node_claim, state.pods, state.is_marked)
        assert (made.node, made.node_claim, made.pods) == (anew.node, anew.node_claim, anew.pods)
        assert (made.is_marked, made.serial, made.known_facts) == (anew.is_marked, 7, reading)
        for name in LAZY:
            assert getattr(made, name) == getattr(anew, name) or name == "facts", name
        assert [facts.pod for facts in made.facts] == list(made.pods)
        # What was there before has not changed.
        assert all(last.__dict__.get(name) is one for name, one in known.items())
        last = made
