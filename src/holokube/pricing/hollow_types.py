"""What every instance type of the hollow provider has: room for pods, labels for its size, and overhead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from holokube.kube.resources import CPU, MEMORY, PODS, ResourceVector
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements
from holokube.pricing.size_labels import size_labels

DEFAULT_PODS: Final = 110
"""The kubelet's own limit where a catalogue says nothing."""
OVERHEAD: Final[Mapping[str, int]] = {CPU: 100, MEMORY: 10 * 2**20 * 1000}
"""What every hollow node keeps for itself: 100m cpu and 10Mi memory."""


def hollow_type(
    name: str,
    architecture: str,
    operating_systems: Sequence[str],
    resources: ResourceVector,
    offerings: Iterable[Offering],
    labels: Mapping[str, str] | None = None,
) -> InstanceType:
    """An instance type of the hollow provider."""
    capacity = {PODS: DEFAULT_PODS * 1000, **resources}
    places = tuple(offerings)
    all_labels = {**size_labels(name, capacity), **(labels or {})}
    requirements = type_requirements(name, architecture, operating_systems, places, all_labels)
    return InstanceType(name, requirements, capacity, dict(OVERHEAD), places)
