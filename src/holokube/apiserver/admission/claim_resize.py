"""PersistentVolumeClaimResize: only a bound claim of a class that allows it may grow."""

from __future__ import annotations

from holokube.apiserver.admission.base import CLAIMS, UPDATE_ONLY, Attributes, Plugin, refuse
from holokube.kube import quantity
from holokube.kube.quantity import Quantity
from holokube.kube.types import JsonObject

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class PersistentVolumeClaimResize(Plugin):
    resources = frozenset({CLAIMS})
    operations = UPDATE_ONLY

    def validate(self, attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if new is None or old is None or _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise refuse(attributes, "Only bound persistent volume claims can be expanded")
        name = claim_class(new)
        found = attributes.lookup.find("storage.k8s.io", "storageclasses", "", name) if name else None
        if name != claim_class(old) or found is None or not found.get("allowVolumeExpansion"):
            raise refuse(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
                "pvc must support resize",
            )


def claim_class(claim: JsonObject) -> str:
    """The storage class that a claim asks for; the old annotation wins."""
    annotated = (claim["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    if annotated is not None:
        return str(annotated)
    return str((claim.get("spec") or {}).get("storageClassName") or "")


def _size(claim: JsonObject) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(requests.get("storage", 0))
