"""What the cloud of hollow machines is short of at this moment: told to the policies' clouds, which ask each time.

The object is shared: whoever runs an experiment changes it, and the clouds of all policies go by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.kwok.faults import Boot
from holokube.cluster_autoscaler.cloud.kwok.faults import Faults as GroupFaults
from holokube.cluster_autoscaler.cloud.kwok.group import KwokNodeGroup
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.karpenter.provider.faults import Faults as ClaimFaults
from holokube.karpenter.provider.faults import Place
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL

_EKS_CAPACITY_TYPE = "eks.amazonaws.com/capacityType"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Machines that cannot be had; what is empty stands for all."""

    instance_types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()

    def covers(self, instance_type: str, zone: str, capacity_type: str, group: str = "") -> bool:
        """Whether a machine is one of these."""
        return (
            (not self.instance_types or instance_type in self.instance_types)
            and (not self.groups or group in self.groups)
            and (not self.zones or zone in self.zones)
            and (not self.capacity_types or capacity_type in self.capacity_types)
        )


@dataclass(slots=True)
class CloudState:
    """What is wrong with the cloud now."""

    shortages: list[Shortage] = field(default_factory=list)
    boot_factors: list[tuple[float, float]] = field(default_factory=list)
    """How boots are slowed down: by a factor, and by seconds on top."""

    def lacks(self, instance_type: str, zone: str, capacity_type: str, group: str = "") -> bool:
        """Whether such a machine cannot be had."""
        return any(one.covers(instance_type, zone, capacity_type, group) for one in self.shortages)

    def boot_delay_s(self, usual_s: float) -> float:
        """How long a boot takes that usually takes so long."""
        for factor, extra_s in self.boot_factors:
            usual_s = usual_s * factor + extra_s
        return usual_s


class StockView(Mapping[Place, int]):
    """The stock of a cloud of claims: zero at the places where something is lacking, anything elsewhere."""

    def __init__(self, state: CloudState) -> None:
        self._state = state

    def __bool__(self) -> bool:
        return bool(self._state.shortages)

    def __getitem__(self, place: Place) -> int:
        if self._state.lacks(place.instance_type, place.zone, place.capacity_type):
            return 0
        raise KeyError(place)

    def __iter__(self) -> Iterator[Place]:
        """Which places there are is the catalogue's to know."""
        return iter(())

    def __len__(self) -> int:
        return 0


def claim_faults(state: CloudState) -> ClaimFaults:
    """Faults of Karpenter's cloud that follow the state; groups mean nothing there."""
    return ClaimFaults(stock=StockView(state))


@dataclass(frozen=True, slots=True)
class _FollowingFaults(GroupFaults):
    """Faults of a kwok group that follow the state, besides its own."""

    state: CloudState = field(default_factory=CloudState)
    place: tuple[str, str, str, str] = ("", "", "", "")
    """Instance type, zone, capacity type and group."""

    def left(self, existing: int, now_s: float, started_s: float) -> int | None:
        if self.state.lacks(*self.place):
            return 0
        return GroupFaults.left(self, existing, now_s, started_s)

    def boot(self, rng: Rng) -> Boot:
        usual = GroupFaults.boot(self, rng)
        return usual._replace(delay_s=self.state.boot_delay_s(usual.delay_s))


def follow(provider: CloudProvider, state: CloudState) -> None:
    """Have the groups of a kwok provider go by the state."""
    for group in provider.node_groups():
        if isinstance(group, KwokNodeGroup):
            labels = group.template["metadata"].get("labels") or {}
            place = (
                str(labels.get(INSTANCE_TYPE_LABEL, "")), str(labels.get(ZONE_LABEL, "")),
                capacity_type_of(labels), group.id,
            )  # fmt: skip
            own = group.settings.faults
            fields = {name: getattr(own, name) for name in GroupFaults.__dataclass_fields__}
            group.settings = replace(group.settings, faults=_FollowingFaults(**fields, state=state, place=place))


def capacity_type_of(labels: Mapping[str, str]) -> str:
    """``spot``, ``on-demand``, ... as the labels of a node tell it; empty if they do not."""
    return str(labels.get(CAPACITY_TYPE_LABEL) or labels.get(_EKS_CAPACITY_TYPE, "")).lower().replace("_", "-")
