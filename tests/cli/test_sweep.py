"""``holokube sweep`` on the command line, with real runs of a tiny scenario."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import orjson
import pytest

from holokube.cli import sweep_run
from holokube.cli.settings import Settings
from holokube.cli.sweep_run import Order, run_sweep
from holokube.lab.sweep.processes import Finished
from tests.cli.program import Inside, assert_two_lines, run
from tests.lab.sweep import fakes


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    return str(fakes.write_scenario(tmp_path))


def test_real_runs_go_over_processes_and_are_resumed(tmp_path: Path, scenario: str) -> None:
    out = tmp_path / "out"
    arguments = ("sweep", scenario, "--set", "spec.duration=5m,6m", "--policy", "none", "-j", "1", "--out", str(out))
    first = run(tmp_path, *arguments, "-o", "csv")
    assert first.returncode == 0, first.stderr
    rows = list(csv.DictReader(io.StringIO(first.stdout)))
    assert [(row["spec.duration"], row["policy"], row["pods_pending_end"]) for row in rows] == [
        ("5m", "none", "1"), ("6m", "none", "1"),
    ]  # fmt: skip
    assert "done: duration=5m, none (1 of 2 runs done, 1 left)" in first.stderr
    assert len(list(out.iterdir())) == 2
    again = run(tmp_path, *arguments, "-o", "csv")
    assert again.stdout == first.stdout
    assert "2 of 2 runs done, 0 left, 2 of them from before" in again.stderr


class Here:
    """In place of processes."""

    def __init__(self, _jobs: int, _run: object) -> None:
        pass

    def run(self, tasks: list[fakes.Task], on_start: object) -> object:
        for number, task in enumerate(tasks):
            if task.scenario.seed == 13:
                yield Finished(number, error="its worker ended with code 9, 3 times", tries=3)
            else:
                yield Finished(number, fakes.good(task))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_run, "ProcessRunner", Here)


@pytest.mark.usefixtures("quick")
def test_the_table_marks_the_best_of_each_column(inside: Inside, scenario: str) -> None:
    done = inside("sweep", scenario, "--set", "spec.seed=7,5", "--policy", "none", "--measure", "cost_usd")
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["seed", "policy", "Cost"],
        ["7", "none", "$7.00"],
        ["5", "none", "$5.00", "*"],
        ["*", "best", "of", "its", "column"],
    ]


@pytest.mark.usefixtures("quick")
def test_failed_runs_and_missed_assertions_are_told_and_set_the_exit_code(inside: Inside, scenario: str) -> None:
    done = inside("sweep", scenario, "--set", "spec.seed=1,100,13", "--policy", "none")
    assert done.returncode == 1
    assert "failed: seed=13, none: its worker ended with code 9, 3 times" in done.stderr
    assert "missed cost_usd < 100" in done.stdout
    assert "failed its worker ended with code 9" in done.stdout
    assert inside("sweep", scenario, "--set", "spec.seed=1,100", "--policy", "none").returncode == 3


def test_who_interrupts_a_sweep_is_told_what_is_kept(
    inside: Inside, scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Here):
        def run(self, tasks: list[fakes.Task], on_start: object) -> object:
            yield Finished(0, fakes.good(tasks[0]))
            raise KeyboardInterrupt

    monkeypatch.setattr(sweep_run, "ProcessRunner", Interrupted)
    arguments = ("sweep", scenario, "--set", "spec.seed=1,2", "--policy", "none")
    done = inside(*arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 130
    assert f"Finished runs are in {tmp_path / 'out'}; the same command goes on with the others." in done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert "Nothing is kept. With --out DIR finished runs are" in inside(*arguments).stderr


@pytest.mark.usefixtures("quick")
def test_json_and_a_list_of_settings(inside: Inside, scenario: str, tmp_path: Path) -> None:
    listed = tmp_path / "l.csv"
    listed.write_text("spec.seed,policy\n4,none\n2,cluster-autoscaler\n")
    done = inside("sweep", scenario, "--list", str(listed), "--set", "spec.duration=1h,2h", "-o", "json")
    items = orjson.loads(done.stdout)["items"]
    assert [(item["settings"]["spec.duration"], item["seed"], item["policy"]) for item in items] == [
        ("1h", 4, "none"), ("1h", 2, "cluster-autoscaler"), ("2h", 4, "none"), ("2h", 2, "cluster-autoscaler"),
    ]  # fmt: skip


@pytest.mark.usefixtures("quick")
def test_the_report_has_a_chart_for_each_good_run(inside: Inside, scenario: str, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    arguments = ("sweep", scenario, "--policy", "none", "--report", str(report), "-o", "csv")
    done = inside(*arguments, "--set", "spec.seed=1,2,13")
    assert f"Report: {report}" in done.stderr
    text = report.read_text()
    assert text.startswith("<!doctype html>")
    assert "tiny" in text
    report.unlink()
    done = inside(*arguments, "--set", "spec.seed=13")
    assert "No report: no run has a result." in done.stderr
    assert not report.exists()


def test_a_folder_with_a_scenario_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.write_scenario(tmp_path)
    monkeypatch.setattr(sweep_run, "ProcessRunner", Here)
    assert run_sweep(Order(tmp_path, policies=("none",), output="json"), Settings()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "spec.sed=1,2"), "spec.sed"),
        (("--set", "spec.seed"), "not of the form PATH=VALUE"),
        (("--set", "spec.seed=1,1"), "there twice"),
        (("--set", "spec.seed=1", "--set", "spec.seed=2"), "spec.seed is set twice"),
        (("--policy", "magic"), "--policy magic"),
        (("--list", "none.csv"), "cannot read none.csv"),
        (("--measure", "cost"), "there is no such measure"),
        (("--jobs", "0"), "0 is not in the range"),
        (("--dask", "tcp://x:1", "--jobs", "2"), "give one of them"),
        (("--out", "{scenario}"), "is a file"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(
    inside: Inside, scenario: str, arguments: tuple[str, ...], message: str
) -> None:
    done = inside("sweep", scenario, *(argument.format(scenario=scenario) for argument in arguments))
    assert done.returncode == 2
    assert message in " ".join(assert_two_lines(done.stderr))
