"""A policy: who decides how many nodes there are. It is a set of components like all others.

A new autoscaler is added by writing a class with these members; nobody who assembles a cluster has to know more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.runtime.app import Component
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Site:
    """What a cluster offers to the components of a policy."""

    clock: Clock
    connect: Callable[[str], Client]
    """Gives a client that goes by a name."""
    informers: InformerSet
    rng: Rng
    metrics: Metrics
    journal: Journal
    """Where decisions are told with their reasons."""


class Policy(Protocol):
    """Who decides how many nodes there are."""

    @property
    def name(self) -> str:
        """The value of ``--policy``."""

    async def prepare(self, clock: Clock, client: Client) -> None:
        """Puts onto the server what has to be there before anything runs."""

    def build(self, site: Site) -> list[Component]:
        """The components, not running yet; caches that they need are asked for here."""
