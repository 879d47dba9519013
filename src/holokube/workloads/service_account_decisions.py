"""What every namespace is given: the default service account, and the certificate of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.kube.types import JsonObject

DEFAULT_ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
DESCRIPTION_ANNOTATION: Final = "kubernetes.io/description"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


def is_active(namespace: Mapping[str, Any] | None) -> bool:
    """Whether the namespace is there and takes new objects."""
    return namespace is not None and (namespace.get("status") or {}).get("phase") == "Active"


def account(namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": DEFAULT_ACCOUNT, "namespace": namespace},
    }  # fmt: skip


def root_ca_map(namespace: str, root_ca: str, found: Mapping[str, Any] | None) -> JsonObject | None:
    """The ConfigMap as it should be; None when the one that was ``found`` already is.

    What others add to its metadata stays, what they do to its data does not.
    """
    data = {"ca.crt": root_ca}
    if found is None:
        meta: JsonObject = {
            "name": ROOT_CA, "namespace": namespace, "annotations": {DESCRIPTION_ANNOTATION: DESCRIPTION},
        }  # fmt: skip
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    annotations = found["metadata"].get("annotations") or {}
    if found.get("data") == data and annotations.get(DESCRIPTION_ANNOTATION) == DESCRIPTION:
        return None
    meta = {**found["metadata"], "annotations": {**annotations, DESCRIPTION_ANNOTATION: DESCRIPTION}}
    return {**found, "metadata": meta, "data": data}
