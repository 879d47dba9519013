"""Looks at claims that are left out, compared with having had them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.lifecycle.consolidatable import consolidatable
from holokube.karpenter.lifecycle.disruption_conditions import Settled
from holokube.karpenter.lifecycle.drift import LOOK_AGAIN_S, Comparison, is_still_offered, why_drifted
from holokube.karpenter.state.pool_usage import PoolUsage
from holokube.kube.types import JsonObject
from tests.karpenter.lab import small_catalog
from tests.karpenter.objects import NOW_S, at, claim, condition, pool

times = st.one_of(st.none(), st.integers(-60, 60))


@st.composite
def claims(draw: st.DrawFn) -> JsonObject:
    conditions = [condition("Launched")]
    if draw(st.booleans()):
        conditions.append(condition("Initialized", since_s=draw(st.integers(-60, 0))))
    if draw(st.booleans()):
        conditions.append(condition("Consolidatable", observedGeneration=1))
    last_s = draw(times)
    status = {} if last_s is None else {"lastPodEventTime": at(last_s)}
    return claim("c", *conditions, status=status)


pools = st.sampled_from(["30s", "10m", "Never", "0s"]).map(
    lambda after: NodePool.of(pool(disruption={"consolidateAfter": after}))
)


def look(found: JsonObject, of_pool: NodePool, now_s: float) -> tuple[JsonObject, float, float | None]:
    """The claim as it should be, when to look again, and since when its pods are quiet if that is what it waits for."""
    step = consolidatable(found, of_pool, now_s)
    wait_s = LOOK_AGAIN_S if step.look_again_s is None else min(LOOK_AGAIN_S, step.look_again_s)
    return step.claim, wait_s, step.quiet_since_s


@settings(max_examples=400, deadline=None)
@given(claims(), pools, times, st.integers(0, 400), st.sampled_from(["", "conditions", "labels", "copy"]))
def test_a_claim_that_is_settled_would_be_left_as_it_is_and_looked_at_again_at_the_same_time(
    stored: JsonObject, of_pool: NodePool, later_event_s: int | None, after_s: int, change: str
) -> None:
    made, _, quiet = look(stored, of_pool, NOW_S)
    if made is not stored:
        return
    settled = Settled(NodeClaim.of(stored), of_pool, quiet, NOW_S + 3600)
    status = {**stored["status"], **({} if later_event_s is None else {"lastPodEventTime": at(later_event_s)})}
    if change == "conditions":
        status["conditions"] = [*status["conditions"], condition("Other")]
    elif change == "copy":
        status["conditions"] = [dict(one) for one in status["conditions"]]
    found = {**stored, "status": status}
    if change == "labels":
        found["metadata"] = {**stored["metadata"], "labels": {"other": "label"}}
    wait_s = settled.wait_s(NodeClaim.of(found), NOW_S + after_s)
    if change in ("conditions", "labels"):
        assert wait_s is None
    elif wait_s is not None:
        again, expected_s, _ = look(found, of_pool, NOW_S + after_s)
        assert again is found
        assert wait_s == expected_s


def test_pods_that_keep_coming_do_not_call_for_a_look() -> None:
    stored = claim("c", condition("Launched"), condition("Initialized"), status={"lastPodEventTime": at(0)})
    of_pool = NodePool.of(pool(disruption={"consolidateAfter": "30s"}))
    settled = Settled(NodeClaim.of(stored), of_pool, NOW_S, NOW_S + 3600)
    later = {**stored, "status": {**stored["status"], "lastPodEventTime": at(20)}}
    assert settled.wait_s(NodeClaim.of(later), NOW_S + 21) == 29.0
    assert settled.wait_s(NodeClaim.of(stored), NOW_S + 31) is None
    assert settled.wait_s(NodeClaim.of(stored), NOW_S + 3600) is None


def test_a_comparison_with_the_pool_holds_until_one_of_them_is_another() -> None:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
    of_pool, catalog = NodePool.of(pool(requirements=[zone])), small_catalog()
    labels = {"topology.kubernetes.io/zone": "zone-a", "node.kubernetes.io/instance-type": "small"}
    first = NodeClaim.of(claim(labels=labels))
    known = Comparison(first, of_pool)
    assert known.reason == why_drifted(first, of_pool) == ""
    assert known.holds(NodeClaim.of(claim(labels=labels, status={"lastPodEventTime": at(0)})), of_pool)
    for other in ({"labels": {"a": "b"}}, {"labels": labels, "annotations": {"a": "b"}}):
        parts: dict[str, Any] = other
        assert not known.holds(NodeClaim.of(claim(**parts)), of_pool)
    assert not known.holds(first, NodePool.of(pool(requirements=[zone])))
    for types in (catalog.types, catalog.types[1:], catalog.types):
        assert known.is_still_offered(types, catalog.well_known) == is_still_offered(first, types, catalog.well_known)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["p", "q", ""]), st.integers(1, 3)), max_size=12))
def test_the_version_of_usage_moves_whenever_a_sum_does(steps: list[tuple[str, str, int]]) -> None:
    usage = PoolUsage()
    for node, name, milli in steps:
        before = [usage.of("p"), usage.of("q")], usage.version
        if name:
            usage.put(node, name, {"cpu": milli})
        else:
            usage.drop(node)
        assert usage.version != before[1] or [usage.of("p"), usage.of("q")] == before[0]
