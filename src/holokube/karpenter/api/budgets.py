"""Disruption budgets: how many nodes of a pool may be disrupted at once.

A budget is a number or a share of the nodes (rounded up, so that a share of a small pool still allows one), for
some reasons or all, always or for some time after each hit of a cron schedule in UTC. Among several the strictest
counts. One that cannot be understood allows nothing, whatever its reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.karpenter.api.cron_windows import is_within
from holokube.kube.timeformat import parse_duration

UNLIMITED: Final = 2**31 - 1

UNDERUTILIZED: Final = "Underutilized"
EMPTY: Final = "Empty"
DRIFTED: Final = "Drifted"
UNHEALTHY: Final = "Unhealthy"
REASONS: Final = (UNDERUTILIZED, EMPTY, DRIFTED, UNHEALTHY)

_nodes_form = re.compile(r"([0-9]+)(%?)", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Budget:
    """One element of ``spec.disruption.budgets``."""

    nodes: str = "10%"
    """A number of nodes, or a share such as ``10%``."""
    reasons: frozenset[str] = frozenset()
    """Empty for all."""
    schedule: str | None = None
    duration: str | None = None

    @classmethod
    def from_json(cls, budget: Mapping[str, Any]) -> Budget:
        """From an element of ``budgets``."""
        return cls(
            str(budget.get("nodes", "10%")),
            frozenset(budget.get("reasons") or ()),
            budget.get("schedule"),
            budget.get("duration"),
        )

    def applies_to(self, reason: str) -> bool:
        """Whether disruptions for this reason count against it."""
        return not self.reasons or reason in self.reasons

    def is_active(self, now_s: float) -> bool:
        """Whether it restrains now. ValueError if its schedule or duration is nonsense."""
        if self.schedule is None and self.duration is None:
            return True
        # Without a duration the window has no length, so such a budget is never active.
        duration_s = parse_duration(self.duration) if self.duration is not None else 0.0
        return is_within(self.schedule or "", duration_s, now_s)

    def allowed(self, now_s: float, nodes: int) -> int:
        """How many of ``nodes`` it lets go at once. ValueError if it is nonsense."""
        if not self.is_active(now_s):
            return UNLIMITED
        form = _nodes_form(self.nodes)
        if form is None:
            raise ValueError(f"budget: nodes {self.nodes!r} is neither a number nor a share such as 10%")
        amount = int(form[1])
        return -(-amount * nodes // 100) if form[2] else min(amount, UNLIMITED)


def allowed_disruptions(budgets: Iterable[Budget], now_s: float, nodes: int, reason: str) -> int:
    """How many of ``nodes`` may be disrupted at once for this reason: the strictest budget, or 2^31 - 1."""
    allowed = UNLIMITED
    for budget in budgets:
        try:
            of_budget = budget.allowed(now_s, nodes)
        except ValueError:
            # Upstream looks at every budget before it looks at reasons, and stops at any error.
            return 0
        if budget.applies_to(reason):
            allowed = min(allowed, of_budget)
    return allowed
