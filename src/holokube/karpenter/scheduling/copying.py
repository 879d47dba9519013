"""Copies of objects that are carried on from moment to moment."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def shallow(thing: T) -> T:
    """As ``copy.copy`` for an object without slots; that takes several times as long, because it may be anything."""
    made: T = object.__new__(type(thing))
    made.__dict__.update(thing.__dict__)
    return made
