"""The hollow cloud: machines are Nodes, made by :mod:`.machines` for the hollow fleet to bring up.

A launch only decides: which type, where, under which name. The machine comes to be once the claim carries its id, so
that a controller that dies in between leaves nothing behind, and one that is started anew finds all it needs in the
claims. Names and draws depend on the claim's uid alone: a launch that is repeated ends with the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType
from holokube.client.resources import NODES
from holokube.karpenter.api.labels import (
    KWOK_GROUP,
    KWOK_NODE_CLASS,
    READY,
    RESERVATION_ID_LABEL,
    TERMINATION_FINALIZER,
    node_class_label,
)
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS
from holokube.karpenter.conditions import CLASS_CONDITIONS
from holokube.karpenter.provider.choice import (
    PARTITIONS,
    PROVIDER_PREFIX,
    Choice,
    cheapest,
    instance_of,
    instance_of_node,
    node_name,
)
from holokube.karpenter.provider.faults import Faults, Place
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, node_ids
from holokube.karpenter.provider.protocol import (
    Instance,
    InstanceGone,
    InsufficientCapacity,
    LaunchFailed,
    NodeClassNotReady,
)
from holokube.karpenter.writes import delete_object
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import Catalog, InstanceType, Offering
from holokube.runtime.informers import InformerSet

_TRIES_KEPT: Final = 1024
_ALL_TO_BE_HAD: Final = frozenset[Place](), ()
"""Places where nothing is to be had, and machines by reservation, when there are none of either."""
_CLASS_LABEL: Final = node_class_label(KWOK_GROUP, KWOK_NODE_CLASS)


@dataclass(slots=True)
class _Market:
    """What was found out about offers, besides the catalogue."""

    unavailable_until_s: dict[Place, float] = field(default_factory=dict)
    promised: dict[str, Choice] = field(default_factory=dict)
    """By uid of claims that carry nothing of their machine yet."""


class HollowProvider:
    """A cloud of hollow machines, bought from a catalogue."""

    name = "kwok"
    drifts = False

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        rng: Rng,
        catalog: Catalog,
        faults: Faults | None = None,
    ) -> None:
        self._clock = clock
        self._client = client
        self._rng = rng
        self._catalog = catalog
        self._has_reservations = any(o.is_reserved for one in catalog for o in one.offerings)
        self.faults = faults or Faults()
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._classes = informers.get(KWOK_NODE_CLASSES)
        self._market = _Market()
        self._tries: dict[str, int] = {}
        self._instances: dict[str, Instance] = {}
        """Machines as they were last listed, by the names of their Nodes."""
        self._changed_nodes: dict[str, JsonObject] = {}
        """Nodes that have come or changed since then."""
        self._nodes.add_handler(self._on_node)
        self._offered: tuple[object, Sequence[InstanceType]] = (None, catalog.types)

    @property
    def well_known(self) -> frozenset[str]:
        return self._catalog.well_known

    def supports(self, ref: NodeClassRef) -> bool:
        return (ref.group, ref.kind) == (KWOK_GROUP, KWOK_NODE_CLASS)

    def owns_node(self, node: JsonObject) -> bool:
        return _CLASS_LABEL in (node["metadata"].get("labels") or {})

    def node_class(self, ref: NodeClassRef) -> JsonObject | None:
        """A class that says nothing about itself is ready: there is nothing to wait for."""
        found = self._classes.lister.get(ref.name)
        if found is None or get_condition(found, READY) is not None:
            return found
        return CLASS_CONDITIONS.with_true(found, READY, self._clock.time())

    def why_drifted(self, claim: NodeClaim) -> str:  # noqa: ARG002 - no hollow machine ever drifts
        return ""

    def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:  # noqa: ARG002 - all pools buy alike
        """The catalogue, without places where nothing was to be had lately, and with what is left of reservations."""
        self._refresh()
        return self._offered[1]

    async def create(self, claim: NodeClaim) -> Instance:
        self._refresh()
        node_class = self.node_class(claim.node_class_ref)
        if node_class is None:
            raise InsufficientCapacity(
                f"NodeClaim {claim.name}: there is no {KWOK_NODE_CLASS} {claim.node_class_ref.name}",
                hint=f"Create a {KWOK_NODE_CLASS} of that name.",
            )
        ready = get_condition(node_class, READY)
        if ready is not None and CLASS_CONDITIONS.status(node_class, READY) == "False":
            raise NodeClassNotReady(
                str(ready.get("message") or f"{KWOK_NODE_CLASS} {claim.node_class_ref.name} is not ready"),
                hint="See the conditions of the node class.",
            )
        rng = self._rng.fork(f"launch/{claim.uid}")
        name = node_name(claim, rng)
        choice = self._choose(claim, rng)
        self._market.promised[claim.uid] = choice
        self._tries.pop(claim.uid, None)
        return instance_of(claim, choice, name, rng.choice(PARTITIONS))

    async def delete(self, claim: NodeClaim) -> None:
        """Ends the machine at once. A Node without our finalizer goes with it, as with any cloud's node controller."""
        self._market.promised.pop(claim.uid, None)
        self._tries.pop(claim.uid, None)
        for node in self._nodes.lister.by_index(BY_PROVIDER_ID, claim.provider_id):
            finalizers = node["metadata"].get("finalizers") or ()
            if TERMINATION_FINALIZER not in finalizers and not node["metadata"].get("deletionTimestamp"):
                await delete_object(self._client, NODES, node)
        raise InstanceGone(f"instance {claim.provider_id} is terminated", hint="Nothing is left to do.")

    async def get(self, provider_id: str) -> Instance:
        for node in self._nodes.lister.by_index(BY_PROVIDER_ID, provider_id):
            if not node["metadata"].get("deletionTimestamp"):
                return instance_of_node(node)
        raise InstanceGone(f"there is no instance {provider_id}", hint="Its Node was deleted.")

    async def instances(self) -> list[Instance]:
        for name, node in self._changed_nodes.items():
            if str((node.get("spec") or {}).get("providerID") or "").startswith(PROVIDER_PREFIX):
                self._instances[name] = instance_of_node(node)
            else:
                self._instances.pop(name, None)
        self._changed_nodes.clear()
        return [*self._instances.values()]

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None:
            self._changed_nodes[new["metadata"]["name"]] = new
        elif old is not None:
            self._changed_nodes.pop(old["metadata"]["name"], None)
            self._instances.pop(old["metadata"]["name"], None)

    def _choose(self, claim: NodeClaim, rng: Rng) -> Choice:
        if len(self._tries) > _TRIES_KEPT:
            known = {one["metadata"]["uid"] for one in self._claims.lister.list()}
            self._tries = {uid: count for uid, count in self._tries.items() if uid in known}
        tries = self._tries[claim.uid] = self._tries.get(claim.uid, 0) + 1
        faults = self.faults
        # Where nothing goes wrong there is nothing to be drawn.
        draw = rng.fork(f"try/{tries}").random() if faults.launch_failure or faults.insufficient_capacity else 1.0
        if draw < faults.launch_failure:
            raise LaunchFailed(f"the cloud could not launch NodeClaim {claim.name}")
        sold_out = draw < faults.launch_failure + faults.insufficient_capacity
        used = self._used() if faults.stock else {}

        def is_to_be_had(one: InstanceType, offering: Offering) -> bool:
            place = Place(one.name, offering.zone, offering.capacity_type)
            return used.get(place, 0) < faults.stock.get(place, used.get(place, 0) + 1)

        types = {one.name: one for one in self._offered[1]}
        wanted = cheapest(claim, types, self.well_known, rng.fork("choice"))
        if sold_out:
            choice = None
        elif faults.stock:
            choice = cheapest(claim, types, self.well_known, rng.fork("choice"), is_to_be_had)
        else:
            choice = wanted
        if wanted is not None and (choice is None or choice.offering is not wanted.offering):
            self._leave_alone(wanted)
        if choice is None:
            raise InsufficientCapacity(
                f"all requested instance types were unavailable during launch of NodeClaim {claim.name}",
                hint="Allow more instance types, zones or capacity types.",
            )
        return choice

    def _leave_alone(self, choice: Choice) -> None:
        place = Place(choice.instance_type.name, choice.offering.zone, choice.offering.capacity_type)
        self._market.unavailable_until_s[place] = self._clock.time() + self.faults.unavailable_for_s

    def _used(self) -> dict[Place, int]:
        """Machines by place: those of launched claims, and those that are promised."""
        used: dict[Place, int] = {}
        for claim in self._launched():
            place = Place(claim.instance_type, claim.zone, claim.capacity_type)
            used[place] = used.get(place, 0) + 1
        for choice in self._market.promised.values():
            place = Place(choice.instance_type.name, choice.offering.zone, choice.offering.capacity_type)
            used[place] = used.get(place, 0) + 1
        return used

    def _reserved(self) -> dict[str, int]:
        """Machines by reservation."""
        used: dict[str, int] = {}
        for claim in self._launched():
            reservation = claim.labels.get(RESERVATION_ID_LABEL, "")
            if reservation:
                used[reservation] = used.get(reservation, 0) + 1
        for choice in self._market.promised.values():
            if choice.offering.reservation_id:
                used[choice.offering.reservation_id] = used.get(choice.offering.reservation_id, 0) + 1
        return used

    def _launched(self) -> list[NodeClaim]:
        """Claims with a machine. Promises to others than those that still wait for theirs are forgotten."""
        claims = [NodeClaim.of(claim) for claim in self._claims.lister.list()]
        waiting = {claim.uid for claim in claims if not claim.provider_id}
        promised = self._market.promised
        self._market.promised = {uid: choice for uid, choice in promised.items() if uid in waiting}
        return [claim for claim in claims if claim.provider_id]

    def _refresh(self) -> None:
        """Makes the offered types anew when something about them has changed."""
        market = self._market
        if not market.unavailable_until_s and not self._has_reservations and self._offered[0] == _ALL_TO_BE_HAD:
            return
        now_s = self._clock.time()
        for place in [p for p, until_s in market.unavailable_until_s.items() if until_s <= now_s]:
            del market.unavailable_until_s[place]
        reserved = self._reserved() if self._has_reservations else {}
        key = frozenset(market.unavailable_until_s), tuple(sorted(reserved.items()))
        if key == self._offered[0]:
            return
        types = [_offered(one, market.unavailable_until_s, reserved) for one in self._catalog]
        self._offered = key, tuple(types)


def _offered(one: InstanceType, unavailable: dict[Place, float], reserved: dict[str, int]) -> InstanceType:
    """The type as it is offered now; the very same where nothing is special."""
    offerings = []
    for offering in one.offerings:
        made = offering
        if Place(one.name, offering.zone, offering.capacity_type) in unavailable:
            made = replace(made, available=False)
        used = reserved.get(offering.reservation_id, 0)
        if used and offering.is_reserved:
            made = replace(made, reservation_capacity=max(offering.reservation_capacity - used, 0))
        offerings.append(made)
    if all(made is known for made, known in zip(offerings, one.offerings, strict=True)):
        return one
    return one.with_offerings(offerings)
