"""Defaults of pod specs, for pods themselves and for every kind with a pod template.

All functions expect objects in the form that Go gives them (see ``go_shapes``): zeros are gone, structs are
there.
"""

from __future__ import annotations

from typing import Any

from holokube.apiserver.kinds.image_names import default_pull_policy
from holokube.apiserver.kinds.pod_resources import default_pod_level_resources
from holokube.apiserver.kinds.volume_defaults import default_volumes
from holokube.kube import quantity
from holokube.kube.types import JsonObject

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)
_OBSOLETE_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{suffix}"
    for stage in ("beta", "alpha")
    for suffix in ("s", "-statuses")
)
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def default_pod(pod: JsonObject) -> None:
    """Defaults of a pod: those of its spec, and some that a template does not get."""
    spec: JsonObject = pod["spec"]
    drop_obsolete_annotations(pod.get("metadata"))
    containers: list[JsonObject] = spec.get("containers") or []
    inits: list[JsonObject] = spec.get("initContainers") or []
    for container in containers:
        _default_requests(container)
    for container in inits:
        _default_requests(container)
    if spec.get("resources") is not None:
        default_pod_level_resources(pod)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for container in (*containers, *inits):
            for port in container.get("ports") or ():
                if "hostPort" not in port and port["containerPort"]:
                    port["hostPort"] = port["containerPort"]
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _default_requests(container: JsonObject) -> None:
    """Requests that are not written equal the limits."""
    resources = container.get("resources")
    if not resources:
        return
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        resources["requests"] = {**limits, **requests} if requests else dict(limits)


def default_template(template: JsonObject) -> None:
    """Defaults of a pod template."""
    drop_obsolete_annotations(template["metadata"])
    default_pod_spec(template["spec"])


def drop_obsolete_annotations(meta: JsonObject | None) -> None:
    """Init containers were annotations once; upstream removes what old clients still send."""
    annotations = meta.get("annotations") if meta else None
    if not annotations or _OBSOLETE_ANNOTATIONS.isdisjoint(annotations):
        return
    kept = {key: value for key, value in annotations.items() if key not in _OBSOLETE_ANNOTATIONS}
    if kept:
        meta["annotations"] = kept  # type: ignore[index]  # there are annotations, so there is metadata
    else:
        del meta["annotations"]  # type: ignore[union-attr]  # as above


def default_pod_spec(spec: JsonObject) -> None:
    """Defaults that pods and templates share."""
    if "dnsPolicy" not in spec:
        spec["dnsPolicy"] = "ClusterFirst"
    if "restartPolicy" not in spec:
        spec["restartPolicy"] = "Always"
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = 30
    if "schedulerName" not in spec:
        spec["schedulerName"] = "default-scheduler"
    share_service_account_name(spec)
    volumes = spec.get("volumes")
    if volumes:
        default_volumes(volumes)
    for key in _CONTAINER_LISTS:
        containers = spec.get(key)
        if containers:
            for container in containers:
                default_container(container)
    for amounts in (spec.get("overhead"), *_amounts_of(spec.get("resources"))):
        if amounts:
            round_up_to_milli(amounts)


def share_service_account_name(spec: JsonObject) -> None:
    """``serviceAccount`` is the old name of ``serviceAccountName``; both are shown, the new one wins."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name
    else:
        spec.pop("serviceAccountName", None)
        spec.pop("serviceAccount", None)


def default_container(container: JsonObject) -> None:
    """Defaults of a container of any of the three lists."""
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    resources = container["resources"]
    if resources:
        for amounts in _amounts_of(resources):
            if amounts:
                round_up_to_milli(amounts)
    ports = container.get("ports")
    if ports:
        for port in ports:
            if "protocol" not in port:
                port["protocol"] = "TCP"
    env = container.get("env")
    if env:
        for variable in env:
            _default_variable(variable)
    for key in _PROBES:
        if key in container:
            _default_probe(container[key])
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for handler in (lifecycle.get("postStart"), lifecycle.get("preStop")):
            if handler:
                _default_handler(handler)


def _amounts_of(resources: JsonObject | None) -> tuple[Any, Any]:
    return (resources.get("limits"), resources.get("requests")) if resources else (None, None)


def round_up_to_milli(amounts: JsonObject) -> None:
    """Nothing finer than a thousandth is stored."""
    for name, text in amounts.items():
        if text[-1] in "nu" or "." in text or "e" in text:
            amounts[name] = str(quantity.parse(text).rounded_up_to_milli())


def _default_variable(variable: JsonObject) -> None:
    source = variable.get("valueFrom")
    if source:
        field = source.get("fieldRef")
        if field is not None:
            default_field_ref(field)
        file = source.get("fileKeyRef")
        if file is not None and "optional" not in file:
            file["optional"] = False


def default_field_ref(reference: JsonObject) -> None:
    if not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def _default_probe(probe: JsonObject) -> None:
    for key, value in _PROBE_DEFAULTS:
        if key not in probe:
            probe[key] = value
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""
    _default_handler(probe)


def _default_handler(handler: JsonObject) -> None:
    http = handler.get("httpGet")
    if http is not None:
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")
