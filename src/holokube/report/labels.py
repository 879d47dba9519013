"""What to call the runs of a report: short, and different from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holokube.lab.results import RunResult


def labels_of(results: Sequence[RunResult]) -> list[str]:
    """The policy's name; with scenario and seed where that alone is not enough, and a number as a last resort."""
    labels = [result.policy or "run" for result in results]
    for attribute in ("scenario", "seed"):
        if len({getattr(result, attribute) for result in results}) > 1:
            twice = {label for label, times in Counter(labels).items() if times > 1}
            labels = [
                f"{label}, {_said(attribute, result)}" if label in twice else label
                for label, result in zip(labels, results, strict=True)
            ]
    met: Counter[str] = Counter()
    taken = set(labels)
    different = []
    for label in labels:
        met[label] += 1
        while met[label] > 1 and f"{label} #{met[label]}" in taken:
            met[label] += 1
        different.append(label if met[label] == 1 else f"{label} #{met[label]}")
    return different


def _said(attribute: str, result: RunResult) -> str:
    return result.scenario if attribute == "scenario" else f"seed {result.seed}"
