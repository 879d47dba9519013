"""Finds selectors and the labels they select without trying every pair.

Nearly every selector asks for some label to have one value; that value is looked up. Only the others are tried on all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from holokube.karpenter.scheduling.topology_specs import GroupSpec, LabelSet
from holokube.kube.selectors import LabelSelector

T = TypeVar("T")


def _exact(selector: LabelSelector) -> tuple[str, str] | None:
    """A label and the one value that the selector insists on."""
    for requirement in selector.requirements:
        value = selector.required_value(requirement.key)
        if value is not None:
            return requirement.key, value
    return None


class SpecIndex(Generic[T]):
    """Group specs, each with something that belongs to it, to be found by the labels they select."""

    __slots__ = ("_by_label", "_others")

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[tuple[GroupSpec, T]]] = {}
        self._others: list[tuple[GroupSpec, T]] = []

    def add(self, spec: GroupSpec, item: T) -> None:
        """Put one in."""
        exact = _exact(spec.selector)
        (self._others if exact is None else self._by_label.setdefault(exact, [])).append((spec, item))

    def selecting(self, labels: LabelSet) -> Iterator[T]:
        """What belongs to the specs that select pods with these labels."""
        for spec, item in self._others:
            if spec.selects(labels):
                yield item
        for label in labels.labels.items():
            for spec, item in self._by_label.get(label, ()):
                if spec.selects(labels):
                    yield item


class LabelIndex:
    """Sets of labels, to be found by the specs that count them."""

    __slots__ = ("_all", "_by_label")

    def __init__(self, sets: Iterable[LabelSet] = ()) -> None:
        self._all: list[LabelSet] = []
        self._by_label: dict[tuple[str, str], list[LabelSet]] = {}
        for labels in sets:
            self._all.append(labels)
            for label in labels.labels.items():
                self._by_label.setdefault(label, []).append(labels)

    def counted_by(self, spec: GroupSpec) -> Iterator[LabelSet]:
        """Labels of pods that were there before and count for a group."""
        exact = _exact(spec.count_selector)
        for labels in self._all if exact is None else self._by_label.get(exact, ()):
            if spec.counts_bound(labels):
                yield labels
