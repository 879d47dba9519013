"""The embedded cluster, all parts of it, in the hands of the real kubectl."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holokube.testing import serve
from holokube.testing.kubectl import Kubectl
from tests.acceptance import script

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("acceptance-embedded")]


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with serve(nodes=4) as server:
        yield Kubectl(kubectl_program, server.kubeconfig, tmp_path_factory.mktemp("kubectl"), timeout_s=120)


@pytest.mark.parametrize("step", script.STEPS, ids=lambda step: step.__name__)
def test_kubectl(kubectl: Kubectl, step: Callable[[Kubectl], None]) -> None:
    """The steps build on each other."""
    step(kubectl)
