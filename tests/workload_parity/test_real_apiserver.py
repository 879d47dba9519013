"""Our controllers in place of the kube-controller-manager, on the real kube-apiserver: it must look the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NAMESPACES
from holokube.testing.controlplane import ControlPlane
from tests.conftest import run_control_plane
from tests.workload_parity.normalize import differences
from tests.workload_parity.scenarios import all_scenarios
from tests.workload_parity.targets import Steps, our_controllers, play_real
from tests.workload_parity.test_parity import RECORDED

PLAYED = {
    "namespace-gets-its-things", "owner-is-deleted-in-the-foreground", "dependents-of-two-owners",
    "dependent-of-another-namespace", "quota-is-counted", "claims-are-bound-to-volumes",
    "volume-is-reserved-for-a-claim", "pod-with-an-ephemeral-volume", "pods-are-evicted-by-taints",
    "node-is-not-ready", "service-finds-its-pods", "service-without-selector", "budget-of-a-stateful-set",
    "deployment-is-refused-pods",
}  # fmt: skip
"""One or more for every controller that keeps house; the others are in tests/workloads/test_real_apiserver.py."""


async def play(kubeconfig: str) -> dict[str, Steps]:
    clock = WallClock()
    scenarios = [scenario for scenario in all_scenarios() if scenario.name in PLAYED]
    client = Client(HttpTransport(clock, load_access(kubeconfig)))
    async with client, our_controllers(clock, client, Rng(0)):
        played, failures = await play_real(kubeconfig, scenarios)
        assert failures == []
        # Each scenario leaves its namespace deleted, and ours is the controller that has to empty it.
        async with asyncio.timeout(60):
            while PLAYED & {n["metadata"]["name"] for n in (await client.list(NAMESPACES)).items}:
                await clock.sleep(0.2)
    return played


@pytest.fixture
def own_apiserver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlane]:
    """A server of its own: the controllers lay hands on whatever they find."""
    yield from run_control_plane(request, tmp_path, ())


@pytest.mark.real
def test_the_real_server_with_our_controllers_looks_like_one_with_the_real_ones(own_apiserver: ControlPlane) -> None:
    played = asyncio.run(play(str(own_apiserver.kubeconfig)))
    assert played.keys() == PLAYED
    found = {
        name: [line for (_, a), (_, b) in zip(RECORDED[name], steps, strict=True) for line in differences(a, b)]
        for name, steps in played.items()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
