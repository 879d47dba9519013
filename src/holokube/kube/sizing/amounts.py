"""Whole units: thousandths of cores and bytes, how they are read, spread and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holokube.kube import quantity
from holokube.kube.quantity import Quantity
from holokube.kube.resources import CPU

LARGEST: Final = 2**63 - 1
"""The API counts resources in 64 bits."""

Written = str | int | float
"""A quantity as it stands in an object."""


def units_of(resource: str, written: Written) -> int:
    """The whole units in a quantity, rounded up as the API server does."""
    parsed = quantity.parse(written)
    return parsed.milli() if resource == CPU else parsed.value()


def units_within(resource: str, written: Quantity) -> int:
    """The whole units that do not exceed a quantity, which is not negative."""
    rounded_up = written.milli() if resource == CPU else written.value()
    exponent = -3 if resource == CPU else 0
    return rounded_up if Quantity(rounded_up, exponent) <= written else rounded_up - 1


def to_text(resource: str, units: int, like: Written) -> str:
    """The canonical text, with the suffixes of the text that it takes the place of."""
    before = quantity.parse(like)
    after = Quantity(units, -3 if resource == CPU else 0, before.format)
    # What has not changed is not to look changed either. Bytes that no binary suffix divides are a plain number, which
    # the API server reads as a decimal one: 1000000000 becomes 1G.
    return str(before) if after == before else quantity.canonical(str(after))


def spread(budget: int, weights: Sequence[int]) -> list[int]:
    """Share a budget in the proportion of the weights, to the last unit.

    By largest remainder: everybody gets the whole part of their share, and what is left goes to those who lost most
    by that, one unit each, the first of equals first. Weights that add up to the budget come out as they are.
    """
    total = sum(weights)
    if total <= 0 or min(weights) < 0 or budget < 0:
        raise ValueError(f"cannot share {budget} among weights {list(weights)}")
    parts = [budget * weight // total for weight in weights]
    by_loss = sorted(range(len(weights)), key=lambda i: (-(budget * weights[i] % total), i))
    for i in by_loss[: budget - sum(parts)]:
        parts[i] += 1
    return parts
