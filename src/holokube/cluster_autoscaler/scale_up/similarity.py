"""Whether two node groups are alike enough to share a scale-up, and if not, what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector, parse_resources
from holokube.packing.podclass import requests_of

BASIC_IGNORED_LABELS: Final = frozenset({
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
})  # fmt: skip
"""Labels that differ between groups which are otherwise the same."""

# What the scheduler sums up for every node, whether a pod asks for it or not.
_ALWAYS_SUMMED: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Comparator:
    """The rule by which groups are alike."""

    ignored_labels: frozenset[str] = BASIC_IGNORED_LABELS
    compared_labels: tuple[str, ...] = ()
    """If there are any, groups are alike that agree in these, and nothing else counts."""
    memory_ratio: float = 0.015
    allocatable_ratio: float = 0.05
    free_ratio: float = 0.05

    @classmethod
    def of(cls, options: AutoscalerOptions, provider_labels: Iterable[str] = ()) -> Comparator:
        """The rule that the flags ask for; ``provider_labels`` are those of the cloud that mean nothing."""
        return cls(
            ignored_labels=BASIC_IGNORED_LABELS | set(provider_labels) | set(options.balancing_ignore_label),
            compared_labels=options.balancing_label,
            memory_ratio=options.memory_difference_ratio,
            allocatable_ratio=options.max_allocatable_difference_ratio,
            free_ratio=options.max_free_difference_ratio,
        )

    def difference(self, one: NodeInfo, other: NodeInfo) -> str:
        """What tells two nodes apart; empty if they are alike."""
        if self.compared_labels:
            return _label_difference(one, other, self.compared_labels)
        return (
            self._capacity_difference(one, other)
            or _beyond(_allocatable(one), _allocatable(other), self.allocatable_ratio, "allocatable")
            or _beyond(_free(one), _free(other), self.free_ratio, "free")
            or self._other_labels(one, other)
        )

    def _capacity_difference(self, one: NodeInfo, other: NodeInfo) -> str:
        a, b = _amounts(one, "capacity"), _amounts(other, "capacity")
        for name in sorted(a.keys() | b.keys()):
            if name not in a or name not in b:
                return f'missing capacity "{name}"'
            if name == MEMORY:
                if not _is_within(a[name], b[name], self.memory_ratio):
                    return f"memory not within tolerance: {_apart(a[name], b[name])} apart"
            elif a[name] != b[name]:
                return f'capacity resource "{name}" does not match'
        return ""

    def _other_labels(self, one: NodeInfo, other: NodeInfo) -> str:
        a, b = _labels(one), _labels(other)
        for name in sorted((a.keys() | b.keys()) - self.ignored_labels):
            if a.get(name) != b.get(name):
                return f'label "{name}" does not match'
        return ""


def _label_difference(one: NodeInfo, other: NodeInfo, names: Iterable[str]) -> str:
    a, b = _labels(one), _labels(other)
    for name in names:
        if name not in a or name not in b:
            return f'label "{name}" is missing'
        if a[name] != b[name]:
            return f'label "{name}" does not match'
    return ""


def _labels(info: NodeInfo) -> Mapping[str, str]:
    return info.node["metadata"].get("labels") or {}


def _amounts(info: NodeInfo, which: str) -> ResourceVector:
    return parse_resources((info.node.get("status") or {}).get(which))


def _allocatable(info: NodeInfo) -> ResourceVector:
    return _amounts(info, "allocatable")


def _free(info: NodeInfo) -> ResourceVector:
    """What is left of each resource that is summed up, once the pods of the template are there."""
    allocatable = _allocatable(info)
    taken: ResourceVector = dict.fromkeys(_ALWAYS_SUMMED, 0)
    for pod in info.pods:
        for name, milli in requests_of(pod).items():
            # The number of pods is compared by what the node allows, not by what is on it.
            if name != PODS:
                taken[name] = taken.get(name, 0) + milli
    return {name: allocatable.get(name, 0) - milli for name, milli in taken.items()}


def _beyond(a: ResourceVector, b: ResourceVector, ratio: float, what: str) -> str:
    for name in sorted(a.keys() | b.keys()):
        if name not in a or name not in b:
            return f'{what} resources not within tolerance: "{name}" is on one side only'
        if not _is_within(a[name], b[name], ratio):
            return f'{what} resources not within tolerance: "{name}" {_apart(a[name], b[name])} apart'
    return ""


def _is_within(a: int, b: int, ratio: float) -> bool:
    larger, smaller = float(max(a, b)), float(min(a, b))
    return larger - smaller <= larger * ratio


def _apart(a: int, b: int) -> str:
    larger = max(a, b)
    return f"{(larger - min(a, b)) / larger:.2%}" if larger > 0 else "a sign"
