"""Our controllers against recordings of the real kube-controller-manager, step by step."""

from __future__ import annotations

import asyncio
import re

import pytest

from holokube.testing.controlplane import ControlPlane
from tests.workload_parity.compare import compare
from tests.workload_parity.known_differences import KNOWN_DIFFERENCES
from tests.workload_parity.normalize import differences
from tests.workload_parity.record import load
from tests.workload_parity.scenario import Scenario
from tests.workload_parity.scenarios import TOPICS, all_scenarios
from tests.workload_parity.targets import Steps, play_real

RECORDED: dict[str, Steps] = {name: steps for topic in TOPICS for name, steps in load(topic).items()}
LIVE = ("deployment-waits-for-min-ready", "job-indexed")


def known(scenario: str) -> list[str]:
    return [pattern for name, pattern in KNOWN_DIFFERENCES if name == scenario]


@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda scenario: scenario.name)
def test_the_cluster_looks_like_one_with_the_real_controllers(scenario: Scenario) -> None:
    lines = compare(scenario, RECORDED[scenario.name])
    patterns = known(scenario.name)
    assert [line for line in lines if not any(re.search(p, line) for p in patterns)] == []
    outdated = [p for p in patterns if not any(re.search(p, line) for line in lines)]
    assert outdated == [], "these differences are gone: take them off the list"


def test_every_recording_has_its_scenario_and_every_known_difference_too() -> None:
    names = {scenario.name for scenario in all_scenarios()}
    assert names == RECORDED.keys()
    assert {scenario for scenario, _ in KNOWN_DIFFERENCES} <= names


def test_the_recordings_hold_for_the_control_plane_that_is_here(real_cluster: ControlPlane) -> None:
    scenarios = [scenario for scenario in all_scenarios() if scenario.name in LIVE]
    played, failures = asyncio.run(play_real(str(real_cluster.kubeconfig), scenarios))
    assert failures == []
    found = {
        name: [line for (_, a), (_, b) in zip(RECORDED[name], steps, strict=True) for line in differences(a, b)]
        for name, steps in played.items()
    }
    assert found == {name: [] for name in LIVE}
