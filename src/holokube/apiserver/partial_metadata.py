"""``PartialObjectMetadata``: an object reduced to its metadata."""

from __future__ import annotations

from holokube.kube.types import JsonObject


def partial_metadata(obj: JsonObject) -> JsonObject:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
