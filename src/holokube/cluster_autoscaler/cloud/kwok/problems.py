"""What is wrong with templates and configuration: all of it is found and told at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from holokube.base.errors import ConfigError
from holokube.base.log import get_logger

_SHOWN = 10
_log = get_logger("holokube.cluster_autoscaler.kwok")


class Problems:
    """Collects errors, which forbid a start, and warnings, which do not."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def error(self, text: str) -> None:
        self.errors.append(text)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            _log.warning(text)

    def raise_errors(self, what: str, hint: str) -> None:
        """Raises what was found, if anything."""
        if not self.errors:
            return
        shown = self.errors[:_SHOWN]
        more = f"; and {len(self.errors) - _SHOWN} more" if len(self.errors) > _SHOWN else ""
        raise ConfigError(f"{what}: {'; '.join(shown)}{more}", hint=hint)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A suggestion to append to a message; empty if nothing is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
