"""A thousand hollow nodes on a real control plane, in the hands of the real kubectl."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holokube.testing.controlplane import COMPONENTS, ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance import script
from tests.conftest import run_control_plane

NODES = 1000

pytestmark = [pytest.mark.kubectl, pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("acceptance-real")]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(request, tmp_path_factory.mktemp("acceptance"), COMPONENTS)


@pytest.fixture(scope="module")
def kubectl(
    plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    program = [sys.executable, "-m", "holokube"]
    cluster = ["--kubeconfig", str(plane.kubeconfig)]
    subprocess.run([*program, "scale", "nodes", str(NODES), *cluster], check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    kubelets = ["--kubelet-address", address, "--node-ip", "127.0.0.1"]
    log = tmp_path_factory.mktemp("fleet") / "fleet.log"
    with log.open("wb") as stream:
        fleet = subprocess.Popen(
            [*program, "fleet", "--profile", "kubelet", *kubelets, *cluster], stdout=stream, stderr=stream
        )
    try:
        yield Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"), timeout_s=180)
        assert fleet.poll() is None, log.read_text()
    finally:
        fleet.terminate()
        assert fleet.wait(timeout=30) == 0, log.read_text()


def test_all_nodes_become_ready(kubectl: Kubectl) -> None:
    # `kubectl wait` asks for each node by itself, at its own pace, which takes minutes.
    nodes = script.eventually(
        lambda: kubectl("get", "nodes", "--no-headers").splitlines(),
        lambda lines: all(line.split()[1] == "Ready" for line in lines),
    )
    assert len(nodes) == NODES


@pytest.mark.parametrize("step", script.STEPS, ids=lambda step: step.__name__)
def test_kubectl(kubectl: Kubectl, step: Callable[[Kubectl], None]) -> None:
    """The steps build on each other."""
    step(kubectl)
