"""What a fleet keeps of nodes and pods: everything but who wrote which field, and nothing twice.

The objects of a fleet are alike: the same containers, capacities, labels and conditions, thousands of times.
Decoded one by one each has its own copy; here equal parts become one object. They are never changed, so nobody
notices, except that a thousand nodes fit where two hundred did.
"""

from __future__ import annotations

from typing import Any

import orjson

from holokube.kube.types import JsonObject

SHARED_MAX = 1_000
"""Parts kept to compare with. When there are more, all are forgotten: those in use live on in their objects, and what
is common is soon there again. Kept for longer, parts of states long gone would take more memory than sharing saves."""

STRINGS_MAX = 1_000

_META = ("labels", "annotations", "ownerReferences", "finalizers")
_SPEC = ("containers", "initContainers", "volumes", "tolerations", "securityContext", "taints", "affinity",
         "topologySpreadConstraints", "nodeSelector", "imagePullSecrets")  # fmt: skip
_STATUS = ("capacity", "allocatable", "daemonEndpoints", "images", "hostIPs", "runtimeHandlers", "features")
_NODE_META = ("annotations", "ownerReferences", "finalizers")
"""Nodes have their name among their labels, so that no two have the same."""


def without_managed_fields(obj: JsonObject) -> JsonObject:
    """For objects that are soon replaced: the largest part goes, the rest is not worth the work."""
    obj["metadata"].pop("managedFields", None)
    return obj


class Slimmer:
    """Makes objects smaller in place; only for objects that nobody else has."""

    def __init__(self) -> None:
        self._shared: dict[int, Any] = {}
        self._strings: dict[str, str] = {}

    def __call__(self, obj: JsonObject) -> JsonObject:
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        spec, status = obj.get("spec"), obj.get("status")
        is_pod = spec is not None and "containers" in spec
        self._share(meta, _META if is_pod else _NODE_META)
        self._unify(obj)
        if spec:
            self._share(spec, _SPEC)
            self._unify(spec)
        if status:
            self._share(status, _STATUS)
            # Nodes and pods that came up in the same second have the same conditions.
            items = status.get("conditions")
            if items:
                status["conditions"] = [self._one_of(item) for item in items]
        if not is_pod:
            self._slim_node(obj, meta, spec, status)
        return obj

    def _slim_node(self, obj: JsonObject, meta: JsonObject, spec: JsonObject | None, status: JsonObject | None) -> None:
        """There are few of them for all the pods, and they stay: worth a closer look."""
        self._unify(meta)
        self._unify(meta.get("labels") or {})
        if spec:
            obj["spec"] = self._one_of(spec)
        if status:
            self._share(status, ("conditions",))
            self._unify(status.get("nodeInfo") or {})
            for address in status.get("addresses") or ():
                self._unify(address)

    def _share(self, holder: JsonObject, names: tuple[str, ...]) -> None:
        for name in names:
            part = holder.get(name)
            if part:
                holder[name] = self._one_of(part)

    def _one_of(self, part: Any) -> Any:
        shared = self._shared
        if len(shared) > SHARED_MAX:
            shared.clear()
        # The bytes themselves would take more memory than what they describe.
        known = shared.setdefault(hash(orjson.dumps(part)), part)
        return known if known == part else part

    def _unify(self, holder: JsonObject) -> None:
        """Lets equal strings be one string."""
        strings = self._strings
        for name, value in holder.items():
            if type(value) is str:
                holder[name] = strings.setdefault(value, value)
        if len(strings) > STRINGS_MAX:
            strings.clear()
