"""The same seed gives the same bytes, whatever process runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import hashlib, io, sys
import orjson
from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.curves import Diurnal, Poisson
from holokube.lab.scenario.behaviour import PodBehaviour
from holokube.lab.scenario.faults import Fault, NodeSilence, SpotReclaim, ApiErrors
from holokube.lab.scenario.model import ClusterSpec, Workload
from holokube.lab.scenario.values import Spread
from tests.lab.run.small_scenarios import KARPENTER, autoscaled, job, scenario, web

work = (
    Workload("web", (web(),), curve=Diurnal(low=3, high=20, noise=0.2, every_s=60.0, period_s=1800.0)),
    Workload("small", (web("small", cpu="300m", memory="200Mi"),), curve=Diurnal(low=5, high=30, every_s=90.0,
             noise=0.1, period_s=1200.0)),
    Workload("batch", (job(),), arrivals=Poisson(120.0), behaviour=PodBehaviour(run_time=Spread(min_s=10.0,
             max_s=200.0))),
)
faults = (
    Fault(300.0, NodeSilence(count=1), until_s=700.0), Fault(400.0, SpotReclaim(per_hour=60.0), until_s=900.0),
    Fault(600.0, ApiErrors(share=0.05), until_s=800.0),
)
policy = autoscaled(capacity_type="spot") if sys.argv[1] == "cluster-autoscaler" else KARPENTER
log = io.StringIO()
made = scenario(*work, cluster=ClusterSpec(nodes=1), faults=faults, minutes=25.0)
result = run_scenario(made, policy, event_log=log)
print(len(log.getvalue().splitlines()), hashlib.sha256(log.getvalue().encode()).hexdigest())
print(hashlib.sha256(orjson.dumps(result.as_json())).hexdigest())
"""


def outcome(python: str, policy: str, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [python, "-c", PROGRAM, policy], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("policy", ["cluster-autoscaler", "karpenter"])
def test_two_hash_seeds_give_the_same_event_log_and_results(policy: str) -> None:
    first = outcome(sys.executable, policy, "1")
    assert int(first.split()[0]) > 300
    assert outcome(sys.executable, policy, "4242") == first


def _other_pythons() -> list[str]:
    """Other versions on this machine that have what holokube needs."""
    found = []
    for version in ("3.11", "3.12", "3.13"):
        path = shutil.which(f"python{version}")
        if path is None or version == f"{sys.version_info.major}.{sys.version_info.minor}":
            continue
        needs = "import numpy, orjson, msgspec, aiohttp, yaml, cronsim, prometheus_client, cryptography, highspy"
        if subprocess.run([path, "-c", needs], capture_output=True, check=False).returncode == 0:
            found.append(path)
    return found


def test_all_versions_of_python_on_this_machine_give_the_same_bytes() -> None:
    others = _other_pythons()
    outcomes = {outcome(python, "cluster-autoscaler", "7") for python in (sys.executable, *others)}
    assert len(outcomes) == 1
