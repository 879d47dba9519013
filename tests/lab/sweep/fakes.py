"""Runs that take no time, and some that go wrong: functions that worker processes can import."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import orjson

from holokube.base.errors import HolokubeError
from holokube.lab.results import Outcome
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.lab.scenario.reading import read_scenario
from holokube.lab.sweep.tasks import Task
from tests.lab.results import node_span, run_result

SCENARIO = """\
apiVersion: holokube.dev/v1alpha1
kind: Scenario
metadata: {name: tiny}
spec:
  seed: 1
  duration: 10m
  workloads:
  - name: web
    curve: {kind: constant, replicas: 1}
    manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
  policies: [none, cluster-autoscaler]
"""


def write_scenario(folder: Path) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def task(folder: Path, **settings: str) -> Task:
    """A task of which only the settings and the seed count; the folder is for notes of the fake runs."""
    scenario = read_scenario(write_scenario(folder), overrides={"spec.seed": int(settings.get("seed", "1"))})
    return Task({"folder": str(folder), **settings}, scenario, scenario.policies[0])


def choose_all(scenario: Scenario, names: Sequence[str]) -> list[PolicySpec]:
    return [policy for policy in scenario.policies if not names or policy.name in names]


def good(one: Task) -> bytes:
    """Costs as much as the seed says."""
    seed = one.scenario.seed
    result = run_result(
        one.policy.name, scenario=one.scenario.name, seed=seed, summary={"cost_usd": float(seed)},
        nodes=(node_span(),), outcomes=(Outcome("cost_usd < 100", seed < 100, float(seed)),),
    )  # fmt: skip
    return orjson.dumps(result.as_json())


def _attempt(one: Task) -> int:
    """How often this run has been begun, counted in files, since processes come and go."""
    folder = Path(one.settings["folder"])
    attempt = len(list(folder.glob(f"attempt-{one.scenario.seed}-*"))) + 1
    (folder / f"attempt-{one.scenario.seed}-{attempt}").touch()
    return attempt


def dies_once(one: Task) -> bytes:
    """Takes its worker down at the first try of seed 2."""
    if _attempt(one) == 1 and one.scenario.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return good(one)


def always_dies(one: Task) -> bytes:
    """Seed 2 takes every worker down."""
    _attempt(one)
    if one.scenario.seed == 2:
        os._exit(9)
    return good(one)


def killed(_one: Task) -> bytes:
    """As the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def is_wrong(one: Task) -> bytes:
    """Seed 2 cannot be run, and seed 3 has a bug."""
    _attempt(one)
    if one.scenario.seed == 2:
        raise HolokubeError("there is no room", hint="Make some.")
    if one.scenario.seed == 3:
        raise ZeroDivisionError("division by zero")
    return good(one)


def never_ends(one: Task) -> bytes:
    """Seed 2 goes on for ever."""
    if one.scenario.seed == 2:
        signal.pause()
    return good(one)
