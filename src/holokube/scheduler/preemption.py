"""Which pods would have to go so that a more important one finds a place, and on which node.

Pure: everything is tried on the state and taken back. For each node on which removing pods could help, all pods of
lower priority leave, then as many as possible come back, those first whose disruption budget would suffer. The node
is chosen by the rules of :func:`_rank`, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from holokube.base.rng import Rng
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.types import JsonObject
from holokube.packing import Diagnosis, PlacedPod, PodClass
from holokube.packing.nodes import labels_of
from holokube.scheduler import messages
from holokube.scheduler.filtering import Filtering
from holokube.scheduler.pod_facts import (
    is_leaving_by_preemption,
    nominated_node_of,
    priority_of,
    started_at,
)

CANDIDATES_PERCENT: Final = 10
CANDIDATES_MIN: Final = 100
"""Upstream's ``minCandidateNodesPercentage`` and ``minCandidateNodesAbsolute``."""
_LOWEST_PRIORITY: Final = -(2**31)
_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the pods that must leave it: the most important first."""

    row: int
    victims: tuple[JsonObject, ...]
    violations: int
    """How many of the victims cost a disruption budget more than it allows."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """What became of the attempt."""

    candidate: Candidate | None
    message: str = ""
    """Why there is no candidate."""
    keeps_nomination: bool = False
    """Whether the pod keeps the node it was promised, if any: its victims are still on their way out."""


def preempt(
    filtering: Filtering,
    pod: JsonObject,
    cls: PodClass,
    diagnosis: Diagnosis,
    rivals: Mapping[int, Sequence[JsonObject]],
    budgets: Iterable[JsonObject],
    now: datetime,
    rng: Rng,
) -> Preemption:
    """Find the node where the least must be given up for a pod that fits nowhere."""
    ineligible = _why_not_eligible(filtering, pod, diagnosis)
    if ineligible:
        return Preemption(None, ineligible, keeps_nomination=True)
    hopeful = int(np.count_nonzero(diagnosis.resolvable))
    nodes = len(filtering.state.node_names)
    if not hopeful:
        return Preemption(None, messages.preemption_error(nodes, 0, {}))
    offset = rng.randrange(hopeful)
    lowest = filtering.state.priorities.lowest
    if lowest is None or lowest >= priority_of(pod):
        # Where all matter the same there is nobody to look for.
        return Preemption(None, messages.preemption_error(nodes, hopeful, {messages.NO_VICTIMS: hopeful}))
    rows: Sequence[int] = np.flatnonzero(diagnosis.resolvable).tolist()
    attempt = _Attempt(filtering, pod, cls, rivals, list(budgets), now)
    candidates = attempt.candidates(rows, offset)
    if not candidates:
        return Preemption(None, messages.preemption_error(nodes, attempt.tried, attempt.reasons))
    return Preemption(_best(candidates, now))


def _why_not_eligible(filtering: Filtering, pod: JsonObject, diagnosis: Diagnosis) -> str:
    if (pod.get("spec") or _EMPTY).get("preemptionPolicy") == "Never":
        return messages.NEVER_PREEMPTS
    state, promised = filtering.state, nominated_node_of(pod)
    row = state.node_names.get(promised) if promised else None
    # A node that no departure can help is no longer worth waiting for.
    if row is None or not diagnosis.resolvable[row]:
        return ""
    priority = priority_of(pod)
    for placed in state.pods_on(row):
        if placed.pod is not None and priority_of(placed.pod) < priority and is_leaving_by_preemption(placed.pod):
            return messages.VICTIMS_ARE_LEAVING
    return ""


class _Attempt:
    """The tries on all nodes for one pod."""

    def __init__(
        self,
        filtering: Filtering,
        pod: JsonObject,
        cls: PodClass,
        rivals: Mapping[int, Sequence[JsonObject]],
        budgets: list[JsonObject],
        now: datetime,
    ) -> None:
        self._filtering = filtering
        self._cls = cls
        self._priority = priority_of(pod)
        self._rivals = rivals
        self._budgets = Budgets(budgets)
        self._now = now
        self.reasons: dict[str, int] = {}
        """Why nodes that were tried are no candidates."""
        self.tried = 0

    def candidates(self, rows: Sequence[int], offset: int) -> list[Candidate]:
        """The candidates among rows, from an offset on, until there are enough; without violations first."""
        wanted = min(max(len(rows) * CANDIDATES_PERCENT // 100, CANDIDATES_MIN), len(rows))
        harmless: list[Candidate] = []
        violating: list[Candidate] = []
        for i in range(len(rows)):
            candidate = self._try(rows[(offset + i) % len(rows)])
            if candidate is not None:
                (violating if candidate.violations else harmless).append(candidate)
                if harmless and len(harmless) + len(violating) >= wanted:
                    break
        return [*harmless, *violating]

    def _try(self, row: int) -> Candidate | None:
        state = self._filtering.state
        lower = [
            placed for placed in state.pods_on(row)
            if placed.pod is not None and priority_of(placed.pod) < self._priority
        ]  # fmt: skip
        if not lower:
            self._note((messages.NO_VICTIMS,))
            return None
        with state.trial():
            for placed in lower:
                state.remove_pod(placed.key)
            if not self._fits(row):
                self._note(self._filtering.reasons(self._cls, row, self._rivals.get(row, ())))
                return None
            return self._reprieve(row, lower)

    def _reprieve(self, row: int, lower: list[PlacedPod]) -> Candidate | None:
        """Let as many pods as possible come back; those that cannot are the victims."""
        state = self._filtering.state
        pods = sorted((p.pod for p in lower if p.pod is not None), key=self._importance)
        violating, harmless = self._budgets.split(pods)
        victims: list[JsonObject] = []
        violations = 0
        for number, pod in enumerate([*violating, *harmless]):
            key = state.assume_pod(pod, row)
            if not self._fits(row):
                state.remove_pod(key)
                victims.append(pod)
                violations += number < len(violating)
        if not victims:
            # Only possible if the node's verdict was out of date; the next try will see.
            self._note((messages.NO_VICTIMS,))
            return None
        return Candidate(row, tuple(sorted(victims, key=self._importance)), violations)

    def _importance(self, pod: JsonObject) -> tuple[int, datetime]:
        return -priority_of(pod), started_at(pod, self._now)

    def _fits(self, row: int) -> bool:
        return self._filtering.fits(self._cls, row, self._rivals.get(row, ()))

    def _note(self, reasons: Iterable[str]) -> None:
        self.tried += 1
        for reason in reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


class Budgets:
    """The disruption budgets of a cluster, as far as they allow less than wanted."""

    def __init__(self, budgets: Iterable[JsonObject]) -> None:
        self._budgets: list[tuple[str, LabelSelector, int, Mapping[str, Any]]] = []
        for budget in budgets:
            status = budget.get("status") or _EMPTY
            try:
                selector = LabelSelector.from_json((budget.get("spec") or _EMPTY).get("selector"))
            except SelectorError:
                continue
            # An empty selector selects nothing here, although it does for the eviction API.
            if not selector.is_empty and not selector.matches_nothing:
                allowed = status.get("disruptionsAllowed") or 0
                space = budget["metadata"].get("namespace", "")
                self._budgets.append((space, selector, allowed, status.get("disruptedPods") or _EMPTY))

    def split(self, pods: Sequence[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
        """Pods that cost a budget more than it allows if all of them go, and the others; order is kept."""
        left = [allowed for _, _, allowed, _ in self._budgets]
        violating: list[JsonObject] = []
        harmless: list[JsonObject] = []
        for pod in pods:
            labels, metadata = labels_of(pod), pod["metadata"]
            is_violated = False
            if labels:
                for number, (space, selector, _, disrupted) in enumerate(self._budgets):
                    if space != metadata.get("namespace", "") or not selector.matches(labels):
                        continue
                    # One that is on its way out has been counted already.
                    if metadata["name"] in disrupted:
                        continue
                    left[number] -= 1
                    is_violated |= left[number] < 0
            (violating if is_violated else harmless).append(pod)
        return violating, harmless


def _best(candidates: Sequence[Candidate], now: datetime) -> Candidate:
    """The candidate with the best rank; the first among equals."""
    return min(candidates, key=lambda candidate: _rank(candidate, now))


def _rank(candidate: Candidate, now: datetime) -> tuple[int, int, int, int, float]:
    """Smaller is better: fewest broken budgets, least important victim at the top, smallest sum of priorities,
    fewest victims, and of the most important victims the youngest eldest."""
    priorities = [priority_of(victim) for victim in candidate.victims]
    highest = max(priorities)
    eldest = min(started_at(v, now) for v in candidate.victims if priority_of(v) == highest)
    return (
        candidate.violations,
        highest,
        # Counted from the lowest priority there is, so that more victims never make a smaller sum.
        sum(priority - _LOWEST_PRIORITY for priority in priorities),
        len(priorities),
        -eldest.timestamp(),
    )
