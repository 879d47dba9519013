"""The same seed gives the same bytes, whatever process runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import NOT_AVAILABLE

ROOT = Path(__file__).parents[3]
PROGRAM = """
import hashlib, io, sys
import orjson
from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.curves import Diurnal, Poisson
from holokube.lab.scenario.behaviour import PodBehaviour
from holokube.lab.scenario.faults import Fault, NodeSilence, SpotReclaim, ApiErrors
from holokube.lab.scenario.model import ClusterSpec, PolicySpec, Workload
from holokube.lab.scenario.values import Spread
from tests.lab.run.small_scenarios import KARPENTER, autoscaled, job, scenario, web

work = (
    Workload("web", (web(),), curve=Diurnal(low=3, high=20, noise=0.2, every_s=60.0, period_s=1800.0)),
    Workload("small", (web("small", cpu="300m", memory="200Mi"),), curve=Diurnal(low=5, high=60, every_s=90.0,
             noise=0.8, period_s=1200.0)),
    Workload("batch", (job(),), arrivals=Poisson(120.0), behaviour=PodBehaviour(run_time=Spread(min_s=10.0,
             max_s=200.0))),
)
faults = (
    Fault(300.0, NodeSilence(count=1), until_s=700.0), Fault(400.0, SpotReclaim(per_hour=60.0), until_s=900.0),
    Fault(600.0, ApiErrors(share=0.05), until_s=800.0),
)
policy = {"cluster-autoscaler": autoscaled(capacity_type="spot"), "karpenter": KARPENTER}.get(
    sys.argv[1], PolicySpec(sys.argv[1])
)
log = io.StringIO()
made = scenario(*work, cluster=ClusterSpec(nodes=1), faults=faults, minutes=25.0)
result = run_scenario(made, policy, event_log=log)
print(len(log.getvalue().splitlines()), hashlib.sha256(log.getvalue().encode()).hexdigest())
print(hashlib.sha256(orjson.dumps(result.as_json())).hexdigest())
"""

POLICIES = ("cluster-autoscaler", "karpenter", "optimal")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [version for version in ("3.11", "3.12", "3.13") if version != HERE]
NEEDS = "import aiohttp, cronsim, cryptography, highspy, msgspec, numpy, orjson, prometheus_client, yaml"


def outcome(python: str, policy: str, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [python, "-c", PROGRAM, policy], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def here(policy: str) -> str:
    """What this Python makes of it."""
    return outcome(sys.executable, policy, "1")


@pytest.mark.parametrize("policy", POLICIES)
def test_two_hash_seeds_give_the_same_event_log_and_results(policy: str) -> None:
    if policy == "optimal":
        pytest.importorskip("highspy")
    assert int(here(policy).split()[0]) > 300
    assert outcome(sys.executable, policy, "4242") == here(policy)


@cache
def other_python(version: str) -> str | None:
    """A Python of that version that has what holokube needs: from ``make pythons``, on the PATH, or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = [
        str(ROOT / f".venv-{version}" / "bin" / "python"),
        shutil.which(f"python{version}"),
        *(str(one) for one in sorted(pyenv.glob(f"{version}.*/bin/python"))),
    ]
    told = f"{NEEDS}, sys; print('%d.%d' % sys.version_info[:2])"
    for place in places:
        if place is None or not Path(place).exists():
            continue
        done = subprocess.run([place, "-c", told], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return place
    return None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("version", OTHERS)
def test_another_python_gives_the_same_bytes(version: str, policy: str) -> None:
    if policy == "optimal":
        pytest.importorskip("highspy")
    python = other_python(version)
    if python is None:
        pytest.skip(f"{NOT_AVAILABLE}no Python {version} with holokube's packages is on this machine: run make pythons")
    assert outcome(python, policy, "7") == here(policy)
