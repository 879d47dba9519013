from __future__ import annotations

from holokube.packing import ClusterState
from holokube.packing.volumes import SELECTED_NODE
from holokube.scheduler.volume_choice import ClaimPlan, is_bound, plan_claims
from tests.builders import JsonObject
from tests.packing.objects import claim, storage_class, volume
from tests.scheduler.objects import make_node, waiting


def plan(claims: list[JsonObject], *objects: JsonObject, node: str = "a") -> ClaimPlan:
    state = ClusterState()
    for name in "ab":
        state.add_node(make_node(name, {"zone": name}))
    for obj in (storage_class("late"), *claims, *objects):
        state.put_storage(obj)
    pod = waiting(claims=[c["metadata"]["name"] for c in claims])
    cls = state.class_of(pod)
    assert state.feasible(cls)[state.node_names[node]], "only feasible nodes are planned for"
    return plan_claims(state, cls, state.node_names[node])


def reserved(found: ClaimPlan) -> dict[str, str]:
    return {after["metadata"]["name"]: after["spec"]["claimRef"]["name"] for after, _ in found.reserve}


def test_each_claim_takes_the_smallest_volume_within_reach() -> None:
    wanted = [claim("large", storage_class="late", size="5Gi"), claim("small", storage_class="late")]
    volumes = [
        volume("v9", size="9Gi", storage_class="late", zone="a"),
        volume("v2", size="2Gi", storage_class="late", zone="a"),
        volume("far", storage_class="late", zone="b"),
        volume("other", zone="a"),
    ]
    found = plan(wanted, *volumes)
    assert reserved(found) == {"v2": "small", "v9": "large"} and found.select == []
    assert len(found.waits) == 2


def test_without_a_volume_one_is_wished_for_on_the_node() -> None:
    found = plan([claim("c", storage_class="late")], volume("far", storage_class="late", zone="b"))
    ((after, before),) = found.select
    assert after["metadata"]["annotations"][SELECTED_NODE] == "a" and before["metadata"]["annotations"] == {}


def test_what_is_under_way_is_only_waited_for() -> None:
    asked = claim("c", storage_class="late", **{SELECTED_NODE: "a"})
    found = plan([asked])
    assert found == ClaimPlan(waits=[asked])
    mine = volume("v", storage_class="late")
    mine["spec"]["claimRef"] = {"namespace": "default", "name": "c"}
    free = claim("c", storage_class="late")
    assert plan([free], mine) == ClaimPlan(waits=[free])


def test_bound_claims_need_nothing() -> None:
    bound = claim("c", volume="v", storage_class="late")
    assert plan([bound], volume("v", storage_class="late", phase="Bound")) == ClaimPlan()
    assert is_bound(bound) and not is_bound(claim("c"))
