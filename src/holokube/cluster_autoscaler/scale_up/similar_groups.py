"""The groups that may share a scale-up with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.similarity import Comparator
from holokube.cluster_autoscaler.scale_up.skipping import unsafe_reason


class SimilarGroups(NamedTuple):
    """Who is alike, and what keeps the others from it."""

    ids: tuple[str, ...] = ()
    others: Mapping[str, str] = {}
    """What tells each other group apart, or keeps it from taking part."""


def find_similar(
    group: GroupView, given: ScaleUpInput, pod_groups: Sequence[PodGroupReport], considered: frozenset[str]
) -> SimilarGroups:
    """The groups alike that could be enlarged now and run all the pods that this one could.

    ``considered`` are the groups whose fitness for the pods is known.
    """
    if not given.options.balance_similar_node_groups or group.options.zero_or_max_node_scaling:
        return SimilarGroups()
    runs = [pod_group for pod_group in pod_groups if group.id in pod_group.feasible_on]
    if not runs:
        return SimilarGroups()
    comparator = Comparator.of(given.options, given.provider_ignored_labels)
    found, others = [], {}
    for other in given.groups:
        if other.id == group.id:
            continue
        obstacle = _obstacle(group, other, given, comparator)
        if not obstacle and other.id not in considered:
            obstacle = "it was skipped"
        if not obstacle and not all(other.id in pod_group.feasible_on for pod_group in runs):
            obstacle = "it cannot run all the pods"
        if obstacle:
            others[other.id] = obstacle
        else:
            found.append(other.id)
    return SimilarGroups(tuple(found), others)


def _obstacle(group: GroupView, other: GroupView, given: ScaleUpInput, comparator: Comparator) -> str:
    template = given.templates.get(other.id)
    if template is None:
        return "it has no template"
    return comparator.difference(given.templates[group.id], template) or unsafe_reason(other, given.safety_of)
