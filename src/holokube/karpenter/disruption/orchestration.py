"""Carrying out a command, as decisions: what to mark, what to create, when to wait, when to end, when to give up.

In this order: taint the nodes and set the claims' condition; create the replacements; only then mark the nodes for
deletion in the cluster's state (provisioning would otherwise also launch nodes for their pods); nominate the nodes that
are to take pods; put the command into the queue. Then once a second: when every replacement is initialized, delete the
nodes' claims. If a replacement is gone, or it takes too long, everything is taken back, but for the replacements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from holokube.karpenter.api.labels import DISRUPTED_TAINT, DISRUPTION_REASON, INITIALIZED
from holokube.karpenter.disruption.types import Command
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube import conditions
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject

POLL_AFTER_S: Final = 1.0
_LIMIT_MIN_S: Final = 600.0
_LIMIT_MAX_S: Final = 3600.0
_LIMIT_PER_NODE_S: Final = 0.08


class CannotStart(StrEnum):
    """Why a command ends before it began."""

    BUSY = "a candidate is being disrupted already"
    NOT_MARKED = "candidates could not be marked as disrupted"


def why_busy(command: Command, queued: Collection[str]) -> CannotStart | None:
    """Whether another command already has one of its nodes, named by provider id."""
    if any(candidate.node.provider_id in queued for candidate in command.candidates):
        return CannotStart.BUSY
    return None


def after_marking(command: Command, marked: Collection[str]) -> Command | CannotStart:
    """What is left of a command when only the nodes named ``marked`` could be tainted.

    A removal goes on with those; a replacement was made for all of them together.
    """
    kept = tuple(candidate for candidate in command.candidates if candidate.name in marked)
    if len(kept) == len(command.candidates):
        return command
    if command.replacements or not kept:
        return CannotStart.NOT_MARKED
    return replace(command, candidates=kept)


def nominated_nodes(command: Command) -> tuple[str, ...]:
    """Existing nodes that are to take pods, by name; they must not be disrupted meanwhile."""
    return tuple(command.results.existing) if command.results is not None else ()


@dataclass(frozen=True, slots=True, eq=False)
class QueuedCommand:
    """A command that is being carried out."""

    command: Command
    started_s: float
    waiting_for: tuple[str, ...]
    """Names of the replacements' claims that were not initialized yet when last looked at."""

    @property
    def provider_ids(self) -> tuple[str, ...]:
        """What its nodes are known by in the queue."""
        return tuple(candidate.node.provider_id for candidate in self.command.candidates)


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """Look again in a second."""

    queued: QueuedCommand
    not_ready: tuple[JsonObject, ...]
    """Claims that are there but not initialized."""


@dataclass(frozen=True, slots=True, eq=False)
class Terminate:
    """Delete the claims of the candidates; the command is done when all are."""

    queued: QueuedCommand


@dataclass(frozen=True, slots=True, eq=False)
class GiveUp:
    """Take taint and condition away, take the deletion marks back, forget the command."""

    queued: QueuedCommand
    why: str

    @property
    def failed_launches(self) -> int:
        """What the failure is counted with."""
        return len(self.queued.waiting_for)


def time_limit_s(queued_nodes: int) -> float:
    """How long a command may take: longer when many nodes are being disrupted."""
    return min(max(_LIMIT_PER_NODE_S * queued_nodes, _LIMIT_MIN_S), _LIMIT_MAX_S)


def next_step(
    queued: QueuedCommand,
    claims: Mapping[str, JsonObject],
    known: Collection[str],
    now_s: float,
    limit_s: float,
) -> Wait | Terminate | GiveUp:
    """What to do with a command now.

    ``claims`` are the NodeClaims that the API has, by name. A claim that is not among them but in ``known``, the
    cluster's state, may only not have been seen yet.
    """
    waiting_for: list[str] = []
    not_ready: list[JsonObject] = []
    gone = ""
    for name in queued.waiting_for:
        claim = claims.get(name)
        if claim is not None and conditions.is_true(claim, INITIALIZED):
            continue
        waiting_for.append(name)
        if claim is not None:
            not_ready.append(claim)
        elif name not in known:
            gone = gone or name
    later = replace(queued, waiting_for=tuple(waiting_for))
    if gone:
        return GiveUp(later, f"replacement {gone} was deleted")
    if not waiting_for:
        return Terminate(later)
    if now_s - queued.started_s > limit_s:
        return GiveUp(later, f"{', '.join(waiting_for)} did not come up within {limit_s:g} s")
    return Wait(later, tuple(not_ready))


def is_out_of_time(queued: QueuedCommand, now_s: float, limit_s: float) -> bool:
    """Whether to stop trying to delete claims when the API keeps refusing."""
    return now_s - queued.started_s > limit_s


def stale_marks(nodes: Iterable[StateNode], queued: Collection[str]) -> list[StateNode]:
    """Nodes that carry the taint or the condition of a disruption that nobody is carrying out.

    A restart, or a failure half-way, leaves them behind; a pass begins with taking both away. ``queued`` are provider
    ids.
    """
    return [
        node
        for node in nodes
        if node.node_claim is not None
        and node.node is not None
        and node.provider_id not in queued
        and not node.is_marked_for_deletion
        and not node.is_rebooting
        and (
            any(taint.is_same(DISRUPTED_TAINT) for taint in taints_of(node.node))
            or conditions.get_condition(node.node_claim, DISRUPTION_REASON) is not None
        )
    ]
