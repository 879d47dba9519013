"""Karpenter's events: each of its reasons, and no event twice within its time. Decisions go to the journal too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.identity import are_same
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.journal import Journal
from holokube.runtime.ratelimit import TokenBucket

DEDUPE_S: Final = 120.0
UNCONSOLIDATABLE_DEDUPE_S: Final = 900.0
_SWEEP_EVERY: Final = 1024
_TOGETHER_MAX: Final = 1024

DISRUPTION_BLOCKED: Final = "DisruptionBlocked"
DISRUPTION_LAUNCHING: Final = "DisruptionLaunching"
DISRUPTION_TERMINATING: Final = "DisruptionTerminating"
DISRUPTION_WAITING_READINESS: Final = "DisruptionWaitingReadiness"
UNCONSOLIDATABLE: Final = "Unconsolidatable"
CONSOLIDATION_CANDIDATE: Final = "ConsolidationCandidate"
CONSOLIDATION_REJECTED: Final = "ConsolidationRejected"
CONSOLIDATION_APPROVED: Final = "ConsolidationApproved"
FAILED_SCHEDULING: Final = "FailedScheduling"
NO_COMPATIBLE_INSTANCE_TYPES: Final = "NoCompatibleInstanceTypes"
NOMINATED: Final = "Nominated"
DISRUPTED: Final = "Disrupted"
EVICTED: Final = "Evicted"
FAILED_DRAINING: Final = "FailedDraining"
AWAITING_VOLUME_DETACHMENT: Final = "AwaitingVolumeDetachment"
TERMINATION_GRACE_PERIOD_EXPIRING: Final = "TerminationGracePeriodExpiring"
FAILED_CONSISTENCY_CHECK: Final = "FailedConsistencyCheck"
INSUFFICIENT_CAPACITY_ERROR: Final = "InsufficientCapacityError"
UNREGISTERED_TAINT_MISSING: Final = "UnregisteredTaintMissing"
NODE_CLASS_NOT_READY: Final = "NodeClassNotReady"

NOMINATIONS: Final = "nominations"
LAUNCH_FAILURES: Final = "launch-failures"
_BUDGETS: Final = (NOMINATIONS, LAUNCH_FAILURES)
"""Kinds of events that a large batch of pods would have thousands of; of each only some are told."""
_PER_S: Final = 5.0
_BURST: Final = 10

_MESSAGE_MAX: Final = 1024

_DECISIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    FAILED_SCHEDULING: {"Pod": ("pod", "not helped")},
    EVICTED: {"Pod": ("pod", "evicted")},
    DISRUPTION_BLOCKED: {
        "Node": ("node", "stays: DisruptionBlocked"),
        "NodePool": ("group", "disrupts nothing"),
    },
    UNCONSOLIDATABLE: {"Node": ("node", "stays: Unconsolidatable")},
    CONSOLIDATION_REJECTED: {"Node": ("node", "stays: ConsolidationRejected")},
    INSUFFICIENT_CAPACITY_ERROR: {"NodeClaim": ("claim", "failed")},
    NODE_CLASS_NOT_READY: {"NodeClaim": ("claim", "failed")},
    NO_COMPATIBLE_INSTANCE_TYPES: {"NodePool": ("group", "has no instance types")},
}
"""What events mean in the journal, by reason and the kind of their object: the kind of entry, and what was decided.

The others mean nothing there.
"""


_NO_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {}
_Same = str | tuple[str, ...]
"""What makes events of one reason the same one: the object's uid, or a few words."""
_NOTHING: Final[Mapping[_Same, float]] = {}


class Publisher:
    """Hands events to the recorder, unless the same was told a short while ago."""

    def __init__(self, clock: Clock, recorder: EventRecorder, journal: Journal | None = None) -> None:
        self._clock = clock
        self._recorder = recorder
        self._journal = journal
        self._decided: dict[tuple[str, str], tuple[str, str]] = {}
        self._until_s: dict[str, dict[_Same, float]] = {}
        """By reason."""
        self._told_together: dict[tuple[str, str], tuple[Sequence[Mapping[str, Any]], float]] = {}
        """By reason and message: objects of which all were told, and until when none of them is told again."""
        self._told = 0
        self._next_sweep = _SWEEP_EVERY
        self._buckets = {name: TokenBucket(clock, per_s=_PER_S, burst=_BURST) for name in _BUDGETS}

    def normal(
        self,
        obj: Mapping[str, Any],
        reason: str,
        message: str,
        *same: str,
        dedupe_s: float = DEDUPE_S,
        budget: str = "",
    ) -> None:
        """Something happened; ``same`` tells which events are one: the object's uid unless given."""
        self._publish(obj, NORMAL, reason, message, _key(obj, same), dedupe_s, budget)

    def normal_of(
        self, objects: Iterable[tuple[Mapping[str, Any], str]], reason: str, message: str, dedupe_s: float
    ) -> None:
        """The same happened to each of them, for who knows their uids, by which events are one."""
        now_s = self._clock.monotonic()
        known = self._until_s.setdefault(reason, {})
        for obj, uid in objects:
            if known.get(uid, now_s) <= now_s:
                self._publish(obj, NORMAL, reason, message, uid, dedupe_s, "")
                # What is known by a reason is put away now and then, and begun anew.
                known = self._until_s[reason]

    def normal_of_all(
        self,
        told: Iterable[tuple[Iterable[tuple[Mapping[str, Any], str]], str]],
        reason: str,
        dedupe_s: float,
    ) -> None:
        """As ``normal_of`` for many of one reason: objects with their uids, and a message for those."""
        now_s = self._clock.monotonic()
        until_s = now_s + dedupe_s
        known, journal, event = self._until_s.setdefault(reason, {}), self._journal, self._recorder.event
        meanings = _DECISIONS.get(reason, _NO_MEANINGS) if journal is not None else _NO_MEANINGS
        for objects, message in told:
            for obj, uid in objects:
                known_until_s = known.get(uid)
                if known_until_s is None:
                    self._publish(obj, NORMAL, reason, message, uid, dedupe_s, "")
                    # What is known by a reason is put away now and then, and begun anew.
                    known = self._until_s[reason]
                elif known_until_s <= now_s:
                    # As ``_publish`` has it, without a call for each.
                    known[uid] = until_s
                    if journal is not None and (meaning := meanings.get(obj.get("kind", ""))) is not None:
                        self._keep(journal, obj, meaning, message)
                    event(obj, NORMAL, reason, message if len(message) <= _MESSAGE_MAX else cut(message))

    def normal_for_each(
        self, objects: Sequence[Mapping[str, Any]], reason: str, message: str, *, budget: str = ""
    ) -> None:
        """The same happened to each of them. Most of many have usually been told of a moment ago, and cost little."""
        now_s = self._clock.monotonic()
        together = self._told_together.get((reason, message))
        if together is not None and together[1] > now_s and are_same(together[0], objects):
            return
        known = self._until_s.setdefault(reason, {})
        quiet_until_s = now_s + DEDUPE_S
        for obj in objects:
            uid = obj["metadata"].get("uid", "")
            until_s = known.get(uid, now_s)
            if until_s <= now_s:
                self._publish(obj, NORMAL, reason, message, str(uid), DEDUPE_S, budget)
                # What is known by a reason is put away now and then, and begun anew.
                known = self._until_s[reason]
            elif until_s < quiet_until_s:
                quiet_until_s = until_s
        if len(self._told_together) >= _TOGETHER_MAX:
            self._told_together.clear()
        self._told_together[reason, message] = tuple(objects), quiet_until_s

    def warning(
        self,
        obj: Mapping[str, Any],
        reason: str,
        message: str,
        *same: str,
        dedupe_s: float = DEDUPE_S,
        budget: str = "",
    ) -> None:
        """Something went wrong; ``same`` as for ``normal``."""
        self._publish(obj, WARNING, reason, message, _key(obj, same), dedupe_s, budget)

    def _publish(
        self,
        obj: Mapping[str, Any],
        type: str,
        reason: str,
        message: str,
        key: _Same,
        dedupe_s: float,
        budget: str,
    ) -> None:
        now_s = self._clock.monotonic()
        known = self._until_s.get(reason)
        if known is None:
            known = self._until_s[reason] = {}
        until_s = known.get(key)
        if until_s is not None and until_s > now_s:
            return
        known[key] = now_s + dedupe_s
        if until_s is None:
            self._told += 1
            if self._told >= self._next_sweep:
                self._sweep(now_s)
        if self._journal is not None and (meanings := _DECISIONS.get(reason)) is not None:
            meaning = meanings.get(obj.get("kind", ""))
            if meaning is not None:
                self._keep(self._journal, obj, meaning, message)
        if not budget or self._buckets[budget].try_take():
            self._recorder.event(obj, type, reason, cut(message))

    def quiet_until_s(self, reason: str, *same: str) -> float:
        """Until when, by the monotonic clock, an event would not be told again."""
        return self.quiet_until_s_by(reason)(same[0] if len(same) == 1 else same, 0.0)

    def quiet_until_s_by(self, reason: str) -> Callable[[_Same, float], float]:
        """The same for who asks about many events, at this moment: by what makes them one, or else what is given."""
        return self._until_s.get(reason, _NOTHING).get

    def _sweep(self, now_s: float) -> None:
        """Forgets what may be told again anyway."""
        for reason, known in self._until_s.items():
            self._until_s[reason] = {key: until_s for key, until_s in known.items() if until_s > now_s}
        self._told = sum(len(known) for known in self._until_s.values())
        self._next_sweep = 2 * self._told + _SWEEP_EVERY

    def decided(self, kind: str, subject: str, decision: str, reason: str, **facts: Any) -> None:
        """A decision that has no event of its own."""
        if self._journal is not None:
            self._decided.pop((kind, subject), None)
            self._journal.note(self._clock.time(), kind, subject, decision, (reason,), **facts)

    def _keep(self, journal: Journal, obj: Mapping[str, Any], meaning: tuple[str, str], message: str) -> None:
        """Notes what an event says about a decision, unless that is what was decided the last time."""
        meta, (kind, decision) = obj["metadata"], meaning
        subject = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])
        if self._decided.get((kind, subject)) != (decision, message):
            if kind == "node":
                # Pods have few decisions and many names; nodes are told about again and again.
                self._decided[kind, subject] = decision, message
            journal.note(self._clock.time(), kind, subject, decision, (message,))


def _key(obj: Mapping[str, Any], same: tuple[str, ...]) -> _Same:
    if not same:
        return str(obj["metadata"].get("uid", ""))
    return same[0] if len(same) == 1 else same


def cut(message: str) -> str:
    """The message in the length that the API takes."""
    return message if len(message) <= _MESSAGE_MAX else message[: _MESSAGE_MAX - 3] + "..."
