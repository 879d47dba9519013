"""When a claim may be consolidated: its pool allows it, it is up, and its pods have not changed for a while."""

from __future__ import annotations

from typing import NamedTuple

from holokube.karpenter.api.labels import CONSOLIDATABLE, INITIALIZED
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.kube.types import JsonObject


class Consolidatable(NamedTuple):
    """The claim with or without the condition, and when to look again."""

    claim: JsonObject
    look_again_s: float | None = None
    quiet_since_s: float | None = None
    """What the time to look again is counted from."""


def consolidatable(claim: JsonObject, pool: NodePool, now_s: float) -> Consolidatable:
    """The condition as it should be now."""
    if pool.consolidate_after_s is None or not CLAIM_CONDITIONS.is_true(claim, INITIALIZED):
        return Consolidatable(CLAIM_CONDITIONS.without(claim, CONSOLIDATABLE))
    quiet_since_s = seconds_of((claim.get("status") or {}).get("lastPodEventTime"))
    if quiet_since_s is None:
        quiet_since_s = CLAIM_CONDITIONS.since_s(claim, INITIALIZED) or 0.0
    left_s = quiet_since_s + pool.consolidate_after_s - now_s
    if left_s > 0:
        return Consolidatable(CLAIM_CONDITIONS.without(claim, CONSOLIDATABLE), left_s, quiet_since_s)
    return Consolidatable(CLAIM_CONDITIONS.with_true(claim, CONSOLIDATABLE, now_s))
