"""How a scale-up can end."""

from __future__ import annotations

from enum import Enum


class ScaleUpResult(Enum):
    """Upstream's names."""

    SUCCESSFUL = "Successful"
    ERROR = "Error"
    NO_OPTIONS_AVAILABLE = "NoOptionsAvailable"
    NOT_NEEDED = "NotNeeded"
    NOT_TRIED = "NotTried"
    IN_COOLDOWN = "InCooldown"
    LIMITED_BY_MAX_NODES_TOTAL = "LimitedByMaxNodesTotal"

    def __str__(self) -> str:
        return f"ScaleUp{self.value}"
