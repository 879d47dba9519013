"""Patterns (contents of whole nodes) instead of amounts: a sharper bound, and plans put together from patterns.

The master program buys patterns so that every class is covered; its dual values price the classes; pricing finds a
pattern worth more than its node costs; and so on until there is none. Whatever the values are, they prove a bound:
scaled down until no pattern is worth more than its price, their sum is what the pods cost at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from holokube.karpenter.optimal.construct import Guide
from holokube.karpenter.optimal.knapsack import Filling, exact_filling, greedy_fillings, swapped
from holokube.karpenter.optimal.model import UNLIMITED, FloatArray, IntArray, PackedNode, PackingModel
from holokube.karpenter.optimal.resource_bound import lowered
from holokube.karpenter.optimal.solver_library import INFINITY, Answer, LinearProgram
from holokube.karpenter.pausing import Steps, without_pauses

EXACT_NODES: Final = 300
"""Branch-and-bound nodes for one exact pattern."""
_SMOOTHING: Final = 0.5
"""Values move only half-way to the master's: its corners jump, and patterns for a corner are of little use."""


class Columns:
    """The master program with the patterns found so far."""

    def __init__(self, model: PackingModel, guide: Guide) -> None:
        self._model = model
        self._guide = guide
        self._bins = np.flatnonzero((model.max_counts > 0) & model.allowed.any(axis=0))
        self._patterns: list[Filling] = []
        self._known: set[tuple[int, bytes]] = set()
        self.values = guide.values.copy()
        self._program = LinearProgram()
        self._limited = np.flatnonzero(model.max_counts < UNLIMITED)
        self._set_up()

    def _set_up(self) -> None:
        """Rows for classes, for bins that run out, and for limits; a dear column leaves a pod unplaced."""
        model = self._model
        classes = model.classes
        dearest = float(model.prices.max(initial=1.0)) or 1.0
        costs = np.where(model.allowed, model.prices, dearest).min(axis=1, initial=dearest)
        # Where bins run out a pod may have to take a dearer one than its cheapest.
        costs = np.full(classes, 10 * dearest) if len(self._limited) or len(model.limit_totals) else costs
        self._program.add_columns(
            np.maximum(costs, 1e-9), np.zeros(classes), np.full(classes, INFINITY)
        )
        for index, count in enumerate(model.counts.tolist()):
            self._program.add_row(float(count), INFINITY, np.array([index]), np.ones(1))
        none = np.zeros(0, dtype=np.int64)
        for bin_ in self._limited.tolist():
            self._program.add_row(-INFINITY, float(model.max_counts[bin_]), none, np.zeros(0))
        for total in model.limit_totals.tolist():
            self._program.add_row(-INFINITY, 1.0 if total > 0 else 0.0, none, np.zeros(0))

    def add(self, fillings: Iterable[Filling]) -> int:
        """Patterns to buy from; how many were new."""
        added = 0
        model = self._model
        for filling in fillings:
            key = (filling.bin, filling.taken.astype(np.int32).tobytes())
            if key in self._known or not filling.taken.any():
                continue
            self._known.add(key)
            self._patterns.append(filling)
            added += 1
            rows = np.flatnonzero(filling.taken)
            amounts = filling.taken[rows].astype(np.float64)
            place = np.flatnonzero(self._limited == filling.bin)
            weights = model.limit_weights[:, filling.bin] / np.maximum(model.limit_totals, 1)
            used = np.flatnonzero(weights)
            first_limit = model.classes + len(self._limited)
            self._program.add_column(
                float(model.prices[filling.bin]),
                INFINITY,
                np.concatenate([rows, model.classes + place, first_limit + used]),
                np.concatenate([amounts, np.ones(len(place)), weights[used]]),
            )
        return added

    def add_nodes(self, nodes: Iterable[PackedNode]) -> None:
        """The contents of a plan's nodes as patterns."""
        for node in nodes:
            taken = np.zeros(self._model.classes, dtype=np.int64)
            for index, number in node.taken.items():
                taken[index] = number
            self.add([Filling(node.bin, taken, 0.0)])

    def generate(self, rounds: int, seconds_left: Callable[[], float], *, exact: bool) -> None:
        """Find patterns until none is worth more than its price; exactly, if asked, where guesses run dry."""
        without_pauses(self.generating(rounds, seconds_left, exact=exact))

    def generating(self, rounds: int, seconds_left: Callable[[], float], *, exact: bool) -> Steps[None]:
        """The same round by round."""
        model = self._model
        for _ in range(rounds):
            if seconds_left() <= 0:
                return
            yield
            found = [
                swapped(model, self.values, model.counts, filling)
                for filling in greedy_fillings(model, self.values, model.counts, self._bins, self._guide.weights)
            ]
            worthy = [f for f in found if f.value > model.prices[f.bin] * (1 + 1e-7)]
            if not worthy and exact:
                for bin_ in self._bins.tolist():
                    filling, _ = self._exact(bin_, seconds_left())
                    if filling.value > model.prices[bin_] * (1 + 1e-7):
                        worthy.append(filling)
                    yield
            added = self.add(worthy)
            answer = self._program.solve()
            duals = self._duals(answer)
            moved = float(np.abs(duals - self.values).sum())
            if not added and moved <= 1e-6 * max(float(duals.sum()), 1e-9):
                return
            self.values = _SMOOTHING * self.values + (1 - _SMOOTHING) * duals if added else duals

    def _exact(self, bin_: int, limit_s: float) -> tuple[Filling, float]:
        return exact_filling(self._model, self.values, bin_, max_nodes=EXACT_NODES, limit_s=max(limit_s, 0.0))

    def _duals(self, answer: Answer) -> FloatArray:
        return np.maximum(answer.row_duals[: self._model.classes], 0.0)

    def proven(self, seconds_left: Callable[[], float]) -> float:
        """The bound that the present values prove; 0 if time runs out before every bin was looked at.

        Bins that run out cannot be scaled away, so what their best content gains is taken off the sum instead.
        """
        model = self._model
        values = self.values
        worth = np.zeros(len(self._bins))
        for place, bin_ in enumerate(self._bins.tolist()):
            if seconds_left() <= 0:
                return 0.0
            filling, bound = self._exact(bin_, seconds_left())
            worth[place] = bound
            self.add([filling])
        prices = model.prices[self._bins]
        endless = model.max_counts[self._bins] >= UNLIMITED
        scale = float(np.max(worth[endless] / np.maximum(prices[endless], 1e-12), initial=1.0))
        counted = np.where(model.allowed.any(axis=1), model.counts, 0)
        gains = np.maximum(worth[~endless] / scale - prices[~endless], 0.0) * model.max_counts[self._bins][~endless]
        return lowered(float(counted @ values) / scale - float(gains.sum()))

    def best_whole(
        self, *, max_nodes: int, limit_s: float, at_most: float | None = None
    ) -> list[PackedNode] | None:
        """The cheapest plan from whole patterns found in time; pods beyond what is needed are left out of it.

        None if it would leave a pod unplaced, or cost ``at_most`` or more.
        """
        model = self._model
        whole = LinearProgram()
        master = self._rows()
        columns = len(self._patterns)
        whole.add_columns(model.prices[[f.bin for f in self._patterns]], np.zeros(columns), np.full(columns, INFINITY))
        whole.require_integers(np.arange(columns))
        for lower, upper, indexes, amounts in master:
            whole.add_row(lower, upper, indexes, amounts)
        if at_most is not None:
            costs = model.prices[[f.bin for f in self._patterns]]
            whole.add_row(-INFINITY, at_most, np.arange(columns), costs)
        answer = whole.solve(max_nodes=max_nodes, relative_gap=1e-4, limit_s=limit_s)
        if not answer.found:
            return None
        return self._trimmed(np.rint(answer.values).astype(np.int64))

    def _rows(self) -> list[tuple[float, float, IntArray, FloatArray]]:
        model = self._model
        contents = np.array([f.taken for f in self._patterns])
        bins = np.array([f.bin for f in self._patterns])
        rows: list[tuple[float, float, IntArray, FloatArray]] = []
        for index, count in enumerate(model.counts.tolist()):
            if count and model.allowed[index].any():
                used = np.flatnonzero(contents[:, index])
                rows.append((float(count), INFINITY, used, contents[used, index].astype(np.float64)))
        for bin_ in self._limited.tolist():
            used = np.flatnonzero(bins == bin_)
            rows.append((-INFINITY, float(model.max_counts[bin_]), used, np.ones(len(used))))
        for weights, total in zip(model.limit_weights, model.limit_totals, strict=True):
            taken = weights[bins] / max(int(total), 1)
            used = np.flatnonzero(taken)
            rows.append((-INFINITY, 1.0 if total > 0 else 0.0, used, taken[used]))
        return rows

    def _trimmed(self, numbers: IntArray) -> list[PackedNode]:
        left = self._model.counts.copy()
        nodes = []
        for filling, number in zip(self._patterns, numbers.tolist(), strict=True):
            for _ in range(number):
                taken = np.minimum(filling.taken, left)
                left -= taken
                if taken.any():
                    nodes.append(PackedNode(filling.bin, {int(i): int(taken[i]) for i in np.flatnonzero(taken)}))
        return nodes
