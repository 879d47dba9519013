"""The policy ``optimal``: a plan near the cheapest, a price that no plan can be below, and the gap between the two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from holokube.karpenter.optimal.dominance import useful_bins
from holokube.karpenter.optimal.model import PackingModel
from holokube.karpenter.optimal.reading import Placements, Reading
from holokube.karpenter.optimal.resource_bound import resource_bound
from holokube.karpenter.optimal.search import PROVEN_GAP, QUICK, Effort, Search, Status, gap_of
from holokube.karpenter.optimal.solver_library import INFINITY, load
from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PlannedClaim, Results
from holokube.karpenter.scheduling.solver import Solver
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType


@dataclass(frozen=True, slots=True)
class Bound:
    """No plan that places the pods costs less."""

    price_usd_per_hour: float
    how: str
    """What proves it: resources (enough of everything must be bought), whole nodes (in whole nodes), patterns (by
    what fits on nodes)."""

    def gap(self, price_usd_per_hour: float) -> float:
        """By which share a plan of this price may be dearer than the cheapest."""
        return gap_of(price_usd_per_hour, self.price_usd_per_hour)


@dataclass(frozen=True, slots=True, eq=False)
class OptimalPlan:
    """Claims to make, pods for nodes that are there, what it costs, and what it must cost at least."""

    claims: list[PlannedClaim]
    existing: dict[str, list[JsonObject]]
    """Pods by the name of the state node."""
    errors: dict[str, str]
    """Why pods have no place, by ``namespace/name``."""
    price_usd_per_hour: float
    bound: Bound
    status: Status
    found_by: str = field(default="search")
    """``search``, or ``solver`` where Karpenter's own way was better."""

    @property
    def gap(self) -> float:
        """By which share the plan may be dearer than the cheapest one for the pods that it places."""
        return self.bound.gap(self.price_usd_per_hour)


def lower_bound(
    problem: Problem,
    *,
    placed: Collection[str] | None = None,
    effort: Effort = QUICK,
    seconds_left: Callable[[], float] = lambda: INFINITY,
) -> Bound:
    """What the pods cost at least, whoever places them; only those in ``placed`` (``namespace/name``), if given.

    Pods that no node could ever take are left out. A plan that leaves pods pending is to be measured by the pods it
    places, or it would look cheaper than it is.
    """
    load()
    if placed is not None:
        problem = replace(problem, pods=[pod for pod in problem.pods if pod_key(pod) in placed])
    search = Search(Reading(problem).bound_model(), effort, seconds_left=seconds_left)
    search.prove()
    return Bound(search.bound, search.how)


def mixture_bounds(problem: Problem, mixtures: Iterable[Mapping[int, int]], *, effort: Effort = QUICK) -> list[float]:
    """What each mixture of the problem's pods costs at least in an hour.

    A mixture says how often it has the pod at a place of the problem's list. What can be bought is read only once.
    """
    load()
    reading = Reading(problem)
    model, classes = reading.bound_model(), reading.bound_places
    found = []
    for mixture in mixtures:
        counts = np.array([sum(mixture.get(place, 0) for place in places) for places in classes], dtype=np.int64)
        there = np.flatnonzero(counts)
        mixed = model.of_classes(there, counts[there], model.max_counts, model.limit_totals)
        found.append(Search(mixed, effort).prove() if len(there) else 0.0)
    return found


def plan(
    problem: Problem,
    *,
    limit_s: float | None = None,
    monotonic: Callable[[], float] | None = None,
    effort: Effort | None = None,
) -> OptimalPlan:
    """The best plan found with this effort, or until ``limit_s`` has passed on the clock ``monotonic``.

    Wishes (preferred terms, ScheduleAnyway) and weights of pools are no constraints here. Without a limit the plan
    depends on nothing but the problem and the effort.
    """
    return without_pauses(planning(problem, _timer(limit_s, monotonic), effort or Effort()))


def planning(problem: Problem, seconds_left: Callable[[], float], effort: Effort) -> Steps[OptimalPlan]:
    """The same step by step."""
    load()
    reading = Reading(problem)
    yield
    bound_model = reading.bound_model()
    model = reading.plan_model()
    if effort.is_narrow:
        bound = Bound(resource_bound(bound_model.of_bins(useful_bins(bound_model))).price, "resources")
        yield
        found = yield from Search(
            reading.narrowed(model), effort, seconds_left=seconds_left, known_bound=bound.price_usd_per_hour
        ).steps()
    elif reading.is_plain and _is_same(model, bound_model):
        found = yield from Search(model, effort, seconds_left=seconds_left).steps()
        bound = Bound(found.bound, found.how)
    else:
        prover = Search(bound_model, replace(effort, whole_nodes=QUICK.whole_nodes), seconds_left=seconds_left)
        prover.prove()
        bound = Bound(prover.bound, prover.how)
        found = yield from Search(
            model, effort, seconds_left=seconds_left, known_bound=bound.price_usd_per_hour
        ).steps()
    yield
    mine = reading.without_wrong(reading.placements(found.packing))
    errors = reading.errors(mine)
    results = yield from _by_solver(problem, seconds_left)
    theirs = reading.without_wrong(_as_placements(results))
    their_errors = {**reading.errors(theirs), **results.errors}
    found_by = "search"
    rank, their_rank = (len(errors), mine.price_usd_per_hour), (len(their_errors), theirs.price_usd_per_hour + 1e-9)
    if not results.timed_out and their_rank < rank and reading.is_within_limits(theirs.claims):
        mine, errors, found_by = theirs, their_errors, "solver"
    price = mine.price_usd_per_hour
    if len(errors) > len(reading.hopeless):
        bound = _bound_of_placed(problem, set(errors), seconds_left)
    return OptimalPlan(
        mine.claims, mine.existing, errors, price, bound, _status(effort, price, bound, errors, reading), found_by
    )


def _status(
    effort: Effort, price: float, bound: Bound, errors: Collection[str], reading: Reading
) -> Status:
    if len(errors) > len(reading.hopeless) or bound.gap(price) > max(effort.target_gap, PROVEN_GAP):
        return "limit"
    return "optimal" if bound.gap(price) <= PROVEN_GAP else "good"


def _as_placements(results: Results) -> Placements:
    return Placements(results.new_claims, results.existing, [])


def _timer(limit_s: float | None, monotonic: Callable[[], float] | None) -> Callable[[], float]:
    if limit_s is None:
        return lambda: INFINITY
    if monotonic is None:
        raise ValueError("a time limit needs the clock that it is measured by: pass monotonic as well")
    end_s = monotonic() + limit_s
    return lambda: end_s - monotonic()


def _is_same(one: PackingModel, other: PackingModel) -> bool:
    """Whether a bound for one holds for the other: plans may only be more restricted by what both know."""
    return bool(
        one.allowed.shape == other.allowed.shape
        and (one.allowed == other.allowed).all()
        and one.limit_totals.shape == other.limit_totals.shape
        and one.conflicts is None
    )


def _by_solver(problem: Problem, seconds_left: Callable[[], float]) -> Steps[Results]:
    """What Karpenter's own way gives, wishes left aside.

    It counts on reserved places that another claim may take, so that its prices may not come true: without them.
    """
    relaxed = replace(
        problem,
        options=replace(problem.options, preference_policy="Ignore"),
        types_of_pool={pool: [_unreserved(one) for one in types] for pool, types in problem.types_of_pool.items()},
    )
    return Solver(relaxed).steps(is_late=lambda: seconds_left() <= 0)


def _unreserved(one: InstanceType) -> InstanceType:
    if not any(offering.is_reserved for offering in one.offerings):
        return one
    return one.with_offerings(offering for offering in one.offerings if not offering.is_reserved)


def _bound_of_placed(problem: Problem, unplaced: Collection[str], seconds_left: Callable[[], float]) -> Bound:
    placed = {pod_key(pod) for pod in problem.pods} - set(unplaced)
    return lower_bound(problem, placed=placed, seconds_left=seconds_left)
