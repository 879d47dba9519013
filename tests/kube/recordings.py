"""Reads the recorded answers of upstream's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson


def recorded(name: str) -> Any:
    return orjson.loads((Path(__file__).parent / "recorded" / f"{name}.json").read_bytes())
