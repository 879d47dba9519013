"""How many more pods each PodDisruptionBudget would let go, counted down as removals are planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject

_MEMO_MAX = 65_536


@dataclass(slots=True, eq=False)
class Budget:
    """A PodDisruptionBudget and what is left of it."""

    namespace: str
    name: str
    selector: LabelSelector
    allowed: int
    """Disruptions left; negative when more pods were planned away than it allows."""


class Allowance(NamedTuple):
    """Whether pods may leave together."""

    can_remove: bool
    """No budget of any of them is used up."""
    in_parallel: bool
    """The budgets allow all of them at the same time."""
    blocking_pod: JsonObject | None = None


_ALLOWED = Allowance(True, True)


class PdbTracker:
    """The budgets of the cluster. It knows what was planned in this turn and nothing else."""

    def __init__(self, pdbs: Iterable[JsonObject] = ()) -> None:
        self.given = pdbs
        """What it was made from."""
        self._budgets: list[Budget] = []
        self._by_namespace: dict[str, list[Budget]] = {}
        self._memo: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Budget, ...]] = {}
        for pdb in pdbs:
            budget = _read(pdb)
            self._budgets.append(budget)
            self._by_namespace.setdefault(budget.namespace, []).append(budget)

    @property
    def budgets(self) -> Sequence[Budget]:
        """All budgets, in list order."""
        return self._budgets

    def matching(self, pod: JsonObject) -> tuple[Budget, ...]:
        """The budgets that a pod counts against."""
        metadata = pod["metadata"]
        budgets = self._by_namespace.get(metadata.get("namespace") or "")
        if not budgets:
            return ()
        # Pods of one controller carry the same labels in the same order, so a plain tuple finds nearly all of them.
        labels = metadata.get("labels") or {}
        key = metadata.get("namespace") or "", tuple(labels.items())
        found = self._memo.get(key)
        if found is None:
            if len(self._memo) >= _MEMO_MAX:
                self._memo.clear()
            found = self._memo[key] = tuple(budget for budget in budgets if budget.selector.matches(labels))
        return found

    def can_remove(self, pods: Iterable[JsonObject]) -> Allowance:
        """Whether these pods may leave, and whether all at once."""
        if not self._budgets:
            return _ALLOWED
        counts: dict[int, int] = {}
        too_many: JsonObject | None = None
        for pod in pods:
            for budget in self.matching(pod):
                if budget.allowed < 1:
                    return Allowance(False, False, pod)
                count = counts[id(budget)] = counts.get(id(budget), 0) + 1
                if budget.allowed < count:
                    too_many = pod
        return Allowance(True, too_many is None, too_many)

    def remove(self, pods: Iterable[JsonObject]) -> None:
        """These pods are planned away."""
        if not self._budgets:
            return
        for pod in pods:
            for budget in self.matching(pod):
                budget.allowed -= 1


def _read(pdb: JsonObject) -> Budget:
    metadata, spec = pdb["metadata"], pdb.get("spec") or {}
    return Budget(
        metadata.get("namespace") or "", metadata["name"], LabelSelector.from_json(spec.get("selector")),
        int((pdb.get("status") or {}).get("disruptionsAllowed") or 0),
    )
