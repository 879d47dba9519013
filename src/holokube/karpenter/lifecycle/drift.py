"""Whether a claim is still what its pool asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from holokube.karpenter.api.labels import (
    CAPACITY_TYPE_LABEL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID_LABEL,
    RESERVED,
)
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.node_pool import NodePool
from holokube.kube.requirements import Requirement, Requirements
from holokube.pricing.instance_types import InstanceType

NODE_POOL_DRIFTED: Final = "NodePoolDrifted"
REQUIREMENTS_DRIFTED: Final = "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND: Final = "InstanceTypeNotFound"

LOOK_AGAIN_S: Final = 300.0
TYPE_CHECK_AGE_S: Final = 3600.0
"""Claims younger than this are not looked up in the catalogue."""
TYPE_CHECK_EVERY_S: Final = 1800.0
"""A claim that was found there is not looked up again for so long."""


class Comparison:
    """A claim held against its pool and against the catalogue; holds for as long as all of them are the same."""

    def __init__(self, claim: NodeClaim, pool: NodePool) -> None:
        self._claim = claim
        self._pool = pool
        self._said = claim.labels, claim.annotations
        self.reason = why_drifted(claim, pool)
        """Why the claim is not what the pool asks for; empty if it is."""
        self._offered: tuple[Sequence[InstanceType], frozenset[str], bool] | None = None

    def holds(self, claim: NodeClaim, pool: NodePool) -> bool:
        """Whether it is true of these too."""
        return pool is self._pool and (claim.labels, claim.annotations) == self._said

    def is_still_offered(self, types: Sequence[InstanceType], well_known: frozenset[str]) -> bool:
        """See ``is_still_offered``."""
        known = self._offered
        if known is None or known[0] is not types or known[1] is not well_known:
            known = self._offered = types, well_known, is_still_offered(self._claim, types, well_known)
        return known[2]


def why_drifted(claim: NodeClaim, pool: NodePool) -> str:
    """A reason that the pool alone gives; empty if there is none."""
    if has_other_template(claim, pool):
        return NODE_POOL_DRIFTED
    if not Requirements.from_labels(claim.labels).is_compatible(pool.requirements):
        return REQUIREMENTS_DRIFTED
    return ""


def has_other_template(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether it was made from another template. Hashes of different versions say nothing about that."""
    for key in (NODEPOOL_HASH, NODEPOOL_HASH_VERSION):
        if key not in claim.annotations or key not in pool.annotations:
            return False
    if claim.annotations[NODEPOOL_HASH_VERSION] != pool.annotations[NODEPOOL_HASH_VERSION]:
        return False
    return claim.annotations[NODEPOOL_HASH] != pool.annotations[NODEPOOL_HASH]


def is_still_offered(claim: NodeClaim, types: Iterable[InstanceType], well_known: frozenset[str]) -> bool:
    """Whether the catalogue still has the claim's instance type at its place, to be had or not.

    A reserved instance may have become an ordinary one whose label was not brought up to date.
    """
    labels = dict(claim.labels)
    wanted = Requirements.from_labels(labels)
    if labels.get(CAPACITY_TYPE_LABEL) == RESERVED:
        labels.pop(RESERVATION_ID_LABEL, None)
        del labels[CAPACITY_TYPE_LABEL]
        either = Requirement.new(CAPACITY_TYPE_LABEL, "In", (RESERVED, ON_DEMAND))
        wanted = Requirements.from_labels(labels).adding(either)
    for one in types:
        if one.name == claim.instance_type:
            return any(wanted.is_compatible(o.requirements, allow_undefined=well_known) for o in one.offerings)
    return False
