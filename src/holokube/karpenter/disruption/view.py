"""The cluster at one moment, as every disruption method sees it.

A view never changes. What several methods need (candidates, budgets, totals of pools, prices) is worked out once, when
it is first asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.base.lazy import lazy
from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.balanced import PoolTotals, pool_costs, pool_totals
from holokube.karpenter.disruption.budgets import PoolBudget, PoolCount, budgets_of, count_nodes
from holokube.karpenter.disruption.candidate_book import CandidateBook, Roster
from holokube.karpenter.disruption.candidates import CandidateRules, Scan, scan
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.disruption.memory import Mark
from holokube.karpenter.disruption.prices import PriceBook
from holokube.karpenter.disruption.prospects import Glimpse, Outlook
from holokube.karpenter.disruption.simulating import Simulator
from holokube.karpenter.disruption.types import (
    UNTOLD,
    Candidate,
    DisruptionClass,
    Method,
    Notice,
    Obstruction,
    Reason,
    is_balanced,
)
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType


@dataclass(frozen=True, slots=True)
class DisruptionOptions:
    """Feature gates that disruption looks at."""

    spot_to_spot: bool = False
    """Whether spot nodes may be replaced by cheaper spot nodes."""
    manages_pod_deletion_cost: bool = False
    """Whether something writes pod-deletion-cost, so that it says nothing about what users want."""


_NO_MARK: Final = Mark(0.0, 0)
_NO_OPTIONS: Final = DisruptionOptions()


def _no_time_passes() -> float:
    return 0.0


@dataclass(frozen=True, eq=False, init=False)
class DisruptionView:
    """Everything that decides which nodes go."""

    now_s: float
    nodes: Sequence[StateNode]
    """All nodes and claims that are known, managed or not."""
    pools: Mapping[str, NodePool]
    types_of_pool: Mapping[str, Sequence[InstanceType]]
    simulator: Simulator
    pdbs: Sequence[JsonObject]
    limits: EvictionLimits | None
    """What the budgets of pods allow, where somebody has read them already."""
    queued: frozenset[str]
    """Provider ids of the nodes that a command is being carried out for."""
    mark: Mark
    """Where the cluster's consolidation mark stands."""
    pool_costs: Mapping[str, float] | None
    """What pools cost by the books, for the Balanced policy; worked out from the nodes if there are no books."""
    options: DisruptionOptions
    well_known: frozenset[str]
    problem: Callable[[], Problem] | None
    """What a plan for the whole cluster starts from, gathered when it is asked for; None where nobody makes one."""
    book: CandidateBook | None
    """What earlier views of the same cluster have found out about its nodes."""
    find_glimpse: Callable[[], Glimpse | None] | None
    """What an earlier outlook still tells about candidates, worked out when it is asked for."""
    find_outlook: Callable[[], Outlook | None] | None
    """What can be told about candidates by counting, worked out when it is asked for."""
    elapsed_s: Callable[[], float]
    """How long the search has been going on; asked between probes."""

    def __init__(
        self,
        now_s: float,
        nodes: Sequence[StateNode],
        pools: Mapping[str, NodePool],
        types_of_pool: Mapping[str, Sequence[InstanceType]],
        simulator: Simulator,
        pdbs: Sequence[JsonObject] = (),
        limits: EvictionLimits | None = None,
        queued: frozenset[str] = frozenset(),
        mark: Mark = _NO_MARK,
        pool_costs: Mapping[str, float] | None = None,
        options: DisruptionOptions = _NO_OPTIONS,
        well_known: frozenset[str] = ALL_WELL_KNOWN_LABELS,
        problem: Callable[[], Problem] | None = None,
        book: CandidateBook | None = None,
        find_glimpse: Callable[[], Glimpse | None] | None = None,
        find_outlook: Callable[[], Outlook | None] | None = None,
        elapsed_s: Callable[[], float] = _no_time_passes,
    ) -> None:
        # Views are made all the time, and what a dataclass generates for frozen fields takes several times as long.
        own = self.__dict__
        own["now_s"] = now_s
        own["nodes"] = nodes
        own["pools"] = pools
        own["types_of_pool"] = types_of_pool
        own["simulator"] = simulator
        own["pdbs"] = pdbs
        own["limits"] = limits
        own["queued"] = queued
        own["mark"] = mark
        own["pool_costs"] = pool_costs
        own["options"] = options
        own["well_known"] = well_known
        own["problem"] = problem
        own["book"] = book
        own["find_glimpse"] = find_glimpse
        own["find_outlook"] = find_outlook
        own["elapsed_s"] = elapsed_s

    @lazy
    def _scans(self) -> dict[DisruptionClass, Scan]:
        return {}

    @lazy
    def _judged(self) -> dict[str, tuple[tuple[Candidate, Obstruction | None], ...]]:
        return {}

    @lazy
    def _budgets(self) -> dict[Reason, dict[str, PoolBudget]]:
        return {}

    @lazy
    def rules(self) -> CandidateRules:
        """What makes a node a candidate."""
        return CandidateRules(
            now_s=self.now_s,
            pools=self.pools,
            types_of_pool=self._types_by_name(),
            limits=self.limits if self.limits is not None else EvictionLimits(self.pdbs),
            queued=self.queued,
            reads_deletion_cost=not self.options.manages_pod_deletion_cost,
        )

    def _types_by_name(self) -> Mapping[str, Mapping[str, InstanceType]]:
        if self.book is not None:
            return self.book.by_name(self.types_of_pool)
        return {pool: {one.name: one for one in types} for pool, types in self.types_of_pool.items() if types}

    @lazy
    def _read(self) -> CandidateBook | None:
        """The book, brought up to date."""
        if self.book is not None:
            self.book.update(self.nodes, self.rules)
        return self.book

    def scan(self, disruption_class: DisruptionClass) -> Scan:
        """Candidates, and why the others are none."""
        found = self._scans.get(disruption_class)
        if found is None:
            found = self._scans[disruption_class] = self._scan(disruption_class)
        return found

    def _scan(self, disruption_class: DisruptionClass) -> Scan:
        if self._read is None:
            return scan(self.nodes, self.rules, disruption_class)
        scanned = list(self._read.scanned(disruption_class))
        return Scan(
            tuple(candidate for candidate, _, _ in scanned if candidate is not None),
            tuple((node, against) for _, node, against in scanned if against is not None),
        )

    def blocked_notices(self, disruption_class: DisruptionClass) -> Sequence[Notice]:
        """A word about every managed node that is no candidate."""
        if self._read is None:
            return self.scan(disruption_class).notices()
        return self._read.blocked_notices(disruption_class)

    def judged(self, method: Method) -> tuple[tuple[Candidate, Obstruction | None], ...]:
        """All candidates, each with why the method would not take it."""
        found = self._judged.get(method.name)
        if found is None:
            candidates = self.scan(method.disruption_class).candidates
            found = self._judged[method.name] = tuple((one, method.obstruction(one)) for one in candidates)
        return found

    def ruled_out(self, method: Method) -> list[tuple[Candidate, Obstruction]]:
        """Candidates that a method would not take for a reason that users may want to know."""
        if self._read is not None:
            return self._read.ruled_out(method)
        return [(one, why) for one, why in self.judged(method) if why is not None and why.blocker not in UNTOLD]

    def candidates(self, method: Method) -> list[Candidate]:
        """The candidates that a method would take."""
        if self._read is not None:
            return self._read.candidates(method)
        return [one for one, obstruction in self.judged(method) if obstruction is None]

    def named_as(self, method: Method, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of them with the names of these, which were candidates before."""
        if self._read is not None:
            return self._read.named_as(method, candidates)
        names = {candidate.name for candidate in candidates}
        return [one for one in self.candidates(method) if one.name in names]

    def ranked(self, method: Method) -> list[Candidate]:
        """The same, the most money for the least disruption first."""
        if self._read is not None:
            return self._read.ranked(method)
        return sorted(self.candidates(method), key=lambda candidate: candidate.rank)

    def affordable(self, method: Method, at_most: int | None = None) -> list[Candidate]:
        """Those of them that budgets allow, or so many of those, the best first."""
        left = self.budget_left(method.reason)
        pools = self.pools_of(method)
        in_all = sum(left.get(pool, 0) for pool in pools)
        if at_most is not None:
            in_all = min(in_all, at_most)
        if self._read is not None and len(pools) == 1:
            return self._read.first(method, in_all)
        found: list[Candidate] = []
        for candidate in self._read.in_rank_order(method) if self._read is not None else self.ranked(method):
            if len(found) == in_all:
                break
            if left.get(candidate.pool.name, 0) > 0:
                left[candidate.pool.name] -= 1
                found.append(candidate)
        return found

    def count_affordable(self, method: Method) -> int:
        """How many that are."""
        left = self.budget_left(method.reason)
        return sum([min(left.get(pool, 0), count) for pool, count in self.pools_of(method).items()])

    def pools_of(self, method: Method) -> dict[str, int]:
        """The pools that have candidates for a method, and how many."""
        if self._read is not None:
            return self._read.count_by_pool(method)
        return Counter([candidate.pool.name for candidate in self.candidates(method)])

    def roster(self, method: Method) -> Roster | None:
        """The candidates as they come and go from view to view; None where nobody keeps a book."""
        return self._read.roster(method) if self._read is not None else None

    def count(self, method: Method) -> int:
        """How many candidates a method would take."""
        return self._read.count(method) if self._read is not None else len(self.candidates(method))

    @lazy
    def _counts(self) -> dict[str, PoolCount]:
        return count_nodes(self.nodes)

    def budgets(self, reason: Reason) -> dict[str, PoolBudget]:
        """What each pool allows."""
        found = self._budgets.get(reason)
        if found is None:
            if self._read is not None:
                found = self._read.budgets(self.pools, self.now_s, reason)
            else:
                found = budgets_of(self.pools, self._counts, self.now_s, reason)
            self._budgets[reason] = found
        return found

    def budget_left(self, reason: Reason) -> dict[str, int]:
        """How many more nodes of each pool may go; a new dict to count down."""
        return {pool: budget.left for pool, budget in self.budgets(reason).items()}

    @lazy
    def glimpse(self) -> Glimpse | None:
        """What can be told about candidates at little cost; None where nothing can."""
        return self.find_glimpse() if self.find_glimpse is not None else None

    @lazy
    def outlook(self) -> Outlook | None:
        """What can be told about candidates without a simulation; None where nothing can."""
        return self.find_outlook() if self.find_outlook is not None else None

    @lazy
    def totals(self) -> dict[str, PoolTotals]:
        """What pools cost in all, for the Balanced policy."""
        return pool_totals(
            self.scan(DisruptionClass.GRACEFUL).candidates,
            self.nodes,
            pool_costs(self.nodes, self.rules.types_of_pool) if self.pool_costs is None else self.pool_costs,
            reads_deletion_cost=not self.options.manages_pod_deletion_cost,
        )

    def totals_for(self, candidates: Iterable[Candidate]) -> Mapping[str, PoolTotals]:
        """The totals that scores of a move go by; nothing is counted where none of its pools is Balanced."""
        return self.totals if any(is_balanced(candidate.pool) for candidate in candidates) else {}

    @lazy
    def prices(self) -> PriceBook:
        """What instance types cost under requirements."""
        return PriceBook(self.well_known)
