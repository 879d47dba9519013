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
_TAKEN_OVER = (*_META, "name", "generateName", "namespace", "uid", "creationTimestamp")
_NODE_META = ("annotations", "ownerReferences", "finalizers")
"""Nodes have their name among their labels, so that no two have the same."""


_MANAGED = b',"managedFields":['
_SPEC_KEY = b'"spec":'


def decode_slim(text: bytes) -> Any:
    """Decodes a text that holds a node or a pod, without who wrote which field: that is half of the text.

    Servers write ``managedFields`` last of the metadata, and the spec next. Inside, every key has a prefix (``f:spec``)
    and quotes are escaped, so that the first key of that name is the spec's. If anything else is in between, the text
    is decoded as it is.
    """
    start = text.find(_MANAGED)
    if start >= 0:
        spec = text.find(_SPEC_KEY, start)
        if spec >= 0 and text[spec - 3 : spec] == b"]},":
            return orjson.loads(text[:start] + text[spec - 2 :])
    return orjson.loads(text)


class Slimmer:
    """Makes objects smaller in place; only for objects that nobody else has."""

    def __init__(self) -> None:
        self._shared: dict[int, Any] = {}
        self._strings: dict[str, str] = {}

    def __call__(self, obj: JsonObject, before: JsonObject | None = None) -> JsonObject:
        """``before`` is a state of the same object that is small already: what has not changed is taken from there."""
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        spec, status = obj.get("spec"), obj.get("status")
        is_pod = spec is not None and "containers" in spec
        if before is not None and before.get("spec") == spec:
            obj["spec"] = before["spec"]
            _take_over(meta, before["metadata"])
            return self._slim_rest(obj, meta, None, status, is_pod)
        self._share(meta, _META if is_pod else _NODE_META)
        if spec:
            self._share(spec, _SPEC)
            self._unify(spec)
        return self._slim_rest(obj, meta, spec, status, is_pod)

    def _slim_rest(
        self, obj: JsonObject, meta: JsonObject, spec: JsonObject | None, status: JsonObject | None, is_pod: bool
    ) -> JsonObject:
        self._unify(obj)
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


def _take_over(meta: JsonObject, before: JsonObject) -> None:
    """Lets equal parts be one part."""
    for name in _TAKEN_OVER:
        part = meta.get(name)
        if part is not None and part == before.get(name):
            meta[name] = before[name]
