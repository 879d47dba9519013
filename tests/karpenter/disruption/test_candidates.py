from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.candidates import obstructions
from holokube.karpenter.disruption.types import Blocker, DisruptionClass
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import NOW_S, daemon, mirror, node, pdb, pod, pool, view

GRACEFUL, EVENTUAL = DisruptionClass.GRACEFUL, DisruptionClass.EVENTUAL
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}


def blockers(one: StateNode, disruption_class: DisruptionClass = GRACEFUL, **more: Any) -> list[Blocker]:
    rules = view([one], **more).rules
    return [found.blocker for found in obstructions(one, rules, disruption_class)]


def test_a_quiet_node_is_a_candidate_with_its_costs() -> None:
    pods = (pod("a"), pod("b", priority=2**25), daemon("d"))
    [candidate] = view([node("n", pods=pods)]).scan(GRACEFUL).candidates
    assert candidate.name == "n"
    assert candidate.price == 0.2
    assert candidate.disruption_cost == 4.0
    assert candidate.reschedule_cost == 4.0
    assert candidate.ratio == 0.05
    assert [one["metadata"]["name"] for one in candidate.movable_pods] == ["a", "b"]
    assert not candidate.is_empty


def test_the_disruption_cost_falls_with_the_age_of_the_node() -> None:
    old = node("n", pods=(pod("a"),), claim_spec={"expireAfter": "24h"}, created_s=NOW_S - 18 * 3600)
    [candidate] = view([old]).scan(GRACEFUL).candidates
    assert candidate.disruption_cost == 0.25
    assert candidate.reschedule_cost == 2.0


def test_a_pod_that_nobody_minds_lowers_the_one_cost_and_not_the_other() -> None:
    pods = (pod("a"), pod("b", priority=-2_000_000_000), daemon("d"))
    [candidate] = view([node("n", pods=pods)]).scan(GRACEFUL).candidates
    assert candidate.disruption_cost == -8.0
    assert candidate.reschedule_cost == 2.0


def test_a_node_with_nothing_but_daemons_is_empty() -> None:
    [candidate] = view([node("n", pods=(daemon("a"), mirror("b")))]).scan(GRACEFUL).candidates
    assert candidate.is_empty


def test_a_node_with_pods_that_nobody_minds_is_empty() -> None:
    [candidate] = view([node("n", pods=(pod("a", priority=-(2**25)),))]).scan(GRACEFUL).candidates
    assert candidate.is_empty
    assert len(candidate.reschedulable_pods) == 1


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"conditions": ("Rebooting",)}, Blocker.REBOOTING),
        ({"marked": True}, Blocker.DELETING),
        ({"claim_deleted": True}, Blocker.DELETING),
        ({"conditions": ("InstanceTerminating",)}, Blocker.DELETING),
        ({"initialized": False}, Blocker.NOT_INITIALIZED),
        ({"initialized": False, "registered": False}, Blocker.NOT_REGISTERED),
        ({"nominated_until_s": NOW_S + 1}, Blocker.NOMINATED),
        ({"annotations": PROTECTED}, Blocker.NODE_DO_NOT_DISRUPT),
        ({"without_labels": ("karpenter.sh/nodepool",)}, Blocker.NO_POOL_LABEL),
        ({"pool": "other"}, Blocker.UNKNOWN_POOL),
        ({"pods": (pod("a", annotations=PROTECTED),)}, Blocker.POD_DO_NOT_DISRUPT),
        ({"pods": (daemon("a", annotations=PROTECTED),)}, Blocker.POD_DO_NOT_DISRUPT),
        ({"pods": (mirror("a", annotations=PROTECTED),)}, Blocker.POD_DO_NOT_DISRUPT),
    ],
)
def test_each_blocker_keeps_its_node(spec: dict[str, Any], expected: Blocker) -> None:
    blocked = node("n", **spec)
    assert blockers(blocked) == [expected]
    scan = view([blocked]).scan(GRACEFUL)
    assert scan.candidates == ()
    assert [(one.node_name, obstruction.blocker) for one, obstruction in scan.blocked] == [("n", expected)]


def test_a_node_of_nobody_and_a_claim_without_node_are_no_candidates() -> None:
    managed = node("n")
    assert blockers(StateNode(managed.node)) == [Blocker.NOT_MANAGED]
    assert blockers(StateNode(None, managed.node_claim)) == [Blocker.NO_NODE]


def test_a_node_that_a_command_has_is_no_candidate() -> None:
    assert blockers(node("n"), queued=frozenset({"kwok://n"})) == [Blocker.QUEUED]


def test_a_pool_without_instance_types_is_unknown() -> None:
    assert blockers(node("n"), types=()) == [Blocker.UNKNOWN_POOL]


def test_a_nomination_ends() -> None:
    assert blockers(node("n", nominated_until_s=NOW_S)) == []


def test_an_annotation_with_another_value_does_not_protect_a_node() -> None:
    assert blockers(node("n", annotations={"karpenter.sh/do-not-disrupt": "1h"})) == []


def test_ended_pods_do_not_protect_their_node() -> None:
    assert blockers(node("n", pods=(pod("a", annotations=PROTECTED, phase="Succeeded"),))) == []
    assert blockers(node("n", pods=(pod("a", annotations=PROTECTED, deleted=True),))) == []


def test_a_deleting_pool_does_not_protect_its_nodes() -> None:
    gone = pool()
    gone.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert blockers(node("n"), pools=[gone]) == []


def test_every_reason_is_found_and_the_first_is_told() -> None:
    bad = node(
        "n",
        annotations=PROTECTED,
        nominated_until_s=NOW_S + 5,
        pods=(pod("a", annotations=PROTECTED), pod("b", labels={"app": "b"}), pod("c", labels={"app": "c"})),
    )
    pdbs = [pdb("x", "b", allowed=0), pdb("y", "c"), pdb("z", "c")]
    found = list(obstructions(bad, view([bad], pdbs=pdbs).rules, GRACEFUL))
    assert [one.blocker for one in found] == [
        Blocker.NOMINATED, Blocker.NODE_DO_NOT_DISRUPT, Blocker.POD_DO_NOT_DISRUPT, Blocker.PDB, Blocker.SEVERAL_PDBS,
    ]  # fmt: skip
    assert found[2].pods == ("default/a",)
    assert found[3].pods == ("default/b",) and found[3].pdbs == ("default/x",)
    assert found[4].pdbs == ("default/y", "default/z")
    [notice] = view([bad], pdbs=pdbs).scan(GRACEFUL).notices()
    assert notice.kind == "DisruptionBlocked"
    assert notice.message == "Node is nominated for a pending pod"


def test_pods_stop_drift_only_where_a_drain_may_take_for_ever() -> None:
    pods = (pod("a", annotations=PROTECTED),)
    assert blockers(node("n", pods=pods), EVENTUAL) == [Blocker.POD_DO_NOT_DISRUPT]
    bounded = node("n", pods=pods, claim_spec={"terminationGracePeriod": "1h"})
    assert blockers(bounded, EVENTUAL) == []
    assert blockers(bounded, GRACEFUL) == [Blocker.POD_DO_NOT_DISRUPT]


def test_pods_that_will_not_leave_are_not_simulated() -> None:
    pods = (pod("a"), pod("b", annotations=PROTECTED), pod("c", labels={"app": "c"}))
    bounded = node("n", pods=pods, claim_spec={"terminationGracePeriod": "1h"})
    [candidate] = view([bounded], pdbs=[pdb("x", "c", allowed=0, maxUnavailable=0)]).scan(EVENTUAL).candidates
    assert len(candidate.reschedulable_pods) == 3
    assert [one["metadata"]["name"] for one in candidate.movable_pods] == ["a"]


def test_nothing_is_told_about_nodes_of_others_or_nodes_on_their_way() -> None:
    managed = node("n")
    assert view([StateNode(managed.node)]).scan(GRACEFUL).notices() == ()
    assert view([managed], queued=frozenset({"kwok://n"})).scan(GRACEFUL).notices() == ()
