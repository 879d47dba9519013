"""The last decisions, as people can follow them: what a turn decides alike about many is one line."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

LINES_MAX: Final = 150
"""Of those that did something, and of those that did not: what is merely weighed is much more."""
SUBJECTS_SHOWN: Final = 6
REASONS_SHOWN: Final = 4
TEXT_MAX: Final = 300
ALIKE_WITHIN_S: Final = 1.0
"""In real time what belongs together is never of the same instant: nodes of one scale-up join one by one."""

_CONSIDERED: Final = (
    "stays", "unneeded", "skipped", "no option", "not helped", "in cooldown", "estimate limited", "kept", "considered",
    "pending", "disrupts nothing",
)  # fmt: skip
"""How decisions begin after which everything is as before."""


@dataclass(slots=True)
class Line:
    """One line of the page."""

    id: int
    now_s: float
    kind: str
    decision: str
    is_act: bool
    """Whether something was done, or merely weighed."""
    subjects: list[str] = field(default_factory=list)
    """The first few."""
    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def takes(self, now_s: float, subject: str) -> bool:
        """Whether the same about this subject belongs here. Decided about again a moment later, it is told again."""
        if now_s == self.now_s:
            return True
        return abs(now_s - self.now_s) < ALIKE_WITHIN_S and subject not in self.subjects

    def as_json(self) -> dict[str, Any]:
        """Plain values that do not change with the line."""
        return {
            "id": self.id, "at": self.now_s, "kind": self.kind, "decision": self.decision, "act": self.is_act,
            "subjects": tuple(self.subjects), "count": self.count, "reasons": tuple(self.reasons),
        }  # fmt: skip


class DecisionLog:
    """Keeps the last lines, and knows which of them are new or changed."""

    def __init__(self, *, lines_max: int = LINES_MAX) -> None:
        self._done: OrderedDict[int, Line] = OrderedDict()
        self._weighed: OrderedDict[int, Line] = OrderedDict()
        self._newest: dict[tuple[str, str], Line] = {}
        """The last line of each kind and decision: the one that more of the same may join."""
        self._lines_max = lines_max
        self._changed: dict[int, Line] = {}
        self._next_id = 1

    def note(self, now_s: float, kind: str, subject: str, decision: str, reasons: Iterable[str] = ()) -> None:
        """Take a decision; those of the same second and kind that say the same share a line."""
        decision = decision[:TEXT_MAX]
        line = self._newest.get((kind, decision))
        if line is None or not line.takes(now_s, subject):
            line = self._begin(Line(self._next_id, now_s, kind, decision, not decision.startswith(_CONSIDERED)))
        line.count += 1
        if len(line.subjects) < SUBJECTS_SHOWN:
            line.subjects.append(subject)
        for reason in (text[:TEXT_MAX] for text in reasons):
            if reason not in line.reasons and len(line.reasons) < REASONS_SHOWN:
                line.reasons.append(reason)
        self._changed[line.id] = line

    def _begin(self, line: Line) -> Line:
        self._next_id += 1
        self._newest[line.kind, line.decision] = line
        lines = self._done if line.is_act else self._weighed
        lines[line.id] = line
        if len(lines) > self._lines_max:
            _, oldest = lines.popitem(last=False)
            self._changed.pop(oldest.id, None)
            if self._newest[oldest.kind, oldest.decision] is oldest:
                del self._newest[oldest.kind, oldest.decision]
        return line

    def drain(self) -> list[dict[str, Any]]:
        """The lines that are new or have changed since the last time, oldest first."""
        changed, self._changed = self._changed, {}
        return [changed[line_id].as_json() for line_id in sorted(changed)]

    def lines(self) -> list[dict[str, Any]]:
        """All lines, oldest first."""
        lines = sorted((*self._done.values(), *self._weighed.values()), key=lambda line: line.id)
        return [line.as_json() for line in lines]

    def __len__(self) -> int:
        return len(self._done) + len(self._weighed)
