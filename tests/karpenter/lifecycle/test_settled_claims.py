"""Looks at claims that are left out, compared with having had them."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.client.resources import NODES
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.component import next_turn_s
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.lifecycle.consistency import SCAN_EVERY_S, Consistency, _InOrder, issues_of
from holokube.karpenter.lifecycle.consolidatable import consolidatable
from holokube.karpenter.lifecycle.disruption_conditions import DisruptionConditions, Settled
from holokube.karpenter.lifecycle.drift import LOOK_AGAIN_S, Comparison, is_still_offered, why_drifted
from holokube.karpenter.lifecycle.pool_counter import PERIOD_S, PoolCounter
from holokube.karpenter.state.pool_usage import PoolUsage
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, small_catalog, workload
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


@settings(max_examples=200, deadline=None)
@given(claims(), pools, st.integers(0, 400))
def test_a_look_at_what_a_look_has_made_makes_the_same_of_it(
    stored: JsonObject, of_pool: NodePool, after_s: int
) -> None:
    made, wait_s, quiet = look(stored, of_pool, NOW_S)
    again, again_s, _ = look(made, of_pool, NOW_S)
    assert again is made
    assert again_s == wait_s
    settled = Settled(NodeClaim.of(made), of_pool, quiet, NOW_S + 3600)
    waits_s = settled.wait_s(NodeClaim.of(made), NOW_S + after_s)
    if waits_s is not None:
        assert look(made, of_pool, NOW_S + after_s)[:2] == (made, waits_s)


def test_a_claim_whose_type_goes_and_comes_back_drifts_for_as_long_as_it_is_gone() -> None:
    catalog = small_catalog()
    offered = [catalog.types]

    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            part = here.running.parts["nodeclaim.disruption"]
            assert isinstance(part, DisruptionConditions)
            provider = part._provider
            cast("Any", provider).instance_types = lambda _pool: offered[0]
            name = (await here.claims())[0]["metadata"]["name"]

            async def drifted() -> str | None:
                found = get_condition(await here.claim(name), "Drifted")
                return found["reason"] if found is not None else None

            seen = []
            for types, hours in ((catalog.types, 3), ((), 1), (catalog.types, 1), ((), 1)):
                offered[0] = types
                await cluster.clock.sleep(hours * 3600.0)
                seen.append(await drifted())
            assert seen == [None, "InstanceTypeNotFound", None, "InstanceTypeNotFound"]

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_cloud_whose_machines_may_drift_is_asked_every_five_minutes() -> None:
    reason = [""]

    async def scenario(cluster: Cluster) -> None:
        pool_object = node_pool(disruption={"budgets": [{"nodes": "0"}]})
        async with lab(cluster, pool_object, workload("web", 1)) as here:
            part = here.running.parts["nodeclaim.disruption"]
            assert isinstance(part, DisruptionConditions)
            cloud = cast("Any", part._provider)
            cloud.drifts, cloud.why_drifted = True, lambda _claim: reason[0]
            await here.until_nodes(1)
            name = (await here.claims())[0]["metadata"]["name"]
            for expected in ("", "ImageDrifted", ""):
                reason[0] = expected
                await cluster.clock.sleep(LOOK_AGAIN_S + 1)
                assert (get_condition(await here.claim(name), "Drifted") or {}).get("reason", "") == expected
                await cluster.clock.sleep(7200)

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_node_that_shrinks_after_hours_in_order_is_told_of_at_the_next_scan_and_so_is_its_recovery() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            node = (await here.nodes())[0]["metadata"]["name"]
            name = (await here.claims())[0]["metadata"]["name"]
            seen = []
            for cpu in ("2", "1", "2", "1"):
                await here.client.patch(NODES, node, {"status": {"capacity": {"cpu": cpu}}}, subresource="status")
                await cluster.clock.sleep(SCAN_EVERY_S + 1)
                seen.append((get_condition(await here.claim(name), "ConsistentStateFound") or {})["status"])
                await cluster.clock.sleep(3 * SCAN_EVERY_S)
            assert seen == ["True", "False", "True", "False"]

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_claim_in_order_waits_for_no_time_and_is_scanned_again_when_its_turn_would_have_come() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            node = (await here.nodes())[0]["metadata"]["name"]
            name = (await here.claims())[0]["metadata"]["name"]
            part = here.running.parts["nodeclaim.consistency"]
            assert isinstance(part, Consistency)

            async def since_s() -> float:
                return CLAIM_CONDITIONS.since_s(await here.claim(name), "ConsistentStateFound") or 0.0

            await cluster.clock.sleep(7 * SCAN_EVERY_S)
            first_s = await since_s()
            for off_s, cpu in ((17.0, "1"), (599.0, "2"), (333.0, "1"), (1.0, "2")):
                assert part._controller.queue.delayed == (0 if cpu == "1" else 1), "what is not in order is looked at"
                await cluster.clock.sleep(off_s)
                patched_s = cluster.clock.time()
                await here.client.patch(NODES, node, {"status": {"capacity": {"cpu": cpu}}}, subresource="status")
                await cluster.clock.sleep(SCAN_EVERY_S + 1)
                told_s = await since_s()
                assert patched_s - 1 < told_s <= patched_s + SCAN_EVERY_S
                assert (told_s - first_s) % SCAN_EVERY_S == 0
                await cluster.clock.sleep(3 * SCAN_EVERY_S)

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


@st.composite
def told_claims(draw: st.DrawFn) -> JsonObject:
    """Claims that say that they are in order, as their controllers write them, or not quite."""
    found = claim("c", labels={"of": draw(st.sampled_from("ab"))})
    for kind in ("Launched", "Registered", "Initialized", "ConsistentStateFound"):
        if draw(st.integers(0, 5)):
            found = CLAIM_CONDITIONS.with_true(found, kind, NOW_S)
    for kind in draw(st.lists(st.sampled_from(["Consolidatable", "Drifted", "Initialized", "Odd"]), max_size=2)):
        set_to = CLAIM_CONDITIONS.with_true if draw(st.booleans()) else CLAIM_CONDITIONS.with_unknown
        found = set_to(found, kind, NOW_S + draw(st.integers(-5, 5)))
    size = draw(st.sampled_from(["4", "8"]))
    return {**found, "status": {**found["status"], "capacity": {"cpu": size}}}


def spoilt(found: JsonObject, place: int, field: str) -> JsonObject:
    conditions = [*found["status"]["conditions"]]
    if place < len(conditions):
        conditions[place] = {**conditions[place], field: "Other"}
    return {**found, "status": {**found["status"], "conditions": conditions}}


@settings(max_examples=500, deadline=None)
@given(told_claims(), told_claims(), st.integers(0, 12), st.sampled_from(["message", "reason", "status"]))
def test_a_claim_that_rests_though_its_conditions_changed_would_be_left_as_it_is(
    first: JsonObject, second: JsonObject, place: int, field: str
) -> None:
    def is_in_order(found: JsonObject) -> bool:
        told = CLAIM_CONDITIONS.with_true(found, "ConsistentStateFound", NOW_S + 60)
        return told is found and not issues_of(NodeClaim.of(found), node)

    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    first["spec"]["resources"] = second["spec"]["resources"] = {"requests": {"cpu": "1"}}
    for later in (second, spoilt(first, place, field), spoilt(second, place, field)):
        if is_in_order(first) and _InOrder(first, node).holds(later, node):
            assert is_in_order(later)


def test_a_claim_that_rests_when_its_controller_is_started_anew_keeps_its_turn() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            part = here.running.parts["nodeclaim.consistency"]
            assert isinstance(part, Consistency)
            await cluster.clock.sleep(7 * SCAN_EVERY_S + 123)
            (name,) = part._resting
            due_s = part._resting[name]
            await part.reconcile(name)
            now_s, (next_s, _, _) = cluster.clock.monotonic(), part._controller.queue._delayed[name]
            assert now_s < next_s <= now_s + SCAN_EVERY_S
            assert (next_s - due_s) % SCAN_EVERY_S == pytest.approx(0, abs=1e-6)

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.just(math.inf), st.integers(1, 2000), st.floats(0.001, 2000)), st.integers(-2000, 4000),
)  # fmt: skip
def test_the_next_look_is_the_first_of_the_regular_ones_that_may_find_something(
    left_s: float, type_check_after_s: int
) -> None:
    settled = Settled(NodeClaim.of(claim("c")), NodePool.of(pool()), None, NOW_S + type_check_after_s)
    passed_s = 0.0
    while True:
        passed_s += min(LOOK_AGAIN_S, left_s - passed_s)
        if passed_s >= left_s or passed_s >= type_check_after_s:
            break
    assert settled.far_wait_s(left_s, NOW_S) == pytest.approx(passed_s)


def test_a_pool_that_told_the_truth_for_long_tells_of_nodes_that_come_and_go() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "0s"}), workload("web", 1)) as here:
            seen = []
            for replicas in (1, 30, 60, 1):
                await here.scale("web", replicas)
                await cluster.clock.sleep(900)
                seen.append(((await here.pool())["status"]["nodes"], len(await here.nodes())))
            assert [told for told, _ in seen] == [there for _, there in seen]
            assert seen[0] == seen[3]
            assert seen[0] < seen[1] < seen[2]

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_pool_that_tells_the_truth_waits_for_no_time_and_is_counted_again_when_its_turn_would_have_come() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "Never"}), workload("web", 1)) as here:
            part = here.running.parts["nodepool.counter"]
            assert isinstance(part, PoolCounter)
            counted_s = list[float]()

            def usage_of(name: str) -> Any:
                counted_s.append(cluster.clock.monotonic())
                return ask(name)

            ask, cast("Any", part._state).usage_of = part._state.usage_of, usage_of
            await here.until_nodes(1)
            for replicas in (30, 60, 90):
                await cluster.clock.sleep(900.3)
                assert part._controller.queue.delayed == 0
                (due_s,) = part._resting.values()
                counted_s.clear()
                await here.scale("web", replicas)
                await cluster.clock.sleep(300)
                assert (await here.pool())["status"]["nodes"] == len(await here.nodes())
                turns = [(at_s - due_s) / PERIOD_S for at_s in counted_s]
                assert any(turn == pytest.approx(round(turn)) and turn > 0 for turn in turns)
            await here.client.patch(
                NODE_POOLS, (await here.pool())["metadata"]["name"], {"status": {"nodes": 7}}, subresource="status"
            )
            await cluster.clock.sleep(PERIOD_S + 1)
            assert (await here.pool())["status"]["nodes"] == len(await here.nodes())

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_the_next_turn_is_the_first_that_is_still_to_come() -> None:
    assert [next_turn_s(10.0, 5.0, now_s) for now_s in (0.0, 9.9, 10.0, 10.1, 15.0, 31.0)] == [
        10.0, 10.0, 15.0, 15.0, 20.0, 35.0
    ]  # fmt: skip


def test_a_claim_at_rest_gets_back_what_is_taken_from_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            await cluster.clock.sleep(3600)
            (before,) = await here.claims()
            await here.client.patch(NODE_CLAIMS, before["metadata"]["name"], {"metadata": {"finalizers": None}})
            await cluster.clock.sleep(5)
            (after,) = await here.claims()
            assert after["metadata"]["finalizers"] == before["metadata"]["finalizers"]

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


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
