"""Durations of Karpenter's objects: Go's notation, or ``Never``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.kube.timeformat import TimeFormatError, parse_duration

NEVER: Final = "Never"


def duration_s(given: Mapping[str, Any], field: str, default_s: float | None = None) -> float | None:
    """Seconds; None for ``Never``. ValueError, naming the field, for what is no duration."""
    text = given.get(field)
    if text is None:
        return default_s
    if text == NEVER:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{field}: {text!r} is no duration; write it as text, such as 30m, 1h30m or Never")
    try:
        return parse_duration(text)
    except TimeFormatError as error:
        raise ValueError(f"{field}: {error}; write it like 30m, 1h30m or Never") from error
