"""StorageObjectInUseProtection: finalizers that keep storage in use from going away."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.admission.base import CLAIMS, Attributes, Plugin
from holokube.kube.types import JsonObject

_FINALIZERS: Final = {
    CLAIMS: "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    resources = frozenset(_FINALIZERS)

    def mutate(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        finalizer = _FINALIZERS[attributes.served.group, attributes.served.plural]
        meta: JsonObject = attributes.obj["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            meta["finalizers"] = [*finalizers, finalizer]
