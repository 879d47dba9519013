"""Built-in plugins against tables of a real server's answers, and a real server against the same tables."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from holokube.apiserver.server import EmbeddedServer
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.testing.controlplane import ControlPlane

from .cases import ALONE, CASES
from .steps import Case, Send, run_case

NAMES = [case.name for case in CASES + ALONE]


async def _run_embedded(cases: list[Case]) -> dict[str, list[str]]:
    server = EmbeddedServer(WallClock(), Rng(1))
    server.registry.admission.strict_service_accounts = True
    async with server, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        endpoint = server.endpoint
        headers = {"Authorization": f"Bearer {endpoint.token}", "Content-Type": "application/json"}

        async def send(method: str, path: str, body: Any) -> tuple[int, Any]:
            data = orjson.dumps(body) if body is not None else None
            async with session.request(method, endpoint.url + path, data=data, headers=headers) as response:
                return response.status, await response.json()

        return {case.name: await run_case(case, send, f"case{i}") for i, case in enumerate(cases)}


@pytest.fixture(scope="module")
def embedded() -> dict[str, list[str]]:
    return asyncio.run(_run_embedded(CASES + ALONE))


@pytest.mark.parametrize("name", NAMES)
def test_the_embedded_server_answers_as_the_table_says(embedded: dict[str, list[str]], name: str) -> None:
    assert embedded[name] == []


def test_names_of_cases_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


async def _run_real(plane: ControlPlane) -> dict[str, list[str]]:
    async def send(method: str, path: str, body: Any) -> tuple[int, Any]:
        return await asyncio.to_thread(plane.request, method, path, body)

    async def run(case: Case, unique: str, send: Send) -> list[str]:
        async with gate:
            return await run_case(case, send, unique, patience_s=5.0)

    gate = asyncio.Semaphore(8)
    outcomes = await asyncio.gather(*(run(case, f"case{i}", send) for i, case in enumerate(CASES)))
    found = {case.name: outcome for case, outcome in zip(CASES, outcomes, strict=True)}
    # These change what all others would see.
    for i, case in enumerate(ALONE):
        found[case.name] = await run(case, f"alone{i}", send)
    return found


def test_a_real_server_answers_as_the_tables_say(real_apiserver: ControlPlane) -> None:
    found = asyncio.run(_run_real(real_apiserver))
    assert {name: problems for name, problems in found.items() if problems} == {}
