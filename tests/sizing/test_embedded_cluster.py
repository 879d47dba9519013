"""``holokube node-sizing`` end to end on the embedded cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holokube.testing import serve
from holokube.testing.kubectl import Kubectl
from tests.sizing import script
from tests.sizing.rotation import every_pod_is_sized_through_rotations

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("sizing-embedded")]


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with serve(nodes=0) as server:
        kubectl = Kubectl(kubectl_program, server.kubeconfig, tmp_path_factory.mktemp("kubectl"))
        for name in script.SIZES:
            kubectl("create", "-f", "-", stdin=script.node(name))
        kubectl("wait", "node", "--all", "--for=condition=Ready", script.WAIT)
        yield kubectl


def test_without_the_webhook_nothing_is_blocked(kubectl: Kubectl) -> None:
    with script.webhook(Path(kubectl.environment["KUBECONFIG"])):
        pass
    script.without_the_webhook_nothing_is_blocked(kubectl)


@pytest.mark.slow
def test_certificates_rotate_without_a_failed_request(kubectl: Kubectl) -> None:
    every_pod_is_sized_through_rotations(kubectl)


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
