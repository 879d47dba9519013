"""``holokube node-sizing`` end to end on the real kube-apiserver, controller manager and scheduler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holokube.testing.controlplane import COMPONENTS, ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.conftest import run_control_plane
from tests.sizing import script
from tests.sizing.rotation import every_pod_is_sized_through_rotations

pytestmark = [pytest.mark.kubectl, pytest.mark.real, pytest.mark.xdist_group("sizing-real")]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(request, tmp_path_factory.mktemp("sizing"), COMPONENTS)


@pytest.fixture(scope="module")
def kubectl(
    plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    kubectl = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    for name in script.SIZES:
        kubectl("create", "-f", "-", stdin=script.node(name))
    log = tmp_path_factory.mktemp("fleet") / "fleet.log"
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "holokube", "fleet", "--profile=kubelet", f"--kubeconfig={plane.kubeconfig}"]
        fleet = subprocess.Popen(command, stdout=stream, stderr=stream)
    try:
        kubectl("wait", "node", "--all", "--for=condition=Ready", script.WAIT)
        yield kubectl
        assert fleet.poll() is None, log.read_text()
    finally:
        fleet.terminate()
        assert fleet.wait(timeout=30) == 0, log.read_text()


@pytest.mark.slow
def test_certificates_rotate_without_a_failed_request(kubectl: Kubectl) -> None:
    every_pod_is_sized_through_rotations(kubectl)


def test_without_the_webhook_nothing_is_blocked(kubectl: Kubectl) -> None:
    with script.webhook(Path(kubectl.environment["KUBECONFIG"])):
        pass
    script.without_the_webhook_nothing_is_blocked(kubectl)


def test_told_to_deny_it_refuses_what_cannot_be_sized(kubectl: Kubectl) -> None:
    with script.webhook(Path(kubectl.environment["KUBECONFIG"]), "--on-error=deny"):
        script.told_to_deny_it_refuses(kubectl)


@pytest.fixture(scope="module")
def with_webhook(kubectl: Kubectl) -> Iterator[Kubectl]:
    with script.webhook(Path(kubectl.environment["KUBECONFIG"]), "--resize-running"):
        yield kubectl


@pytest.mark.parametrize("step", script.STEPS, ids=lambda step: step.__name__)
def test_kubectl(with_webhook: Kubectl, step: Callable[[Kubectl], None]) -> None:
    step(with_webhook)
