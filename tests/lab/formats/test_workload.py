"""What came from users, and what from components."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.types import JsonObject
from holokube.lab.formats import Change, PodLives, Ref, Run, Timeline
from holokube.lab.formats.workload import pod_lives, with_run_times, workload_of
from tests.builders import config_map, deployment, lease, node, pod

START_S = 1_767_571_200.0
"""2026-01-05T00:00:00Z."""


def owned(obj: JsonObject, kind: str, name: str, api_version: str = "apps/v1") -> JsonObject:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def replica_set(name: str, deployment_name: str) -> JsonObject:
    obj = {**deployment(name), "kind": "ReplicaSet"}
    return owned(obj, "Deployment", deployment_name)


def with_status(obj: JsonObject, *states: JsonObject) -> JsonObject:
    return {**obj, "status": {"containerStatuses": [{"name": "c", "state": state} for state in states]}}


def running(at: str) -> JsonObject:
    return {"running": {"startedAt": f"2026-01-05T00:{at}Z"}}


def ended(start: str, end: str) -> JsonObject:
    return {"terminated": {"startedAt": f"2026-01-05T00:{start}Z", "finishedAt": f"2026-01-05T00:{end}Z"}}


def bound(kind: str, name: str, spec: JsonObject, *annotations: str) -> JsonObject:
    told = {f"pv.kubernetes.io/{key}": "yes" for key in annotations}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "annotations": told}, "spec": spec}


def test_claims_are_bound_anew_and_volumes_made_for_them_are_made_again() -> None:
    claim = bound("PersistentVolumeClaim", "c", {"volumeName": "v", "x": 1}, "bound-by-controller", "bind-completed")
    chosen = bound("PersistentVolumeClaim", "d", {"volumeName": "disk"}, "bind-completed")
    made = bound("PersistentVolume", "v", {"claimRef": {"uid": "u"}}, "provisioned-by")
    disk = bound("PersistentVolume", "disk", {"claimRef": {"uid": "u"}, "y": 2}, "bound-by-controller")
    found = workload_of(Timeline((claim, chosen, made, disk))).objects
    assert [(obj["metadata"], obj["spec"]) for obj in found] == [
        ({"name": "c"}, {"x": 1}), ({"name": "d"}, {"volumeName": "disk"}), ({"name": "disk"}, {"y": 2}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "obj",
    [
        owned(pod("p"), "ReplicaSet", "rs"), replica_set("rs", "web"), lease("l"),
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "a"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:node"}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}},
        config_map("kube-root-ca.crt", "a"),
    ],
    ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']}",
)  # fmt: skip
def test_what_components_make_is_left_out(obj: JsonObject) -> None:
    changes = (Change(1.0, "apply", obj), Change(2.0, "delete", obj))
    assert workload_of(Timeline((obj,), changes)) == Timeline()
    assert workload_of(Timeline((), changes)).changes == ()


@pytest.mark.parametrize(
    "obj",
    [
        deployment("web"), pod("lonely"), config_map("settings"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "a"}},
    ],
    ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']}",
)  # fmt: skip
def test_what_users_make_is_kept(obj: JsonObject) -> None:
    assert workload_of(Timeline((obj,), (Change(1.0, "delete", obj),))) == Timeline(
        (obj,), (Change(1.0, "delete", {key: obj[key] for key in ("apiVersion", "kind", "metadata")}),)
    )


def test_what_only_the_server_says_is_taken_off() -> None:
    meta = {
        "uid": "u", "resourceVersion": "1", "generation": 3, "creationTimestamp": "t", "managedFields": [],
        "name": "web", "namespace": "default", "finalizers": ["f"],
        "annotations": {"deployment.kubernetes.io/revision": "1", "mine": "yes"},
    }  # fmt: skip
    (found,) = workload_of(Timeline(({**deployment("web"), "metadata": meta, "status": {"replicas": 1}},))).objects
    assert found == {
        **deployment("web"), "metadata": {"name": "web", "namespace": "default", "annotations": {"mine": "yes"}},
    }  # fmt: skip


def test_a_bare_pod_is_free_to_go_to_another_node() -> None:
    (found,) = workload_of(Timeline((pod("p", node="n1"),))).objects
    assert found == pod("p")


def test_nodes_are_taken_as_they_were_at_the_beginning_or_not_at_all() -> None:
    first: JsonObject = {**node("n"), "status": {"capacity": {"cpu": "4"}, "conditions": [{}]}}
    timeline = Timeline((first,), (Change(1.0, "apply", node("m")), Change(2.0, "delete", first)))
    assert workload_of(timeline) == Timeline(({**node("n"), "status": {"capacity": {"cpu": "4"}}},))
    assert workload_of(timeline, nodes=False) == Timeline()


def test_changes_that_leave_nothing_are_gone_and_what_comes_back_is_told() -> None:
    web = deployment("web")
    scaled = deployment("web", replicas=3)
    timeline = Timeline((), (
        Change(1.0, "apply", web), Change(2.0, "apply", {**web, "status": {"replicas": 1}}),
        Change(3.0, "apply", scaled), Change(4.0, "delete", scaled), Change(5.0, "delete", scaled),
        Change(6.0, "apply", scaled),
    ))  # fmt: skip
    told = [(change.at_s, change.method) for change in workload_of(timeline).changes]
    assert told == [(1, "apply"), (3, "apply"), (4, "delete"), (6, "apply")]


def test_a_job_loses_the_selector_that_the_server_made() -> None:
    labels = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": "j", "mine": "yes"}
    job: JsonObject = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "a"},
        "spec": {"selector": {"matchLabels": {"controller-uid": "u"}}, "template": {"metadata": {"labels": labels}}},
    }  # fmt: skip
    (found,) = workload_of(Timeline((job,))).objects
    assert found["spec"] == {"template": {"metadata": {"labels": {"mine": "yes"}}}}
    manual = {**job, "spec": {**job["spec"], "manualSelector": True}}
    assert workload_of(Timeline((manual,))).objects == (manual,)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], None),
        ([{"waiting": {}}], None),
        ([running("01:00")], Run(60, None)),
        ([ended("01:00", "03:00")], Run(60, 180)),
        ([ended("01:00", "03:00"), running("02:00")], Run(60, None)),
        ([ended("02:00", "03:00"), ended("01:00", "04:00")], Run(60, 240)),
        ([{"running": {"startedAt": "yesterday"}}], None),
    ],
)
def test_a_run_is_from_the_first_start_to_the_last_end(states: list[Any], expected: Run | None) -> None:
    one = pod("p", containers=[{"name": str(number)} for number in range(max(1, len(states)))])
    found = list(pod_lives(Timeline((with_status(one, *states),), (), (), START_S)))
    assert found == ([] if expected is None else [PodLives(Ref("v1", "Pod", "default", "p"), (expected,))])


def test_pods_count_for_the_topmost_owner_and_end_when_they_are_deleted() -> None:
    first = with_status(owned(pod("web-rs-1"), "ReplicaSet", "web-rs"), running("01:00"))
    second = with_status(owned(pod("web-rs-2"), "ReplicaSet", "web-rs"), running("00:30"))
    changes = (Change(70.0, "apply", first), Change(80.0, "apply", second), Change(200.0, "delete", first))
    timeline = Timeline((deployment("web"), replica_set("web-rs", "web")), changes, (), START_S, 300.0)
    assert list(pod_lives(timeline)) == [
        PodLives(Ref("apps/v1", "Deployment", "default", "web"), (Run(30, None), Run(60, 200)))
    ]


def test_only_pods_that_end_by_themselves_are_told_how_long_to_run() -> None:
    lives = (
        PodLives(Ref("v1", "Pod", "default", "p"), (Run(5, 65),)),
        PodLives(Ref("v1", "Pod", "default", "q"), (Run(5, None),)),
        PodLives(Ref("apps/v1", "Deployment", "default", "web"), (Run(5, 65),)),
    )
    told = with_run_times(Timeline((pod("p"), pod("q"), deployment("web")), (Change(1.0, "delete", pod("p")),), lives))
    assert told.objects[0]["metadata"]["annotations"] == {"holokube.dev/run-time": "1m0s"}
    assert told.objects[1:] == (pod("q"), deployment("web"))
    assert told.changes[0].object == pod("p")


def test_pods_of_a_job_whose_template_was_changed_count_together() -> None:
    owner = Ref("v1", "Pod", "default", "p")
    lives = (PodLives(owner, (Run(0, 10), Run(0, 20)), 1), PodLives(owner, (Run(0, 90),), 2))
    told = with_run_times(Timeline((pod("p"),), (), lives))
    assert told.objects[0]["metadata"]["annotations"] == {"holokube.dev/run-time": "20s"}, "the median of all three"
