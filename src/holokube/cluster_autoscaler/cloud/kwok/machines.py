"""The machines of the provider: those that are nodes, those on their way, and those that failed.

Nodes are seen through the informer. What it does not show yet (a machine that boots, a node just made) or still shows
(a node just deleted) is kept here, so that a count is right at any moment and never has to be repaired. What has no
node lives in this process only: after a restart the nodes alone are counted, and machines that were booting are gone,
as requests are that a cloud has lost; the autoscaler asks for them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind
from holokube.cluster_autoscaler.cloud.kwok.faults import Boot
from holokube.cluster_autoscaler.cloud.kwok.marks import (
    FAKE_NODE_REASON,
    annotations_of,
    by_group,
    group_of,
    provider_id,
)
from holokube.cluster_autoscaler.cloud.kwok.node_template import node_of
from holokube.cluster_autoscaler.cloud.provider import ErrorClass, Instance, InstanceError, InstanceState
from holokube.cluster_autoscaler.node_facts import changed_places
from holokube.kube.errors import AlreadyExists, Conflict, NotFound
from holokube.kube.types import JsonObject

GROUP_INDEX = "kwok-node-group"
PARALLEL_WRITES = 32
REGISTRATION_TRIES = 6
REGISTRATION_PAUSE_S = 1.0
"""Doubled after each try of a machine to make its node known."""
UNSEEN_FOR_S = 30.0
"""A node that the informer does not show so long after it was made is asked for by name."""

_log = get_logger("holokube.cluster_autoscaler.kwok")


@dataclass(slots=True, eq=False)
class Machine:
    """A machine that the informer does not show as a node."""

    name: str
    group: str
    boot: Boot
    error: InstanceError | None = None
    uid: str = ""
    """Of its node, once that is made."""
    registered_s: float = 0.0
    is_registering: bool = False
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        return provider_id(self.name)

    @property
    def is_coming(self) -> bool:
        """Whether it can still be taken back without anything being deleted."""
        return not (self.uid or self.is_registering)


class Machines:
    """All machines of all groups."""

    def __init__(self, clock: Clock, client: Client, informer: Informer) -> None:
        self._clock = clock
        self._client = client
        self._informer = informer
        with suppress(ValueError):  # another provider on the same informer has it already
            informer.add_index(GROUP_INDEX, by_group)
        self._waiting: dict[str, Machine] = {}
        self._shown_of: dict[str, dict[str, Instance]] = {}
        """The machines that are nodes by group and name, in the order of the index."""
        self._group_of: dict[str, str] = {}
        """The groups of those nodes."""
        self._going: dict[str, str] = {}
        """The groups of those of them that are on their way out."""
        self._lost: tuple[Sequence[JsonObject], frozenset[str]] | None = None
        """The last nodes that were asked about, and those of them that are lost."""
        self._places: dict[str, int] = {}
        """Where each of these nodes stands among them, once that was needed."""
        self._has_invented = False
        """Whether any of them says that it stands for something else than itself, which can change by itself."""
        self._noted: set[str] = set()
        """The names of nodes and machines of which something is different since then."""
        self._deleting: set[str] = set()
        """Uids of nodes that the informer still shows."""
        self._unwanted: dict[str, Machine] = {}
        """Machines taken back while their node was being made."""
        self.changes = 0
        """How often something about machines without a node has changed; nodes are told by the informer."""
        self._writes = asyncio.Semaphore(PARALLEL_WRITES)
        self._listed_names: frozenset[str] = frozenset()
        self._remove_handler = informer.add_handler(self._on_node)

    # Reading

    async def ready(self) -> None:
        """Waits until the nodes are known."""
        if not self._informer.has_synced:
            await self._informer.synced()

    def assume_names(self, names: Iterable[str]) -> None:
        """Names that are taken, while the informer does not know them yet."""
        self._listed_names = frozenset(names)

    def nodes(self, group: str) -> list[JsonObject]:
        """The nodes of a group that are there to stay."""
        return [node for node in self._shown(group) if not self._is_going(node)]

    def waiting(self, group: str) -> list[Machine]:
        """The machines of a group that are not shown as nodes, in the order in which they were asked for."""
        return [machine for machine in self._waiting.values() if machine.group == group]

    def count(self, group: str) -> int:
        going = sum(of == group for of in self._going.values())
        return len(self._shown_of.get(group, ())) - going + len(self.waiting(group))

    def lost(self, nodes: Sequence[JsonObject]) -> frozenset[str]:
        """The names of those nodes of groups that stand for nothing, or for what is on its way out."""
        before = self._lost
        if before is None or self._has_invented:
            found = {node["metadata"]["name"] for node in nodes if self._is_lost(node)}
            self._places.clear()
        elif before[0] is nodes and not self._noted:
            return before[1]
        else:
            # Only what has changed since then is looked at again.
            places = changed_places(before[0], nodes)
            found = set(before[1])
            if places is None:
                known = set(map(id, before[0]))
                again = {node["metadata"]["name"]: node for node in nodes if id(node) not in known}
                self._places.clear()
            else:
                again = {node["metadata"]["name"]: node for node in [nodes[place] for place in places]}
            noted = self._noted - again.keys()
            if noted or (found and places is None):
                if not self._places:
                    self._places = {node["metadata"]["name"]: place for place, node in enumerate(nodes)}
                again |= {name: nodes[self._places[name]] for name in noted if name in self._places}
                found.intersection_update(self._places)
            for name, node in again.items():
                (found.add if self._is_lost(node) else found.discard)(name)
        self._noted.clear()
        self._lost = nodes, frozenset(found)
        return self._lost[1]

    def _is_lost(self, node: JsonObject) -> bool:
        self._has_invented = self._has_invented or FAKE_NODE_REASON in annotations_of(node)
        if self._stands_for_itself(node) or self.find(node) is not None:
            return False
        return bool(group_of(node)) or FAKE_NODE_REASON in annotations_of(node)

    def _stands_for_itself(self, node: JsonObject) -> bool:
        """Whether a node is the very one that the informer shows, and stays."""
        shown = self._informer.lister.get(node["metadata"]["name"])
        return shown is node and not self._is_going(node) and FAKE_NODE_REASON not in annotations_of(node)

    def _note(self, name: str) -> None:
        """Something is different about a node, or about whether it stays."""
        self._noted.add(name)
        shown = self._informer.lister.get(name)
        before, group = self._group_of.get(name, ""), "" if shown is None else group_of(shown)
        self._going.pop(name, None)
        if before and before != group:
            del self._shown_of[before][name], self._group_of[name]
        if shown is None or not group:
            return
        is_going = self._is_going(shown)
        if is_going:
            self._going[name] = group
        self._group_of[name] = group
        state = InstanceState.DELETING if is_going else InstanceState.RUNNING
        self._shown_of.setdefault(group, {})[name] = Instance(shown["spec"]["providerID"], state)

    def stock_taken(self, group: str) -> int:
        """How many machines the cloud has given: those that it could not are none."""
        return len(self.nodes(group)) + sum(machine.error is None for machine in self.waiting(group))

    def instances(self, group: str) -> list[Instance]:
        found = [*self._shown_of.get(group, {}).values()]
        for machine in self.waiting(group):
            state = InstanceState.RUNNING if machine.uid else InstanceState.CREATING
            found.append(Instance(machine.id, state, machine.error))
        return found

    def is_taken(self, name: str) -> bool:
        """Whether a node or machine has the name."""
        if not self._informer.has_synced and name in self._listed_names:
            return True
        return name in self._waiting or self._informer.lister.get(name) is not None

    def has(self, machine: Machine) -> bool:
        """Whether the machine is still wanted, and not shown as a node."""
        return self._waiting.get(machine.name) is machine

    def find(self, node: JsonObject) -> Machine | JsonObject | None:
        """What a Node object, real or invented for a machine without one, stands for; None if there is no such thing.

        The API server's own object counts, not what the caller holds.
        """
        id_ = (node.get("spec") or {}).get("providerID") or ""
        is_invented = FAKE_NODE_REASON in annotations_of(node)
        name = id_.removeprefix(provider_id("")) if is_invented else node["metadata"]["name"]
        machine = self._waiting.get(name)
        if machine is not None and id_ == machine.id:
            return machine
        shown = self._informer.lister.get(name)
        if shown is None or not group_of(shown) or self._is_going(shown):
            return None
        if id_ and id_ != shown["spec"]["providerID"]:
            return None
        uid = node["metadata"].get("uid")
        # A node of the same name that was made since is not the one that is meant.
        return None if uid and uid != shown["metadata"]["uid"] else shown

    def is_leaving(self, node: JsonObject) -> bool:
        """Whether the node, or the one that had its name since, is being deleted or another one."""
        shown = self._informer.lister.get(node["metadata"]["name"])
        uid = node["metadata"].get("uid")
        return shown is not None and (self._is_going(shown) or bool(uid and uid != shown["metadata"]["uid"]))

    def groups_of_nodes(self) -> list[str]:
        """The groups of which there are nodes, known ones or not."""
        return self._informer.lister.index_values(GROUP_INDEX)

    # Changing

    def reserve(self, name: str, group: str, boot: Boot) -> Machine:
        """A new machine, counted from now on."""
        machine = Machine(name, group, boot)
        self.changes += 1
        self._waiting[name] = machine
        self._noted.add(name)
        return machine

    def rename(self, machine: Machine, name: str) -> None:
        """Gives another name to a machine whose node could not be made under the first one."""
        del self._waiting[machine.name]
        self._noted |= {machine.name, name}
        machine.name = name
        self._waiting[name] = machine

    def start(self, machine: Machine, template: JsonObject) -> None:
        """Boots a machine in the background."""
        machine.task = asyncio.create_task(self._boot(machine, template), name=f"boot of {machine.name}")

    async def register(self, machine: Machine, template: JsonObject) -> None:
        """Makes the node of a machine."""
        machine.is_registering = True
        try:
            async with self._writes:
                made = await self._client.create(NODES, node_of(template, machine.name))
            machine.uid = made["metadata"]["uid"]
            machine.registered_s = self._clock.time()
            if machine.name in self._unwanted:
                self._deleting.add(machine.uid)
                self._note(machine.name)
                await self._delete(machine.name, machine.uid)
        finally:
            machine.is_registering = False
            self._unwanted.pop(machine.name, None)
            self._note(machine.name)

    async def withdraw(self, machine: Machine) -> None:
        """Ends a machine: no node will come of it, and one that came goes."""
        self.changes += 1
        self._noted.add(machine.name)
        self._waiting.pop(machine.name, None)
        if machine.uid:
            self._deleting.add(machine.uid)
            self._note(machine.name)
            await self._delete(machine.name, machine.uid)
        elif machine.is_registering:
            self._unwanted[machine.name] = machine
            self._note(machine.name)
        elif machine.task is not None:
            machine.task.cancel()

    async def remove(self, doomed: Sequence[Machine | JsonObject]) -> list[HolokubeError]:
        """Ends machines and deletes nodes; none of them counts from now on, but for those that could not be."""
        for each in doomed:
            if not isinstance(each, Machine):
                self._deleting.add(each["metadata"]["uid"])
                self._note(each["metadata"]["name"])
        answers = await asyncio.gather(*(self._remove(each) for each in doomed))
        return [answer for answer in answers if answer is not None]

    async def _remove(self, doomed: Machine | JsonObject) -> HolokubeError | None:
        name, uid = (doomed.name, doomed.uid) if isinstance(doomed, Machine) else _name_and_uid(doomed)
        try:
            if isinstance(doomed, Machine):
                await self.withdraw(doomed)
            else:
                await self._delete(name, uid)
        except HolokubeError as error:
            self._deleting.discard(uid)
            if isinstance(doomed, Machine) and doomed.uid and not self._shows(doomed):
                self._waiting[name] = doomed
            self._note(name)
            return CloudError(f"node {name} cannot be deleted: {error.message}", kind=ErrorKind.API_CALL)
        return None

    async def _delete(self, name: str, uid: str) -> None:
        # Somebody else may have been faster, and a node made since under the name is not ours to delete.
        with suppress(NotFound, Conflict):
            async with self._writes:
                await self._client.delete(NODES, name, uid=uid)

    async def _boot(self, machine: Machine, template: JsonObject) -> None:
        await self._clock.sleep(machine.boot.delay_s)
        if machine.boot.is_silent:
            return
        if machine.boot.error is not None:
            machine.error = machine.boot.error
            self.changes += 1
            _log.info("machine failed to boot", node=machine.name, group=machine.group)
            return
        pause_s = REGISTRATION_PAUSE_S
        for attempt in range(1, REGISTRATION_TRIES + 1):
            try:
                await self.register(machine, template)
            except HolokubeError as error:
                if not self.has(machine):
                    return  # taken back meanwhile
                if attempt < REGISTRATION_TRIES and not isinstance(error, AlreadyExists):
                    await self._clock.sleep(pause_s)
                    pause_s *= 2
                    continue
                _log.warning("machine cannot register", node=machine.name, group=machine.group, why=error.message)
                machine.error = InstanceError(ErrorClass.OTHER, "REGISTRATION_FAILED", error.message)
                self.changes += 1
            return

    async def check_unseen(self) -> None:
        """Forgets machines whose node was deleted before the informer could show it."""
        now_s = self._clock.time()
        for machine in [*self._waiting.values()]:
            if machine.uid and now_s - machine.registered_s >= UNSEEN_FOR_S:
                try:
                    found = await self._client.get(NODES, machine.name)
                except NotFound:
                    found = None
                if found is None or found["metadata"]["uid"] != machine.uid:
                    self.changes += 1
                    self._waiting.pop(machine.name, None)
                    self._noted.add(machine.name)

    async def stop(self) -> None:
        """Ends all machines that boot, and looks at nodes no more."""
        booting = [(machine, machine.task) for machine in self._waiting.values() if machine.task is not None]
        for machine, task in booting:
            # A request under way may be carried out although nobody waits for the answer: better to know.
            if not machine.is_registering:
                task.cancel()
        if booting:
            await asyncio.wait([task for _, task in booting])
        self._remove_handler()
        self._waiting = {name: machine for name, machine in self._waiting.items() if machine.uid}
        self._lost = None

    # What the informer tells

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        if new is None:
            self._deleting.discard(obj["metadata"]["uid"])
        self._note(obj["metadata"]["name"])
        if new is None:
            return
        machine = self._waiting.get(new["metadata"]["name"])
        if machine is None or group_of(new) != machine.group:
            return
        # The watch may be faster than the answer to the request that made the node.
        if machine.uid == new["metadata"]["uid"] or (machine.is_registering and not machine.uid):
            del self._waiting[machine.name]

    def _shown(self, group: str) -> list[JsonObject]:
        return self._informer.lister.by_index(GROUP_INDEX, group)

    def _shows(self, machine: Machine) -> bool:
        shown = self._informer.lister.get(machine.name)
        return shown is not None and shown["metadata"]["uid"] == machine.uid

    def _is_going(self, node: JsonObject) -> bool:
        meta = node["metadata"]
        return bool(meta.get("deletionTimestamp")) or meta["uid"] in self._deleting or meta["name"] in self._unwanted


def _name_and_uid(node: JsonObject) -> tuple[str, str]:
    return node["metadata"]["name"], node["metadata"]["uid"]
