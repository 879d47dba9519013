"""A plan that was decided on, and the second look at it: does it still hold in the cluster as it is by then?

Karpenter looks again by simulating anew and comparing. A search for the cheapest move would rather find another one, so
here the plan itself is held against the cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from holokube.karpenter.optimal.reading import Reading
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PodError, Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.solver import Solver
from holokube.kube.types import JsonObject

PLANS_REMEMBERED: Final = 32


@dataclass(slots=True, eq=False)
class PlanBook:
    """The last plan for nodes to go, by their names, and for which pods the ones before had a place."""

    gone: frozenset[str] = frozenset()
    results: Results | None = None
    _moving: deque[frozenset[str]] = field(default_factory=lambda: deque(maxlen=PLANS_REMEMBERED))

    def keep(self, gone: Collection[str], results: Results) -> None:
        """From now on this one."""
        self.gone, self.results = frozenset(gone), results
        placed = [*(claim.pods for claim in results.new_claims), *results.existing.values()]
        self._moving.append(frozenset(pod_key(pod) for pods in placed for pod in pods))

    def provides_for(self, pod: JsonObject) -> bool:
        """Whether a plan has a place for a pod that still runs on a node that is to go.

        A plan fits tighter than whoever looks at the same pods again, and would buy for them a second time.
        """
        is_bound = bool((pod.get("spec") or {}).get("nodeName"))
        return is_bound and any(pod_key(pod) in moving for moving in self._moving)


class PlanKeeper:
    """A simulator that answers for the nodes of the kept plan with the plan, as far as it holds."""

    def __init__(self, problem: Problem, book: PlanBook) -> None:
        self._problem = problem
        self._book = book
        self._simulation: Simulation | None = None

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        """What was planned; pods for which that is not possible any more are without a place."""
        kept = self._book.results
        if not is_consolidation or kept is None or frozenset(gone) != self._book.gone:
            if self._simulation is None:
                self._simulation = Simulation(self._problem)
            return self._simulation.simulate(gone, pods, is_consolidation=is_consolidation)
        broken = broken_pods(with_waiting(self._problem), kept, gone, pods)
        failed = {
            pod_key(pod): PodError(pod, "it would not find the place that was planned for it")
            for pod in pods
            if pod_key(pod) in broken
        }
        return replace(kept, failed=failed)


def broken_pods(
    problem: Problem, plan: Results, gone: Collection[str], pods: Sequence[JsonObject]
) -> set[str]:
    """Pods of nodes to go that would not run where a plan sends them, by ``namespace/name``."""
    nodes = [replace(node, is_marked=True) if node.name in gone else node for node in problem.state_nodes]
    reading = Reading(replace(problem, state_nodes=nodes, pods=list(pods)))
    keys = {pod_key(pod) for pod in pods}
    planned = [*(claim.pods for claim in plan.new_claims), *plan.existing.values()]
    placed = {pod_key(pod) for there in planned for pod in there}
    if placed != keys or reading.refused:
        # Pods have come or gone, so it is no longer the same question.
        return (keys - placed) | set(reading.refused) or keys
    crowded = reading.crowded_out(plan.existing)
    if crowded:
        return crowded
    return reading.wrong_pods(plan.new_claims, plan.existing)


def with_waiting(problem: Problem) -> Problem:
    """The problem with its pods where they are expected to go: room that they will take is nobody else's.

    Those who need a new node get it from the provisioner.
    """
    if not problem.pods:
        return problem
    waiting = Solver(replace(problem, options=replace(problem.options, timeout_s=None))).solve()
    placed = {pod_key(pod) for pods in waiting.existing.values() for pod in pods}
    nodes = []
    for node in problem.state_nodes:
        if node.is_marked_for_deletion:
            kept = tuple(pod for pod in node.pods if pod_key(pod) not in placed)
            nodes.append(replace(node, pods=kept) if len(kept) < len(node.pods) else node)
        elif waiting.existing.get(node.name):
            nodes.append(replace(node, pods=(*node.pods, *waiting.existing[node.name])))
        else:
            nodes.append(node)
    return replace(problem, state_nodes=nodes, pods=[])
