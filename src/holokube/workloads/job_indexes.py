"""Sets of completion indexes in the text form of the API: ``1,3-5,7``."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str | None, completions: int) -> set[int]:
    """The indexes below ``completions``; parts that are not understood are left out."""
    indexes: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()):
            end = int(last) if dash else int(first)
            indexes.update(range(int(first), min(end, completions - 1) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    """Runs of three and more are written with a dash."""
    parts: list[str] = []
    run: list[int] = []

    def end_run() -> None:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(str, run))

    for index in sorted(indexes):
        if run and index != run[-1] + 1:
            end_run()
            run = []
        run.append(index)
    end_run()
    return ",".join(parts)
