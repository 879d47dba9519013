"""What may change in a pod. Reasons and fields are those of kube-apiserver 1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.pod_update import (
    prepare_ephemeral_containers,
    prepare_resize,
    validate_ephemeral_containers,
    validate_pod_resize,
)
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import changed, created, decoded, pod, update

MIRROR = "kubernetes.io/config.mirror"
AFFINITY = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
ZONE, ARCH = {"key": "zone", "operator": "Exists"}, {"key": "arch", "operator": "Exists"}


def bound() -> JsonObject:
    tolerations = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    spec = {
        "activeDeadlineSeconds": 100,
        "tolerations": tolerations,
        "initContainers": [{"name": "i", "image": "x"}],
    }
    return created(
        "pods", pod(spec, resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}})
    )


def gated() -> JsonObject:
    body = pod({"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"zone": "z1"}})
    return created("pods", changed(body, f"spec.{AFFINITY}", [{"matchExpressions": [ZONE]}]))


ALLOWED: list[tuple[str, Any]] = [
    ("spec.containers.0.image", "nginx:1.28"),
    ("spec.initContainers.0.image", "y"),
    ("spec.activeDeadlineSeconds", 50),
    ("metadata.labels", {"new": "label"}),
    ("metadata.annotations", {"new": "annotation"}),
]
FORBIDDEN: list[tuple[str, Any, tuple[str, str]]] = [
    ("spec.containers.0.command", ["sh"], ("Forbidden", "spec")),
    ("spec.containers.0.resources.requests.cpu", "1500m", ("Forbidden", "spec")),
    ("spec.nodeName", "n1", ("Forbidden", "spec")),
    ("spec.nodeSelector", {"a": "b"}, ("Forbidden", "spec")),
    ("spec.terminationGracePeriodSeconds", 5, ("Forbidden", "spec")),
    ("spec.initContainers", None, ("Forbidden", "spec.initContainers")),
    ("spec.activeDeadlineSeconds", 200, ("Invalid", "spec.activeDeadlineSeconds")),
    ("spec.activeDeadlineSeconds", None, ("Invalid", "spec.activeDeadlineSeconds")),
    ("spec.tolerations", None, ("Forbidden", "spec.tolerations")),
    ("spec.schedulingGates", [{"name": "late"}], ("Forbidden", "spec.schedulingGates[0].name")),
    ("metadata.annotations", {MIRROR: "x"}, ("Forbidden", f"metadata.annotations[{MIRROR}]")),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), ALLOWED)
def test_a_pod_may_change_in(path: str, value: Any) -> None:
    old = bound()
    assert update("pods", old, changed(old, path, value)).causes == []


@pytest.mark.parametrize(("path", "value", "cause"), FORBIDDEN)
def test_a_pod_may_not_change_in(path: str, value: Any, cause: tuple[str, str]) -> None:
    old = bound()
    assert cause in update("pods", old, changed(old, path, value)).fields


def test_tolerations_may_be_added_and_their_time_changed() -> None:
    old = bound()
    (known,) = old["spec"]["tolerations"]
    tolerations = [{**known, "tolerationSeconds": 9}, {"key": "more", "operator": "Exists"}]
    assert update("pods", old, changed(old, "spec.tolerations", tolerations)).causes == []


def test_the_refusal_says_what_may_change_and_what_did() -> None:
    old = bound()
    ((_, _, message),) = update("pods", old, changed(old, "spec.hostname", "h")).causes
    assert message.startswith(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    )
    assert "spec.hostname" in message


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        ("spec.schedulingGates", [{"name": "b"}], []),
        ("spec.schedulingGates", None, []),
        ("spec.nodeSelector", {"zone": "z1", "arch": "arm64"}, []),
        ("spec.nodeSelector", {"zone": "z2"}, [("Invalid", "spec.nodeSelector")]),
        (f"spec.{AFFINITY}", [{"matchExpressions": [ZONE, ARCH]}], []),
        (f"spec.{AFFINITY}", [{"matchExpressions": [ARCH]}], [("Invalid", f"spec.{AFFINITY}[0]")]),
        (f"spec.{AFFINITY}", [{}, {}], [("Invalid", f"spec.{AFFINITY}")]),
        ("spec.affinity.podAffinity", {}, [("Forbidden", "spec")]),
    ],
)
def test_a_gated_pod_may_only_be_confined_further(
    path: str, value: Any, fields: list[tuple[str, str]]
) -> None:
    old = gated()
    assert update("pods", old, changed(old, path, value)).fields == fields


def test_the_generation_moves_with_the_spec_only() -> None:
    old = bound()
    assert (
        update("pods", old, changed(old, "spec.containers.0.image", "b")).obj["metadata"]["generation"] == 2
    )
    assert update("pods", old, changed(old, "metadata.labels", {"a": "b"})).obj["metadata"]["generation"] == 1


def resized(old: JsonObject, path: str, value: Any) -> tuple[JsonObject, list[tuple[str, str]]]:
    new = decoded("pods", changed(old, path, value))
    prepare_resize(new, old)
    errors = FieldErrors()
    validate_pod_resize(new, old, errors)
    return new, sorted((cause.reason.removeprefix("FieldValue"), cause.field) for cause in errors.causes)


C = "spec.containers[0].resources"


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        ("spec.containers.0.resources.requests.cpu", "1500m", []),
        ("spec.initContainers.0.resources.requests.cpu", "1", []),
        ("spec.containers.0.resources.requests.cpu", "3", [("Invalid", f"{C}.requests")]),
        ("spec.containers.0.resources.requests.memory", None, [("Forbidden", f"{C}.requests")]),
        ("spec.containers.0.resources.limits", None, [("Forbidden", f"{C}.limits")]),
        ("spec.containers.0.resources.requests.ephemeral-storage", "1", [("Forbidden", "spec")]),
        ("spec.containers.0.resources.limits.memory", "1Gi", []),
        ("spec.containers.0.name", "other", [("Forbidden", "spec.containers[0].name")]),
        ("spec.initContainers", None, [("Forbidden", "spec.initContainers")]),
    ],
)
def test_a_resize_changes_cpu_and_memory_only(path: str, value: Any, fields: list[tuple[str, str]]) -> None:
    assert resized(bound(), path, value)[1] == fields


def test_a_resize_cannot_change_the_class_of_a_pod() -> None:
    old = created("pods", pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert resized(old, "spec.containers.0.resources.requests.cpu", "500m")[1] == [("Invalid", "spec")]


def test_a_resize_ignores_everything_else() -> None:
    old = bound()
    new, fields = resized(changed(old, "spec.containers.0.image", "nginx:1.27"), "spec.nodeName", "elsewhere")
    assert fields == []
    assert new["spec"] == old["spec"]


def test_a_pod_on_a_node_that_cannot_resize_is_refused() -> None:
    old = bound()
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    assert resized(old, "spec.containers.0.resources.requests.cpu", "1500m")[1] == [("Forbidden", "spec")]


def debugged(old: JsonObject, containers: list[JsonObject]) -> tuple[JsonObject, list[tuple[str, str]]]:
    new = decoded("pods", changed(old, "spec.ephemeralContainers", containers))
    prepare_ephemeral_containers(new, old)
    errors = FieldErrors()
    validate_ephemeral_containers(new, old, errors)
    return new, sorted((cause.reason.removeprefix("FieldValue"), cause.field) for cause in errors.causes)


def test_ephemeral_containers_can_be_added_but_never_changed_or_removed() -> None:
    first = {"name": "debug", "image": "busybox", "targetContainerName": "c"}
    once, fields = debugged(bound(), [first])
    assert fields == []
    assert once["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"] == "File"
    assert debugged(once, [first, {"name": "more", "image": "x"}])[1] == []
    assert debugged(once, [{**first, "image": "other"}])[1] == [("Forbidden", "spec.ephemeralContainers")]
    assert debugged(once, [])[1] == [("Forbidden", "spec.ephemeralContainers")]


E = "spec.ephemeralContainers[0]"


@pytest.mark.parametrize(
    ("container", "fields"),
    [
        ({"name": "c"}, [("Duplicate", f"{E}.name")]),
        ({"targetContainerName": "nobody"}, [("NotFound", f"{E}.targetContainerName")]),
        ({"ports": [{"containerPort": 1}]}, [("Forbidden", f"{E}.ports")]),
        ({"resources": {"limits": {"cpu": "1"}}}, [("Forbidden", f"{E}.resources")]),
        ({"lifecycle": {}}, [("Forbidden", f"{E}.lifecycle")]),
    ],
)
def test_an_ephemeral_container_is_refused_with(container: JsonObject, fields: list[tuple[str, str]]) -> None:
    assert debugged(bound(), [{"name": "debug", "image": "x", **container}])[1] == fields
