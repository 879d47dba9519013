"""What Karpenter asks of a cloud.

::

    ProviderError
    ├── InstanceGone            there is no such instance any more
    ├── InsufficientCapacity    nothing of what the claim would take is to be had
    ├── NodeClassNotReady       the node class says that it cannot be used
    └── LaunchFailed            anything else that went wrong with a launch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holokube.base.errors import HolokubeError
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.karpenter.api.node_pool import NodePool
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType


class ProviderError(HolokubeError):
    """A cloud could not do what it was asked for."""


class InstanceGone(ProviderError):
    """There is no such instance, or not any more."""


class InsufficientCapacity(ProviderError):
    """Nothing of what the claim would take is to be had now."""


class NodeClassNotReady(ProviderError):
    """The node class says that it cannot be used."""


class LaunchFailed(ProviderError):
    """A launch went wrong; it is tried again. ``reason`` is told in the claim's condition."""

    def __init__(self, message: str, *, reason: str = "LaunchFailed") -> None:
        super().__init__(message, hint="It is tried again until the launch times out.")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine of the cloud, in the words of a claim."""

    provider_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    image_id: str = ""
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    is_terminating: bool = False


class CloudProvider(Protocol):
    """A cloud."""

    @property
    def name(self) -> str:
        """For metrics."""

    @property
    def well_known(self) -> frozenset[str]:
        """Label keys that a pool may leave undefined."""

    @property
    def drifts(self) -> bool:
        """Whether ``why_drifted`` may ever give a reason: one whose instances stay as they are need not be asked."""

    def supports(self, ref: NodeClassRef) -> bool:
        """Whether pools and claims with this kind of node class are ours."""

    def owns_node(self, node: JsonObject) -> bool:
        """Whether a Node is one of ours, whether or not its claim still exists."""

    def node_class(self, ref: NodeClassRef) -> JsonObject | None:
        """The node class; None when there is no such object."""

    def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """What the pool can choose from, with what is to be had now. The same objects as long as nothing changes."""

    def why_drifted(self, claim: NodeClaim) -> str:
        """A reason if the instance is not what its node class asks for; empty if all is well."""

    async def create(self, claim: NodeClaim) -> Instance:
        """Launches an instance. Asked again for the same claim, it must be the same instance."""

    async def delete(self, claim: NodeClaim) -> None:
        """Orders the end of the claim's instance; InstanceGone once it has ended."""

    async def get(self, provider_id: str) -> Instance:
        """One instance, or InstanceGone."""

    async def instances(self) -> list[Instance]:
        """All instances."""
