"""The policies by name.

A new autoscaler is a class with the members of ``policy.Policy``, and an entry in ``_TYPES``: scenarios can name it
then. docs/architecture.md says where else it is to be named for ``holokube up`` and ``holokube plan``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import UsageError
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import NAMESPACES
from holokube.cluster.cloud import CloudState, claim_faults
from holokube.cluster.policy import Policy, Site
from holokube.kube.errors import AlreadyExists, ApiError
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import Catalog
from holokube.runtime.app import Component

NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class PolicyOrder:
    """What a policy is to be made of. Each kind takes what it understands."""

    kind: str
    flags: Sequence[str] = ()
    """Of the upstream program, with its names."""
    node_groups: Sequence[JsonObject] = ()
    """Templates of the Cluster Autoscaler's groups."""
    manifests: Sequence[JsonObject] = ()
    """Objects that are there only with this policy: NodePools, node classes."""
    catalog: Catalog | None = None
    cloud: CloudState = field(default_factory=CloudState)
    is_virtual: bool = False
    """Whether it is for virtual time. What nobody observes is left out then (statuses that are written every few
    seconds, turns that find nothing new), and work that keeps the real program busy for a while lasts as long."""


class Supply(Enum):
    """Where the machines of a policy come from."""

    NODE_GROUPS = "node groups"
    """Groups of machines of one type, each from a template."""
    NODE_POOLS = "NodePools"
    """The whole catalogue, as far as NodePools allow."""


@dataclass(frozen=True, slots=True)
class PolicyType:
    """What is to be known of a kind of policy before one is made."""

    make: Callable[[PolicyOrder], Policy]
    check_flags: Callable[[Sequence[str]], object]
    """UsageError for flags that it does not have."""
    supply: Supply
    check_installed: Callable[[], object] = lambda: None
    """An error that says what to install, if it needs a library that is not there."""


def kinds() -> list[str]:
    """The names of all policies."""
    return [NONE, *_TYPES]


def supply_of(kind: str) -> Supply | None:
    """Where its machines come from; None for a policy that has none, or that there is not."""
    found = _TYPES.get(kind)
    return None if found is None else found.supply


def check_flags(kind: str, flags: Sequence[str]) -> None:
    """UsageError for flags that a policy does not have."""
    found = _TYPES.get(kind)
    if found is not None:
        found.check_flags(flags)
    elif flags:
        raise UsageError(f"{kind} has no flags", hint="Leave them out.")


def make_policy(order: PolicyOrder) -> Policy | None:
    """The policy; None for ``none``. UsageError for one that does not exist, or settings that it does not have."""
    if order.kind == NONE:
        if order.flags or order.node_groups:
            raise UsageError("there is no policy to have flags or node groups", hint="Name one, or leave them out.")
        return _Prepared(None, order.manifests) if order.manifests else None
    found = _TYPES.get(order.kind)
    if found is None:
        raise UsageError(f"there is no policy {order.kind!r}", hint=f"Give one of {', '.join(kinds())}.")
    made = found.make(order)
    return _Prepared(made, order.manifests) if order.manifests else made


def check_installed(kinds: Iterable[str]) -> None:
    """An error that says what to install, if one of these policies needs a library that is not there."""
    for kind in kinds:
        if kind in _TYPES:
            _TYPES[kind].check_installed()


# Modules are imported where they are needed: whoever wants one policy waits for no other.


def _cluster_autoscaler(order: PolicyOrder) -> Policy:
    from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy
    from holokube.cluster_autoscaler.flags import parse_flags

    options = parse_flags(order.flags).options
    if order.is_virtual and not any(flag.startswith("--write-status-configmap") for flag in order.flags):
        options = replace(options, write_status_configmap=False)
    return ClusterAutoscalerPolicy(
        options, tuple(order.node_groups), cloud=order.cloud, is_virtual=order.is_virtual
    )


def _karpenter(order: PolicyOrder) -> Policy:
    from holokube.cluster.karpenter_policy import KarpenterPolicy
    from holokube.karpenter.settings import parse_flags

    return KarpenterPolicy(parse_flags(order.flags), order.catalog, claim_faults(order.cloud))


def _optimal(order: PolicyOrder) -> Policy:
    from holokube.cluster.optimal_policy import OptimalPolicy
    from holokube.karpenter.settings import parse_flags

    return OptimalPolicy(parse_flags(order.flags), order.catalog, claim_faults(order.cloud))


def _check_autoscaler_flags(flags: Sequence[str]) -> None:
    from holokube.cluster_autoscaler.flags import parse_flags

    parse_flags(flags)


def _check_karpenter_flags(flags: Sequence[str]) -> None:
    from holokube.karpenter.settings import parse_flags

    # What the environment of this process says is nothing that a scenario says.
    parse_flags(flags, {})


def _load_solver() -> None:
    from holokube.karpenter.optimal.solver_library import load

    load()


_TYPES: Final[Mapping[str, PolicyType]] = {
    "cluster-autoscaler": PolicyType(_cluster_autoscaler, _check_autoscaler_flags, Supply.NODE_GROUPS),
    "karpenter": PolicyType(_karpenter, _check_karpenter_flags, Supply.NODE_POOLS),
    "optimal": PolicyType(_optimal, _check_karpenter_flags, Supply.NODE_POOLS, _load_solver),
}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A policy that brings objects along."""

    inner: Policy | None
    manifests: Sequence[JsonObject]

    @property
    def name(self) -> str:
        return NONE if self.inner is None else self.inner.name

    async def prepare(self, clock: Clock, client: Client) -> None:
        """The objects first: a policy that finds none of its own makes some by itself."""
        await define(clock, client, self.manifests)
        await create_all(client, self.manifests)
        if self.inner is not None:
            await self.inner.prepare(clock, client)

    def build(self, site: Site) -> list[Component]:
        return [] if self.inner is None else self.inner.build(site)


async def define(clock: Clock, client: Client, objects: Iterable[JsonObject]) -> None:
    """Bring the definitions of policies' own kinds onto the server, if some of these objects need them."""
    from holokube.karpenter.api.install import install
    from holokube.karpenter.api.resources import ALL

    groups = {resource.group for resource in ALL}
    if any(str(obj.get("apiVersion", "")).partition("/")[0] in groups for obj in objects):
        await install(clock, client)


async def create_all(client: Client, objects: Iterable[JsonObject]) -> None:
    """Create objects of any kind that the server knows, with their namespaces; what is there already stays."""
    discovery = Discovery(client)
    for obj in objects:
        resource = await discovery.for_object(obj)
        namespace = str((obj.get("metadata") or {}).get("namespace") or "default") if resource.namespaced else None
        if namespace is not None:
            with suppress(AlreadyExists):
                await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        try:
            await client.create(resource, obj, namespace)
        except AlreadyExists:
            continue
        except ApiError as error:
            name = (obj.get("metadata") or {}).get("name")
            raise UsageError(
                f"{obj.get('kind')} {name} was refused: {error.message}",
                hint="Correct the manifest; the message is the API server's.",
            ) from error
