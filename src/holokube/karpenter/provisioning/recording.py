"""Tells users what a solve has found: where pods will go, and why some will not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.karpenter import events
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.events import NOMINATIONS, Publisher
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

FAILED_DEDUPE_S: Final = 300.0
POOL_DEDUPE_S: Final = 60.0


def record(results: Results, state: ClusterState, publisher: Publisher) -> None:
    """Events for pods; nodes that are to take some are nominated, and left alone for a while."""
    for error in results.failed.values():
        if not error.is_reserved:
            tell_failure(publisher, error.pod, error.reason)
    found = [(state.node_named(name), pods) for name, pods in results.existing.items() if pods]
    for node, pods in found:
        if node is None:
            continue
        state.nominate(node.provider_id or node.name)
        parts = [f"nodeclaim/{node.claim_name}"] if node.claim_name else []
        parts += [f"node/{node.node_name}"] if node.node_name else []
        message = f"Pod should schedule on: {', '.join(parts)}"
        publisher.normal_for_each(pods, events.NOMINATED, message, budget=NOMINATIONS)


class PoolCheck:
    """Tells of pools from which nothing can be launched now, whatever pods ask for."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._found: dict[str, tuple[object, object, bool]] = {}
        """By name of the pool: its spec and types as they were when it was looked at, and whether some can be."""

    def look_at(self, problem: Problem) -> None:
        """Looks at the pools that can be used; at one with the very same spec and types only once."""
        before, self._found = self._found, {}
        for pool in problem.pools:
            spec, types = pool.object.get("spec"), problem.types_of_pool.get(pool.name, ())
            known = before.get(pool.name)
            if known is None or known[0] is not spec or known[1] is not types:
                known = spec, types, can_launch(pool, types, problem.well_known)
            self._found[pool.name] = known
            if not known[2]:
                self._publisher.warning(
                    pool.object, events.NO_COMPATIBLE_INSTANCE_TYPES,
                    "NodePool requirements filtered out all compatible available instance types",
                    dedupe_s=POOL_DEDUPE_S,
                )  # fmt: skip


def can_launch(pool: NodePool, types: Iterable[InstanceType], well_known: frozenset[str]) -> bool:
    """Whether any instance type meets the pool's requirements at a place where it is to be had."""
    wanted = pool.template_requirements
    return any(
        wanted.intersects(one.requirements)
        and any(o.available and wanted.is_compatible(o.requirements, allow_undefined=well_known) for o in one.offerings)
        for one in types
    )


def tell_failure(publisher: Publisher, pod: JsonObject, reason: str) -> None:
    """A pod has no place."""
    publisher.warning(
        pod, events.FAILED_SCHEDULING, f"Failed to schedule pod, {reason}", dedupe_s=FAILED_DEDUPE_S
    )
