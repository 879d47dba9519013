"""Which pods of a run are alike, so that questions about thousands of them are asked once for each shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from holokube.kube.resources import CPU, MEMORY, pod_requests
from holokube.kube.types import JsonObject

_MADE_LABELS: Final = frozenset({
    "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name",
    "pod-template-hash",
})  # fmt: skip
_PLACING: Final = (
    "nodeSelector", "affinity", "tolerations", "overhead", "resources", "hostNetwork", "schedulerName",
    "runtimeClassName", "priority",
)  # fmt: skip
"""Fields of a pod's spec that matter to where it may run, besides its containers."""


class Shapes:
    """Pods with the same requests and rules cost a planner the same."""

    def __init__(self) -> None:
        self.examples: list[JsonObject] = []
        """One pod of each shape."""
        self._by_owner: dict[tuple[Any, ...], int] = {}
        self._by_form: dict[bytes, int] = {}
        self._requests: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._last: tuple[Any, tuple[Any, ...]] = (None, ())
        """The containers last looked at, which pods of one template share, and what they request."""
        self._last_made: tuple[JsonObject, Any, dict[str, str], int] | None = None
        """The spec, namespace and labels that were last given a shape by their form, and the shape."""

    def requests_of(self, pod: JsonObject) -> tuple[int, int]:
        """Millicores and bytes."""
        spec = pod["spec"]
        plain = not (spec.get("initContainers") or spec.get("overhead") or spec.get("resources"))
        key = self._requests_key(spec) if plain else None
        known = self._requests.get(key) if key is not None else None
        if known is None:
            amounts = pod_requests(pod)
            known = amounts.get(CPU, 0), amounts.get(MEMORY, 0) // 1000
            if key is not None:
                self._requests[key] = known
        return known

    def shape_of(self, pod: JsonObject) -> int:
        """The number of its shape."""
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        owner = next((one["uid"] for one in meta.get("ownerReferences") or () if one.get("controller")), meta["uid"])
        key = (
            owner, labels.get("pod-template-hash") or labels.get("controller-revision-hash"),
            self._requests_key(pod["spec"]),
        )  # fmt: skip
        number = self._by_owner.get(key)
        if number is None:
            number = self._by_owner[key] = self._number_of(pod)
        return number

    def _requests_key(self, spec: Mapping[str, Any]) -> tuple[Any, ...]:
        containers = spec["containers"]
        if containers is not self._last[0]:
            self._last = containers, _requests_key(spec)
        return self._last[1]

    def _number_of(self, pod: JsonObject) -> int:
        """Owners that are alike, such as the Jobs of one kind of work, share a shape."""
        meta, spec = pod["metadata"], pod["spec"]
        namespace, labels = meta.get("namespace"), _own_labels(meta)
        last = self._last_made
        if last is not None and last[0] == spec and last[1] == namespace and last[2] == labels:
            # The form is made of nothing else. One job of a kind comes after the other.
            return last[3]
        form = _form(pod)
        if form is not None and form in self._by_form:
            number = self._by_form[form]
        else:
            number = len(self.examples)
            self.examples.append(pod)
        if form is not None:
            self._by_form[form] = number
            self._last_made = spec, namespace, labels, number
        return number


def _own_labels(meta: Mapping[str, Any]) -> dict[str, str]:
    """Without those that a controller makes up for each of its objects."""
    return {key: value for key, value in (meta.get("labels") or {}).items() if key not in _MADE_LABELS}


def _requests_key(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    found = []
    for container in spec["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        found.append((requests.get("cpu"), requests.get("memory")))
    return tuple(found)


def _form(pod: JsonObject) -> bytes | None:
    """Everything that placing looks at; None for pods whose rules are about other pods, volumes or devices."""
    spec, meta = pod["spec"], pod["metadata"]
    affinity = spec.get("affinity") or {}
    if affinity.get("podAffinity") or affinity.get("podAntiAffinity") or spec.get("topologySpreadConstraints"):
        return None
    has_volumes = any("persistentVolumeClaim" in one or "ephemeral" in one for one in spec.get("volumes") or ())
    if has_volumes or spec.get("resourceClaims"):
        return None
    labels = _own_labels(meta)
    containers = [
        [(one.get("resources"), one.get("ports"), one.get("restartPolicy")) for one in spec.get(kind) or ()]
        for kind in ("initContainers", "containers")
    ]
    placing = {field: spec[field] for field in _PLACING if field in spec}
    return orjson.dumps([meta.get("namespace"), labels, containers, placing], option=orjson.OPT_SORT_KEYS)
