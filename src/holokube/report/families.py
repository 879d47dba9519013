"""Workloads as a reader thinks of them: the hundred Jobs that one line of a scenario made are one thing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

NOBODY: Final = "nobody (paid for, not requested)"
"""What a cost without a workload is called."""

_NUMBERED: Final = re.compile(r"^(.*/(?:Job|Pod)/.*[^-/])-[0-9]+$", re.DOTALL)


def family(workload: str) -> str:
    """``ns/Job/report-*`` for ``ns/Job/report-00012``; other workloads are families of their own."""
    numbered = _NUMBERED.match(workload)
    return f"{numbered[1]}-*" if numbered else workload


def by_family(amounts: Mapping[str, float]) -> dict[str, float]:
    """Amounts by workload, added up."""
    found: dict[str, float] = {}
    for workload, amount in amounts.items():
        name = family(workload) if workload else NOBODY
        found[name] = found.get(name, 0.0) + amount
    return found
