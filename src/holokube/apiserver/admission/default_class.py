"""DefaultStorageClass and DefaultIngressClass: whoever names no class gets the one marked as default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holokube.apiserver.admission.base import CLAIMS, Attributes, Plugin
from holokube.kube.types import JsonObject

INGRESSES: Final = ("networking.k8s.io", "ingresses")
_STORAGE_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_STORAGE_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_INGRESS_MARKS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_INGRESS_ANNOTATION: Final = "kubernetes.io/ingress.class"


class DefaultStorageClass(Plugin):
    resources = frozenset({CLAIMS})

    def mutate(self, attributes: Attributes) -> None:
        classes = attributes.lookup.objects("storage.k8s.io", "storageclasses")
        _name_class(attributes, "storageClassName", _STORAGE_ANNOTATION, classes, _STORAGE_MARKS)


class DefaultIngressClass(Plugin):
    resources = frozenset({INGRESSES})

    def mutate(self, attributes: Attributes) -> None:
        classes = attributes.lookup.objects("networking.k8s.io", "ingressclasses")
        _name_class(attributes, "ingressClassName", _INGRESS_ANNOTATION, classes, _INGRESS_MARKS)


def _name_class(
    attributes: Attributes, field: str, annotation: str, classes: Sequence[JsonObject], marks: Sequence[str]
) -> None:
    obj = attributes.obj
    if obj is None or annotation in (obj["metadata"].get("annotations") or {}):
        return
    spec: JsonObject = obj.setdefault("spec", {})
    # An empty name is a choice, too: no class at all.
    if spec.get(field) is not None:
        return
    marked = [one for one in classes if any(_annotations(one).get(mark) == "true" for mark in marks)]
    if marked:
        newest = max(one["metadata"]["creationTimestamp"] for one in marked)
        spec[field] = min(
            one["metadata"]["name"] for one in marked if one["metadata"]["creationTimestamp"] == newest
        )


def _annotations(obj: JsonObject) -> JsonObject:
    found: JsonObject = obj["metadata"].get("annotations") or {}
    return found
