"""Which changes of claims are found to matter to nobody, compared with a look at all there is."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.client.resources import DEPLOYMENTS
from holokube.karpenter.api.labels import REGISTERED
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.lifecycle.claim_controller import ClaimController
from holokube.karpenter.lifecycle.hydration import _looks_alike
from holokube.karpenter.lifecycle.sources import basis_of
from holokube.karpenter.provider.machines import Machines, is_settled
from holokube.karpenter.state.changes import counts_alike, is_told_alike, stands_alike
from holokube.kube.types import JsonObject
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, workload
from tests.karpenter.objects import claim, condition

FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "generation", "labels", "annotations", "finalizers")
_parts = st.fixed_dictionaries({}, optional={
    "labels": st.sampled_from([{}, {"a": "b"}]),
    "spec": st.sampled_from([{}, {"nodeClassRef": {"name": "c"}}]),
    "providerID": st.sampled_from(["", "kwok://1"]),
    "conditions": st.sampled_from(
        [[], [condition(REGISTERED)], [condition(REGISTERED, "False")], [condition("Other")]]
    ),
    "capacity": st.sampled_from([{}, {"cpu": "1"}]),
    "deletionTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
    "lastPodEventTime": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"]),
})  # fmt: skip


def changed(old: JsonObject, parts: dict[str, Any]) -> JsonObject:
    """As a write in process leaves it: only what was written is another object."""
    metadata, status = {**old["metadata"]}, {**(old.get("status") or {})}
    new: JsonObject = {**old, "metadata": metadata, "status": status}
    for name, value in parts.items():
        place = new if name == "spec" else metadata if name in ("labels", "deletionTimestamp") else status
        place[name] = deepcopy(value)
    return new


_changes = st.lists(_parts, min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(_changes)
def test_a_claim_concerns_machines_unless_it_was_settled_and_still_is(changes: list[dict[str, Any]]) -> None:
    machines = object.__new__(Machines)
    queue = SimpleNamespace(has_due=False)
    machines._controller = SimpleNamespace(queue=queue)  # type: ignore[assignment]
    old: JsonObject | None = None
    for parts in changes:
        new = changed(old or claim(), parts)
        for before, after in ((old, new), (new, new), (new, None)):
            is_left_alone = after is not None and is_settled(before) and is_settled(after)
            queue.has_due = False
            assert machines._concerns(before, after) == (not is_left_alone)
            queue.has_due = True
            assert machines._concerns(before, after)
        old = new


def _looked_at(found: JsonObject) -> tuple[object, ...]:
    return found.get("spec"), found["metadata"].get("labels"), (found.get("status") or {}).get("providerID") or ""


@settings(max_examples=300, deadline=None)
@given(_changes)
def test_claims_look_alike_if_class_labels_and_instance_do(changes: list[dict[str, Any]]) -> None:
    old = claim()
    for parts in changes:
        for known in (old, deepcopy(old)):
            new = changed(known, parts)
            assert _looks_alike(old, new) == (_looked_at(old) == _looked_at(new))
        old = new


@settings(max_examples=200, deadline=None)
@given(_changes, st.lists(st.integers(0, 6), max_size=20))
def test_the_basis_of_a_claim_is_its_own_whoever_was_asked_about_before(
    changes: list[dict[str, Any]], asked: list[int]
) -> None:
    states = [claim()]
    for parts in changes:
        states.append(changed(states[-1], parts))
    for number in asked:
        one = states[number % len(states)]
        status = one.get("status") or {}
        expected = *(one["metadata"].get(name) for name in FIELDS), one.get("spec"), status.get("conditions")
        assert basis_of(one) == expected


@settings(max_examples=300, deadline=None)
@given(_changes)
def test_claims_of_which_the_same_is_told_stand_and_count_alike(changes: list[dict[str, Any]]) -> None:
    old = claim("c", status={"providerID": "kwok://1"})
    for parts in changes:
        new = changed(old, parts)
        assert is_told_alike(old, new) or parts.keys() - {"lastPodEventTime", "spec", "providerID"}
        if is_told_alike(old, new):
            assert stands_alike(old, new) and counts_alike(old, new)
        old = new


def test_a_claim_that_is_as_the_last_look_has_left_it_is_not_looked_at_unless_its_nodes_are_others() -> None:
    controller, nodes = object.__new__(ClaimController), list[JsonObject]()
    controller._at_rest, controller._looked_at = {}, {}
    controller._nodes = SimpleNamespace(lister=SimpleNamespace(by_index=lambda *_: [*nodes]))  # type: ignore[assignment]
    before, left = claim("c"), claim("c", condition("Launched"), status={"providerID": "kwok://1"})
    assert controller._concerns(before, left), "nobody has looked yet"
    controller._looked_at["c"] = left, []
    assert not controller._concerns(before, left)
    assert controller._concerns(None, left), "whoever is started anew is told so"
    assert controller._concerns(before, {**left}), "somebody else may have written"
    assert controller._concerns(left, None)
    nodes.append({"metadata": {"name": "n"}})
    assert controller._concerns(before, left)
    controller._looked_at["c"] = left, [*nodes]
    assert not controller._concerns(before, left)
    nodes[0] = {**nodes[0]}
    assert controller._concerns(before, left)


def test_a_claim_that_is_deleted_just_before_a_look_at_it_is_written_ends_all_the_same() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool()) as here:
            part = here.running.parts["nodeclaim.lifecycle"]
            assert isinstance(part, ClaimController)
            ended, usual = list[str](), part._write

            async def late(stored: JsonObject, made: JsonObject) -> JsonObject | None:
                name = made["metadata"]["name"]
                if name not in ended:
                    ended.append(name)
                    await here.client.delete(NODE_CLAIMS, name)
                return await usual(stored, made)

            part._write = late  # type: ignore[method-assign]
            await here.client.create(DEPLOYMENTS, workload("web", 1))
            await cluster.clock.sleep(60)
            assert ended and ended[0] not in [one["metadata"]["name"] for one in await here.claims()]

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)
