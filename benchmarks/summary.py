"""One form for all results: a value, its anchor in the same run, their ratio, and the goal."""

from __future__ import annotations

import os

ENVIRONMENT = "HOLOKUBE_BENCH_SUMMARY"


def record(name: str, ours: float, anchor: float | None, unit: str, *, goal: str = "", met: bool | None = None) -> None:
    """Print a result, and add it to the summary of ``python -m benchmarks``."""
    ratio = "no anchor" if anchor is None else f"{ours / anchor:6.2f} x"
    shown = "-" if anchor is None else f"{anchor:,.4g}"
    verdict = "" if met is None else "  met" if met else "  MISSED"
    line = f"{name:<46} {ours:>10,.4g} {shown:>10} {unit:<8} {ratio:>10}  {goal}{verdict}"
    print(line, flush=True)
    path = os.environ.get(ENVIRONMENT)
    if path:
        with open(path, "a") as file:
            file.write(line + "\n")


def header(anchor: str) -> None:
    print(f"{'':<46} {'holokube':>10} {anchor[:10]:>10} {'':<8} {'ratio':>10}  goal", flush=True)
