"""Whole sweeps: in order, resumable, and nothing lost when they are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from holokube.base.errors import UsageError
from holokube.lab.scenario.errors import ScenarioError
from holokube.lab.sweep.folder import SweepFolder
from holokube.lab.sweep.processes import Finished
from holokube.lab.sweep.settings import Settings, combine, parse_axis
from holokube.lab.sweep.sweeping import SweepProgress, as_document, csv_table, slim, sweep
from holokube.lab.sweep.tasks import RunTask, Task, plan_tasks
from tests.lab.results import story_result
from tests.lab.sweep import fakes


class InOrder:
    """Runs tasks here, the last one first, so that nobody relies on the order."""

    def __init__(self, run: RunTask = fakes.good) -> None:
        self._run = run
        self.ran: list[int] = []

    def run(self, tasks: Sequence[Task], on_start: Callable[[int], None]) -> Iterator[Finished]:
        for number in reversed(range(len(tasks))):
            on_start(number)
            self.ran.append(tasks[number].scenario.seed)
            try:
                yield Finished(number, self._run(tasks[number]))
            except ZeroDivisionError as error:
                yield Finished(number, error=str(error), tries=1)


def planned(folder: Path, *axes: str, policies: Sequence[str] = ("none",)) -> list[Task]:
    choices = combine([parse_axis(axis) for axis in axes])
    return plan_tasks(fakes.write_scenario(folder), choices, policies, fakes.choose_all)


def costs(rows: Sequence[object]) -> list[float | None]:
    return [row.result.summary["cost_usd"] if row.result else None for row in rows]  # type: ignore[attr-defined]  # rows


def test_rows_come_in_the_order_of_the_grid(tmp_path: Path) -> None:
    tasks = planned(tmp_path, "spec.duration=1h,2h", "spec.seed=3,1,2")
    rows = sweep(tasks, InOrder())
    assert [tuple(row.task.settings.values()) for row in rows] == [
        ("1h", "3"), ("1h", "1"), ("1h", "2"), ("2h", "3"), ("2h", "1"), ("2h", "2"),
    ]  # fmt: skip
    assert costs(rows) == [3, 1, 2, 3, 1, 2]
    assert [task.scenario.duration_s for task in tasks[2:4]] == [3600, 7200]


def test_policies_go_with_every_choice_and_a_list_may_name_one(tmp_path: Path) -> None:
    tasks = planned(tmp_path, "spec.seed=1,2", policies=())
    assert [task.title for task in tasks] == [
        "seed=1, none", "seed=1, cluster-autoscaler", "seed=2, none", "seed=2, cluster-autoscaler",
    ]  # fmt: skip
    named = plan_tasks(tmp_path / "scenario.yaml", [Settings({}, {}, "none")], (), fakes.choose_all)
    assert [task.policy.name for task in named] == ["none"]


def test_a_wrong_setting_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"with spec\.duration=soon"):
        planned(tmp_path, "spec.duration=1h,soon")
    with pytest.raises(ScenarioError) as caught:
        planned(tmp_path, "spec.duration=1h,30s")
    assert "is longer than the run (with spec.duration=30s)" in caught.value.mistakes[0], "the file alone is fine"
    with pytest.raises(UsageError, match="no runs"):
        planned(tmp_path, policies=["unknown"])


def test_what_is_in_the_folder_is_not_run_again(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "out")
    tasks = planned(tmp_path, "spec.seed=1,2,3")
    sweep(tasks[:2], InOrder(), folder)
    told: list[SweepProgress] = []
    runner = InOrder()
    rows = sweep(tasks, runner, folder, told.append)
    assert runner.ran == [3]
    assert costs(rows) == [1, 2, 3]
    assert [row.reused for row in rows] == [True, True, False]
    assert (told[0].done, told[0].left, told[0].reused) == (2, 1, 2)
    assert (told[-1].done, told[-1].left, told[-1].running) == (3, 0, 0)
    again = InOrder()
    sweep(tasks, again, folder)
    assert again.ran == []


def test_a_damaged_file_is_run_again(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "out")
    tasks = planned(tmp_path, "spec.seed=1,2")
    sweep(tasks, InOrder(), folder)
    path = folder.file(tasks[0].key)
    path.write_bytes(path.read_bytes()[:100])
    runner = InOrder()
    assert costs(sweep(tasks, runner, folder)) == [1, 2]
    assert runner.ran == [1]
    assert orjson.loads(path.read_bytes())["kind"] == "RunResult"


def test_files_are_results_as_a_run_prints_them_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "out")
    (task,) = planned(tmp_path)
    sweep([task], InOrder(), folder)
    (path,) = folder.path.iterdir()
    assert path.name == f"run-{task.key}.json"
    assert path.read_bytes() == fakes.good(task)


def test_the_key_depends_on_what_is_run_and_not_on_where_the_file_is(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (one,), (other,) = planned(tmp_path), planned(elsewhere)
    assert one.key == other.key
    keys = {task.key for axis in ("spec.seed=1,2", "spec.duration=11m", "spec.workloads[web].curve.replicas=2")
            for task in planned(tmp_path, axis, policies=())}  # fmt: skip
    assert len(keys) == 8
    assert one.key in keys
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace('cpu: "1"', 'cpu: "2"'))
    (changed,) = plan_tasks(tmp_path / "scenario.yaml", [Settings({}, {})], ["none"], fakes.choose_all)
    assert changed.key not in keys


def test_the_key_is_the_same_in_every_process(tmp_path: Path) -> None:
    code = "import sys, pathlib; from tests.lab.sweep import fakes; print(fakes.task(pathlib.Path(sys.argv[1])).key)"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=Path(__file__).parents[3],
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert keys == {fakes.task(tmp_path).key}


def test_equal_runs_are_done_once(tmp_path: Path) -> None:
    runner = InOrder()
    rows = sweep(planned(tmp_path, "spec.duration=60m,1h"), runner)
    assert runner.ran == [1]
    assert [row.task.settings["spec.duration"] for row in rows] == ["60m", "1h"]
    assert costs(rows) == [1, 1]


def test_a_failed_run_has_a_row_and_is_not_kept(tmp_path: Path) -> None:
    def wrong(task: Task) -> bytes:
        if task.scenario.seed == 2:
            raise ZeroDivisionError("no")
        return fakes.good(task)

    folder = SweepFolder(tmp_path / "out")
    told: list[SweepProgress] = []
    rows = sweep(planned(tmp_path, "spec.seed=1,2"), InOrder(wrong), folder, told.append)
    assert costs(rows) == [1, None]
    assert rows[1].error == "no"
    assert len(list(folder.path.iterdir())) == 1
    assert (told[-1].done, told[-1].failed, told[-1].left) == (1, 1, 0)


def test_tables_have_a_line_for_each_run(tmp_path: Path) -> None:
    def wrong(task: Task) -> bytes:
        if task.scenario.seed == 200:
            raise ZeroDivisionError("no")
        return fakes.good(task)

    rows = sweep(planned(tmp_path, "spec.seed=7,100,200"), InOrder(wrong))
    header, good, missed, failed = csv_table(rows)
    assert header[:5] == ["scenario", "spec.seed", "policy", "seed", "cost_usd"]
    assert good[:5] == ["tiny", "7", "none", "7", "7"]
    assert (good[-2:], missed[-2:], failed[-2:]) == (["hold", ""], ["missed", ""], ["", "no"])
    assert {len(line) for line in csv_table(rows)} == {len(header)}
    document = as_document(rows)
    assert document["kind"] == "SweepResult"
    assert [item["summary"] for item in document["items"]] == [{"cost_usd": 7.0}, {"cost_usd": 100.0}, None]
    assert document["items"][0]["settings"] == {"spec.seed": "7"}
    assert document["items"][1]["outcomes"][0]["holds"] is False
    orjson.dumps(document)


def test_results_in_memory_are_slim() -> None:
    light = slim(story_result())
    assert (light.nodes, light.pods, light.decisions) == ((), (), ())
    assert light.series == story_result().series


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot make the folder"):
        SweepFolder(tmp_path / "file")


INTERRUPTED = """
if __name__ == "__main__":
    import sys
    from pathlib import Path
    from holokube.cli.settings import Settings
    from holokube.cli.sweep_run import Order, run_sweep
    from tests.lab.sweep import fakes
    folder = Path(sys.argv[1])
    order = Order(fakes.write_scenario(folder), ("spec.seed=1,2",), policies=("none",), jobs=2, out=folder / "out")
    run_sweep(order, Settings(), fakes.never_ends)
"""


def test_ctrl_c_leaves_finished_runs_and_no_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stderr=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "done: seed=1" in process.stderr.readline()
        # As a terminal does: to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        # Workers write to the same pipe, so that it ends only when all of them have.
        rest = process.stderr.read()
        assert process.wait() != 0
    assert "KeyboardInterrupt" in rest
    assert rest.count("Traceback") == 1, "the workers say nothing"
    assert len(list((tmp_path / "out").iterdir())) == 1
