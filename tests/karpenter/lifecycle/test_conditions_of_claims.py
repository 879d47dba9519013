"""Consolidatable, Drifted, expiry, garbage and consistency, as decisions."""

from __future__ import annotations

import pytest

from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.lifecycle.consistency import issues_of
from holokube.karpenter.lifecycle.consolidatable import consolidatable
from holokube.karpenter.lifecycle.drift import is_still_offered, why_drifted
from holokube.karpenter.lifecycle.expiration import remaining_s
from holokube.karpenter.lifecycle.garbage_collection import lost
from holokube.karpenter.lifecycle.pod_events import matters
from holokube.karpenter.lifecycle.pool_counter import counted
from holokube.karpenter.lifecycle.pool_hash_keeper import rehashed
from holokube.karpenter.lifecycle.pool_readiness import with_class_readiness
from holokube.karpenter.lifecycle.pool_validation import validated
from holokube.kube.conditions import get_condition, is_true
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import RESERVED, Catalog, Offering
from holokube.runtime.sources import Change
from tests.karpenter.lab import instance_type, small_catalog
from tests.karpenter.objects import NOW_S, at, claim, condition, node, pod, pool

BAD = condition("Ready", "False", reason="Bad")
HASH, VERSION = "karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"


def initialized(since_s: float, last_event_s: float | None = None, *more: JsonObject) -> JsonObject:
    status = {} if last_event_s is None else {"lastPodEventTime": at(last_event_s)}
    return claim("c", condition("Initialized", since_s=since_s), *more, status=status)


def test_a_claim_is_consolidatable_once_its_pods_have_been_quiet_for_long_enough() -> None:
    thirty = NodePool.of(pool())
    step = consolidatable(initialized(-100, -10), thirty, NOW_S)
    assert (is_true(step.claim, "Consolidatable"), step.look_again_s) == (False, 20.0)
    assert is_true(consolidatable(initialized(-100, -30), thirty, NOW_S).claim, "Consolidatable")


def test_without_a_pod_the_time_counts_from_the_initialization() -> None:
    thirty = NodePool.of(pool())
    assert consolidatable(initialized(-29), thirty, NOW_S).look_again_s == 1.0
    assert is_true(consolidatable(initialized(-30), thirty, NOW_S).claim, "Consolidatable")


@pytest.mark.parametrize("after", ["Never", "1h"])
def test_a_condition_that_no_longer_holds_is_taken_away(after: str) -> None:
    held = initialized(-100, -60, condition("Consolidatable"))
    step = consolidatable(held, NodePool.of(pool(disruption={"consolidateAfter": after})), NOW_S)
    assert get_condition(step.claim, "Consolidatable") is None
    assert get_condition(consolidatable(claim("c", condition("Consolidatable")), NodePool.of(pool()), NOW_S).claim,
                         "Consolidatable") is None  # fmt: skip


def test_a_claim_drifts_when_its_hash_differs_from_the_pools_of_the_same_version() -> None:
    marked = NodePool.of(pool(annotations={HASH: "2", VERSION: "v3"}))
    cases = ({HASH: "1", VERSION: "v3"}, {HASH: "2", VERSION: "v3"}, {HASH: "1", VERSION: "v2"}, {HASH: "1"})
    drifted = [why_drifted(NodeClaim.of(claim(annotations=annotations)), marked) for annotations in cases]
    assert drifted == ["NodePoolDrifted", "", "", ""]


def test_a_claim_drifts_when_its_labels_no_longer_meet_the_requirements() -> None:
    zone = NodePool.of(pool(requirements=[{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]))
    found = [
        why_drifted(NodeClaim.of(claim(labels=labels)), zone)
        for labels in ({"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}, {})
    ]
    assert found == ["", "RequirementsDrifted", "RequirementsDrifted"]


def test_a_type_or_place_that_the_catalogue_has_lost_is_no_longer_offered() -> None:
    catalog = small_catalog()

    def is_offered(**labels: str) -> bool:
        keys = {
            "type": "node.kubernetes.io/instance-type", "zone": "topology.kubernetes.io/zone",
            "capacity": "karpenter.sh/capacity-type", "reservation": "karpenter.kwok.sh/reservation-id",
        }  # fmt: skip
        found = claim(labels={keys[key]: value for key, value in labels.items()})
        return is_still_offered(NodeClaim.of(found), catalog.types, catalog.well_known)

    assert is_offered(type="small", zone="zone-a", capacity="spot")
    assert not is_offered(type="small", zone="zone-x", capacity="spot")
    assert not is_offered(type="gone", zone="zone-a", capacity="spot")
    # A reserved machine lives on as an ordinary one when its reservation is gone.
    assert is_offered(type="small", zone="zone-a", capacity="reserved", reservation="r-1")


def test_an_offering_that_is_not_to_be_had_now_is_offered_all_the_same() -> None:
    gone = Offering("zone-a", RESERVED, 0.1, available=False, reservation_id="r", reservation_capacity=0)
    one = instance_type("x", 2, 8, 0.1, zones=(), extra=(gone,))
    labels = {"node.kubernetes.io/instance-type": "x", "topology.kubernetes.io/zone": "zone-a"}
    assert is_still_offered(NodeClaim.of(claim(labels=labels)), [one], Catalog([one]).well_known)


def test_a_claim_expires_so_long_after_its_creation() -> None:
    assert remaining_s(NodeClaim.of(claim(created_s=-100, expireAfter="2m")), NOW_S) == 20.0
    assert remaining_s(NodeClaim.of(claim(created_s=-100, expireAfter="Never")), NOW_S) is None


def test_only_registered_claims_without_an_instance_are_lost() -> None:
    up = condition("Registered")
    claims = [
        claim("listed", up, status={"providerID": "1"}), claim("lost", up, status={"providerID": "2"}),
        claim("coming", status={"providerID": "3"}), claim("ending", up, status={"providerID": "4"}, deleted_s=0),
    ]  # fmt: skip
    assert [one["metadata"]["name"] for one in lost(claims, {"1"})] == ["lost"]


def test_a_node_smaller_than_nine_tenths_of_what_was_expected_is_told_of() -> None:
    up = condition("Initialized")
    expected = NodeClaim.of(claim(
        "c", up, status={"capacity": {"cpu": "10", "memory": "10Gi"}}, resources={"requests": {"cpu": "1"}}
    ))  # fmt: skip
    assert issues_of(expected, node(capacity={"cpu": "9", "memory": "1Gi"})) == []
    assert issues_of(expected, node(capacity={"cpu": "8"})) == [
        "expected 10 of resource cpu, but found 8 (80.0% of expected)"
    ]
    assert issues_of(NodeClaim.of(claim(status=expected.object["status"], deleted_s=0)), node(capacity={})) == []


def test_bindings_and_ends_of_pods_matter_and_nothing_else_does() -> None:
    free, bound = pod(phase="Pending"), pod(node_name="n")
    assert matters(Change(free, bound))
    assert matters(Change(bound, pod(node_name="n", phase="Failed")))
    assert matters(Change(bound, pod(node_name="n", deleted_s=0)))
    assert not matters(Change(bound, bound))
    assert not matters(Change(None, bound))
    assert not matters(Change(bound, None))
    assert not matters(Change(pod(owner="DaemonSet"), pod(owner="DaemonSet", node_name="n")))


def test_the_usage_of_a_pool_is_told_even_when_there_is_none() -> None:
    told = counted(pool(), {"cpu": 4000, "nodes": 2000, "gpu": 1000})["status"]
    assert told["nodes"] == 2
    assert told["resources"] == {
        "cpu": "4", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "2", "gpu": "1",
    }  # fmt: skip


def test_claims_of_an_older_hash_are_hashed_anew_unless_they_have_drifted() -> None:
    old = {HASH: "old", VERSION: "v2"}
    assert rehashed(claim(annotations=old), "new")["metadata"]["annotations"] == {HASH: "new", VERSION: "v3"}
    drifted = rehashed(claim("c", condition("Drifted"), annotations=old), "new")
    assert drifted["metadata"]["annotations"] == {HASH: "old", VERSION: "v3"}
    current = claim(annotations={HASH: "x", VERSION: "v3"})
    assert rehashed(current, "new") is current


@pytest.mark.parametrize(
    ("node_class", "status", "reason"),
    [
        (None, "False", "NodeClassNotFound"),
        ({"metadata": {"name": "x", "deletionTimestamp": at(0)}}, "False", "NodeClassTerminating"),
        ({"metadata": {"name": "x"}}, "False", "NodeClassReadinessUnknown"),
        ({"metadata": {"name": "x"}, "status": {"conditions": [BAD]}}, "False", "Bad"),
        ({"metadata": {"name": "x"}, "status": {"conditions": [condition("Ready")]}}, "True", "NodeClassReady"),
    ],
)
def test_a_pool_tells_whether_its_class_can_be_used(node_class: JsonObject | None, status: str, reason: str) -> None:
    found = get_condition(with_class_readiness(pool(), node_class, NOW_S), "NodeClassReady")
    assert found is not None
    assert (found["status"], found["reason"]) == (status, reason)


def test_a_pool_that_makes_no_sense_is_not_valid() -> None:
    well_known = small_catalog().well_known
    assert is_true(validated(pool(), well_known, NOW_S), "ValidationSucceeded")
    for wrong in (
        pool(requirements=[{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]}]),
        pool(disruption={"consolidateAfter": "soon"}),
    ):
        found = get_condition(validated(wrong, well_known, NOW_S), "ValidationSucceeded")
        assert found is not None
        assert (found["status"], found["reason"]) == ("False", "NodePoolValidationFailed")
