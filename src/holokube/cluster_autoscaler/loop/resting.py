"""Turns that would decide what the last one decided: on virtual time they can be left out, and nobody can tell.

Upstream looks at everything every ten seconds. A turn depends on what the informers hold, on the provider's machines,
on what earlier turns remember and on the time. If two turns in a row did nothing, started nothing and thought the same
of all nodes, then

- the time alone makes a difference only at moments that are known: when a node has been unneeded for long enough, when
  one is worth another simulation, when a cooldown ends. All others are covered by looking again after five minutes;
- objects make a difference if they change. Where no node is unneeded nothing is simulated, so that only nodes, pods
  without a place, and pods on nodes that may have become little used count (``firm_use``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, runtime_checkable

from holokube.client.informer import EventType, Informer
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.loop.firm_use import FirmUse
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.cooldown import LastActivity
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.kube.types import JsonObject

REST_MAX_S: Final = 300.0
_NEAR_S: Final = 0.01
"""Sums of seconds may come out a little different in a turn; one that is as near as this is not left out."""
Thoughts = tuple[object, ...]


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
        self._provider = provider
        self._options = options
        self._until_s = -math.inf
        self._thoughts: Thoughts = ()
        self._stayed: Sequence[Unremovable] = ()
        self._machines: object = None
        self._nodes_changed = self._others_changed = False
        self._use = FirmUse(wants_unseen=bool(options.bypassed_scheduler_names))
        self._simulates = True
        self.left_out = 0
        """How many turns were left out."""
        self._detach: list[Callable[[], None]] = [
            nodes.add_handler(self._on_node),
            pods.add_handler(self._use.on_pod),
            *(informer.add_handler(partial(self._on_other)) for informer in others),
        ]

    def close(self) -> None:
        """Hear of nothing any more."""
        for detach in self._detach:
            detach()

    def _on_node(self, _type: EventType, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._nodes_changed = True

    def _on_other(self, _type: EventType, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._others_changed = True

    def goes_on(self, now_s: float) -> bool:
        """Whether the turn that is due may be left out; if not, changes are counted from now on."""
        machines = self._provider.changes if isinstance(self._provider, CountsChanges) else object()
        if now_s < self._until_s - _NEAR_S and machines == self._machines and not self._is_disturbed():
            self.left_out += 1
            return True
        self._machines = machines
        self._nodes_changed = self._others_changed = False
        self._use.forget_changes()
        return False

    def _is_disturbed(self) -> bool:
        if self._nodes_changed:
            return True
        if self._simulates:
            return self._others_changed or self._use.has_changed
        return not self._use.stays_firm()

    def after(self, report: TurnReport, last: LastActivity, recheck_at_s: float, *, is_quiet: bool) -> None:
        """A turn has ended.

        ``recheck_at_s`` is when the next node is simulated again; ``is_quiet`` if nothing is being removed, and no node
        is in a state that may not last.
        """
        before, self._thoughts = self._thoughts, _thoughts(report)
        stayed, self._stayed = self._stayed, report.scale_down.unremovable
        rests = is_quiet and _did_nothing(report) and before == self._thoughts and _are_alike(stayed, self._stayed)
        self._until_s = min(self._next_s(report, last), recheck_at_s) if rests else -math.inf
        if rests:
            self._simulates = bool(report.scale_down.unneeded or report.pending or report.upcoming)
            if not self._simulates:
                self._use.judge(report.scale_down.unremovable)

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
    return len(these) == len(those) and all(
        this is that or (this.reason is that.reason and this.name == that.name)
        for this, that in zip(these, those, strict=True)
    )


def _did_nothing(report: TurnReport) -> bool:
    """Whether a turn has changed nothing and left nothing to be done."""
    up, down = report.scale_up, report.scale_down
    return not (
        report.error or report.stopped or report.young or report.removed_unregistered or report.deleted_failed
        or report.fixed_sizes or up.result is not ScaleUpResult.NOT_NEEDED or up.increases or up.failed_groups
        or down.deleting or down.results or down.error
    )  # fmt: skip
