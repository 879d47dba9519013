"""Attributes that are worked out when they are first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - it reads as a decorator, as ``property`` does
    """As ``functools.cached_property``, which takes a lock in Python 3.11 whenever something is worked out.

    Where two threads ask at the same time the value is worked out twice; so it must not matter which of them is kept.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        # Once it is there it is found in the instance before anybody comes here.
        found = instance.__dict__[self._name] = self._make(instance)
        return found
