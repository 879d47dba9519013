"""Draws for random objects: small value pools, so that selectors meet labels often enough to matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holokube.base.rng import Rng
from tests.builders import JsonObject

T = TypeVar("T")

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
RACK = "example.com/rack"
ZONES = ("za", "zb", "zc")
NAMESPACES = ("parity-a", "parity-b", "parity-c")
APPS = ("web", "db", "cache")
TIERS = ("front", "back")
VERSIONS = ("v1", "v2")
TOPOLOGIES = (ZONE, HOSTNAME, RACK)


class Draws:
    """A stream of draws with the shapes that generators need."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def fork(self, name: str) -> Draws:
        return Draws(self.rng.fork(name))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one(self, values: Sequence[T]) -> T:
        return values[self.rng.randrange(len(values))]

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + self.rng.randrange(high - low + 1)

    def some(self, values: Sequence[T], low: int, high: int) -> list[T]:
        """Between low and high different values, in their order."""
        count = min(self.between(low, high), len(values))
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(self.rng.randrange(len(values)))
        return [values[index] for index in sorted(chosen)]

    def many(self, low: int, high: int, make: Callable[[], T]) -> list[T]:
        return [make() for _ in range(self.between(low, high))]


def pod_labels(draws: Draws) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, values in (("app", APPS), ("tier", TIERS), ("version", VERSIONS)):
        if draws.chance(0.75):
            labels[key] = draws.one(values)
    return labels


def label_selector(draws: Draws, *, avoid: Sequence[str] = ()) -> JsonObject:
    """A selector over pod labels that asks for none of the keys in ``avoid``."""
    pools = {"app": APPS, "tier": TIERS, "version": VERSIONS}
    keys = [key for key in pools if key not in avoid]
    selector: JsonObject = {}
    key = draws.one(keys)
    if draws.chance(0.6):
        selector["matchLabels"] = {key: draws.one(pools[key])}
    if draws.chance(0.45) or not selector:
        key = draws.one(keys)
        selector["matchExpressions"] = [set_expression(draws, key, pools[key])]
    return selector


def set_expression(draws: Draws, key: str, values: Sequence[str]) -> JsonObject:
    operator = draws.one(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    expression: JsonObject = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = draws.some(values, 1, 2)
    return expression


def namespace_labels(draws: Draws, name: str) -> dict[str, str]:
    labels = {"kubernetes.io/metadata.name": name}
    if draws.chance(0.7):
        labels["team"] = draws.one(("red", "blue"))
    if draws.chance(0.4):
        labels["env"] = draws.one(("prod", "test"))
    return labels


def namespace_selector(draws: Draws) -> JsonObject:
    if draws.chance(0.25):
        return {}
    if draws.chance(0.5):
        return {"matchLabels": {"team": draws.one(("red", "blue"))}}
    key, values = draws.one((("team", ("red", "blue")), ("env", ("prod", "test"))))
    return {"matchExpressions": [set_expression(draws, key, values)]}


def without_empty(obj: dict[str, Any]) -> JsonObject:
    """The same without values that say nothing."""
    return {key: value for key, value in obj.items() if value not in ({}, [], None, "")}
