"""The third step: the Node is up, and can take the pods that it was made for."""

from __future__ import annotations

from typing import NamedTuple

from holokube.karpenter.api.labels import INITIALIZED, INITIALIZED_LABEL, REGISTERED
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.scheduling.state_node import is_ephemeral
from holokube.kube.conditions import is_true
from holokube.kube.resources import parse_resources
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject


class Obstacle(NamedTuple):
    """Why a node is not initialized yet."""

    reason: str
    message: str


class Initialization(NamedTuple):
    """The claim after the step, and the Node with its label if it is initialized by it."""

    claim: JsonObject
    node: JsonObject | None = None


def initialize(claim: JsonObject, node: JsonObject | None, now_s: float) -> Initialization:
    """The step for a claim and its Node."""
    if CLAIM_CONDITIONS.status(claim, INITIALIZED) != "Unknown":
        return Initialization(CLAIM_CONDITIONS.observed(claim, INITIALIZED, now_s))
    if not CLAIM_CONDITIONS.is_true(claim, REGISTERED):
        return Initialization(claim)
    obstacle = why_not_initialized(NodeClaim.of(claim), node)
    if obstacle is not None:
        return Initialization(CLAIM_CONDITIONS.with_unknown(claim, INITIALIZED, now_s, *obstacle))
    assert node is not None
    metadata = node["metadata"]
    labels = {**(metadata.get("labels") or {}), INITIALIZED_LABEL: "true"}
    return Initialization(
        CLAIM_CONDITIONS.with_true(claim, INITIALIZED, now_s), {**node, "metadata": {**metadata, "labels": labels}}
    )


def why_not_initialized(claim: NodeClaim, node: JsonObject | None) -> Obstacle | None:
    """What is still missing; None if nothing is."""
    if node is None:
        return Obstacle("NodeNotFound", "Node not registered with cluster")
    if not is_true(node, "Ready"):
        return Obstacle("NodeNotReady", "Node status is NotReady")
    taints = taints_of(node)
    for taint in taints:
        if any(taint.is_same(startup) for startup in claim.startup_taints):
            return Obstacle("StartupTaintsExist", f'StartupTaint "{taint}" still exists')
    for taint in taints:
        if is_ephemeral(taint):
            return Obstacle("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{taint}" still exists')
    allocatable = parse_resources((node.get("status") or {}).get("allocatable"))
    for name, milli in claim.requests.items():
        if milli and not allocatable.get(name):
            return Obstacle("ResourceNotRegistered", f'Resource "{name}" was requested but not registered')
    return None
