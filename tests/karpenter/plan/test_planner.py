"""The whole dry run."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.karpenter.plan import lower_bound
from holokube.karpenter.plan.given import Given
from holokube.karpenter.plan.planner import plan_karpenter, solve_options
from holokube.karpenter.plan.snapshot import read_snapshot
from holokube.karpenter.settings import Settings, parse_flags
from holokube.pricing.catalog_files import catalog_from_json
from tests.karpenter.plan.clusters import CATALOG, STAMP, node, node_pool, pod

Json = dict[str, Any]


def _given(*objects: Json) -> Given:
    return read_snapshot(objects, catalog_from_json(CATALOG), waits=True, default_now_s=0.0)


def _plan(*objects: Json, settings: Settings | None = None) -> Json:
    return plan_karpenter(_given(*objects), settings or Settings(), VirtualClock(), is_bounded=False)


def _rows(plan: Json) -> dict[str, Json]:
    return {row["node"]: row for row in plan["nodes"]}


def test_pods_go_to_nodes_with_room_first_and_to_new_ones_after() -> None:
    plan = _plan(node_pool(), *node("a"), pod("there", "a", cpu="6"), pod("small", cpu="1"), pod("big", cpu="3"))
    assert plan["existingNodes"] == {"a": ["default/small"]}
    (claim,) = plan["newNodeClaims"]
    assert (claim["instanceType"], claim["capacityType"], claim["pods"]) == ("medium", "spot", ["default/big"])
    assert plan["totalPrice"] == claim["price"] == pytest.approx(0.06)
    assert plan["summary"] == {
        "pods": 2, "newNodes": 1, "podsOnNew": 1, "podsOnExisting": 1, "unschedulable": 0}


def test_pods_of_a_node_that_is_being_deleted_need_a_place_too() -> None:
    made, claim = node("a")
    claim["metadata"]["deletionTimestamp"] = STAMP
    protected = pod("keep", "a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    plan = _plan(node_pool(), made, claim, pod("x", "a"), protected)
    assert [claim["pods"] for claim in plan["newNodeClaims"]] == [["default/x"]]
    assert next(why["blocker"] for why in _rows(plan)["a"]["why"]) == "deleting"


def test_a_node_with_several_obstacles_tells_all_of_them() -> None:
    made, claim = node("a")
    made["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    meta = {"name": "web", "namespace": "default"}
    pdb = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta,
           "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}  # fmt: skip
    row = _rows(_plan(node_pool(), made, claim, pod("x", "a"), pdb))["a"]
    assert row["verdict"] == "stays"
    assert [why["blocker"] for why in row["why"]] == ["node-do-not-disrupt", "pdb"]
    assert (row["why"][1]["pods"], row["why"][1]["pdbs"]) == (["default/x"], ["default/web"])


def test_a_node_that_is_worth_its_price_says_so() -> None:
    row = _rows(_plan(node_pool(requirements=[
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    ]), *node("a"), pod("x", "a", cpu="6")))["a"]  # fmt: skip
    assert [why["blocker"] for why in row["why"]] == ["not-cheaper"]


def test_a_budget_that_lets_nothing_go_is_the_reason() -> None:
    plan = _plan(node_pool(disruption={"budgets": [{"nodes": "0"}]}), *node("a"))
    assert plan["commands"] == [] and plan["budgets"]["emptiness"] == {"default": 0}
    assert [why["blocker"] for why in _rows(plan)["a"]["why"]] == ["budget"]


def test_a_node_that_belongs_to_nobody_stays() -> None:
    made, _ = node("a")
    row = _rows(_plan(node_pool(), made))["a"]
    assert (row["verdict"], [why["blocker"] for why in row["why"]]) == ("stays", ["not-managed"])


def test_the_gate_decides_about_spot_for_spot() -> None:
    made, claim = node("a")
    for obj in (made, claim):
        obj["metadata"]["labels"]["karpenter.sh/capacity-type"] = "spot"
    usual = _rows(_plan(node_pool(), made, claim, pod("x", "a")))["a"]
    assert [why["blocker"] for why in usual["why"]] == ["spot-to-spot-disabled"]
    gate = parse_flags(["--feature-gates=SpotToSpotConsolidation=true"])
    allowed = _rows(_plan(node_pool(), made, claim, pod("x", "a"), settings=gate))["a"]
    assert [why["blocker"] for why in allowed["why"]] == ["spot-to-spot-inflexible"]


def test_static_pools_and_pools_that_go_get_no_nodes() -> None:
    fixed, going = node_pool("fixed", replicas=3), node_pool("going")
    going["metadata"]["deletionTimestamp"] = STAMP
    plan = _plan(node_pool("open"), fixed, going, pod("x"))
    assert [claim["nodePool"] for claim in plan["newNodeClaims"]] == ["open"]
    assert len(plan["notes"]) == 2


def test_settings_reach_the_solver() -> None:
    options = solve_options(parse_flags([
        "--preference-policy=Ignore", "--min-values-policy=BestEffort", "--feature-gates=ReservedCapacity=false"]))
    assert (options.preference_policy, options.min_values_policy, options.reserved_capacity) == (
        "Ignore", "BestEffort", False)


def test_without_the_extra_there_is_a_plan_and_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_bound, "is_installed", lambda: False)
    plan = plan_karpenter(_given(node_pool(), pod("x")), Settings(), VirtualClock())
    assert plan["summary"]["newNodes"] == 1 and "lowerBound" not in plan


def test_with_the_extra_the_bound_is_for_the_pods_that_are_placed() -> None:
    pytest.importorskip("highspy")
    given = _given(node_pool(), pod("x"), pod("never", nodeSelector={"team": "nobody"}))
    plan = plan_karpenter(given, Settings(), VirtualClock())
    assert 0 < plan["lowerBound"] <= plan["totalPrice"] + 1e-9
    assert plan["gap"] == pytest.approx(plan["totalPrice"] / plan["lowerBound"] - 1, abs=1e-6)
