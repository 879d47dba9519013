"""The interface of the Cluster Autoscaler to whoever owns the machines.

The methods and their meaning are upstream's. What is known without asking anybody (a name, the sizes from the
configuration) is a plain attribute or call; what a cloud may have to be asked for is a coroutine. A method that a
provider does not offer raises ``NotImplementedByProvider``, for which every caller has a defined fallback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol, runtime_checkable

from holokube.kube.types import JsonObject


class InstanceState(IntEnum):
    """What a machine is doing. The numbers are those of the wire."""

    RUNNING = 1
    CREATING = 2
    DELETING = 3


class ErrorClass(IntEnum):
    """Why a machine could not be made. The numbers are those of the wire."""

    OUT_OF_RESOURCES = 1
    OTHER = 99

    def __str__(self) -> str:
        return "OutOfResource" if self is ErrorClass.OUT_OF_RESOURCES else "Other"


class InstanceError(NamedTuple):
    """What went wrong with a machine."""

    error_class: ErrorClass
    code: str
    message: str


class Instance(NamedTuple):
    """A machine, registered as a node or not."""

    id: str
    """Equal to the node's ``spec.providerID``."""
    state: InstanceState | None = None
    """None if the provider does not tell."""
    error: InstanceError | None = None

    @property
    def is_expected_to_register(self) -> bool:
        """Whether a node should come of it."""
        return self.state is not InstanceState.DELETING and self.error is None


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Settings that a group may have of its own."""

    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time_s: float = 600.0
    scale_down_unready_time_s: float = 1200.0
    max_node_provision_time_s: float = 900.0
    max_node_startup_time_s: float = 900.0
    zero_or_max_node_scaling: bool = False
    allow_non_atomic_scale_up_to_max: bool = False
    ignore_daemon_sets_utilization: bool = False


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node and the pods on it: what a new machine of a group will look like just after boot."""

    node: JsonObject
    pods: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceLimiter:
    """How little and how much of each resource the whole cluster may have: whole cores, bytes, devices."""

    minimum: Mapping[str, int] = field(default_factory=dict)
    maximum: Mapping[str, int] = field(default_factory=dict)


class GpuConfig(NamedTuple):
    """The accelerators of a node."""

    label: str
    type: str
    resource_name: str


class PricingModel(Protocol):
    """What machines and pods cost; floats are allowed here and nowhere else."""

    async def node_price(self, node: JsonObject, start_s: float, end_s: float) -> float:
        """What a node costs from one time to another."""

    async def pod_price(self, pod: JsonObject, start_s: float, end_s: float) -> float:
        """What a pod's requests would cost on a node that fits them exactly."""


@runtime_checkable
class NodeGroup(Protocol):
    """Machines that are alike, and the number of them that is asked for."""

    @property
    def id(self) -> str:
        """Unique, and the same for ever."""

    @property
    def min_size(self) -> int:
        """The autoscaler never goes below."""

    @property
    def max_size(self) -> int:
        """The autoscaler never goes above."""

    def debug(self) -> str:
        """One line for logs."""

    async def target_size(self) -> int:
        """How many machines were asked for: those not there yet included, those being deleted not."""

    async def increase_size(self, delta: int) -> None:
        """Ask for more machines; returns when the target is changed, not when the machines run.

        Refuses above the maximum. After an error the target tells how far it came.
        """

    async def atomic_increase_size(self, delta: int) -> None:
        """The same, all or nothing."""

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        """Remove these nodes and lower the target. Refuses foreign nodes, and to go below the minimum."""

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        """The same without regard for the minimum."""

    async def decrease_target_size(self, delta: int) -> None:
        """Take back requests that were not fulfilled (``delta`` < 0); never kills a machine that exists."""

    async def nodes(self) -> list[Instance]:
        """All machines of the group, those that are not registered yet included."""

    async def template_node_info(self) -> NodeInfo:
        """What a new node will look like, with its static pods."""

    async def exists(self) -> bool:
        """Whether the cloud knows the group."""

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:
        """The group's own settings; None if it has none."""


@runtime_checkable
class CloudProvider(Protocol):
    """Whoever owns the machines."""

    @property
    def name(self) -> str:
        """The value of ``--cloud-provider``."""

    @property
    def gpu_label(self) -> str:
        """The label of nodes with accelerators."""

    def node_groups(self) -> list[NodeGroup]:
        """The groups, in a fixed order; changed by ``refresh`` alone."""

    async def node_group_for_node(self, node: JsonObject) -> NodeGroup | None:
        """The group of a node; None for a node that is not the provider's and must be left alone.

        Also answers for the fake nodes that stand for machines without a node: name and providerID are the
        instance's id, and the annotation ``k8s.io/cluster-autoscaler/fake-node-reason`` says why.
        """

    async def has_instance(self, node: JsonObject) -> bool:
        """Whether the machine of a node still exists."""

    def pricing(self) -> PricingModel:
        """The prices; raises ``NotImplementedByProvider`` where there are none."""

    def resource_limiter(self) -> ResourceLimiter:
        """The limits of the whole cluster."""

    def available_gpu_types(self) -> frozenset[str]:
        """The accelerators on offer."""

    def node_gpu_config(self, node: JsonObject) -> GpuConfig | None:
        """The accelerators of a node; None if it has none. Nothing but the object is looked at."""

    async def refresh(self) -> None:
        """Called at the start of every turn, before anything else; an error ends the turn."""

    async def cleanup(self) -> None:
        """Called once when the autoscaler ends."""


@runtime_checkable
class ReadsNodes(Protocol):
    """A provider that need not be asked about each node in each turn, since it has to ask nobody else."""

    def group_id_of(self, node: JsonObject) -> str | None:
        """The group of a node of the cluster, for which nothing but the object is looked at; None if it has none."""

    def without_machine(self, nodes: Sequence[JsonObject]) -> frozenset[str]:
        """The names of those nodes whose machine is gone, or on its way out."""
