"""Decisions of a run: the journal of its policy and components, as results have it, and what follows from it."""

from __future__ import annotations

from typing import Any, Final

from holokube.base.clock import Clock
from holokube.lab.results import Decision
from holokube.lab.run.amounts import milliseconds
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.node_meter import NodeRecord
from holokube.runtime.journal import Entry, Journal

DECISIONS_MAX: Final = 250_000
"""The oldest ones go first; a day of a thousand nodes has some ten thousand."""
_SCHEDULER: Final = "scheduler"
_EVICTORS: Final = {
    "DeletionByTaintManager": "taint-eviction", "PreemptionByScheduler": _SCHEDULER,
    "DeletionByPodGC": "pod-garbage-collector", "TerminationByKubelet": "kubelet",
}  # fmt: skip
"""Who sends pods away otherwise than through the API for evictions, whose callers tell why themselves."""
_PODS_NAMED: Final = 3
_FAILURES: Final = (("scale-up", "failed"), ("claim", "failed"), ("machine", "removed"))
"""Decisions that say that nodes which were asked for do not come."""
_HEEDED: Final = frozenset((*_FAILURES, ("scale-up", "enlarged"), ("claim", "made"), ("node", "removed")))
"""Decisions from which something follows here."""


class DecisionBook:
    """Listens to the journal."""

    def __init__(self, clock: Clock, policy: str, start_s: float, log: EventLog) -> None:
        self.journal = Journal(entries_max=DECISIONS_MAX)
        self._clock = clock
        self._policy = policy
        self._start_s = start_s
        self._log = log
        self.failed_scale_ups = 0
        self._growth: dict[str, str] = {}
        """Why a group has grown, the last time that it did; or a claim was made."""
        self._ends: dict[str, str] = {}
        """Why a node is being removed."""
        self._unsubscribe = self.journal.subscribe(self._on_entry)

    def close(self) -> None:
        """Hear nothing more."""
        self._unsubscribe()

    def unschedulable(self, pod: str, message: str) -> None:
        """The scheduler found no place for a pod."""
        self.journal.note(self._clock.time(), "pod", pod, "pending", (message,), component=_SCHEDULER)

    def evicted(self, pod: str, reason: str, message: str) -> None:
        """A pod must go."""
        component = _EVICTORS.get(reason)
        if component is not None:
            self.journal.note(self._clock.time(), "pod", pod, "evicted", (message or reason,), component=component)

    def refused(self, problem: str) -> None:
        """The server did not take something of the scenario's trace."""
        self.journal.note(self._clock.time(), "trace", "trace", "refused", (problem,), component="scenario")

    def _on_entry(self, entry: Entry) -> None:
        what = (entry.kind, entry.decision)
        if what not in _HEEDED:
            # Most are about nodes that stay what they are.
            pass
        elif what in _FAILURES:
            self.failed_scale_ups += 1
        elif what == ("scale-up", "enlarged"):
            self._growth[entry.subject] = f"{'; '.join(entry.reasons)}, for {_pods(entry.facts.get('pods', 0))}"
        elif what == ("claim", "made"):
            self._growth[entry.subject] = "; ".join(entry.reasons) + _named(entry.facts.get("pods") or [])
        elif what == ("node", "removed"):
            self._ends[entry.subject] = "; ".join(entry.reasons)
        if self._log.is_on:
            component, facts = self._split(entry)
            self._log.write(
                milliseconds(entry.now_s - self._start_s), "Decision", f"{entry.kind}/{entry.subject}",
                entry.decision, component=component, reasons=list(entry.reasons), facts=facts,
            )  # fmt: skip

    def _split(self, entry: Entry) -> tuple[str, dict[str, Any]]:
        if not entry.facts:
            return self._policy, {}
        facts = dict(entry.facts)
        return str(facts.pop("component", self._policy)), facts

    def node_added(self, record: NodeRecord) -> None:
        """Tells a node why it is there."""
        record.why_added = self._growth.pop(record.claim, "") if record.claim else self._growth.get(record.group, "")

    def explain_ends(self, records: list[NodeRecord]) -> None:
        """Tells nodes that are gone why."""
        for record in records:
            if record.removed_ms is not None:
                record.why_removed = self._ends.get(record.name, "")

    def decisions(self) -> tuple[Decision, ...]:
        """All that are still remembered, in the order of time."""
        found = []
        for entry in self.journal:
            component, facts = self._split(entry)
            at_s = milliseconds(entry.now_s - self._start_s) / 1000
            found.append(
                Decision(at_s, component, entry.kind, entry.subject, entry.decision, entry.reasons, facts)
            )
        return tuple(found)


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"


def _named(pods: list[str]) -> str:
    """Some of them. The journal names the first ones only, so that nobody can tell here how many there are."""
    if not pods:
        return ""
    more = " and others" if len(pods) > _PODS_NAMED else ""
    return f": {', '.join(pods[:_PODS_NAMED])}{more}"
