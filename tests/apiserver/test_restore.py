"""Restoring objects of another cluster: what stays, what is new, and what is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.manifests import parse_manifests
from holokube.apiserver.registry import Registry
from holokube.apiserver.restore import RestoreReport, restore
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import VirtualClock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.kube.types import JsonObject
from holokube.store.store import Store

CATALOG = TypeCatalog()
MADE_AT = "2020-02-02T02:02:02Z"
OLD_UIDS = [f"{digit * 8}-1111-4111-8111-111111111111" for digit in "abcdef"]


def restored(*objects: Any, bootstrapped: bool = True) -> tuple[Registry, RestoreReport]:
    registry = Registry(VirtualClock(), Rng(5), Store(), catalog=CATALOG)

    async def main() -> RestoreReport:
        if bootstrapped:
            await bootstrap(registry)
        return await restore(registry, objects)

    return registry, asyncio.run(main())


def pod(name: str = "web", *, uid: str = "", owners: Iterable[JsonObject] = (), **meta: Any) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "creationTimestamp": MADE_AT, **meta}
    if uid:
        metadata["uid"] = uid
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "nodeName": "n1"},
        "status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]},
    }


def replica_set(name: str = "web-abc", uid: str = "") -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default"}
    if uid:
        metadata["uid"] = uid
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def owned_by(name: str, uid: str, kind: str = "ReplicaSet") -> JsonObject:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def find(registry: Registry, group: str, plural: str, namespace: str, name: str) -> JsonObject:
    found = registry.find(group, plural, namespace, name)
    assert found is not None, f"{plural} {namespace}/{name} is missing"
    return found


def test_status_age_and_generation_stay_and_uid_and_version_are_new() -> None:
    source = pod(uid=OLD_UIDS[0], generation=7, resourceVersion="999", selfLink="/old")
    registry, report = restored(source)
    found = find(registry, "", "pods", "default", "web")
    assert report.problems == []
    assert found["status"]["phase"] == "Running"
    assert found["status"]["podIP"] == "10.1.2.3"
    assert found["metadata"]["creationTimestamp"] == MADE_AT
    assert found["metadata"]["generation"] == 7
    assert found["metadata"]["uid"] not in ("", OLD_UIDS[0])
    assert found["metadata"]["resourceVersion"] == str(registry.store.revision)
    assert "selfLink" not in found["metadata"]


def test_the_source_objects_are_left_alone() -> None:
    source = pod(uid=OLD_UIDS[0])
    before = repr(source)
    restored(source)
    assert repr(source) == before


def test_owner_references_follow_their_owners_in_whatever_order_they_come() -> None:
    owner = replica_set(uid=OLD_UIDS[0])
    child = pod(uid=OLD_UIDS[1], owners=[owned_by("web-abc", OLD_UIDS[0])])
    for objects in ((owner, child), (child, owner)):
        registry, report = restored(*objects)
        uid = find(registry, "apps", "replicasets", "default", "web-abc")["metadata"]["uid"]
        link = find(registry, "", "pods", "default", "web")["metadata"]["ownerReferences"][0]
        assert link["uid"] == uid
        assert report.problems == []


def test_owners_are_found_by_name_where_uids_were_stripped() -> None:
    registry, report = restored(replica_set(), pod(owners=[owned_by("web-abc", "gone")]))
    uid = find(registry, "apps", "replicasets", "default", "web-abc")["metadata"]["uid"]
    assert find(registry, "", "pods", "default", "web")["metadata"]["ownerReferences"][0]["uid"] == uid
    assert report.problems == []


def test_a_missing_owner_is_reported_and_the_object_kept() -> None:
    registry, report = restored(pod(owners=[owned_by("lost", OLD_UIDS[3])]))
    assert find(registry, "", "pods", "default", "web")
    assert [problem.left_out for problem in report.problems] == [False]
    assert "owner ReplicaSet lost is missing" in report.problems[0].message


def test_mentions_of_uids_elsewhere_follow_too() -> None:
    job_uid, claim_uid = OLD_UIDS[0], OLD_UIDS[1]
    labels = {"batch.kubernetes.io/controller-uid": job_uid, "controller-uid": job_uid}
    labels |= {"batch.kubernetes.io/job-name": "once", "job-name": "once"}
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "default", "uid": job_uid},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": job_uid}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
            },
        },
    }
    claim: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": claim_uid},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "pv",
        },
    }
    volume: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "uid": OLD_UIDS[2]},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "data",
                "uid": claim_uid,
            },
        },
    }
    registry, report = restored(volume, job, claim)
    assert report.problems == []
    new_claim = find(registry, "", "persistentvolumeclaims", "default", "data")["metadata"]["uid"]
    assert find(registry, "", "persistentvolumes", "", "pv")["spec"]["claimRef"]["uid"] == new_claim
    new_job = find(registry, "batch", "jobs", "default", "once")
    selector = new_job["spec"]["selector"]["matchLabels"]
    assert selector == {"batch.kubernetes.io/controller-uid": new_job["metadata"]["uid"]}
    assert new_job["spec"]["template"]["metadata"]["labels"]["controller-uid"] == new_job["metadata"]["uid"]


def crd() -> JsonObject:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.lab.example.com", "uid": OLD_UIDS[4]},
        "spec": {"group": "lab.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
        "status": {"acceptedNames": names, "conditions": [], "storedVersions": ["v1"]},
    }


def test_definitions_come_before_their_objects_wherever_they_stand() -> None:
    widget = {
        "apiVersion": "lab.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "uid": OLD_UIDS[5]},
        "spec": {"size": 3},
        "status": {"ready": True},
    }
    registry, report = restored(widget, crd())
    assert report.problems == []
    found = find(registry, "lab.example.com", "widgets", "default", "w")
    assert found["spec"] == {"size": 3}
    assert found["status"] == {"ready": True}
    assert report.restored == {
        "customresourcedefinitions.apiextensions.k8s.io": 1,
        "widgets.lab.example.com": 1,
    }


def test_missing_namespaces_are_made_with_their_service_account() -> None:
    registry, report = restored({**pod(), "metadata": {"name": "web", "namespace": "shop"}})
    assert report.added_namespaces == ["shop"]
    assert find(registry, "", "namespaces", "", "shop")["status"]["phase"] == "Active"
    assert find(registry, "", "serviceaccounts", "shop", "default")


def test_a_namespace_of_the_file_is_kept_as_it_was() -> None:
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "shop",
            "uid": OLD_UIDS[0],
            "creationTimestamp": MADE_AT,
            "labels": {"team": "a"},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    registry, report = restored(space)
    found = find(registry, "", "namespaces", "", "shop")
    assert found["metadata"]["creationTimestamp"] == MADE_AT
    assert found["metadata"]["labels"]["team"] == "a"
    assert report.added_namespaces == []
    assert find(registry, "", "serviceaccounts", "shop", "default")


def test_what_cannot_be_restored_is_named_and_the_rest_goes_in() -> None:
    unnamed: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    unknown = {"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
    broken = {**pod("broken"), "spec": {"containers": []}}
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {"name": "t"},
        "spec": {},
    }
    registry, report = restored(unnamed, unknown, broken, "text", review, pod())
    messages = {problem.index: str(problem) for problem in report.left_out}
    assert sorted(messages) == [0, 1, 2, 3]
    assert "metadata.name is missing" in messages[0]
    assert "does not serve kind Thing" in messages[1]
    assert "Pod default/broken: spec.containers: Required value" in messages[2]
    assert "not a Kubernetes object" in messages[3]
    assert registry.find("", "pods", "default", "web")


def test_fields_the_server_does_not_know_are_reported() -> None:
    source = pod()
    source["spec"]["brandNew"] = True
    registry, report = restored(source)
    assert [str(problem) for problem in report.problems] == [
        'Pod default/web: unknown field "spec.brandNew" is left out'
    ]
    assert "brandNew" not in find(registry, "", "pods", "default", "web")["spec"]


def test_an_object_that_stands_twice_is_restored_once() -> None:
    _, report = restored(pod(uid=OLD_UIDS[0]), pod(uid=OLD_UIDS[1]))
    assert report.restored == {"pods": 1}
    assert "twice" in report.left_out[0].message


def test_what_the_server_made_itself_gives_way() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "uid": OLD_UIDS[0],
            "labels": {"from": "file"},
        },
        "spec": {
            "clusterIP": "172.20.0.1",
            "clusterIPs": ["172.20.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443}],
        },
        "status": {"loadBalancer": {}},
    }
    registry, report = restored(service)
    assert report.problems == []
    found = find(registry, "", "services", "default", "kubernetes")
    assert found["spec"]["clusterIP"] == "172.20.0.1", "an address of another cluster's range stays"
    assert found["metadata"]["labels"] == {"from": "file"}


def test_plain_manifests_get_what_a_create_would_give_them() -> None:
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]},
    }  # fmt: skip
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod()["spec"]}
    registry, report = restored(service, bare)
    assert report.problems == []
    assert find(registry, "", "services", "default", "s")["spec"]["clusterIP"].startswith("10.96.")
    found = find(registry, "", "pods", "default", "p")
    assert found["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert found["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_objects_can_be_written_to_afterwards() -> None:
    registry, _ = restored(pod(uid=OLD_UIDS[0]))
    pods = registry.resolve("", "v1", "pods")
    found = find(registry, "", "pods", "default", "web")
    changed = {**found, "metadata": {**found["metadata"], "labels": {"a": "b"}}}
    result = asyncio.run(registry.update(pods, "default", "web", changed))
    assert result.stored.obj["metadata"]["labels"] == {"a": "b"}
    assert result.stored.obj["status"] == found["status"]


def test_a_cluster_of_the_same_seed_keeps_every_object_apart() -> None:
    first, _ = restored(replica_set(), pod(), pod("other"))
    objects = [
        *first.objects("apps", "replicasets"),
        *first.objects("", "pods"),
        *first.objects("", "namespaces"),
    ]
    second, report = restored(*objects, bootstrapped=False)
    assert report.problems == []
    again = [
        *second.objects("apps", "replicasets"),
        *second.objects("", "pods"),
        *second.objects("", "namespaces"),
    ]
    assert len({obj["metadata"]["uid"] for obj in again}) == len(objects)


def test_the_same_seed_gives_the_same_store() -> None:
    def state() -> list[JsonObject]:
        registry, _ = restored(replica_set(), pod(owners=[owned_by("web-abc", "x")]))
        return [dict(obj) for obj in registry.objects("", "pods")]

    assert state() == state()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
        ("v1", "Node"),
        ("v1", "Namespace"),
        ("v1", "List"),
    ]
)


@given(KINDS, JSON, JSON, JSON)
def test_no_object_whatever_its_shape_brings_a_restore_down(
    kind: tuple[str, str], metadata: Any, spec: Any, status: Any
) -> None:
    named = {**metadata, "name": "x"} if isinstance(metadata, dict) else metadata
    obj = {"apiVersion": kind[0], "kind": kind[1], "metadata": named, "spec": spec, "status": status}
    registry, report = restored(obj, pod(), bootstrapped=False)
    assert registry.find("", "pods", "default", "web")
    assert report.restored.total() + len(report.left_out) == 2


def test_lists_and_documents_are_taken_apart_and_lines_are_known() -> None:
    text = b"""\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: b}
---
# nothing but a comment
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: c, creationTimestamp: 2020-02-02T02:02:02Z}
"""
    manifests = parse_manifests(text, "f.yaml")
    assert [obj["metadata"]["name"] for obj in manifests.objects] == ["a", "b", "c"]
    assert manifests.objects[2]["kind"] == "Pod"
    assert manifests.objects[2]["metadata"]["creationTimestamp"] == MADE_AT, "times stay text"
    assert [manifests.where(index) for index in range(3)] == [
        "f.yaml, line 4",
        "f.yaml, line 7",
        "f.yaml, line 16",
    ]


def test_a_file_of_aliases_that_would_fill_the_memory_is_refused() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]" for level in range(1, 40))]
    with pytest.raises(UsageError, match="excessive aliasing") as caught:
        parse_manifests("\n".join(lines).encode(), "bomb.yaml")
    assert "bomb.yaml" in str(caught.value) and caught.value.hint
