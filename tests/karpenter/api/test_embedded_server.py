"""kubectl and Karpenter's objects on the embedded API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holokube.testing import serve
from holokube.testing.kubectl import Kubectl
from tests.karpenter.api import pools, server_script

pytest.importorskip("cel", reason="the rules of a definition need the extra cel")
pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("karpenter-api-embedded")]


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with serve() as server:
        kubectl = Kubectl(kubectl_program, server.kubeconfig, tmp_path_factory.mktemp("kubectl"))
        server_script.install_definitions(kubectl)
        yield kubectl


@pytest.mark.parametrize(
    "step", [pytest.param(step, id=step.__name__) for step in server_script.STEPS]
)
def test_kubectl_sees_what_upstream_shows(kubectl: Kubectl, step: Callable[[Kubectl], None]) -> None:
    step(kubectl)


@pytest.fixture(scope="module")
def said(kubectl: Kubectl) -> dict[str, str]:
    return server_script.attempts(kubectl)


@pytest.mark.parametrize(("case", "words"), [(case, words) for case, _, words in pools.REFUSED])
def test_a_wrong_pool_is_refused_with_a_reason(said: dict[str, str], case: str, words: str) -> None:
    assert words in said[case]


@pytest.mark.parametrize("case", [case for case, _ in pools.ACCEPTED])
def test_an_unusual_pool_is_taken(said: dict[str, str], case: str) -> None:
    assert said[case] == ""
