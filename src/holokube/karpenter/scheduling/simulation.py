"""Where pods would go without some nodes. Made ready once, then asked for any choice of nodes.

Each question starts from copies of a few arrays, and counts what moves off them; nothing of an answer remains.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from holokube.base.lazy import lazy
from holokube.karpenter.scheduling.census import uid_of
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.headroom import Headroom
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PodError, Results
from holokube.karpenter.scheduling.solve_run import SolveRun, queued
from holokube.karpenter.scheduling.solver import results_of
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject


class Simulation:
    """A problem whose ``pods`` look for a place anyway: pending ones, and those of nodes that are being deleted.

    In contrast to provisioning, pods do not wait for reserved capacity, nothing runs out of time, and a place on a node
    that has not come up yet does not count.
    """

    def __init__(self, problem: Problem) -> None:
        self._given = problem
        standing = problem.standing.ground(problem) if problem.standing is not None else None
        self._is_standing = standing is not None
        self.ground = standing or Groundwork(
            problem, [pod for node in problem.active_nodes for pod in node.pods]
        )
        going = {node.node_name for node in problem.leaving_nodes}
        self._deleting = going - {""}

    @lazy
    def problem(self) -> Problem:
        """What is simulated; made when the first simulation is asked for, since most passes go by counting alone."""
        given = self._given
        return replace(given, options=replace(given.options, reserved_mode="fallback", timeout_s=None))

    @lazy
    def headroom(self) -> Headroom | None:
        """What can be told by counting; None where each question takes a simulation."""
        if not self._is_standing:
            return None
        return Headroom(self.ground, self._given.now_s, frozenset(self._deleting))

    def simulate(
        self, gone: Collection[str], pods: Sequence[JsonObject] = (), *, is_consolidation: bool = True
    ) -> Results:
        """Where the problem's pods and ``pods`` would go without the nodes named ``gone``.

        ``pods`` are those of the nodes that have to move. Consolidation keeps them off nodes that pods have just come
        to or gone from. ValueError if a node is not there, or is being deleted already.
        """
        ground = self.ground
        rows = []
        for name in gone:
            row = ground.nodes.rows.get(name)
            if row is None:
                raise ValueError(f"node {name} cannot be left out: it is unknown, or marked for deletion already")
            rows.append(row)
        known = {uid_of(pod) for pod in ground.pods}
        moving = [ground.defaults.applied(pod) for pod in pods if uid_of(pod) not in known]
        waiting, refused = queued(ground, [*ground.pods, *moving], self._is_moving if is_consolidation else None)
        run = SolveRun(ground, waiting, rows, [uid_of(pod) for pod in moving], self.problem.options)
        run.run()
        results = results_of(ground, run, refused)
        self._refuse_unready(results)
        return results

    def _is_moving(self, pod: JsonObject) -> bool:
        status: dict[str, Any] = pod.get("status") or {}
        return status.get("phase") != "Pending" and (pod.get("spec") or {}).get("nodeName", "") not in self._deleting

    def _refuse_unready(self, results: Results) -> None:
        """A plan must not count on nodes that may never come up, except for pods that are on their way there."""
        for name, pods in results.existing.items():
            node = self.ground.nodes.nodes[self.ground.nodes.rows[name]]
            if node.is_initialized:
                continue
            for pod in pods:
                if (pod.get("spec") or {}).get("nodeName", "") not in self._deleting:
                    results.failed[pod_key(pod)] = PodError(pod, why_not_counted(node))


def why_not_counted(node: StateNode) -> str:
    """Why a place on a node that has not come up is none."""
    names = [f"{kind}/{name}" for kind, name in (("nodeclaim", node.claim_name), ("node", node.node_name)) if name]
    return f"would schedule against uninitialized {', '.join(names)}"
