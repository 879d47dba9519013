"""Which machine a claim becomes: the cheapest offering among its instance types that it is compatible with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.base.rng import Rng
from holokube.karpenter.api import labels
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.provider.protocol import Instance, LaunchFailed
from holokube.kube.requirements import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    Requirement,
    Requirements,
)
from holokube.kube.resources import ResourceVector, to_json
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType, Offering

PROVIDER_PREFIX: Final = "kwok://"
FAKE: Final = "fake"
PARTITIONS: Final = ("a",)
_DECIDED: Final = (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL, labels.RESERVATION_ID_LABEL)


@dataclass(frozen=True, slots=True)
class Choice:
    """An instance type at a place."""

    instance_type: InstanceType
    offering: Offering


def cheapest(
    claim: NodeClaim,
    types: Mapping[str, InstanceType],
    well_known: frozenset[str],
    rng: Rng,
    is_to_be_had: Callable[[InstanceType, Offering], bool] = lambda _type, _offering: True,
) -> Choice | None:
    """The cheapest launchable offering; None when there is none.

    Types are looked at in the claim's order, and a later one has to be strictly cheaper; equally cheap offerings of one
    type are drawn from.
    """
    best: Choice | None = None
    # A launch whose answer was only half written has left its labels: it has to end with the same machine.
    decided = {key: claim.labels[key] for key in _DECIDED if key in claim.labels}
    requirements = claim.requirements.merged(Requirements.from_labels(decided))
    for one in _listed(claim, types):
        if not requirements.of(INSTANCE_TYPE_LABEL).has(one.name):
            continue
        fitting = [o for o in one.launchable(requirements, well_known) if is_to_be_had(one, o)]
        if not fitting:
            continue
        price = min(offering.price_usd_per_hour for offering in fitting)
        if best is None or price < best.offering.price_usd_per_hour:
            best = Choice(one, rng.choice([o for o in fitting if o.price_usd_per_hour == price]))
    return best


def _listed(claim: NodeClaim, types: Mapping[str, InstanceType]) -> list[InstanceType]:
    """The claim's instance types, in its order. One that the catalogue has lost is left out."""
    names: Sequence[str] = next(
        (
            entry.get("values") or ()
            for entry in claim.spec.get("requirements") or ()
            if entry["key"] == INSTANCE_TYPE_LABEL and entry["operator"] == "In"
        ),
        (),
    )
    if not names:
        raise LaunchFailed(f"NodeClaim {claim.name} does not say which instance types it would take")
    found = [types[name] for name in names if name in types]
    if not found:
        raise LaunchFailed(f"NodeClaim {claim.name}: instance type not found: {', '.join(names[:5])}")
    return found


def node_name(claim: NodeClaim, rng: Rng) -> str:
    """The same for the same claim, so that a launch that is repeated launches the same machine."""
    return f"kwok-{claim.name}-{rng.name_suffix()}-{rng.randrange(2**32)}"


def instance_of(claim: NodeClaim, choice: Choice, name: str, partition: str) -> Instance:
    """The machine that the choice becomes."""
    allocatable, capacity = _room(choice)
    # What the pods ask for beyond the type, an extended resource say, is there all the same.
    return Instance(
        provider_id=PROVIDER_PREFIX + name,
        labels=_labels(claim, choice, partition),
        annotations={**claim.annotations, labels.KWOK_NODE_LABEL: FAKE},
        capacity=to_json({**claim.requests, **capacity}),
        allocatable=to_json({**claim.requests, **allocatable}),
    )


def _room(choice: Choice) -> tuple[ResourceVector, ResourceVector]:
    one, offering = choice.instance_type, choice.offering
    for group in one.allocatable_groups:
        if any(known is offering for known in group.offerings):
            return group.allocatable, {**one.capacity, **(offering.capacity_override or {})}
    return one.allocatable, one.capacity


def _labels(claim: NodeClaim, choice: Choice, partition: str) -> dict[str, str]:
    found = dict(claim.labels)
    found.update(_single_values(claim.requirements.values()))
    found[INSTANCE_TYPE_LABEL] = choice.instance_type.name
    found.update(_single_values(choice.instance_type.requirements.values()))
    found.update(_single_values(choice.offering.requirements.values()))
    found[labels.INSTANCE_PRICE_LABEL] = f"{choice.offering.price_usd_per_hour:f}"
    found[labels.KWOK_PARTITION_LABEL] = partition
    found[HOSTNAME_LABEL] = claim.name
    found[labels.KWOK_NODE_LABEL] = FAKE
    return found


def _single_values(requirements: Iterable[Requirement]) -> dict[str, str]:
    return {
        one.key: next(iter(one.values)) for one in requirements if one.operator == "In" and len(one.values) == 1
    }


def node_object(claim: NodeClaim) -> JsonObject:
    """The Node that a launched claim's machine registers as."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": claim.provider_id.removeprefix(PROVIDER_PREFIX),
            "labels": {**claim.labels, HOSTNAME_LABEL: claim.name, labels.KWOK_NODE_LABEL: FAKE},
            "annotations": {**claim.annotations, labels.KWOK_NODE_LABEL: FAKE},
        },
        "spec": {"providerID": claim.provider_id, "taints": [labels.UNREGISTERED_TAINT.to_json()]},
        "status": {
            "capacity": dict(claim.status.get("capacity") or {}),
            "allocatable": dict(claim.status.get("allocatable") or {}),
        },
    }


def instance_of_node(node: JsonObject) -> Instance:
    """The machine behind a Node."""
    metadata, status = node["metadata"], node.get("status") or {}
    return Instance(
        provider_id=str((node.get("spec") or {}).get("providerID") or ""),
        labels=metadata.get("labels") or {},
        annotations={**(metadata.get("annotations") or {}), labels.KWOK_NODE_LABEL: FAKE},
        capacity=status.get("capacity") or {},
        allocatable=status.get("allocatable") or {},
        is_terminating=bool(metadata.get("deletionTimestamp")),
    )
