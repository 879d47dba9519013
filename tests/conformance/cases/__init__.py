"""Every case of the table, gathered from the files of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

from tests.conformance.model import Case


def _gather() -> list[Case]:
    cases: list[Case] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        cases.extend(importlib.import_module(f"{__name__}.{module.name}").cases)
    count = Counter(case.id for case in cases)
    twice = sorted(name for name, times in count.items() if times > 1)
    if twice:
        raise ValueError(f"two cases share an id: {', '.join(twice)}")
    return cases


ALL_CASES = _gather()
