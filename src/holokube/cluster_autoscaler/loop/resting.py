"""Turns that would decide what the last one decided: on virtual time they can be left out, and nobody can tell.

Upstream looks at everything every ten seconds. A turn depends on what the informers hold, on the provider's machines,
on what earlier turns remember and on the time. If two turns in a row did nothing, started nothing and thought the same
of all nodes, then

- the time alone makes a difference only at moments that are known: when a node has been unneeded for long enough, when
  one is worth another simulation, when a cooldown ends. All others are covered by looking again after five minutes;
- objects make a difference if they change. Where no node is unneeded nothing is simulated, so that only nodes, pods
  without a place, and pods on nodes that may have become little used count (``firm_use``). Where some are, and all
  pods that would move go where they went before, pods that leave other nodes make no difference either: there is only
  more room. Nor do pods that come to well used nodes, as long as they take no room that the others would need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from functools import partial
from itertools import compress
from operator import is_not
from typing import Final, Protocol, runtime_checkable

from holokube.client.informer import EventType, Informer
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.loop.firm_use import FirmUse, Room
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.cooldown import LastActivity
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.kube.types import JsonObject

REST_MAX_S: Final = 300.0
_NEAR_S: Final = 0.01
"""Sums of seconds may come out a little different in a turn; one that is as near as this is not left out."""
Thoughts = tuple[object, ...]
_CONTROLLERS: Final = frozenset({"ReplicationController", "ReplicaSet", "Job", "StatefulSet"})


@runtime_checkable
class CountsChanges(Protocol):
    """A provider that tells when something about its machines is different."""

    @property
    def changes(self) -> int:
        """Grows with every change."""


class Rest:
    """Decides after each turn for how long the next ones may be left out."""

    def __init__(
        self, nodes: Informer, pods: Informer, others: Sequence[Informer], provider: CloudProvider,
        options: AutoscalerOptions,
    ) -> None:  # fmt: skip
        # Asking a protocol takes long, and the answer is always the same.
        self._counting = provider if isinstance(provider, CountsChanges) else None
        self._options = options
        self._until_s = -math.inf
        self._thoughts: Thoughts = ()
        self._stayed: Sequence[Unremovable] = ()
        self._machines: object = None
        self._nodes_changed = self._others_changed = False
        self._use = FirmUse(options)
        self._simulates = True
        self._asked: Set[ControllerKey] | None = None
        """The controllers that matter to removals that are simulated; None if all may."""
        self.left_out = 0
        """How many turns were left out."""
        self._detach: list[Callable[[], None]] = [
            nodes.add_handler(self._on_node),
            pods.add_handler(self._use.on_pod),
            *(informer.add_handler(self._handler_for(informer.resource.kind)) for informer in others),
        ]

    def close(self) -> None:
        """Hear of nothing any more."""
        for detach in self._detach:
            detach()

    def _on_node(self, _type: EventType, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._nodes_changed = True

    def _handler_for(self, kind: str) -> Callable[[EventType, JsonObject | None, JsonObject | None], None]:
        return partial(self._on_controller, kind) if kind in _CONTROLLERS else partial(self._on_other)

    def _on_controller(self, kind: str, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """All that matters of a controller is whether it is there and how many replicas it wants, if at all."""
        if self._others_changed:
            return
        if old is not None and new is not None:
            was, is_ = old.get("spec") or {}, new.get("spec") or {}
            if was is is_ or was.get("replicas") == is_.get("replicas"):
                return
        obj = new if new is not None else old
        assert obj is not None
        metadata = obj["metadata"]
        if self._asked is None or (kind, metadata.get("namespace") or "", metadata["name"]) in self._asked:
            self._others_changed = True

    def _on_other(self, _type: EventType, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._others_changed = True

    def goes_on(self, now_s: float) -> bool:
        """Whether the turn that is due may be left out; if not, changes are counted from now on."""
        machines = self._counting.changes if self._counting is not None else object()
        if now_s < self._until_s - _NEAR_S and machines == self._machines and not self._is_disturbed():
            self.left_out += 1
            return True
        self._machines, self._asked = machines, None
        self._nodes_changed = self._others_changed = False
        self._use.forget_changes()
        return False

    def _is_disturbed(self) -> bool:
        if self._nodes_changed:
            return True
        if self._simulates:
            return self._others_changed or self._use.has_changed
        return not self._use.stays_firm()

    def after(
        self, report: TurnReport, last: LastActivity, recheck_at_s: float, *, is_quiet: bool,
        settled_on: Callable[[], Set[ControllerKey] | None] | None = None,
        room_left: Callable[[], Room] | None = None,
    ) -> None:  # fmt: skip
        """A turn has ended.

        ``recheck_at_s`` is when the next node is simulated again; ``is_quiet`` if nothing is being removed, and no node
        is in a state that may not last; ``settled_on`` and ``room_left`` are those of the ``ScaleDownPlanner``.
        """
        before, self._thoughts = self._thoughts, _thoughts(report)
        stayed, self._stayed = self._stayed, report.scale_down.unremovable
        rests = is_quiet and _did_nothing(report) and before == self._thoughts and _are_alike(stayed, self._stayed)
        self._until_s = min(self._next_s(report, last), recheck_at_s) if rests else -math.inf
        if rests:
            waits = bool(report.pending or report.upcoming)
            self._simulates = waits or bool(report.scale_down.unneeded)
            if self._simulates and not waits and settled_on is not None:
                self._asked = settled_on()
            self._use.judge(report.scale_down.unremovable, may_leave=self._asked is not None, room_left=room_left)

    def _next_s(self, report: TurnReport, last: LastActivity) -> float:
        """The next moment at which the time alone may change what is decided."""
        options, now_s = self._options, report.now_s
        moments = [entry.since_s + entry.removal_threshold_s for entry in report.scale_down.unneeded]
        moments += [
            last.scale_up_s + options.scale_down_delay_after_add_s,
            last.failure_s + options.scale_down_delay_after_failure_s,
            last.deletion_s + options.scale_down_delay_after_delete_s,
        ]
        # Some times have to be more than passed, so a moment counts until the turn after it.
        return min([now_s + REST_MAX_S, *(moment for moment in moments if moment > now_s - _NEAR_S)])


def _thoughts(report: TurnReport) -> Thoughts:
    """What a turn thought of nodes, and of how things go on."""
    down = report.scale_down
    return (
        tuple(entry.node["metadata"]["name"] for entry in down.unneeded),
        bool(down.cooldown), down.result, tuple(report.upcoming.items()), report.pending,
    )  # fmt: skip


def _are_alike(these: Sequence[Unremovable], those: Sequence[Unremovable]) -> bool:
    """Whether the same nodes stayed for the same reasons."""
    if len(these) != len(those):
        return False
    # Nearly all are the same objects, so only the others are looked at.
    others = compress(zip(these, those, strict=True), map(is_not, these, those))
    return all(this.reason is that.reason and this.name == that.name for this, that in others)


def _did_nothing(report: TurnReport) -> bool:
    """Whether a turn has changed nothing and left nothing to be done."""
    up, down = report.scale_up, report.scale_down
    return not (
        report.error or report.stopped or report.young or report.removed_unregistered or report.deleted_failed
        or report.fixed_sizes or up.result is not ScaleUpResult.NOT_NEEDED or up.increases or up.failed_groups
        or down.deleting or down.results or down.error
    )  # fmt: skip
