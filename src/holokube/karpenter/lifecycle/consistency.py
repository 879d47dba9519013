"""Tells when a node has turned out smaller than was expected of it."""

from __future__ import annotations

import math
from typing import Final

from holokube.base.clock import Clock
from holokube.client.audience import SPEC, STATUS
from holokube.client.client import Client
from holokube.client.informer import EventType
from holokube.client.resources import NODES
from holokube.karpenter import events
from holokube.karpenter.api.labels import CONSISTENT_STATE_FOUND, INITIALIZED
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent, next_turn_s
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.events import Publisher
from holokube.karpenter.lifecycle.sources import basis_of
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, node_ids, only
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.conditions import get_condition
from holokube.kube.resources import parse_resources, to_quantity
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.runtime.workqueue import DUE_TOLERANCE_S

SCAN_EVERY_S: Final = 600.0
_ENOUGH_PERCENT: Final = 90


class Consistency(ControllerComponent):
    """A component: looks at each claim every ten minutes, unless it was in order and nothing has changed since."""

    name = "nodeclaim.consistency"

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, publisher: Publisher, provider: CloudProvider
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._provider = provider
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._scanned_s: dict[str, float] = {}
        """When each claim was last scanned, by the monotonic clock."""
        self._in_order: dict[str, _InOrder] = {}
        """Claims that were in order and said so."""
        self._resting: dict[str, float] = {}
        """Those of them that are not in the queue, as nothing has changed about them; each with a time, past perhaps,
        at which its turn would have come."""
        self._controller = Controller(
            clock, self.name, self.reconcile, postpone=self._postpone,
            sources=[InformerSource(self._claims, enqueue_self, concerns=self._concerns)],
        )  # fmt: skip
        self._nodes.add_handler(self._on_node, heeds=SPEC | STATUS)

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """A claim that was scanned has its next turn in the queue already, or rests until it is another."""
        if new is not None and not (new.get("status") or {}).get("providerID"):
            # Without an instance there is nothing to be scanned.
            return self._is_due()
        if old is None or new is None:
            return True
        name = new["metadata"]["name"]
        if name in self._resting:
            if not self._in_order[name].is_claim(new):
                self._end_rest(name)
            return False
        scanned_s = self._scanned_s.get(name)
        return scanned_s is None or self._clock.monotonic() - scanned_s >= SCAN_EVERY_S or self._is_due()

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """A Node that has come, gone or changed in what its claim is held against ends the rest of the claim."""
        if old is not None and new is not None and _looks_alike(old, new):
            return
        for node in (old, new):
            for provider_id in node_ids(node) if node is not None else ():
                for claim in self._claims.lister.by_index(BY_PROVIDER_ID, provider_id):
                    self._end_rest(claim["metadata"]["name"])

    def _postpone(self, name: str) -> float | None:
        """Scans a claim that was in order: if it is as it was then, nothing is to be done until something changes."""
        stored, known, now_s = self._claims.lister.by_key(name), self._in_order.get(name), self._clock.monotonic()
        if stored is None or known is None or self._left_s(name, now_s) > DUE_TOLERANCE_S:
            return None
        node = only(self._nodes, stored["status"].get("providerID") or "")
        if node is None or not known.holds(stored, node):
            return None
        self._resting[name] = now_s + SCAN_EVERY_S
        return math.inf

    def _end_rest(self, name: str) -> None:
        """Has a claim that rests looked at when its turn would have come if it had been looked at all the time."""
        due_s = self._resting.pop(name, None)
        if due_s is None:
            return
        due_s = next_turn_s(due_s, SCAN_EVERY_S, self._clock.monotonic())
        self._scanned_s[name] = due_s - SCAN_EVERY_S
        self._controller.queue.add_at(name, due_s)

    def _left_s(self, name: str, now_s: float) -> float:
        """How long until a claim's turn."""
        scanned_s = self._scanned_s.get(name)
        return 0.0 if scanned_s is None else scanned_s + SCAN_EVERY_S - now_s

    async def reconcile(self, name: str) -> Result | None:
        """Scans one claim, if its turn has come."""
        # Whoever is started anew is told of all claims, whatever they were doing.
        self._end_rest(name)
        stored = self._claims.lister.by_key(name)
        if stored is None:
            self._scanned_s.pop(name, None)
            self._in_order.pop(name, None)
            return None
        claim, now_s = NodeClaim.of(stored), self._clock.time()
        if not claim.provider_id or not self._provider.supports(claim.node_class_ref):
            return None
        left_s = self._left_s(name, self._clock.monotonic())
        if left_s > DUE_TOLERANCE_S:
            return Result(requeue_after_s=left_s)
        self._scanned_s[name] = self._clock.monotonic()
        node = only(self._nodes, claim.provider_id)
        if node is None:
            return Result(requeue_after_s=SCAN_EVERY_S)
        known = self._in_order.get(name)
        if known is not None and known.holds(stored, node):
            return Result(requeue_after_s=SCAN_EVERY_S)
        issues = issues_of(claim, node)
        for issue in issues:
            self._publisher.warning(stored, events.FAILED_CONSISTENCY_CHECK, issue, claim.uid, issue)
        if issues:
            reason, message = "ConsistencyCheckFailed", "Consistency Check Failed"
            changed = CLAIM_CONDITIONS.with_false(stored, CONSISTENT_STATE_FOUND, now_s, reason, message)
        else:
            changed = CLAIM_CONDITIONS.with_true(stored, CONSISTENT_STATE_FOUND, now_s)
            if changed is stored:
                self._in_order[name] = _InOrder(stored, node)
        await patch_status(self._client, NODE_CLAIMS, stored, changed)
        return Result(requeue_after_s=SCAN_EVERY_S)


class _InOrder:
    """A claim and its Node that were found to be in order, with all that this went by."""

    __slots__ = ("_basis", "_capacity", "_claim", "_expected", "_is_up", "_node", "_told")

    def __init__(self, claim: JsonObject, node: JsonObject) -> None:
        self._claim, self._node = claim, node
        self._basis, self._expected, self._capacity = basis_of(claim), _expected_of(claim), _capacity_of(node)
        self._told = get_condition(claim, CONSISTENT_STATE_FOUND)
        self._is_up = _is_up(claim)

    def holds(self, claim: JsonObject, node: JsonObject) -> bool:
        """Whether these are in order for the same reasons."""
        return self.is_claim(claim) and (node is self._node or self._capacity == _capacity_of(node))

    def is_claim(self, claim: JsonObject) -> bool:
        """Whether this is the claim, in all that matters."""
        if claim is self._claim:
            return True
        if self._expected != _expected_of(claim):
            return False
        basis = basis_of(claim)
        if basis != self._basis:
            # Conditions of other kinds come and go; with them, too, the claim is up and says what it is to say.
            if basis[:-1] != self._basis[:-1] or not self._is_up or not _is_up(claim):
                return False
            if get_condition(claim, CONSISTENT_STATE_FOUND) != self._told:
                return False
            self._basis = basis
        return True


def _is_up(claim: JsonObject) -> bool:
    return CLAIM_CONDITIONS.are_observed(claim, CONSISTENT_STATE_FOUND, INITIALIZED)


def _expected_of(claim: JsonObject) -> tuple[object, ...]:
    """What the provider has told, and of which instance."""
    status = claim.get("status") or {}
    return status.get("capacity"), status.get("providerID")


def _capacity_of(node: JsonObject) -> JsonObject | None:
    capacity: JsonObject | None = (node.get("status") or {}).get("capacity")
    return capacity


def _looks_alike(old: JsonObject, new: JsonObject) -> bool:
    return _capacity_of(old) == _capacity_of(new) and node_ids(old) == node_ids(new)


def issues_of(claim: NodeClaim, node: JsonObject) -> list[str]:
    """Resources that pods asked for, and of which the node has less than nine tenths of what was expected."""
    if claim.is_deleting or not claim.is_initialized:
        return []
    capacity = parse_resources((node.get("status") or {}).get("capacity"))
    found = []
    for name, requested in claim.requests.items():
        expected, actual = claim.capacity.get(name, 0), capacity.get(name, 0)
        if requested and expected and actual * 100 < expected * _ENOUGH_PERCENT:
            found.append(
                f"expected {to_quantity(name, expected)} of resource {name}, but found {to_quantity(name, actual)}"
                f" ({100 * actual / expected:.1f}% of expected)"
            )
    return found
