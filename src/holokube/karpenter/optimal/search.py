"""The whole search on plain arrays: bounds, first plans, improvement, patterns; the best plan and what is proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.columns import Columns
from holokube.karpenter.optimal.construct import Meter, Stock, construct, guide_for
from holokube.karpenter.optimal.dominance import useful_bins
from holokube.karpenter.optimal.improve import Improver
from holokube.karpenter.optimal.model import (
    UNLIMITED,
    FloatArray,
    PackedNode,
    Packing,
    PackingModel,
    packing_of,
    violations,
)
from holokube.karpenter.optimal.resource_bound import ResourceBound, resource_bound, whole_node_bound
from holokube.karpenter.optimal.share_bound import MAX_SHARES, share_bound
from holokube.karpenter.optimal.solver_library import INFINITY
from holokube.karpenter.pausing import Steps, without_pauses

Status = Literal["optimal", "good", "limit"]
"""Proven cheapest; close enough to the bound; out of time or ideas."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work to spend. All counts: the same effort gives the same plan on any machine."""

    target_gap: float = 0.002
    """Stop when the plan is within this share of the bound."""
    improvement_rounds: int = 1800
    column_rounds: int = 60
    value_rounds: int = 100
    """Rounds of looking for patterns only to learn what pods are worth, where there are too many to prove with."""
    value_work: int = 12_000
    """Up to so many classes times bins that is tried."""
    pattern_work: int = 600
    """Up to so many classes times bins, patterns are looked at: for a bound, and to put plans together from."""
    share_work: int = MAX_SHARES
    """Up to so many, the bound by shares is looked for."""
    whole_nodes: int = 2000
    """Branch-and-bound nodes for programs over whole nodes."""
    work: int = UNLIMITED
    """Steps of constructions and improvements; the first construction is finished in any case."""
    is_narrow: bool = False
    """Whether a plan is looked for only among the offers that matter most."""
    seed: int = 0


PROVEN_GAP: Final = 1e-5
"""Bounds are lowered a little for the solver's tolerances, so that a plan is the cheapest within this share."""
TEACHING_GAP: Final = 0.01
"""Nearer to the bound, better values are not worth the time it takes to learn them."""
QUICK: Final = Effort(improvement_rounds=150, column_rounds=30, value_rounds=0, whole_nodes=60, pattern_work=300)


@dataclass(frozen=True, slots=True)
class Found:
    """The best plan, the proven bound, and how it was proven."""

    packing: Packing
    bound: float
    how: str
    status: Status

    @property
    def gap(self) -> float:
        """By which share the plan may be dearer than the cheapest."""
        return gap_of(self.packing.price, self.bound)


def gap_of(price: float, bound: float) -> float:
    """``price`` above ``bound`` as a share of the bound; 0 where both are nothing."""
    if price <= bound or price <= 1e-9:
        return 0.0
    return price / bound - 1 if bound > 0 else INFINITY


class Search:
    """One search. ``is_late`` says when time is up; without limit the result does not depend on time at all."""

    def __init__(
        self,
        model: PackingModel,
        effort: Effort,
        *,
        seconds_left: Callable[[], float] = lambda: INFINITY,
        known_bound: float | None = None,
    ) -> None:
        """``known_bound`` is used instead of bounds of the model itself, which may be stricter than the problem."""
        self._kept = useful_bins(model)
        self._model = model.of_bins(self._kept)
        self._effort = effort
        self._seconds_left = seconds_left
        self._rates: ResourceBound = resource_bound(self._model)
        self._meter = Meter()
        self._is_prover = known_bound is None
        self.bound = self._rates.price if known_bound is None else known_bound
        self.how = "resources"
        self._guesses = [self._rates.class_values]
        shares = share_bound(self._model, effort.share_work)
        if shares is not None:
            self._raise_bound(shares[0], "shares")
            self._guesses.append(shares[1])

    def _is_late(self) -> bool:
        return self._seconds_left() <= 0 or self._meter.spent >= self._effort.work

    @property
    def _has_few_patterns(self) -> bool:
        return 0 < self._model.classes * self._model.bins <= self._effort.pattern_work

    @property
    def values(self) -> FloatArray:
        """The going price of one pod of each class."""
        return self._rates.class_values

    def _raise_bound(self, price: float, how: str) -> None:
        if self._is_prover and price > self.bound:
            self.bound, self.how = price, how

    def prove(self) -> float:
        """The best bound that is quick to have."""
        model, effort = self._model, self._effort
        if not model.bins:
            return self.bound
        self._prove_whole_nodes()
        if self._has_few_patterns and not self._is_late():
            columns = Columns(model, guide_for(model, self.values))
            columns.generate(effort.column_rounds, self._seconds_left, exact=True)
            self._raise_bound(columns.proven(self._seconds_left), "patterns")
        return self.bound

    def _prove_whole_nodes(self) -> None:
        most, left_s = self._effort.whole_nodes, self._seconds_left()
        bound = whole_node_bound(self._model, max_nodes=most, limit_s=left_s, small=self._rates.small)
        self._raise_bound(bound, "whole nodes")

    def run(self) -> Found:
        """The plan."""
        return without_pauses(self.steps())

    def steps(self) -> Steps[Found]:
        """The same step by step."""
        model = self._model
        if not model.bins or not model.classes:
            return Found(self._outside(packing_of(model, ())), 0.0, "nothing to place", "optimal")
        best = yield from self._first(self._guesses)
        if self._is_prover:
            self._prove_whole_nodes()
        if self._has_few_patterns and not self._is_done(best):
            best = yield from self._by_patterns(best)
        if not self._is_done(best):
            best = yield from self._improved(best)
        problems = violations(model, best)
        assert not problems, f"the planner broke its own rules: {problems[:3]}"
        return Found(self._outside(best), self.bound, self.how, self._status(best))

    def _improved(self, best: Packing) -> Steps[Packing]:
        """The plan improved at the values of each guess; where that leaves it far off, at those that patterns teach."""
        model, effort = self._model, self._effort
        stages = 2 * len(self._guesses)
        teacher: Columns | None = None
        for number in range(stages):
            if self._is_done(best) or self._is_late():
                break
            if number and teacher is None and self._is_worth_teaching(best):
                teacher = Columns(model, guide_for(model, self._guesses[-1]))
                teacher.add_nodes(best.nodes)
                yield from teacher.generating(effort.value_rounds, self._seconds_left, exact=False)
                taught = yield from self._first((teacher.values,))
                best = min(best, taught, key=lambda packing: packing.rank)
            values = self._guesses[number % len(self._guesses)] if teacher is None else teacher.values
            improver = Improver(model, values, best, Rng(effort.seed).fork(f"improve {number}"), self._meter)
            yield from improver.steps(effort.improvement_rounds // stages, self._is_good, self._is_late)
            best = min(best, improver.packing, key=lambda packing: packing.rank)
            if teacher is not None:
                teacher.add_nodes(best.nodes)
                yield from teacher.generating(effort.value_rounds // 5, self._seconds_left, exact=False)
        return best

    def _is_worth_teaching(self, best: Packing) -> bool:
        model, effort = self._model, self._effort
        is_small = model.classes * model.bins <= effort.value_work
        return bool(effort.value_rounds) and is_small and gap_of(best.price, self.bound) > TEACHING_GAP

    def _first(self, guesses: Sequence[FloatArray]) -> Steps[Packing]:
        """The best of a few constructions: at the going rates, and with large pods valued a little more."""
        model = self._model
        plans: list[Packing] = []
        for lean in (0.0, 0.03, 0.08):
            for values in guesses:
                largest = max(float(values.max(initial=0.0)), 1e-12)
                shaped = values * (np.maximum(values, 1e-12) / largest) ** lean
                nodes = construct(
                    model, guide_for(model, shaped), model.counts.copy(), Stock.of(model), meter=self._meter
                )
                assert nodes is not None, "only a price cap ends a construction without a plan"
                plans.append(packing_of(model, nodes))
                yield
                if self._is_late() or self._is_done(plans[-1]):
                    return min(plans, key=lambda packing: packing.rank)
        return min(plans, key=lambda packing: packing.rank)

    def _by_patterns(self, best: Packing) -> Steps[Packing]:
        """Few classes: find the patterns that matter, and buy whole ones."""
        model, effort = self._model, self._effort
        columns = Columns(model, guide_for(model, self.values))
        columns.add_nodes(best.nodes)
        yield from columns.generating(effort.column_rounds, self._seconds_left, exact=True)
        if self._is_prover:
            self._raise_bound(columns.proven(self._seconds_left), "patterns")
        if self._is_done(best) or self._is_late():
            return best
        nodes: list[PackedNode] | None = columns.best_whole(
            max_nodes=effort.whole_nodes, limit_s=self._seconds_left()
        )
        if nodes is None:
            return best
        made = packing_of(model, nodes)
        return min(best, made, key=lambda packing: packing.rank)

    def _is_good(self, price: float) -> bool:
        return gap_of(price, self.bound) <= max(self._effort.target_gap, PROVEN_GAP)

    def _is_done(self, packing: Packing) -> bool:
        hopeless = int(self._model.counts[~self._model.allowed.any(axis=1)].sum())
        return packing.unplaced_pods <= hopeless and self._is_good(packing.price)

    def _status(self, packing: Packing) -> Status:
        if not self._is_done(packing):
            return "limit"
        return "optimal" if gap_of(packing.price, self.bound) <= PROVEN_GAP else "good"

    def _outside(self, packing: Packing) -> Packing:
        """The plan with the bins' own numbers."""
        nodes = tuple(PackedNode(int(self._kept[node.bin]), node.taken) for node in packing.nodes)
        return Packing(nodes, packing.unplaced, packing.price)
