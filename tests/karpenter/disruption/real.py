"""Small clusters with the real solver behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType
from tests.karpenter.disruption import objects


def problem_of(
    nodes: Sequence[StateNode],
    pools: Sequence[NodePool],
    types: Sequence[InstanceType],
    pending: Sequence[JsonObject] = (),
    pdbs: Sequence[JsonObject] = (),
) -> Problem:
    """Pods that look for a place anyway are the pending ones, and those that will leave nodes being deleted."""
    limits = EvictionLimits(pdbs)
    leaving = [
        pod
        for node in nodes
        if node.is_marked_for_deletion
        for pod in node.pods
        if limits.is_movable(pod, objects.NOW_S)
    ]
    return Problem(
        pools,
        {pool.name: types for pool in pools},
        pods=[*pending, *leaving],
        state_nodes=nodes,
        pdbs=pdbs,
        now_s=objects.NOW_S,
    )


def real_view(
    nodes: Sequence[StateNode],
    *,
    pools: Sequence[NodePool] | None = None,
    types: Sequence[InstanceType] = objects.TYPES,
    pending: Sequence[JsonObject] = (),
    pdbs: Sequence[JsonObject] = (),
    **more: Any,
) -> DisruptionView:
    """A view whose simulations are those of the solver."""
    known = pools if pools is not None else [objects.pool()]
    problem = problem_of(nodes, known, types, pending, pdbs)
    return objects.view(nodes, pools=known, types=types, simulator=Simulation(problem), pdbs=pdbs, **more)
