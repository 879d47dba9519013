"""NodeClaims from planned ones: how they are written, and their creation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.karpenter import events
from holokube.karpenter.api.labels import (
    CAPACITY_TYPE_LABEL,
    INITIALIZED_LABEL,
    MIN_VALUES_RELAXED,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    REGISTERED_LABEL,
)
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.pool_hash import HASH_VERSION
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.events import NOMINATIONS, Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.scheduling.problem import pod_key
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.errors import NotFound
from holokube.kube.requirements import INSTANCE_TYPE_LABEL, RESTRICTED_LABELS, Requirement, Requirements
from holokube.kube.resources import to_json
from holokube.kube.types import JsonObject

_AT_ONCE: Final = 32
_PODS_TOLD: Final = 20
_TYPES_TOLD: Final = 5
"""Of a claim in the journal: there may be hundreds."""
_SIMULATION_ONLY: Final = (REGISTERED_LABEL, INITIALIZED_LABEL)


class ClaimRefused(HolokubeError):
    """A planned claim was not made."""


def claim_object(planned: PlannedClaim, rng: Rng) -> JsonObject:
    """The NodeClaim of a plan: the pool's template, narrowed to what the plan allows."""
    pool = planned.pool
    template = (pool.object.get("spec") or {}).get("template") or {}
    requirements = _requirements(planned)
    annotations = {
        **pool.template_annotations, NODEPOOL_HASH: pool.hash, NODEPOOL_HASH_VERSION: HASH_VERSION,
    }  # fmt: skip
    if planned.min_values_relaxed:
        annotations[MIN_VALUES_RELAXED] = "true"
    given = template.get("spec") or {}
    spec: JsonObject = {
        key: given[key]
        for key in ("taints", "startupTaints", "nodeClassRef", "expireAfter", "terminationGracePeriod")
        if given.get(key)
    }
    spec["requirements"] = _written(requirements, [one.name for one in planned.instance_types])
    spec["resources"] = {"requests": to_json(planned.requests)}
    return {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {
            "generateName": f"{pool.name}-",
            "labels": {**pool.node_labels, **_custom_labels(requirements, planned.well_known, rng)},
            "annotations": annotations,
            "ownerReferences": [
                {
                    "apiVersion": NODE_POOLS.api_version, "kind": NODE_POOLS.kind, "name": pool.name, "uid": pool.uid,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }  # fmt: skip


def _requirements(planned: PlannedClaim) -> Requirements:
    """With the instance types by name, and the capacity types that can be launched now."""
    types, found = planned.instance_types, planned.requirements.without(*_SIMULATION_ONLY)
    minimum = found.of(INSTANCE_TYPE_LABEL).min_values
    found = found.adding(Requirement.new(INSTANCE_TYPE_LABEL, "In", [one.name for one in types], minimum))
    capacity_types = {
        offering.capacity_type for one in types for offering in one.launchable(found, planned.well_known)
    }
    if capacity_types:
        found = found.adding(Requirement.new(CAPACITY_TYPE_LABEL, "In", capacity_types))
    return found


def _written(requirements: Requirements, type_names: Sequence[str]) -> list[JsonObject]:
    """As JSON; instance types in the order of their price, which is the order they are tried in."""
    entries = requirements.to_json()
    return [
        {**entry, "values": list(type_names)} if entry["key"] == INSTANCE_TYPE_LABEL else entry for entry in entries
    ]


def _custom_labels(requirements: Requirements, well_known: frozenset[str], rng: Rng) -> dict[str, str]:
    """One value for each label that the provider knows nothing of."""
    found = {}
    for key in sorted(requirements):
        if key not in well_known and key not in RESTRICTED_LABELS:
            value = requirements[key].any(rng)
            if value:
                found[key] = value
    return found


@dataclass(frozen=True, slots=True)
class Created:
    """Names of the claims in the order of their plans; empty where one was refused."""

    names: tuple[str, ...]
    errors: tuple[HolokubeError, ...] = ()


class ClaimMaker:
    """Creates claims, within the limits of their pools, and tells everybody."""

    def __init__(
        self, client: Client, state: ClusterState, publisher: Publisher, metrics: KarpenterMetrics, rng: Rng
    ) -> None:
        self._client = client
        self._state = state
        self._publisher = publisher
        self._metrics = metrics
        self._rng = rng
        self._log = get_logger("holokube.karpenter.provisioning")

    async def create_all(self, plans: Sequence[PlannedClaim], reason: str, *, nominate: bool = False) -> Created:
        """Creates all at once. One that is refused does not keep the others."""
        names = [""] * len(plans)
        errors: list[HolokubeError] = []
        refused = {name: await self._why_refused(name) for name in dict.fromkeys(plan.pool.name for plan in plans)}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def create(place: int) -> None:
            async with gate:
                try:
                    names[place] = await self._create(plans[place], reason, nominate=nominate)
                except HolokubeError as error:
                    errors.append(error)

        allowed = [place for place, plan in enumerate(plans) if refused[plan.pool.name] is None]
        errors.extend(error for plan in plans if (error := refused[plan.pool.name]) is not None)
        await asyncio.gather(*map(create, allowed))
        return Created(tuple(names), tuple(errors))

    async def _why_refused(self, pool_name: str) -> ClaimRefused | None:
        """Why a pool can have no claims now, by what the server says of it; usage does not change within a batch."""
        try:
            pool = NodePool.of(await self._client.get(NODE_POOLS, pool_name))
        except (NotFound, ValueError) as error:
            return ClaimRefused(f"NodePool {pool_name} cannot be used: {error}", hint="Its pods are looked at anew.")
        exceeded = pool.exceeded_limit(self._state.usage_of(pool_name))
        if not exceeded:
            return None
        return ClaimRefused(
            f"NodePool {pool_name}: {exceeded} resource usage exceeds its limit",
            hint="Raise spec.limits, or wait for nodes to go.",
        )

    async def _create(self, planned: PlannedClaim, reason: str, *, nominate: bool) -> str:
        claim = await self._client.create(NODE_CLAIMS, claim_object(planned, self._rng))
        name = str(claim["metadata"]["name"])
        # The next pass must know of it, even if the event has not come by then.
        self._state.put_claim(claim)
        self._state.pod_times.expect_on_claim(map(pod_key, planned.pods), name)
        self._log.info(
            "created nodeclaim", claim=name, pool=planned.pool.name, requests=claim["spec"]["resources"]["requests"],
            instance_types=_first([one.name for one in planned.instance_types]),
        )  # fmt: skip
        self._metrics.claim_created(claim, reason, min_values_relaxed=planned.min_values_relaxed)
        self._publisher.decided(
            "claim", name, "made", f"{reason}, for {_counted(len(planned.pods))}", group=planned.pool.name,
            pods=[pod_key(pod) for pod in planned.pods[:_PODS_TOLD]],
            types=[one.name for one in planned.instance_types[:_TYPES_TOLD]],
        )  # fmt: skip
        if nominate:
            for pod in planned.pods:
                self._publisher.normal(
                    pod, events.NOMINATED, f"Pod should schedule on: nodeclaim/{name}", budget=NOMINATIONS
                )
        return name


def _counted(pods: int) -> str:
    return f"{pods} pod" if pods == 1 else f"{pods} pods"


def _first(names: Sequence[str]) -> str:
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} other(s)" if more > 0 else "")
