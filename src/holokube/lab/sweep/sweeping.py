"""A sweep: what is done already is taken, the rest is run, and all of it comes back in the order of the grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from holokube.lab.result_files import result_from_json
from holokube.lab.results import MEASURES, RESULT_VERSION, RunResult
from holokube.lab.sweep.folder import SweepFolder
from holokube.lab.sweep.processes import Finished
from holokube.lab.sweep.tasks import Task


class Runner(Protocol):
    """Processes here, or a cluster."""

    def run(self, tasks: Sequence[Task], on_start: Callable[[int], None]) -> Iterator[Finished]:
        """Results as they come, by the place of their task."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run of a sweep."""

    task: Task
    result: RunResult | None
    """Without nodes, pods and decisions, which only files keep."""
    error: str = ""
    reused: bool = False
    """It was done before."""
    tries: int = 1


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is."""

    done: int
    failed: int
    reused: int
    running: int
    total: int
    last: Row | None
    """What has just been finished."""

    @property
    def left(self) -> int:
        """How many are neither done nor failed."""
        return self.total - self.done - self.failed


OnProgress = Callable[[SweepProgress], None]


def sweep(
    tasks: Sequence[Task],
    runner: Runner,
    folder: SweepFolder | None = None,
    on_progress: OnProgress = lambda _: None,
) -> list[Row]:
    """A row for each task, in their order. Equal tasks are run once."""
    keys = [task.key for task in tasks]
    rows: dict[str, Row] = {}
    missing: dict[str, Task] = {}
    for key, task in zip(keys, tasks, strict=True):
        known = folder.load(key) if folder is not None else None
        if known is not None:
            rows[key] = Row(task, slim(known), reused=True)
        else:
            missing.setdefault(key, task)
    teller = _Teller(len(rows) + len(missing), len(rows), on_progress)
    order = list(missing)
    with closing(_started(runner, list(missing.values()), teller)) as finished:
        for one in finished:
            key = order[one.number]
            if folder is not None and one.result:
                folder.save(key, one.result)
            rows[key] = _row(missing[key], one)
            teller.ended(rows[key])
    return [dataclasses.replace(rows[key], task=task) for key, task in zip(keys, tasks, strict=True)]


def _started(runner: Runner, tasks: Sequence[Task], teller: _Teller) -> Generator[Finished, None, None]:
    if tasks:
        yield from runner.run(tasks, teller.started)


def _row(task: Task, finished: Finished) -> Row:
    if not finished.result:
        return Row(task, None, finished.error or "it gave no result", tries=finished.tries)
    return Row(task, slim(result_from_json(finished.result, task.title)), tries=finished.tries)


def slim(result: RunResult) -> RunResult:
    """Without what a hundred runs of would not fit into memory; tables and little charts need none of it."""
    return dataclasses.replace(result, nodes=(), pods=(), decisions=())


class _Teller:
    """Counts, and tells how far it is."""

    def __init__(self, total: int, reused: int, on_progress: OnProgress) -> None:
        self._total = total
        self._reused = reused
        self._on_progress = on_progress
        self._started: set[int] = set()
        self._done = reused
        self._failed = 0
        self._tell(None)

    def started(self, number: int) -> None:
        self._started.add(number)
        self._tell(None)

    def ended(self, row: Row) -> None:
        if row.result is None:
            self._failed += 1
        else:
            self._done += 1
        self._tell(row)

    def _tell(self, last: Row | None) -> None:
        running = len(self._started) - (self._done - self._reused) - self._failed
        self._on_progress(SweepProgress(self._done, self._failed, self._reused, running, self._total, last))


def setting_names(rows: Sequence[Row]) -> list[str]:
    """The paths that some row sets, in the order of their first mention."""
    return list(dict.fromkeys(name for row in rows for name in row.task.settings))


def csv_table(rows: Sequence[Row]) -> list[list[str]]:
    """A header and a line for each run."""
    names = setting_names(rows)
    header = ["scenario", *names, "policy", "seed", *(measure.name for measure in MEASURES), "assertions", "error"]
    table = [header]
    for row in rows:
        task, result = row.task, row.result
        summary: Mapping[str, float | None] = result.summary if result is not None else {}
        values = [summary.get(measure.name) for measure in MEASURES]
        table.append([
            task.scenario.name, *(task.settings.get(name, "") for name in names), task.policy.name,
            str(task.scenario.seed), *("" if value is None else f"{value:.15g}" for value in values),
            _held(result), row.error,
        ])  # fmt: skip
    return table


def _held(result: RunResult | None) -> str:
    if result is None or not result.outcomes:
        return ""
    return "hold" if all(outcome.holds for outcome in result.outcomes) else "missed"


def as_document(rows: Sequence[Row]) -> dict[str, Any]:
    """What ``-o json`` prints."""
    items = []
    for row in rows:
        task, result = row.task, row.result
        item: dict[str, Any] = {
            "settings": dict(task.settings), "policy": task.policy.name, "seed": task.scenario.seed, "key": task.key,
            "summary": None if result is None else dict(result.summary),
            "outcomes": [] if result is None else [dataclasses.asdict(outcome) for outcome in result.outcomes],
            "error": row.error,
        }  # fmt: skip
        items.append(item)
    return {"apiVersion": RESULT_VERSION, "kind": "SweepResult", "items": items}
