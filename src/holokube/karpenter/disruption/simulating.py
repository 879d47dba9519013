"""What would become of pods if nodes went: the part of a simulation that is not the solver's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from holokube.karpenter.disruption import pods as pod_kinds
from holokube.karpenter.scheduling.results import Results
from holokube.kube.types import JsonObject

_ERRORS_SHOWN: Final = 5


class Simulator(Protocol):
    """Places the pods of nodes that would go, together with all that look for a place anyway."""

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        """Where pods would go without the nodes named ``gone``.

        ``pods`` are those of the nodes that have to move; pending pods and those of nodes being deleted are added by
        the simulator. Consolidation keeps off nodes that pods have just come to or gone from.
        """


def failures(results: Results) -> dict[str, str]:
    """Pods that would lose their place, and why; those that have none now may stay without."""
    failed = results.failed_except(pod_kinds.is_provisionable)
    return {key: error.reason for key, error in failed.items()}


def describe(reasons: Mapping[str, str]) -> str:
    """A sentence about pods without a place, not longer than people read."""
    shown = [f"{key} => {reason}" for key, reason in islice(reasons.items(), _ERRORS_SHOWN)]
    more = len(reasons) - len(shown)
    return f"Not all pods would schedule, {', '.join(shown)}{f' and {more} other(s)' if more > 0 else ''}"
