"""Which volumes a node that is to go has to lose first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holokube.karpenter.termination.drain import is_drainable
from holokube.kube.types import JsonObject


def awaited_attachments(
    attachments: Iterable[JsonObject],
    node_name: str,
    pods: Iterable[JsonObject],
    claims: Mapping[str, JsonObject],
    now_s: float,
) -> list[JsonObject]:
    """Attachments of the node that will be undone; volumes of pods that stay until the end are not waited for.

    ``claims`` are PersistentVolumeClaims by ``namespace/name``.
    """
    kept = {
        (claim.get("spec") or {}).get("volumeName")
        for pod in pods
        if not is_drainable(pod, now_s)
        for claim in _claims_of(pod, claims)
    }
    found = []
    for attachment in attachments:
        spec = attachment.get("spec") or {}
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        if spec.get("nodeName") == node_name and volume and volume not in kept:
            found.append(attachment)
    return found


def _claims_of(pod: JsonObject, claims: Mapping[str, JsonObject]) -> list[JsonObject]:
    space, name = pod["metadata"].get("namespace") or "", pod["metadata"]["name"]
    found = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim_name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not claim_name and "ephemeral" in volume:
            claim_name = f"{name}-{volume['name']}"
        claim = claims.get(f"{space}/{claim_name}") if claim_name else None
        if claim is not None:
            found.append(claim)
    return found
