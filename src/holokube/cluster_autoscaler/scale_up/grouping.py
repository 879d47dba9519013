"""What an estimate needs to know of pods that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holokube.kube.types import JsonObject


class PodGroup(Protocol):
    """Pods of one controller that are equal to the scheduler; there is at least one."""

    @property
    def pods(self) -> Sequence[JsonObject]:
        """The pods, in the order in which they are placed."""
