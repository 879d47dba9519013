"""Tells when a node has turned out smaller than was expected of it."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.karpenter import events
from holokube.karpenter.api.labels import CONSISTENT_STATE_FOUND
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.events import Publisher
from holokube.karpenter.lifecycle.sources import basis_of
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, node_ids, only
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.resources import parse_resources, to_quantity
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

SCAN_EVERY_S: Final = 600.0
_ENOUGH_PERCENT: Final = 90


class Consistency(ControllerComponent):
    """A component: looks at each claim every ten minutes."""

    name = "nodeclaim.consistency"

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, publisher: Publisher, provider: CloudProvider
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._provider = provider
        self._claims = informers.get(NODE_CLAIMS)
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._scanned_s: dict[str, float] = {}
        self._in_order: dict[str, _InOrder] = {}
        """Claims that were in order and said so."""
        self._controller = Controller(
            clock, self.name, self.reconcile, postpone=self._postpone,
            sources=[InformerSource(self._claims, enqueue_self, concerns=self._concerns)],
        )  # fmt: skip

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """A claim that was scanned has its next turn in the queue already."""
        if old is None or new is None:
            return True
        scanned_s = self._scanned_s.get(new["metadata"]["name"])
        return scanned_s is None or self._clock.time() - scanned_s >= SCAN_EVERY_S or self._is_due()

    def _postpone(self, name: str) -> float | None:
        """Scans a claim that was in order: if it is as it was then, there is nothing to be done until its next turn."""
        stored, known, now_s = self._claims.lister.get(name), self._in_order.get(name), self._clock.time()
        if stored is None or known is None or self._scanned_s[name] + SCAN_EVERY_S > now_s:
            return None
        node = only(self._nodes, stored["status"].get("providerID") or "")
        if node is None or not known.holds(stored, node):
            return None
        self._scanned_s[name] = now_s
        return SCAN_EVERY_S

    async def reconcile(self, name: str) -> Result | None:
        """Scans one claim, if its turn has come."""
        stored = self._claims.lister.get(name)
        if stored is None:
            self._scanned_s.pop(name, None)
            self._in_order.pop(name, None)
            return None
        claim, now_s = NodeClaim.of(stored), self._clock.time()
        if not claim.provider_id or not self._provider.supports(claim.node_class_ref):
            return None
        left_s = self._scanned_s.get(name, now_s - SCAN_EVERY_S) + SCAN_EVERY_S - now_s
        if left_s > 0:
            return Result(requeue_after_s=left_s)
        self._scanned_s[name] = now_s
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

    __slots__ = ("_basis", "_claim", "_node")

    def __init__(self, claim: JsonObject, node: JsonObject) -> None:
        self._claim, self._node, self._basis = claim, node, _basis_of(claim, node)

    def holds(self, claim: JsonObject, node: JsonObject) -> bool:
        """Whether these are in order for the same reasons."""
        return (claim is self._claim and node is self._node) or self._basis == _basis_of(claim, node)


def _basis_of(claim: JsonObject, node: JsonObject) -> tuple[object, ...]:
    expected, actual = claim.get("status") or {}, node.get("status") or {}
    return (*basis_of(claim), expected.get("capacity"), actual.get("capacity"))


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
