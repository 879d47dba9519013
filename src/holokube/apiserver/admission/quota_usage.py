"""What an object counts for in a ResourceQuota, and which quotas concern it."""
# ruff: noqa: ARG002 - not every evaluator needs all that it is told

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from holokube.apiserver.admission.base import Attributes, GroupResource
from holokube.apiserver.admission.claim_resize import claim_class
from holokube.apiserver.kinds.pod_resources import container_totals
from holokube.kube import quantity, resources, timeformat
from holokube.kube.quantity import Quantity
from holokube.kube.resources import is_extended_resource, is_native_resource
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject

Usage = dict[str, Quantity]

_ONE: Final = Quantity(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
# A quota on one of these obliges every container to say how much it wants.
_OBLIGATORY: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_DEVICES_MAX: Final = 32
_COUNT_ALIASES: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


class Evaluator:
    """Counts objects: ``count/deployments.apps``, and for a few old kinds just ``configmaps``."""

    def __init__(self, resource: GroupResource) -> None:
        group, plural = resource
        self.count_name = f"count/{plural}.{group}" if group else f"count/{plural}"
        self.names = {self.count_name}
        if not group and plural in _COUNT_ALIASES:
            self.names.add(plural)

    def handles(self, attributes: Attributes) -> bool:
        """Whether a write could change what is used."""
        return attributes.operation == "CREATE" and not attributes.subresource

    def tracks(self, name: str) -> bool:
        """Whether a name in a quota is about this resource."""
        return name in self.names

    def missing(self, obj: JsonObject, required: Iterable[str]) -> str:
        """What an object fails to say although the quota needs it; empty if nothing."""
        return ""

    def in_scope(self, requirement: JsonObject, obj: JsonObject) -> bool:
        return False

    def usage(self, obj: JsonObject, now: datetime) -> Usage:
        return dict.fromkeys(self.names, _ONE)

    def matches(self, quota: JsonObject, obj: JsonObject) -> bool:
        """Whether a quota limits something of this object, and the object is in all of the quota's scopes."""
        hard = (quota.get("status") or {}).get("hard") or {}
        return any(self.tracks(name) for name in hard) and all(
            self.in_scope(requirement, obj) for requirement in scope_requirements(quota)
        )


class PodEvaluator(Evaluator):
    def handles(self, attributes: Attributes) -> bool:
        if attributes.subresource == "resize":
            return attributes.operation == "UPDATE"
        if attributes.subresource or attributes.obj is None:
            return False
        if attributes.operation == "UPDATE":
            return _is_terminating(attributes.obj) != _is_terminating(attributes.old or {})
        return attributes.operation == "CREATE"

    def tracks(self, name: str) -> bool:
        if name in (self.count_name, "pods") or name.removeprefix("requests.").startswith("hugepages-"):
            return True
        kind, dot, resource = name.partition(".")
        if name in _COMPUTE or (dot and kind in ("requests", "limits") and resource in _COMPUTE):
            return True
        implicit = name.startswith("requests.deviceclass.resource.kubernetes.io/")
        return kind == "requests" and bool(dot) and (implicit or not is_native_resource(name))

    def missing(self, obj: JsonObject, required: Iterable[str]) -> str:
        spec = obj.get("spec") or {}
        pod_level = spec.get("resources") or {}
        if any(
            resources.is_pod_level_resource(name)
            for kind in ("requests", "limits")
            for name in pod_level.get(kind) or ()
        ):
            return ""
        lacking: dict[str, set[str]] = {}
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            written = container.get("resources") or {}
            said = _compute_usage(_amounts(written.get("requests")), _amounts(written.get("limits")))
            for name in _OBLIGATORY.intersection(required):
                if name not in said:
                    lacking.setdefault(name, set()).add(container.get("name", ""))
        if not lacking:
            return ""
        parts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
        return f"must specify {'; '.join(parts)}"

    def in_scope(self, requirement: JsonObject, obj: JsonObject) -> bool:
        scope = requirement.get("scopeName")
        if scope in ("Terminating", "NotTerminating"):
            return _is_terminating(obj) is bool(scope == "Terminating")
        if scope in ("BestEffort", "NotBestEffort"):
            return (resources.qos_class(obj) == "BestEffort") is bool(scope == "BestEffort")
        if scope == "PriorityClass":
            name = (obj.get("spec") or {}).get("priorityClassName")
            return _selects(requirement, "PriorityClass", [name] if name else [])
        return bool(scope == "CrossNamespacePodAffinity") and _looks_across_namespaces(obj)

    def usage(self, obj: JsonObject, now: datetime) -> Usage:
        used = {self.count_name: _ONE}
        if not _has_ended(obj, now):
            used.update(_compute_usage(_pod_total(obj, "requests"), _pod_total(obj, "limits")))
        return used


class ServiceEvaluator(Evaluator):
    def __init__(self, resource: GroupResource) -> None:
        super().__init__(resource)
        self.names = {self.count_name, "services", "services.nodeports", "services.loadbalancers"}

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in ("CREATE", "UPDATE") and not attributes.subresource

    def usage(self, obj: JsonObject, now: datetime) -> Usage:
        spec = obj.get("spec") or {}
        ports = spec.get("ports") or []
        kind = spec.get("type")
        node_ports = 0
        if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        elif kind in ("NodePort", "LoadBalancer"):
            node_ports = len(ports)
        return {
            self.count_name: _ONE,
            "services": _ONE,
            "services.nodeports": Quantity(node_ports),
            "services.loadbalancers": Quantity(int(kind == "LoadBalancer")),
        }


class ClaimEvaluator(Evaluator):
    """Persistent volume claims: how many, and how much storage, also by storage class."""

    def handles(self, attributes: Attributes) -> bool:
        if attributes.subresource == "status":
            new, old = attributes.obj or {}, attributes.old or {}
            return _allocated(new) != _allocated(old) or _attribute_classes(new) != _attribute_classes(old)
        return attributes.operation in ("CREATE", "UPDATE") and not attributes.subresource

    def tracks(self, name: str) -> bool:
        return name == self.count_name or name.rpartition(_STORAGE_CLASS)[2] in (
            "persistentvolumeclaims", "requests.storage",
        )  # fmt: skip

    def in_scope(self, requirement: JsonObject, obj: JsonObject) -> bool:
        if requirement.get("scopeName") != "VolumeAttributesClass":
            return False
        return _selects(requirement, "VolumeAttributesClass", sorted(_attribute_classes(obj)))

    def usage(self, obj: JsonObject, now: datetime) -> Usage:
        used = {self.count_name: _ONE, "persistentvolumeclaims": _ONE}
        requests = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
        if "storage" in requests:
            size = quantity.parse(requests["storage"])
            used["requests.storage"] = _whole(max(size, quantity.parse(_allocated(obj) or 0)))
        name = claim_class(obj)
        if name:
            for key in ("persistentvolumeclaims", "requests.storage"):
                if key in used:
                    used[f"{name}{_STORAGE_CLASS}{key}"] = used[key]
        return used


class ResourceClaimEvaluator(Evaluator):
    """Resource claims: how many, and the most devices of each class that they may end up with."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in ("CREATE", "UPDATE") and not attributes.subresource

    def tracks(self, name: str) -> bool:
        return name == self.count_name or name.endswith(_DEVICE_CLASS)

    def usage(self, obj: JsonObject, now: datetime) -> Usage:
        used: Usage = {self.count_name: _ONE}
        devices = (obj.get("spec") or {}).get("devices") or {}
        for request in devices.get("requests") or ():
            counts: dict[str, int] = {}
            for choice in (
                [request["exactly"]] if request.get("exactly") else request.get("firstAvailable") or ()
            ):
                exact = choice.get("allocationMode", "ExactCount") == "ExactCount"
                count = choice.get("count", 1) if exact else _DEVICES_MAX
                name = choice.get("deviceClassName", "")
                # Only one of the alternatives will be taken, but nobody knows which.
                counts[name] = max(counts.get(name, 0), count)
            for name, count in counts.items():
                key = name + _DEVICE_CLASS
                used[key] = used.get(key, Quantity(0)) + Quantity(count)
        return used


_EVALUATORS: Final[Mapping[GroupResource, type[Evaluator]]] = {
    ("", "pods"): PodEvaluator,
    ("", "services"): ServiceEvaluator,
    ("", "persistentvolumeclaims"): ClaimEvaluator,
    ("resource.k8s.io", "resourceclaims"): ResourceClaimEvaluator,
}


def evaluator_for(resource: GroupResource) -> Evaluator:
    return _EVALUATORS.get(resource, Evaluator)(resource)


def scope_requirements(quota: JsonObject) -> list[JsonObject]:
    """All scopes of a quota, in the longer form."""
    spec = quota.get("spec") or {}
    plain: list[JsonObject] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return plain + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def _amounts(written: Mapping[str, Any] | None) -> Usage:
    return {name: quantity.parse(text) for name, text in (written or {}).items()}


def _selects(requirement: JsonObject, scope: str, values: list[str]) -> bool:
    """Scope selectors read as label selectors on one label named like the scope."""
    if requirement.get("operator") == "Exists":
        return bool(values)
    expression = {
        "key": scope, "operator": requirement.get("operator"), "values": requirement.get("values") or [],
    }  # fmt: skip
    selector = LabelSelector.from_json({"matchExpressions": [expression]})
    return any(selector.matches({scope: value}) for value in values) if values else selector.matches({})


def _pod_total(pod: JsonObject, kind: str) -> Usage:
    """Exact amounts as they are written; a pod in the middle of a resize counts with its largest size."""
    spec = pod.get("spec") or {}
    if (pod.get("status") or {}).get("containerStatuses"):
        count = resources.pod_requests if kind == "requests" else resources.pod_limits
        return {
            name: resources.to_quantity(name, milli) for name, milli in count(pod, use_status=True).items()
        }
    total = container_totals(spec, kind)
    for name, amount in _amounts((spec.get("resources") or {}).get(kind)).items():
        if resources.is_pod_level_resource(name):
            total[name] = amount
    for name, amount in _amounts(spec.get("overhead")).items():
        if name in total:
            total[name] = total[name] + amount
        elif kind == "requests":
            total[name] = amount
    return total


def _compute_usage(requests: Usage, limits: Usage) -> Usage:
    used = {"pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended_resource(name) or name.startswith("deviceclass.resource.kubernetes.io/"):
            used[f"requests.{name}"] = amount
    return used


def _is_terminating(pod: JsonObject) -> bool:
    deadline_s = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return isinstance(deadline_s, int) and deadline_s >= 0


def _has_ended(pod: JsonObject, now: datetime) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    meta = pod.get("metadata") or {}
    deleted, grace_s = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if not deleted or grace_s is None:
        return False
    # Upstream adds the grace period to a time that holds it already; pods stuck for that long count no more.
    return now > timeformat.parse_time(deleted) + timedelta(seconds=grace_s)


def _looks_across_namespaces(pod: JsonObject) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms.extend(one.get("podAffinityTerm") or {} for one in weighted)
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def _whole(amount: Quantity) -> Quantity:
    return amount if amount.milli() % 1000 == 0 else Quantity(amount.value(), 0, amount.format)


def _allocated(claim: JsonObject) -> str:
    return str(((claim.get("status") or {}).get("allocatedResources") or {}).get("storage") or "")


def _attribute_classes(claim: JsonObject) -> set[str]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return {name for name in names if name}
