"""Runs over processes: workers that die, runs that fail, and stopping in the middle."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from holokube.lab.result_files import result_from_json
from holokube.lab.sweep.processes import Finished, ProcessRunner
from holokube.lab.sweep.tasks import RunTask, Task
from tests.lab.sweep import fakes


def run_all(folder: Path, run: RunTask, seeds: range, jobs: int = 2) -> dict[int, Finished]:
    tasks = [fakes.task(folder, seed=str(seed)) for seed in seeds]
    return {tasks[one.number].scenario.seed: one for one in ProcessRunner(jobs, run).run(tasks)}


def cost(finished: Finished) -> float | None:
    return result_from_json(finished.result, "result").summary["cost_usd"]


def test_every_task_is_run_once(tmp_path: Path) -> None:
    started: list[int] = []
    tasks = [fakes.task(tmp_path, seed=str(seed)) for seed in range(1, 6)]
    found = list(ProcessRunner(2, fakes.good).run(tasks, started.append))
    assert sorted(one.number for one in found) == [0, 1, 2, 3, 4]
    assert sorted(started) == [0, 1, 2, 3, 4]
    assert {one.number: cost(one) for one in found} == {number: number + 1 for number in range(5)}


def test_no_more_workers_are_started_than_there_are_tasks(tmp_path: Path) -> None:
    running = ProcessRunner(8, fakes.good).run([fakes.task(tmp_path)])
    next(running)
    assert len(multiprocessing.active_children()) == 1
    assert list(running) == []


def test_a_run_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    found = run_all(tmp_path, fakes.dies_once, range(1, 5))
    assert {seed: cost(one) for seed, one in found.items()} == {1: 1, 2: 2, 3: 3, 4: 4}
    assert {seed: one.tries for seed, one in found.items()} == {1: 1, 2: 2, 3: 1, 4: 1}
    assert len(list(tmp_path.glob("attempt-2-*"))) == 2


def test_a_run_that_takes_three_workers_down_is_given_up_and_the_others_are_done(tmp_path: Path) -> None:
    found = run_all(tmp_path, fakes.always_dies, range(1, 5), jobs=1)
    assert found[2] == Finished(2 - 1, error="its worker ended with code 9, 3 times", tries=3)
    assert len(list(tmp_path.glob("attempt-2-*"))) == 3
    assert [cost(found[seed]) for seed in (1, 3, 4)] == [1, 3, 4]


def test_a_killed_worker_is_told_by_its_signal(tmp_path: Path) -> None:
    (one,) = ProcessRunner(1, fakes.killed).run([fakes.task(tmp_path)])
    assert one.error == "its worker was killed by SIGKILL, perhaps for want of memory, 3 times"


def test_a_run_that_raises_is_not_tried_again(tmp_path: Path) -> None:
    found = run_all(tmp_path, fakes.is_wrong, range(1, 5))
    assert found[2].error == "there is no room"
    assert found[3].error == "ZeroDivisionError: division by zero"
    assert len(list(tmp_path.glob("attempt-*"))) == 4
    assert cost(found[4]) == 4


def test_stopping_in_the_middle_stops_the_workers(tmp_path: Path) -> None:
    tasks: list[Task] = [fakes.task(tmp_path, seed=str(seed)) for seed in (1, 2)]
    running = ProcessRunner(1, fakes.never_ends).run(tasks)
    assert next(running).number == 0
    (worker,) = multiprocessing.active_children()
    running.close()
    assert multiprocessing.active_children() == []
    assert worker.exitcode is not None
