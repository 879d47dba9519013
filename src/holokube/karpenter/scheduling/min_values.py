"""``minValues``: how many different values of a label must stay possible."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.kube.requirements import Requirements
from holokube.pricing.instance_types import InstanceType


def unmet_min_values(types: Sequence[InstanceType], requirements: Requirements) -> dict[str, int]:
    """Keys that have too few values among ``types``, and how many they have; empty if all is well.

    Only values that the requirement still allows count. Nothing is unmet where there are no types.
    """
    return needed_types(types, requirements)[1]


def needed_types(types: Sequence[InstanceType], requirements: Requirements) -> tuple[int, dict[str, int]]:
    """How many of ``types``, from the first, satisfy every ``minValues``; and the keys that none of them do."""
    wanted = [requirement for requirement in requirements.values() if requirement.min_values is not None]
    if not wanted:
        return 0, {}
    values: dict[str, set[str]] = {requirement.key: set() for requirement in wanted}
    unmet: dict[str, int] = {}
    for position, one in enumerate(types):
        for requirement in wanted:
            found = values[requirement.key]
            found.update(value for value in one.requirements.of(requirement.key).values if requirement.has(value))
        unmet = {r.key: len(values[r.key]) for r in wanted if len(values[r.key]) < (r.min_values or 0)}
        if not unmet:
            return position + 1, {}
    return len(types), unmet
