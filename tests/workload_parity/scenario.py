"""A scenario: a name, and a script that plays on a stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.workload_parity.stage import Stage

Script = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Its name is also that of the namespace it plays in."""

    name: str
    play: Script


class Topic:
    """Collects the scenarios of one module; the topic is the name of their recording."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scenarios: list[Scenario] = []

    def __call__(self, script: Script) -> Script:
        self.scenarios.append(Scenario(script.__name__.replace("_", "-"), script))
        return script
