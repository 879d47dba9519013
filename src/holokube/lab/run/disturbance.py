"""Carries out the faults of a scenario at their times, through what a cluster and its cloud offer for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client, PatchType
from holokube.client.resources import NODES
from holokube.cluster.cloud import CloudState, Shortage, capacity_type_of
from holokube.hollow.fault_writes import break_node, heal_node
from holokube.hollow.node_life import Fault as NodeFault
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS, NODE_POOLS
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.requirements import NODEPOOL_LABEL, ZONE_LABEL
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import format_duration, format_time, parse_duration
from holokube.kube.types import JsonObject
from holokube.lab.results import HEARD_AGAIN, SILENCED
from holokube.lab.run.transport import ApiTrouble, Trouble
from holokube.lab.scenario.model import (
    ApiErrors,
    Fault,
    NodeSilence,
    SlowBoot,
    SpotReclaim,
    StockOut,
    ZoneLoss,
)
from holokube.lab.scenario.shapes import file_fields
from holokube.pricing.instance_types import SPOT
from holokube.runtime.journal import Journal

RECLAIM_TAINT: Final = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
"""On a machine that the cloud will take back, so that it gets no more pods. Of the taints that clouds' handlers set, it
is the one that the Cluster Autoscaler knows for a state of the node, which no new node will have."""
_SILENT: Final = NodeFault.SILENT.value
_DELAY: Final = "nodeRegistrationDelay"
_HOUR_S: Final = 3600.0


class Disturbance:
    """One task per fault."""

    def __init__(
        self, clock: Clock, client: Client, rng: Rng, cloud: CloudState, trouble: ApiTrouble, journal: Journal
    ) -> None:
        self._clock = clock
        self._client = client
        self._rng = rng
        self._cloud = cloud
        self._trouble = trouble
        self._journal = journal
        self._usual_delays: dict[str, str | None] = {}

    async def run(self, faults: Sequence[Fault]) -> None:
        """Until the last one is over."""
        async with asyncio.TaskGroup() as group:
            for number, fault in enumerate(faults):
                rng = self._rng.fork(f"fault/{number}")
                group.create_task(self._carry_out(fault, rng), name=f"fault {number} ({fault.kind})")

    async def _carry_out(self, fault: Fault, rng: Rng) -> None:
        await self._until(fault.at_s)
        self._note(fault.kind, "begins", told(fault))
        match fault.arguments:
            case ZoneLoss():
                await self._lose_zone(fault, fault.arguments)
            case NodeSilence():
                await self._silence(fault, fault.arguments, rng)
            case SpotReclaim():
                await self._reclaim(fault, fault.arguments, rng)
            case StockOut():
                await self._run_out(fault, fault.arguments)
            case SlowBoot():
                await self._slow_down(fault, fault.arguments)
            case ApiErrors():
                await self._refuse(fault, fault.arguments)
        self._note(fault.kind, "ends", told(fault))

    def _note(self, subject: str, decision: str, why: str, **facts: Any) -> None:
        self._journal.note(self._clock.time(), "fault", subject, decision, (why,), component="scenario", **facts)

    async def _until(self, at_s: float) -> None:
        left_s = at_s - self._clock.monotonic()
        if left_s > 0:
            await self._clock.sleep(left_s)

    async def _until_end(self, fault: Fault) -> None:
        """For one that has no end the run's own end is it, and nothing is healed."""
        if fault.until_s is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._until(fault.until_s)

    # Nodes

    async def _nodes(self, selector: str = "") -> list[JsonObject]:
        """By name, whatever the order of the server."""
        wanted = LabelSelector.parse(selector)
        found = (await self._client.list_all(NODES)).items
        return sorted(
            (node for node in found if wanted.matches(node["metadata"].get("labels"))),
            key=lambda node: str(node["metadata"]["name"]),
        )

    async def _break(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(NotFound, Conflict):
                await break_node(self._client, name, [_SILENT], format_time(self._clock.time()))
                self._note_node(name, SILENCED, "a fault of the scenario")

    async def _heal(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(NotFound, Conflict):
                await heal_node(self._client, name, [_SILENT])
                self._note_node(name, HEARD_AGAIN, "the fault is over")

    async def _lose_zone(self, fault: Fault, loss: ZoneLoss) -> None:
        shortage = Shortage(zones=(loss.zone,))
        self._cloud.shortages.append(shortage)
        names = [node["metadata"]["name"] for node in await self._nodes(f"{ZONE_LABEL}={loss.zone}")]
        await self._break(names)
        await self._until_end(fault)
        self._cloud.shortages.remove(shortage)
        await self._heal(names)

    async def _silence(self, fault: Fault, silence: NodeSilence, rng: Rng) -> None:
        names = [node["metadata"]["name"] for node in await self._nodes(silence.selector)]
        if silence.count is not None:
            rng.shuffle(names)
            names = sorted(names[: silence.count])
        await self._break(names)
        await self._until_end(fault)
        await self._heal(names)

    # Machines taken back

    async def _reclaim(self, fault: Fault, reclaim: SpotReclaim, rng: Rng) -> None:
        end_s = fault.until_s
        async with asyncio.TaskGroup() as group:
            if reclaim.share is not None:
                doomed = [node["metadata"]["name"] for node in await self._spot(reclaim)]
                rng.shuffle(doomed)
                doomed = doomed[: round(len(doomed) * reclaim.share)]
                spread_s = 0.0 if end_s is None else max(0.0, end_s - fault.at_s)
                moments = sorted(round(fault.at_s + spread_s * rng.random(), 3) for _ in doomed)
                for at_s, name in zip(moments, doomed, strict=True):
                    group.create_task(self._take_back(name, at_s, reclaim.notice_s))
            if reclaim.per_hour:
                at_s = fault.at_s
                while True:
                    at_s += round(rng.expovariate(reclaim.per_hour / _HOUR_S), 3)
                    if end_s is not None and at_s >= end_s:
                        break
                    await self._until(at_s)
                    there = [node for node in await self._spot(reclaim) if not _has_notice(node)]
                    if there:
                        group.create_task(
                            self._take_back(rng.choice(there)["metadata"]["name"], at_s, reclaim.notice_s)
                        )

    async def _spot(self, reclaim: SpotReclaim) -> list[JsonObject]:
        found = await self._nodes(f"{ZONE_LABEL}={reclaim.zone}" if reclaim.zone else "")
        return [node for node in found if capacity_type_of(node["metadata"].get("labels") or {}) == SPOT]

    async def _take_back(self, name: str, at_s: float, notice_s: float) -> None:
        """A notice, and when its time is over the machine is gone, whatever ran on it."""
        await self._until(at_s)
        try:
            node = await self._client.get(NODES, name)
        except NotFound:
            return
        uid = node["metadata"]["uid"]
        self._note_node(name, "is to be taken back", f"the cloud takes the machine in {notice_s:g} s")
        taints = [*((node.get("spec") or {}).get("taints") or ()), RECLAIM_TAINT]
        with suppress(NotFound):
            await self._client.patch(NODES, name, {"spec": {"taints": taints}})
        if NODEPOOL_LABEL in (node["metadata"].get("labels") or {}):
            await self._interrupt_claim(node)
        await self._clock.sleep(notice_s)
        await self._end_machine(name, uid)

    def _note_node(self, name: str, decision: str, why: str) -> None:
        self._journal.note(self._clock.time(), "node", name, decision, (why,), component="scenario")

    async def _interrupt_claim(self, node: JsonObject) -> None:
        """Karpenter's providers delete the claim when they hear of a notice, so that it is drained in time."""
        provider_id = (node.get("spec") or {}).get("providerID")
        for claim in (await self._client.list_all(NODE_CLAIMS)).items:
            if (claim.get("status") or {}).get("providerID") == provider_id:
                with suppress(NotFound):
                    await self._client.delete(NODE_CLAIMS, claim["metadata"]["name"])

    async def _end_machine(self, name: str, uid: str) -> None:
        """The cloud's node controller deletes a Node without a machine; the garbage collector finds its pods."""
        try:
            node = await self._client.get(NODES, name)
        except NotFound:
            return
        if node["metadata"]["uid"] != uid:
            return
        self._note_node(name, "removed", "the cloud took the machine back")
        with suppress(NotFound, Conflict):
            if node["metadata"].get("finalizers"):
                await self._client.patch(NODES, name, {"metadata": {"finalizers": None}})
            await self._client.delete(NODES, name, uid=uid)

    # The cloud and the API server

    async def _run_out(self, fault: Fault, stock_out: StockOut) -> None:
        shortage = Shortage(
            stock_out.instance_types, stock_out.groups, stock_out.zones, stock_out.capacity_types
        )
        self._cloud.shortages.append(shortage)
        # Claims are launched by place, not by pool: a pool that can have nothing is one at its limit.
        limits = {name: await self._limit_pool(name) for name in stock_out.groups}
        await self._until_end(fault)
        self._cloud.shortages.remove(shortage)
        for name, usual in limits.items():
            if usual is not None:
                await self._patch_pool(name, {"cpu": None, **usual})

    async def _limit_pool(self, name: str) -> JsonObject | None:
        try:
            pool = await self._client.get(NODE_POOLS, name)
        except NotFound:
            return None
        await self._patch_pool(name, {"cpu": "0"})
        return dict((pool.get("spec") or {}).get("limits") or {})

    async def _patch_pool(self, name: str, limits: JsonObject) -> None:
        with suppress(NotFound):
            await self._client.patch(NODE_POOLS, name, {"spec": {"limits": limits}}, type=PatchType.MERGE)

    async def _slow_down(self, fault: Fault, slow: SlowBoot) -> None:
        change = (slow.factor, slow.extra_s)
        self._cloud.boot_factors.append(change)
        await self._write_delays()
        await self._until_end(fault)
        self._cloud.boot_factors.remove(change)
        await self._write_delays()

    async def _write_delays(self) -> None:
        """Karpenter's machines take as long as their node class says."""
        try:
            classes = (await self._client.list_all(KWOK_NODE_CLASSES)).items
        except NotFound:
            return
        for one in classes:
            name = one["metadata"]["name"]
            usual = self._usual_delays.setdefault(name, (one.get("spec") or {}).get(_DELAY))
            delay_s = self._cloud.boot_delay_s(parse_duration(usual) if usual else 0.0)
            told = format_duration(delay_s) if self._cloud.boot_factors else usual
            with suppress(NotFound):
                await self._client.patch(KWOK_NODE_CLASSES, name, {"spec": {_DELAY: told}})

    async def _refuse(self, fault: Fault, errors: ApiErrors) -> None:
        trouble = Trouble(errors.share, errors.code, errors.kinds, errors.verbs)
        self._trouble.troubles.append(trouble)
        await self._until_end(fault)
        self._trouble.troubles.remove(trouble)


def told(fault: Fault) -> str:
    """What of a fault is not as it is unless told, with the names that the scenario has: ``zone: a``."""
    kind: type = type(fault.arguments)
    values = [(one, getattr(fault.arguments, one.attribute)) for one in file_fields(kind)]
    parts = [f"{one.name}: {_plainly(value)}" for one, value in values if value != one.default]
    return ", ".join(parts) or "everything"


def _plainly(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _has_notice(node: JsonObject) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint["key"] == RECLAIM_TAINT["key"] for taint in taints)
