"""Why a group was not looked at, or could not help, in upstream's words."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from holokube.packing.filters import DEFAULT_FILTERS
from holokube.packing.filters.node_affinity import outside_named_nodes
from holokube.packing.podclass import PodClass
from holokube.packing.state import ClusterState

# Of groups that were skipped
NOT_READY: Final = "not ready for scale-up"
IN_BACKOFF: Final = "in backoff after failed scale-up"
MAX_SIZE_REACHED: Final = "max node group size reached"
ATOMIC_OVER_NODES_TOTAL: Final = "atomic scale-up exceeds cluster node count limit"

# Of groups that could have helped
ALL_OR_NOTHING: Final = "not all pods would fit and scale-up is using all-or-nothing strategy"
FILTERED_OUT: Final = "expansion options filtered out and no longer considered"
EXECUTION_FAILED: Final = "scale-up execution failed"


class Rejection(NamedTuple):
    """Why pods cannot run on a group's nodes."""

    reasons: tuple[str, ...]
    """What users are told; may be empty where upstream has no words for it."""
    predicate: str = ""
    """The filter that refused; empty if no filter did."""


def rejection_of(state: ClusterState, cls: PodClass, row: int) -> Rejection | None:
    """The first filter that refuses a node to a class, with its reasons; None if the class fits."""
    if state.fits(cls, row):
        return None
    if cls.error:
        return Rejection((cls.error,), "InterPodAffinity")
    for rule in DEFAULT_FILTERS:
        refusal = rule.refusal(state, cls)
        if refusal:
            return Rejection((refusal,), rule.name)
    outside = outside_named_nodes(state, cls)
    if outside is not None and outside[row]:
        # The search never came to this node, so upstream gives no reason for it.
        return Rejection((), "NodeAffinity")
    for rule in DEFAULT_FILTERS:
        if rule.concerns(state, cls):
            findings = rule.findings(state, cls, np.array([row]))
            reasons = tuple(finding.reason for finding in findings if finding.hit[0])
            if reasons:
                return Rejection(reasons, rule.name)
    raise AssertionError("what does not fit is refused by some filter")
