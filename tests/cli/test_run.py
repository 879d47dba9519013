"""The command ``run``."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holokube.cli.main import run as holokube
from tests.cli.program import environment

SCENARIO = """
apiVersion: holokube.dev/v1alpha1
kind: Scenario
metadata: {name: tiny}
spec:
  duration: 10m
  workloads:
  - name: web
    curve: {kind: constant, replicas: 6}
    manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            containers:
            - name: web
              image: registry.example/web
              resources: {requests: {cpu: "1", memory: 1Gi}}
  policies: [cluster-autoscaler, none]
  assertions: ["pods_pending_end == 0"]
"""
VARIANT = """
spec:
  workloads:
  - name: web
    curve: {kind: constant, replicas: 12}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def test_runs_are_compared_in_a_table_and_a_missed_assertion_ends_with_3(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert holokube(["run", str(scenario)]) == 3
    out, err = capsys.readouterr()
    assert "tiny: 10 min from 2026-01-05T00:00:00Z, seed 1" in out
    header = out.splitlines()[1].split()
    assert header == ["cluster-autoscaler", "none"]
    assert "missed none: pods_pending_end == 0, measured 6" in out
    assert "1 of 2 assertions hold" in out
    assert "tiny, cluster-autoscaler: 0:10 of 0:10 h" in err


def test_shares_differ_in_points_and_everything_else_in_percent(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variant = tmp_path / "more.yaml"
    variant.write_text(VARIANT.replace("12", "7"))
    both = ["run", str(scenario), "--policy", "cluster-autoscaler", "--variant", str(variant)]
    assert holokube([*both, "-o", "json"]) == 0
    first, second = (run["summary"] for run in json.loads(capsys.readouterr().out)["items"])
    assert holokube(both) == 0
    rows = {line[:30].strip(): line for line in capsys.readouterr().out.splitlines()}
    points = (second["cpu_allocated_share"] - first["cpu_allocated_share"]) * 100
    assert f"({points:+.1f} pp)" in next(row for title, row in rows.items() if title.startswith("CPU allocated"))
    assert "%)" in next(row for title, row in rows.items() if title.startswith("Cost"))


def test_one_policy_that_holds_ends_with_0(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert holokube(["run", str(scenario), "--policy", "cluster-autoscaler"]) == 0
    assert "*" not in capsys.readouterr().out


def test_what_the_components_log_is_told_in_short_unless_it_was_asked_for(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(f"{SCENARIO}  faults:\n  - {{kind: stock-out, at: 0s, until: 5m}}\n")
    arguments = ["run", str(scenario), "--policy", "karpenter"]
    holokube(arguments)
    short = capsys.readouterr().err.splitlines()
    assert short[1] == "  logged meanwhile (-v shows it as it comes):"
    assert any(line.endswith(" x karpenter.lifecycle: failed launching nodeclaim") for line in short[2:])
    assert not any("ERROR" in line for line in short)
    holokube([*arguments, "-v"])
    long = capsys.readouterr().err
    assert "ERROR holokube.karpenter.lifecycle: failed launching nodeclaim" in long
    assert "logged meanwhile" not in long


def test_requests_that_fail_because_the_scenario_wants_it_are_told_in_short_too(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = "{kind: api-errors, at: 0s, until: 1m, share: 1, kinds: [Pod], verbs: [create], code: 503}"
    scenario.write_text(f"{SCENARIO}  faults:\n  - {fault}\n")
    arguments = ["run", str(scenario), "--policy", "cluster-autoscaler"]
    assert holokube(arguments) == 0
    short = capsys.readouterr().err
    assert " x runtime.controller: Reconcile failed, trying again" in short
    assert "Traceback" not in short
    holokube([*arguments, "-v"])
    assert "refused by a fault of the scenario" in capsys.readouterr().err


def test_a_folder_means_its_scenario(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert holokube(["run", str(scenario.parent), "--policy", "karpenter", "-o", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["scenario"], row["policy"]) for row in rows] == [("tiny", "karpenter")]
    assert float(rows[0]["cost_usd"]) > 0


def test_json_holds_all_runs_the_same_each_time(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert holokube(["run", str(scenario), "--seed", "7", "-o", "json"]) == 3
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    found = json.loads(outputs[0])
    assert found["kind"] == "RunResultList"
    assert [item["policy"] for item in found["items"]] == ["cluster-autoscaler", "none"]
    assert {item["seed"] for item in found["items"]} == {7}


def test_variants_are_runs_of_their_own(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variant = tmp_path / "twice.yaml"
    variant.write_text(VARIANT)
    arguments = ["run", str(scenario), "--policy", "cluster-autoscaler", "--variant", str(variant), "-o", "csv"]
    assert holokube(arguments) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["policy"] for row in rows] == ["cluster-autoscaler", "twice"]
    assert [row["pods_created"] for row in rows] == ["6", "12"]


def test_each_run_has_an_event_log_of_its_own(scenario: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    assert holokube(["run", str(scenario), "--event-log", str(log), "-o", "csv"]) == 3
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["events.cluster-autoscaler.jsonl", "events.none.jsonl", "scenario.yaml"]
    lines = [json.loads(line) for line in (tmp_path / "events.none.jsonl").read_text().splitlines()]
    assert {"at", "kind", "name", "what"} <= set(lines[0])


def test_an_unknown_policy_is_told_with_those_that_there_are(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert holokube(["run", str(scenario), "--policy", "karpneter"]) == 2
    err = capsys.readouterr().err
    assert "karpneter" in err
    assert "It has cluster-autoscaler, none" in err


def test_a_policy_whose_library_is_missing_is_told_before_anything_runs(
    scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert holokube(["run", str(scenario), "--policy", "none", "--policy", "optimal"]) == 1
    out, err = capsys.readouterr()
    assert "HiGHS" in err and "holokube[optimal]" in err
    assert "tiny, none" not in err and out == ""


def test_a_broken_scenario_is_wrong_usage(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.replace("duration", "durration"))
    assert holokube(["run", str(scenario)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3, "the unknown field, the missing one, and a hint"
    assert "spec.durration" in lines[0] and "spec.duration" in lines[1]


def test_a_page_shows_the_runs_and_changes_nothing(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert holokube(["run", str(scenario), "--policy", "cluster-autoscaler", "-o", "csv"]) == 0
    alone = capsys.readouterr().out
    assert holokube(["run", str(scenario), "--policy", "cluster-autoscaler", "-o", "csv", "--dashboard"]) == 0
    out, err = capsys.readouterr()
    assert out == alone
    assert "Dashboard: http://127.0.0.1:" in err


def test_ctrl_c_leaves_nothing_behind(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("duration: 10m", "duration: 3000h"))
    log = tmp_path / "events.jsonl"
    program = subprocess.Popen(
        [sys.executable, "-m", "holokube", "run", str(scenario), "--policy", "none", "--event-log", str(log)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path), text=True,
    )  # fmt: skip
    try:
        # Interrupted while it runs: as soon as the log is there, and long before the end.
        while program.poll() is None and not list(tmp_path.glob(".events.jsonl.*.partial")):
            pass
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 130, err
    assert out == ""
    assert "interrupted" in err
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]
