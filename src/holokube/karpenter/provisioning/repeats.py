"""A solve of what was solved just before: while nodes come up, the same pods wait for them pass after pass."""

from __future__ import annotations

from holokube.base.identity import are_same
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results


class LastAnswer:
    """The last problem and its answer, which is that of the next problem if nothing in it is another object.

    For planners whose answer follows from the problem alone, its time excepted. An answer is never changed.
    """

    def __init__(self) -> None:
        self._last: tuple[Problem, Results] | None = None

    def find(self, problem: Problem) -> Results | None:
        """The answer, if it is known."""
        last = self._last
        return last[1] if last is not None and is_repeated(last[0], problem) else None

    def keep(self, problem: Problem, answer: Results) -> None:
        """Remembers an answer; one that was cut short is none to go by."""
        self._last = (problem, answer) if not answer.timed_out else None


def is_repeated(known: Problem, problem: Problem) -> bool:
    """Whether two problems are the same but for their time, and that does not matter.

    What there is much of is compared as objects: what has not changed is the very same.
    """
    return (
        known.state_nodes is problem.state_nodes
        and are_same(known.pods, problem.pods)
        and are_same(known.pools, problem.pools)
        and [*known.types_of_pool] == [*problem.types_of_pool]
        and are_same([*known.types_of_pool.values()], [*problem.types_of_pool.values()])
        and known.storage is problem.storage
        and known.options == problem.options
        # Who must not move to a node that has changed lately may do so later.
        and not problem.options.enforce_consolidate_after
        and known.well_known == problem.well_known
        and known.daemon_pods == problem.daemon_pods
        and known.pdbs == problem.pdbs
        and known.namespaces == problem.namespaces
        and known.services == problem.services
        and known.owners == problem.owners
        and known.volume_limits == problem.volume_limits
    )
