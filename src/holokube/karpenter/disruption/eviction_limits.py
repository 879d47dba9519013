"""What PodDisruptionBudgets say about evicting a pod now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from holokube.base.identity import are_same
from holokube.karpenter.disruption import pods
from holokube.kube.conditions import is_false
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject

_REMEMBERED: Final = 10_000
"""Labels of pods for which the budgets that match are kept."""


class Obstacle(Enum):
    """When a budget stands in the way."""

    NONE_ALLOWED_NOW = "none-allowed-now"
    """Its status allows no eviction at the moment."""
    NEVER = "never"
    """Its spec can never allow one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Budget:
    namespace: str
    key: str
    selector: LabelSelector
    allowed: int
    never_allows: bool
    passes_unready: bool


class EvictionLimits:
    """The budgets of a cluster; remembers which ones match pods with the same labels."""

    __slots__ = ("_budgets", "_matching", "_pdbs", "essence")

    def __init__(self, pdbs: Iterable[JsonObject] = ()) -> None:
        self._pdbs = pdbs = tuple(pdbs)
        self._budgets: dict[str, list[_Budget]] = {}
        self.essence: list[tuple[str, JsonObject | None, bool]] = []
        """All that the answers go by; limits with the same essence give the same answers."""
        for pdb in pdbs:
            budget = _read(pdb)
            self._budgets.setdefault(budget.namespace, []).append(budget)
            self.essence.append((budget.key, pdb.get("spec"), budget.allowed == 0))
        self._matching: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[_Budget, ...]] = {}

    def at(self, pdbs: Sequence[JsonObject]) -> EvictionLimits:
        """The limits of these budgets: the same if they are the very same objects, which never change."""
        return self if are_same(pdbs, self._pdbs) else EvictionLimits(pdbs)

    def obstacles(self, pod: JsonObject, now_s: float, obstacle: Obstacle) -> tuple[str, ...]:
        """The budgets (``namespace/name``) that keep the pod from being evicted.

        More than one budget on a pod is an obstacle by itself: the eviction API refuses such a pod. A pod that would
        not be evicted meets none.
        """
        if not self._budgets:
            return ()
        matching = self._matching_budgets(pod)
        if not matching:
            return ()
        if len(matching) > 1:
            return tuple(budget.key for budget in matching) if pods.is_evictable(pod, now_s) else ()
        budget = matching[0]
        # The budget first: most let pods go, and then nothing about the pod matters.
        blocks = budget.allowed == 0 if obstacle is Obstacle.NONE_ALLOWED_NOW else budget.never_allows
        if not blocks or not pods.is_evictable(pod, now_s):
            return ()
        return () if budget.passes_unready and is_false(pod, "Ready") else (budget.key,)

    def is_movable(self, pod: JsonObject, now_s: float) -> bool:
        """Whether the pod can be expected to look for a new place soon."""
        return pods.is_reschedulable(pod) and self.will_leave(pod, now_s)

    def will_leave(self, pod: JsonObject, now_s: float) -> bool:
        """Whether a reschedulable pod will leave its node when that goes.

        Nothing is provided for one that will not be evicted: it is protected, or no budget will ever let it go.
        """
        if pods.is_protected(pod, now_s) and pods.is_active(pod):
            return False
        return not self.obstacles(pod, now_s, Obstacle.NEVER)

    def _matching_budgets(self, pod: JsonObject) -> tuple[_Budget, ...]:
        metadata = pod["metadata"]
        namespace = metadata.get("namespace") or ""
        budgets = self._budgets.get(namespace)
        if budgets is None:
            return ()
        labels = metadata.get("labels") or {}
        key = namespace, tuple(labels.items())
        found = self._matching.get(key)
        if found is None:
            if len(self._matching) >= _REMEMBERED:
                self._matching.clear()
            found = self._matching[key] = tuple(budget for budget in budgets if budget.selector.matches(labels))
        return found


def _read(pdb: JsonObject) -> _Budget:
    metadata, spec = pdb["metadata"], pdb.get("spec") or {}
    namespace = metadata.get("namespace") or ""
    # A number as text is not a number to upstream: "0" leaves everything open that "0%" forbids.
    max_unavailable = spec.get("maxUnavailable")
    never = (max_unavailable is not None and max_unavailable in (0, "0%")) or spec.get("minAvailable") == "100%"
    return _Budget(
        namespace,
        f"{namespace}/{metadata['name']}",
        LabelSelector.from_json(spec.get("selector")),
        int((pdb.get("status") or {}).get("disruptionsAllowed") or 0),
        never,
        spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )
