"""Runs many cases on one server at once and compares outcomes."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .model import Case
from .target import CaseRun, Outcome, Target

RECORDED = Path(__file__).parent / "recorded"
CONCURRENCY = 16


async def run_cases(
    target: Target, cases: Sequence[Case], *, run_id: str, concurrency: int = CONCURRENCY
) -> dict[str, Outcome]:
    """Every case's outcome by its id; `run_id` keeps the names of two runs on one server apart."""
    limit = asyncio.Semaphore(concurrency)
    outcomes: dict[str, Outcome] = {}

    run_number = zlib.crc32(run_id.encode()) & 0xFFFF

    async def one(number: int, case: Case) -> None:
        unique = f"u{run_number:04x}{number:04x}"
        async with limit:
            outcomes[case.id] = await CaseRun(session, target, case, unique).run()

    async with target.session(concurrency) as session:
        await asyncio.gather(*(one(number, case) for number, case in enumerate(cases)))
    return outcomes


def differences(expected: Sequence[Any], actual: Sequence[Any]) -> list[str]:
    """Where two lists of answers differ, one line each, as `step: path: expected ... got ...`."""
    result: list[str] = []
    for index in range(max(len(expected), len(actual))):
        if index >= len(actual):
            result.append(f"{expected[index]['step']}: no answer")
        elif index >= len(expected):
            result.append(f"{actual[index]['step']}: not recorded")
        else:
            result.extend(
                f"{expected[index]['step']}: {line}" for line in _diff("", expected[index], actual[index])
            )
    return result


def _diff(path: str, expected: Any, actual: Any) -> Iterable[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            yield from _diff(
                f"{path}.{key}" if path else key, expected.get(key, "<absent>"), actual.get(key, "<absent>")
            )
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from _diff(f"{path}[{index}]", left, right)
    elif expected != actual or type(expected) is not type(actual):
        yield f"{path}: expected {_short(expected)} got {_short(actual)}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 400 else text[:400] + "..."


def load_recorded() -> dict[str, list[Any]]:
    """The answers of a real kube-apiserver by case id."""
    result: dict[str, list[Any]] = {}
    for path in sorted(RECORDED.glob("*.json")):
        result.update(json.loads(path.read_text()))
    return result


def save_recorded(cases: Sequence[Case], outcomes: dict[str, Outcome], still_there: set[str]) -> None:
    """Replaces the recordings of these cases, and drops those of cases that are no longer in the table."""
    by_topic: dict[str, dict[str, list[Any]]] = {}
    for case in cases:
        by_topic.setdefault(case.topic, {})[case.id] = outcomes[case.id].answers
    for topic, answers in by_topic.items():
        path = RECORDED / f"{topic}.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        kept = {name: old for name, old in before.items() if name in still_there} | answers
        # One line per answer keeps the files small and their changes readable.
        parts = [f"{json.dumps(name)}: [\n{_lines(kept[name])}\n]" for name in sorted(kept)]
        path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(answers: list[Any]) -> str:
    return ",\n".join("  " + json.dumps(answer, sort_keys=True) for answer in answers)
