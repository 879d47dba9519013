"""A group of hollow machines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind
from holokube.cluster_autoscaler.cloud.kwok.faults import NO_STOCK, Boot
from holokube.cluster_autoscaler.cloud.kwok.machines import Machine, Machines
from holokube.cluster_autoscaler.cloud.kwok.marks import (
    FAKE,
    FAKE_NODE_REASON,
    GROUP_NAME,
    annotations_of,
    group_of,
    provider_id,
)
from holokube.cluster_autoscaler.cloud.kwok.node_template import name_prefix, node_info
from holokube.cluster_autoscaler.cloud.kwok.settings import GroupSettings
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance, NodeInfo
from holokube.kube.errors import AlreadyExists
from holokube.kube.types import JsonObject

_NAME_TRIES = 20
_log = get_logger("holokube.cluster_autoscaler.kwok")


class KwokNodeGroup:
    """Machines from one template. Checks and reservations happen without a pause in between, so calls may overlap."""

    def __init__(
        self, clock: Clock, machines: Machines, rng: Rng, id: str, template: JsonObject, settings: GroupSettings, *,
        kube_proxy: bool = False,
    ) -> None:
        """``kube_proxy``: the template has room set aside for one, as upstream's have."""
        self._clock = clock
        self._machines = machines
        self._id = id
        self._template = template
        self.settings = settings
        self._kube_proxy = kube_proxy
        self._prefix = name_prefix(id)
        self._names = rng.fork(f"names/{id}")
        self._luck = rng.fork(f"faults/{id}")
        self._started_s = clock.time()

    @property
    def id(self) -> str:
        return self._id

    @property
    def min_size(self) -> int:
        return self.settings.min_size

    @property
    def max_size(self) -> int:
        return self.settings.max_size

    @property
    def template(self) -> JsonObject:
        """The Node that all nodes of the group are made from."""
        return self._template

    def debug(self) -> str:
        return f"{self._id} ({self.min_size}:{self.max_size})"

    async def exists(self) -> bool:
        return True

    async def target_size(self) -> int:
        await self._machines.ready()
        return self._machines.count(self._id)

    async def nodes(self) -> list[Instance]:
        await self._machines.ready()
        return self._machines.instances(self._id)

    async def template_node_info(self) -> NodeInfo:
        return node_info(self._template, self._id, kube_proxy=self._kube_proxy)

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:
        return self.settings.options(defaults)

    # More machines

    async def increase_size(self, delta: int) -> None:
        await self._machines.ready()
        await self.grow(delta, size=self._machines.count(self._id))

    async def atomic_increase_size(self, delta: int) -> None:
        """All machines or none: what cannot be had, or made a node of at once, takes the others back.

        Machines with a boot delay are granted together, yet each boots, or fails to, on its own.
        """
        await self._machines.ready()
        await self.grow(delta, size=self._machines.count(self._id), atomic=True)

    async def grow(self, delta: int, *, size: int, atomic: bool = False, have_booted: bool = False) -> None:
        """Asks for machines on top of ``size``, which the caller has counted."""
        if delta <= 0:
            raise CloudError(f"group {self._id}: size increase must be positive, not {delta}")
        if size + delta > self.max_size:
            raise CloudError(
                f"group {self._id}: size increase too large, desired: {size + delta} max: {self.max_size}"
            )
        grant = self.settings.faults.grant(
            self._id,
            delta,
            existing=self._machines.stock_taken(self._id),
            now_s=self._clock.time(),
            started_s=self._started_s,
            atomic=atomic,
        )
        boots = [self.settings.faults.boot(self._luck) for _ in range(grant.machines)]
        made = [self._reserve(Boot() if have_booted else boot) for boot in boots]
        for _ in range(grant.refused):
            self._reserve(Boot()).error = NO_STOCK
        failures = await self._begin(made, atomic=atomic)
        if failures:
            there = 0 if atomic else len(made) - len(failures)
            raise CloudError(
                f"group {self._id}: {there} of {delta} nodes made: {failures[0].message}", kind=ErrorKind.API_CALL
            ) from failures[0]
        if grant.error is not None:
            raise grant.error
        _log.info("group grows", group=self._id, by=delta, size=size + delta)

    def _reserve(self, boot: Boot) -> Machine:
        return self._machines.reserve(self._free_name(), self._id, boot)

    def _free_name(self) -> str:
        for _ in range(_NAME_TRIES):
            name = f"{self._prefix}-{self._names.name_suffix()}"
            if not self._machines.is_taken(name):
                return name
        raise CloudError(f"group {self._id}: no free name found for a node {self._prefix}-*")

    async def _begin(self, made: Sequence[Machine], *, atomic: bool) -> list[HolokubeError]:
        """Boots machines; returns why nodes of those without a delay could not be made."""
        for machine in made:
            if not machine.boot.is_immediate:
                self._machines.start(machine, self._template)
        immediate = [machine for machine in made if machine.boot.is_immediate]
        try:
            answers = await asyncio.gather(*(self._register(machine) for machine in immediate))
        except BaseException:
            # Interrupted: what was not made is not asked for any more, so that the count stays true.
            for machine in immediate:
                if machine.is_coming:
                    await self._machines.withdraw(machine)
            raise
        failures = [answer for answer in answers if answer is not None]
        if failures and atomic:
            left = [machine for machine, answer in zip(immediate, answers, strict=True) if answer is None]
            delayed = [machine for machine in made if not machine.boot.is_immediate]
            await self._machines.remove([*left, *delayed])
        return failures

    async def _register(self, machine: Machine) -> HolokubeError | None:
        """Makes a node at once, under another name if a stranger has taken this one; failing that, forgets it."""
        for _ in range(_NAME_TRIES):
            try:
                await self._machines.register(machine, self._template)
            except AlreadyExists:
                if not self._machines.has(machine):
                    return None  # taken back meanwhile
                self._machines.rename(machine, self._free_name())
            except HolokubeError as error:
                await self._machines.withdraw(machine)
                return error
            else:
                return None
        await self._machines.withdraw(machine)
        return CloudError(f"no free name found for a node {self._prefix}-*")

    # Fewer machines

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        await self._shrink(nodes, force=False)

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        await self._shrink(nodes, force=True)

    async def _shrink(self, nodes: Sequence[JsonObject], *, force: bool) -> None:
        await self._machines.ready()
        doomed: dict[str, Machine | JsonObject] = {}
        for node in nodes:
            found = self._mine(node)
            if found is not None:
                doomed[found.name if isinstance(found, Machine) else found["metadata"]["name"]] = found
        if not doomed:
            return
        size = self._machines.count(self._id)
        if not force and size <= self.min_size:
            raise CloudError(f"group {self._id}: min size {self.min_size} reached, nodes will not be deleted")
        if not force and size - len(doomed) < self.min_size:
            raise CloudError(
                f"group {self._id}: {len(doomed)} of {size} nodes cannot be deleted: "
                f"the group would go below its min size {self.min_size}"
            )
        failures = await self._machines.remove([*doomed.values()])
        if failures:
            done = len(doomed) - len(failures)
            raise CloudError(
                f"group {self._id}: {done} of {len(doomed)} nodes deleted: {failures[0].message}",
                kind=ErrorKind.API_CALL,
            ) from failures[0]
        _log.info("group shrinks", group=self._id, by=len(doomed), size=size - len(doomed))

    def _mine(self, node: JsonObject) -> Machine | JsonObject | None:
        """What a node that is to be deleted stands for; None if it is gone already. Refuses all that is not ours."""
        name = node["metadata"]["name"]
        found = self._machines.find(node)
        if found is not None:
            owner = found.group if isinstance(found, Machine) else group_of(found)
            if owner != self._id:
                raise CloudError(f"node {name} cannot be deleted from group {self._id}: it belongs to group {owner}")
            return found
        id_ = (node.get("spec") or {}).get("providerID") or ""
        stale = FAKE_NODE_REASON in annotations_of(node) and id_.startswith(provider_id(""))
        if stale or (group_of(node) == self._id and not self._machines.is_taken(name)):
            return None
        if group_of(node) == self._id and self._machines.is_leaving(node):
            return None
        raise CloudError(
            f"node {name} cannot be deleted from group {self._id}: it is not managed by the kwok provider",
            hint=f"Its nodes carry the annotations {FAKE[0]}={FAKE[1]} and {GROUP_NAME}, and an id kwok:NAME.",
        )

    async def decrease_target_size(self, delta: int) -> None:
        """Takes back machines that have no node, those that failed first, then the latest ones."""
        if delta >= 0:
            raise CloudError(f"group {self._id}: size decrease must be negative, not {delta}")
        await self._machines.ready()
        size = self._machines.count(self._id)
        coming = [machine for machine in self._machines.waiting(self._id) if machine.is_coming]
        if -delta > len(coming):
            raise CloudError(
                f"group {self._id}: attempt to delete existing nodes, targetSize: {size} delta: {delta} "
                f"existingNodes: {size - len(coming)}"
            )
        coming.reverse()
        coming.sort(key=lambda machine: machine.error is None)
        for machine in coming[:-delta]:
            await self._machines.withdraw(machine)
