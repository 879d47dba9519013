"""Finding Nodes and NodeClaims by the instance they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.client.informer import Informer
from holokube.kube.types import JsonObject

BY_PROVIDER_ID: Final = "karpenter/provider-id"


def node_ids(node: JsonObject) -> Iterable[str]:
    """For an index of Nodes."""
    provider_id = (node.get("spec") or {}).get("providerID")
    return (provider_id,) if provider_id else ()


def claim_ids(claim: JsonObject) -> Iterable[str]:
    """For an index of NodeClaims."""
    provider_id = (claim.get("status") or {}).get("providerID")
    return (provider_id,) if provider_id else ()


def only(objects: Informer, provider_id: str) -> JsonObject | None:
    """The one object of an instance; None when there is none, or when there are several and nobody knows which."""
    found = objects.lister.by_index(BY_PROVIDER_ID, provider_id) if provider_id else []
    return found[0] if len(found) == 1 else None
