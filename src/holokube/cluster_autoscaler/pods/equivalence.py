"""Pods of one controller that are equal to a scheduler, put together: what holds for one of them holds for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holokube.cluster_autoscaler.pods.kinds import PodKind, PodKinds
from holokube.kube.types import JsonObject

MOST_GROUPS_PER_CONTROLLER: Final = 10


@dataclass(slots=True)
class PodEquivalenceGroup:
    """See the module. There is at least one pod."""

    pods: list[JsonObject]
    """In the order they were given."""

    @property
    def exemplar(self) -> JsonObject:
        """The pod that speaks for all."""
        return self.pods[0]


def build_equivalence_groups(pods: Iterable[JsonObject], kinds: PodKinds | None = None) -> list[PodEquivalenceGroup]:
    """Group pods, in the order in which the first of each group came; upstream's order is random.

    Of a controller whose pods are all different only the first groups grow: any further odd pod stands alone, as do
    pods without a controller and daemons. ``kinds`` may remember pods that were seen before.
    """
    kinds = PodKinds() if kinds is None else kinds
    groups: list[PodEquivalenceGroup] = []
    by_controller: dict[str, dict[PodKind, PodEquivalenceGroup]] = {}
    for facts in map(kinds.facts_of, pods):
        if facts.controller is None or facts.is_daemon:
            groups.append(PodEquivalenceGroup([facts.pod]))
            continue
        of_controller = by_controller.get(facts.controller)
        if of_controller is None:
            of_controller = by_controller[facts.controller] = {}
        group = of_controller.get(facts.kind)
        if group is not None:
            group.pods.append(facts.pod)
            continue
        group = PodEquivalenceGroup([facts.pod])
        groups.append(group)
        if len(of_controller) < MOST_GROUPS_PER_CONTROLLER:
            of_controller[facts.kind] = group
    return groups
