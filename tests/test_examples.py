"""The examples work: each is run as its head says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "demo.py", "test_my_controller.py", "virtual_time_controller.py",
    }  # fmt: skip


def test_a_day_passes_in_a_blink() -> None:
    lines = run("examples/virtual_time_controller.py").splitlines()
    assert "07:00  ##########  ####" in lines
    assert "12:00  ##########" in [line.rstrip() for line in lines]
    assert "00:00              ####" in lines


def test_the_demo_shows_what_kubectl_shows() -> None:
    shown = run("examples/demo.py")
    assert "web    300/300   300          300" in shown
    assert shown.count("1/1     Running") == 3
    lines = [line.split()[:3] for line in shown.splitlines()]
    assert ["4", "60", "300"] in lines
    assert ["8", "40", "200"] in lines
    assert ["22", "60", "300"] in lines


def test_the_users_own_controller_is_tested() -> None:
    pytest.importorskip("kubernetes")
    assert "4 passed" in run("-m", "pytest", "examples/test_my_controller.py", "-p", "no:cacheprovider", "-v")


def test_the_affinity_example_wastes_half_as_much_memory() -> None:
    folder = EXAMPLES / "node-affinity"
    seen = []
    for workload in ("workload.yaml", "workload-with-affinity.yaml"):
        answer = json.loads(run(
            "-m", "holokube", "plan", "-f", str(folder / workload), "--templates", str(folder / "groups.yaml"),
            "-o", "json", "--", "--expander=most-pods",
        ))  # fmt: skip
        nodes = answer["nodes"]
        seen.append((len(nodes), {node["group"] for node in nodes}, {node["wasted"]["memory"] for node in nodes}))
    gib = 1 << 30
    assert seen == [(8, {"ratio-1-16"}, {2 * gib}), (8, {"ratio-1-8"}, {gib})]
