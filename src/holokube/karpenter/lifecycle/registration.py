"""The second step: the Node is there, and becomes the claim's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holokube.karpenter.api.labels import (
    DO_NOT_SYNC_TAINTS_LABEL,
    REGISTERED,
    REGISTERED_LABEL,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.kube.taints import merge_taints, taints_of
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True)
class Registration:
    """What is to become of the claim, and of its Node if there is one to be taken over."""

    claim: JsonObject
    node: JsonObject | None = None
    lacks_taint: bool = False
    """Whether pods could have come before the labels and taints did."""


def register(claim: JsonObject, nodes: Sequence[JsonObject], now_s: float) -> Registration:
    """The step for a claim and the Nodes of its instance."""
    if CLAIM_CONDITIONS.status(claim, REGISTERED) != "Unknown":
        return Registration(CLAIM_CONDITIONS.observed(claim, REGISTERED, now_s))
    if not nodes:
        message = "Node not registered with cluster"
        return Registration(CLAIM_CONDITIONS.with_unknown(claim, REGISTERED, now_s, "NodeNotFound", message))
    if len(nodes) > 1:
        message = "Invariant violated, matched multiple nodes"
        return Registration(CLAIM_CONDITIONS.with_false(claim, REGISTERED, now_s, "MultipleNodesFound", message))
    node = nodes[0]
    is_registered = REGISTERED_LABEL in (node["metadata"].get("labels") or {})
    lacks_taint = not is_registered and not any(taint.is_same(UNREGISTERED_TAINT) for taint in taints_of(node))
    done = CLAIM_CONDITIONS.with_true(claim, REGISTERED, now_s)
    done = {**done, "status": {**done["status"], "nodeName": node["metadata"]["name"]}}
    return Registration(done, taken_over(node, NodeClaim.of(claim)), lacks_taint)


def taken_over(node: JsonObject, claim: NodeClaim) -> JsonObject:
    """The Node with all that the claim has to say: labels, annotations, taints, finalizer, owner."""
    metadata = node["metadata"]
    labels = {**(metadata.get("labels") or {}), **claim.labels}
    taints = taints_of(node)
    if labels.get(DO_NOT_SYNC_TAINTS_LABEL) != "true":
        taints = merge_taints(merge_taints(taints, claim.taints), claim.startup_taints)
    kept = [taint for taint in taints if not taint.is_same(UNREGISTERED_TAINT)]
    # Taints that were there keep what else they carry, such as the time they were added.
    known = {(one["key"], one["effect"]): one for one in (node.get("spec") or {}).get("taints") or ()}
    listed = [known.get((taint.key, taint.effect)) or taint.to_json() for taint in kept]
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key != "taints"}
    return {
        **node,
        "metadata": {
            **metadata,
            "labels": {**labels, REGISTERED_LABEL: "true"},
            "annotations": {**(metadata.get("annotations") or {}), **claim.annotations},
            "finalizers": list(dict.fromkeys((*(metadata.get("finalizers") or ()), TERMINATION_FINALIZER))),
            "ownerReferences": _owners(metadata.get("ownerReferences") or [], claim),
        },
        "spec": {**spec, "taints": listed} if listed else spec,
    }


def _owners(owners: Sequence[JsonObject], claim: NodeClaim) -> list[JsonObject]:
    ours = {
        "apiVersion": NODE_CLAIMS.api_version, "kind": NODE_CLAIMS.kind, "name": claim.name, "uid": claim.uid,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    return [*(owner for owner in owners if owner.get("uid") != claim.uid), ours]
