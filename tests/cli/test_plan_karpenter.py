"""``holokube plan --policy karpenter``: problems and clusters, in three forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.program import Inside, assert_two_lines
from tests.golden.karpenter.compare import differences
from tests.golden.karpenter.records import CATALOG, HERE, catalog_entries, read, recorded
from tests.karpenter.checker_inputs import check_answer
from tests.karpenter.plan.clusters import CATALOG as SMALL_CATALOG
from tests.karpenter.plan.clusters import node, node_pool, pod

KARPENTER = ("--policy", "karpenter")


def _ok(inside: Inside, *arguments: str) -> str:
    result = inside("plan", *KARPENTER, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _cluster(folder: Path, *objects: Any) -> tuple[str, ...]:
    cluster, catalog = folder / "cluster.json", folder / "catalog.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    catalog.write_text(json.dumps(SMALL_CATALOG))
    return "-f", str(cluster), "--catalog", str(catalog)


@pytest.mark.parametrize("name", ["solve-016-affinity", "disrupt-003-spot"])
def test_a_recorded_problem_is_answered_with_the_recorded_keys(name: str, inside: Inside) -> None:
    answer = json.loads(_ok(inside, "-f", str(HERE / f"{name}.json"), "--catalog", str(CATALOG), "-o", "json"))
    assert set(answer) >= set(recorded(name)) - {"exact", "totalPriceSeen"}
    assert answer["solveMs"] >= 0
    assert differences(recorded(name), answer) == []


def test_the_answer_may_be_yaml(inside: Inside) -> None:
    shown = _ok(inside, "-f", str(HERE / "solve-016-affinity.json"), "--catalog", str(CATALOG), "-o", "yaml")
    assert differences(recorded("solve-016-affinity"), yaml.safe_load(shown)) == []


def test_a_cluster_is_planned_with_reasons_and_prices(tmp_path: Path, inside: Inside) -> None:
    given = _cluster(
        tmp_path, node_pool(), *node("busy"), *node("held"), *node("idle"),
        *(pod(f"busy-{number}", "busy", cpu="2") for number in range(3)),
        pod("keep", "held", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        pod("new", cpu="3"), pod("never", nodeSelector={"team": "nobody"}),
    )  # fmt: skip
    plan = json.loads(_ok(inside, *given, "-o", "json"))
    assert list(plan["podErrors"]) == ["default/never"] and "team" in plan["podErrors"]["default/never"]
    assert plan["summary"]["pods"] == 2 and plan["summary"]["unschedulable"] == 1
    rows = {row["node"]: row for row in plan["nodes"]}
    assert (rows["idle"]["verdict"], rows["idle"]["reason"]) == ("goes", "Empty")
    assert rows["held"]["verdict"] == "stays"
    assert [why["blocker"] for why in rows["held"]["why"]] == ["pod-do-not-disrupt"]
    assert rows["held"]["why"][0]["pods"] == ["default/keep"]
    assert plan["commands"][0]["method"] == "emptiness" and plan["commands"][0]["candidates"] == ["idle"]
    assert plan["price"]["perHourBefore"] == pytest.approx(3 * 0.4)
    assert plan["price"]["perHourAfter"] == pytest.approx(2 * 0.4 + plan["totalPrice"])


def test_the_table_says_what_comes_what_goes_and_why(tmp_path: Path, inside: Inside) -> None:
    given = _cluster(
        tmp_path, node_pool(), *node("held"), *node("idle"),
        pod("keep", "held", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        *(pod(f"new-{number}", cpu="7") for number in range(3)), pod("never", nodeSelector={"team": "nobody"}),
    )  # fmt: skip
    table = _ok(inside, *given)
    assert "of 4 pending pods" in table and "1 stay pending." in table
    assert "Pods that stay pending" in table and "default/never" in table
    assert 'Pod has "karpenter.sh/do-not-disrupt" annotation' in table
    assert "Price of all nodes: 0.8000 -> " in table


def test_manifests_that_were_never_applied_are_planned_with_the_generated_catalogue(
    tmp_path: Path, inside: Inside
) -> None:
    template = {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                  "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
    path = tmp_path / "manifests.yaml"
    path.write_text(yaml.safe_dump_all([node_pool(), deployment]))
    plan = json.loads(_ok(inside, "-f", str(path), "-o", "json"))
    assert plan["summary"]["podsOnNew"] == 4 and plan["totalPrice"] > 0
    assert "commands" not in plan
    assert plan["notes"] == ["4 pods that workloads want and do not have are planned for as well"]


def test_settings_may_follow(tmp_path: Path, inside: Inside) -> None:
    wish = {"weight": 1, "preference": {"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    given = _cluster(tmp_path, node_pool(), pod("new", affinity=affinity))
    zones = [
        json.loads(_ok(inside, *given, "-o", "json", *flags))["newNodeClaims"][0]["zone"]
        for flags in ((), ("--preference-policy=Ignore",))
    ]
    assert zones == ["zone-b", "zone-a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--templates", "x.json"), "--templates is for the cluster-autoscaler"),
        (("--feature-gates=NodeRepair=true",), "--feature-gates=NodeRepair=true: the feature NodeRepair"),
        (("--no-such-flag",), "there is no flag --no-such-flag"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, inside: Inside, arguments: tuple[str, ...], message: str
) -> None:
    given = _cluster(tmp_path, node_pool(), pod("new"))
    done = inside("plan", *KARPENTER, *given, *arguments)
    assert done.returncode == 2
    assert assert_two_lines(done.stderr)[0].startswith(message)


def test_a_problem_is_planned_by_itself(tmp_path: Path, inside: Inside) -> None:
    case = str(HERE / "solve-016-affinity.json")
    done = inside("plan", *KARPENTER, "-f", case, "-f", case)
    assert done.returncode == 2 and "holds a problem, which is planned by itself" in done.stderr


def test_other_prices_may_be_given(tmp_path: Path, inside: Inside) -> None:
    given = _cluster(tmp_path, node_pool(), pod("new", cpu="3"))
    overlay = {"kind": "NodeOverlay", "metadata": {"name": "double"}, "spec": {"priceAdjustment": "+100%"}}
    (tmp_path / "overlays.json").write_text(json.dumps(overlay))
    usual = json.loads(_ok(inside, *given, "-o", "json"))
    dear = json.loads(_ok(inside, *given, "-o", "json", "--price-overlays", str(tmp_path / "overlays.json")))
    assert dear["totalPrice"] == pytest.approx(2 * usual["totalPrice"]) and usual["totalPrice"] > 0


def test_a_catalogue_is_for_karpenter(tmp_path: Path, inside: Inside) -> None:
    given = _cluster(tmp_path, node_pool(), *node("a"))
    done = inside("plan", "--policy", "cluster-autoscaler", *given)
    assert done.returncode == 2 and assert_two_lines(done.stderr)[0].startswith("--catalog is for")


@pytest.mark.parametrize("name", ["solve-000-plain", "solve-006-affinity"])
def test_optimal_answers_with_the_same_keys_is_not_dearer_and_keeps_the_rules(name: str, inside: Inside) -> None:
    pytest.importorskip("highspy")
    given = ("-f", str(HERE / f"{name}.json"), "--catalog", str(CATALOG), "-o", "json")
    done = inside("plan", "--policy", "optimal", *given)
    assert done.returncode == 0, done.stderr
    best, usual = json.loads(done.stdout), json.loads(_ok(inside, *given))
    assert set(best) >= set(usual)
    assert best["totalPrice"] <= usual["totalPrice"] + 1e-9
    assert best["lowerBound"] <= best["totalPrice"] + 1e-9
    assert usual["lowerBound"] <= usual["totalPrice"] + 1e-9 and usual["gap"] >= best["gap"] - 1e-9
    assert check_answer(read(f"{name}.json"), best, catalog_entries()) == []


def test_optimal_consolidates_what_karpenter_cannot(tmp_path: Path, inside: Inside) -> None:
    """Two nodes for two smaller ones: upstream never makes several of several."""
    pytest.importorskip("highspy")
    keep = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": keep}}
    given = _cluster(
        tmp_path, node_pool(requirements=[on_demand]),
        *node("a"), *node("b"), pod("x", "a", affinity=apart), pod("y", "b", affinity=apart),
    )  # fmt: skip
    done = inside("plan", "--policy", "optimal", *given, "-o", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    (command,) = plan["commands"]
    assert (command["method"], sorted(command["candidates"])) == ("global", ["a", "b"])
    assert [claim["instanceType"] for claim in command["replacements"]] == ["small", "small"]
    assert plan["consolidation"]["perHourAfter"] == pytest.approx(0.2)
    assert "after consolidation 0.2000" in inside("plan", "--policy", "optimal", *given).stdout
