"""What each kind allows, as the strategies of Kubernetes 1.36 have it."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from holokube.apiserver.kinds.base import Lookup, WriteContext
from holokube.apiserver.kinds.other_registry import OTHER_KINDS
from holokube.apiserver.kinds.workload_registry import WORKLOAD_KINDS
from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world


def _plurals(trait: str, value: bool) -> set[str]:
    return {plural for (group, plural), kind in OTHER_KINDS.items() if group != "apiextensions.k8s.io"
            and getattr(kind, trait) is value}  # fmt: skip


def test_put_creates_these() -> None:
    assert _plurals("allow_create_on_update", True) == {
        "services", "endpoints", "events", "limitranges", "leases", "runtimeclasses", "roles", "rolebindings",
        "clusterroles", "clusterrolebindings",
    }  # fmt: skip


def test_put_without_resource_version_is_refused_for_these() -> None:
    assert _plurals("allow_unconditional_update", False) == {
        "leases", "runtimeclasses", "poddisruptionbudgets", "csidrivers", "csistoragecapacities", "volumeattachments",
        "csinodes", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
    }  # fmt: skip


def test_a_delete_answers_with_these_objects_themselves() -> None:
    assert _plurals("returns_deleted_object", True) == {
        "resourceclaimtemplates", "resourceslices", "resourceclaims", "deviceclasses", "csidrivers", "storageclasses",
        "volumeattachments", "csinodes", "volumeattributesclasses", "resourcequotas", "persistentvolumes",
        "serviceaccounts", "persistentvolumeclaims", "namespaces", "services",
    }  # fmt: skip


def test_these_have_a_generation() -> None:
    assert _plurals("tracks_generation", True) == {
        "priorityclasses", "ingressclasses", "networkpolicies", "ingresses", "endpointslices", "poddisruptionbudgets",
        "resourceslices", "deviceclasses", "flowschemas", "prioritylevelconfigurations",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
    }  # fmt: skip


@pytest.mark.parametrize("labels", [None, {"a": "b"}])
def test_where_only_metadata_is_put_back_a_status_write_that_leaves_it_needs_no_preparation(
    labels: dict[str, str] | None,
) -> None:
    prepared = {key: kind for key, kind in {**OTHER_KINDS, **WORKLOAD_KINDS}.items() if kind.prepares_only_metadata}
    assert {plural for _, plural in prepared} == {"deployments"}
    for kind in prepared.values():
        meta: JsonObject = {"name": "x"} if labels is None else {"name": "x", "labels": labels, "uid": "u"}
        old = {"metadata": meta, "spec": {"template": {}}, "status": {"replicas": 1}}
        new = {**old, "metadata": dict(meta), "status": {"replicas": 2}}
        text = orjson.dumps(new)
        context = WriteContext(datetime(2026, 1, 1, tzinfo=UTC), Rng("tests"), _nobody())
        kind().prepare_status_update(new, old, context)
        assert orjson.dumps(new) == text


def _nobody() -> Lookup:
    return World(VirtualClock()).registry


def _event(name: str, **fields: object) -> JsonObject:
    involved = {"kind": "Pod", "namespace": "default", "name": name}
    return {"metadata": {"name": f"{name}.1", "namespace": "default"}, "involvedObject": involved, **fields}


_SELECTED = [
    ("nodes", "", "spec.unschedulable=true", ["cordoned"]),
    ("nodes", "", "spec.unschedulable=false", ["free"]),
    ("nodes", "", "metadata.name!=free", ["cordoned"]),
    ("namespaces", "", "status.phase=Terminating", ["leaving"]),
    ("secrets", "", "type=kubernetes.io/basic-auth", ["login"]),
    ("services", "", "spec.type=NodePort", ["outside"]),
    ("services", "", "spec.clusterIP=None", ["headless"]),
    ("events", "", "involvedObject.name=a,type=Warning", ["a.1"]),
    ("events", "", "source=kubelet", ["a.1"]),
    ("events", "", "source=scheduler", ["b.1"]),
    ("events", "", "reportingComponent=scheduler", ["b.1"]),
    ("events", "events.k8s.io", "regarding.name=b", ["b.1"]),
    ("events", "events.k8s.io", "reportingController=scheduler", ["b.1"]),
]


@pytest.mark.parametrize(("plural", "group", "selector", "expected"), _SELECTED)
def test_a_field_selector_finds(plural: str, group: str, selector: str, expected: list[str]) -> None:
    async def body(world: World) -> list[str]:
        await world.create("nodes", {"metadata": {"name": "free"}})
        await world.create("nodes", {"metadata": {"name": "cordoned"}, "spec": {"unschedulable": True}})
        await world.create("namespaces", {"metadata": {"name": "leaving"}})
        await world.delete("namespaces", "leaving")
        login = {"type": "kubernetes.io/basic-auth", "stringData": {"username": "me"}}
        await world.create("secrets", {"metadata": {"name": "login", "namespace": "default"}, **login})
        await world.create("secrets", {"metadata": {"name": "plain", "namespace": "default"}})
        for name, spec in (("outside", {"type": "NodePort"}), ("headless", {"clusterIP": "None"})):
            meta = {"name": name, "namespace": "default"}
            await world.create("services", {"metadata": meta, "spec": {"ports": [{"port": 80}], **spec}})
        await world.create("events", _event("a", type="Warning", source={"component": "kubelet"}))
        await world.create("events", _event("b", type="Normal", reportingComponent="scheduler"))
        return world.names(plural, group, fieldSelector=selector)

    assert in_world(body) == expected
