"""The disruption methods, in the order in which they are tried; the first that has something to do ends a pass."""

from __future__ import annotations

from typing import Final

from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Method

METHODS: Final[tuple[Method, ...]] = (
    # Nobody misses an empty node, so it goes before anything is moved onto it.
    Emptiness(),
    # What a pool asks for today outranks what a node costs.
    Drift(),
    # Many nodes at once move fewer pods twice than one after the other.
    MultiNodeConsolidation(),
    SingleNodeConsolidation(),
)
