"""One run of the whole table per server; each test then looks at its own case."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from holokube.apiserver.server import EmbeddedServer
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.testing.controlplane import ControlPlane

from .model import Case
from .runner import load_recorded, run_cases
from .target import Outcome, Target


def _chosen(request: pytest.FixtureRequest) -> list[Case]:
    """The cases of the tests that were selected, so that one test by name does not run them all."""
    chosen = {}
    for item in request.session.items:
        call = getattr(item, "callspec", None)
        case = call.params.get("case") if call else None
        if isinstance(case, Case):
            chosen[case.id] = case
    return list(chosen.values())


@pytest.fixture(scope="session")
def embedded_outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    """Every chosen case on an embedded server that lives just as long."""
    ca_file = tmp_path_factory.mktemp("embedded") / "ca.crt"

    async def main() -> dict[str, Outcome]:
        async with EmbeddedServer(WallClock(), Rng("conformance")) as server:
            ca_file.write_bytes(server.endpoint.ca_pem)
            target = Target(server.endpoint.url, server.endpoint.token, str(ca_file), patience_s=10.0)
            return await run_cases(target, _chosen(request), run_id="embedded")

    return asyncio.run(main())


@pytest.fixture(scope="session")
def real_outcomes(request: pytest.FixtureRequest, real_apiserver: ControlPlane) -> dict[str, Outcome]:
    """Every chosen case on the real kube-apiserver, which other tests may share."""
    target = Target(real_apiserver.url, real_apiserver.token, str(real_apiserver.ca_file))
    return asyncio.run(run_cases(target, _chosen(request), run_id=str(os.getpid())))


@pytest.fixture(scope="session")
def recorded() -> dict[str, list[Any]]:
    return load_recorded()
