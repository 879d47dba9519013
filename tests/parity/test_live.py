"""A few clusters against the running kube-scheduler, so that the recorder and its recordings cannot rot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from holokube.testing.controlplane import find_or_build, programs_for
from tests.conftest import obtain
from tests.parity import recordings
from tests.parity.clusters import feasibility_world, scores_world
from tests.parity.real_scheduler import LOG_SCORES, NO_BATCHES, Oracle, running_oracle
from tests.parity.test_feasibility import verdict_differences
from tests.parity.test_scores import score_differences

pytestmark = pytest.mark.real


def run(
    request: pytest.FixtureRequest, folder: Path, test: Callable[[Oracle], Awaitable[None]], **options: Any
) -> None:
    binaries = obtain(request, lambda: find_or_build(build=True, programs=programs_for(("scheduler",))))

    async def main() -> None:
        # Longer than the recorder waits: here a busy machine must not look like a difference.
        async with running_oracle(binaries, folder, settle_s=1.0, **options) as oracle:
            await test(oracle)

    asyncio.run(main())


def test_the_real_scheduler_still_says_what_was_recorded(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    recorded = recordings.load("feasibility")

    async def test(oracle: Oracle) -> None:
        # One cluster of each focus.
        for seed in range(4):
            world = feasibility_world(seed)
            verdicts = [list(astuple(verdict)) for verdict in await oracle.judge(world)]
            row = {"seed": seed, "digest": world.digest(), "verdicts": verdicts}
            assert row == recorded[seed]
            assert verdict_differences(row) == []

    run(request, tmp_path, test)


def test_the_real_scheduler_still_scores_as_the_embedded_one(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async def test(oracle: Oracle) -> None:
        for seed in range(1000, 1003):
            world = scores_world(seed)
            # Which of equally good nodes is taken is chance, so this is not compared with what was recorded.
            placements = [list(astuple(placement)) for placement in await oracle.place(world)]
            assert any(scores for _, _, scores in placements)
            row = {"seed": seed, "digest": world.digest(), "placements": placements}
            assert score_differences(row) == []

    run(request, tmp_path, test, refuses=False, scheduler_args=(LOG_SCORES, NO_BATCHES))
