"""Clusters as kubectl prints them, and manifests that were never applied."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.karpenter.plan.given import Given
from holokube.karpenter.plan.pdb_status import with_status
from holokube.karpenter.plan.snapshot import read_snapshot
from holokube.kube.conditions import is_true
from holokube.kube.timeformat import parse_time
from holokube.pricing.catalog_files import catalog_from_json
from tests.karpenter.plan.clusters import CATALOG, STAMP, node, node_pool, pod

START_S = parse_time(STAMP).timestamp()


def _read(*objects: Any, waits: bool = True) -> Given:
    return read_snapshot(objects, catalog_from_json(CATALOG), waits=waits, default_now_s=7.0)


def test_nodes_claims_and_pods_are_put_together() -> None:
    given = _read(node_pool(), *node("a"), *node("b"), pod("x", "a"), pod("y", "a"), pod("z"))
    assert [(one.name, one.claim_name, len(one.pods)) for one in given.nodes] == [
        ("a", "claim-a", 2), ("b", "claim-b", 0)]
    assert [one["metadata"]["name"] for one in given.pods] == ["z"]
    assert given.now_s == START_S and given.wants_disruption


def test_a_claim_without_a_node_is_a_node_to_come() -> None:
    given = _read(node_pool(), node("a")[1])
    assert [(one.name, one.node) for one in given.nodes] == [("claim-a", None)]


def test_pods_that_need_no_place_are_left_out() -> None:
    daemon = pod("daemon")
    daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    done, going, nominated = pod("done"), pod("going"), pod("nominated")
    done["status"]["phase"] = "Succeeded"
    going["metadata"]["deletionTimestamp"] = STAMP
    nominated["status"]["nominatedNodeName"] = "a"
    gated = pod("gated", schedulingGates=[{"name": "later"}])
    assert _read(node_pool(), daemon, done, going, nominated, gated).pods == ()


def test_every_pending_pod_counts_as_one_that_no_node_was_found_for() -> None:
    (waiting,) = _read(node_pool(), pod("z")).pods
    assert waiting["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


def test_workloads_without_pods_get_them() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                  "spec": {"replicas": 3, "selector": {}, "template": template}}  # fmt: skip
    given = _read(node_pool(), deployment)
    assert [one["metadata"]["name"] for one in given.pods] == [f"web-planned-{number}" for number in range(3)]
    assert not given.wants_disruption and given.now_s == 7.0
    assert given.notes == ("3 pods that workloads want and do not have are planned for as well",)


def test_daemon_sets_become_the_pods_they_would_make() -> None:
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c"}]}}
    daemon_set = {"kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
                  "spec": {"template": template}}  # fmt: skip
    (made,) = _read(node_pool(), daemon_set).daemon_pods
    assert made["metadata"]["namespace"] == "kube-system"
    assert made["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert {one["key"] for one in made["spec"]["tolerations"]} >= {"node.kubernetes.io/not-ready"}


def test_waiting_lets_the_time_pass_that_pools_ask_for() -> None:
    pool = node_pool(disruption={"consolidateAfter": "10m"})
    objects = (pool, *node("a"))
    objects[2]["status"]["lastPodEventTime"] = STAMP
    now, later = _read(*objects, waits=False), _read(*objects, waits=True)
    assert (now.now_s, later.now_s) == (START_S, START_S + 600)
    assert not is_true(now.nodes[0].node_claim or {}, "Consolidatable")
    assert is_true(later.nodes[0].node_claim or {}, "Consolidatable")


def test_a_pool_that_never_consolidates_has_no_consolidatable_nodes() -> None:
    given = _read(node_pool(disruption={"consolidateAfter": "Never"}), *node("a"))
    assert not is_true(given.nodes[0].node_claim or {}, "Consolidatable")


def test_what_cannot_be_used_is_told() -> None:
    given = _read(node_pool(), node("a")[0], {"kind": "Secret", "metadata": {"name": "s"}})
    assert given.notes[0].startswith("1 nodes belong to a NodePool but their NodeClaims are not in the files")
    assert given.notes[1] == "not looked at: 1 Secret"


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([pod("z")], "the files hold no NodePool"),
        ([{"metadata": {"name": "x"}}], "an object has no kind"),
        ([{"kind": "Pod", "metadata": {}}], "an object has no kind or no metadata.name"),
        ([node_pool(disruption={"consolidateAfter": "soon"})], "NodePool default: "),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(objects: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _read(*objects)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 1),
        ({"minAvailable": "50%"}, 1),
        ({"minAvailable": "100%"}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "0%"}, 0),
        ({"maxUnavailable": "34%"}, 2),
        ({"maxUnavailable": 9}, 3),
    ],
)  # fmt: skip
def test_a_budget_that_nobody_has_counted_is_counted(spec: dict[str, Any], allowed: int) -> None:
    pods = [pod(name, "a") for name in ("x", "y", "z")] + [pod("other", "a", app="other")]
    selector = {"matchLabels": {"app": "web"}}
    pdb = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector, **spec}}
    assert with_status(pdb, pods)["status"] == {"disruptionsAllowed": allowed}


def test_a_budget_with_a_status_is_believed() -> None:
    pdb = {"metadata": {"name": "web", "namespace": "default"}, "spec": {}, "status": {"disruptionsAllowed": 5}}
    assert with_status(pdb, []) is pdb
