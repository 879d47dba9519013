"""The kwok provider keeps to the interface, with machines that come at once and with machines that take time."""

from __future__ import annotations

import pytest

from holokube.base.clock import VirtualClock
from tests.cluster_autoscaler.cloud.conformance import CLAUSES, EMPTY, KEPT, Clause, check, name_of
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, SlowWorld, template


async def quick_world(clock: VirtualClock) -> KwokWorld:
    world = await KwokWorld.in_process(clock)
    empty = template("a", EMPTY, max_count=10, price_per_hour=0.2)
    kept = template("b", KEPT, min_count=2, max_count=5, price_per_hour=0.4)
    await world.start([empty, kept])
    await world.settle()
    return world


async def slow_world(clock: VirtualClock) -> KwokWorld:
    world = await SlowWorld.in_process(clock)
    world.settle_s = 31.0
    empty = template("a", EMPTY, max_count=10, price_per_hour=0.2, boot_delay="10s..30s")
    kept = template("b", KEPT, min_count=2, max_count=5, price_per_hour=0.4, boot_delay="20s")
    await world.start([empty, kept])
    await world.settle()
    return world


@pytest.mark.parametrize("clause", CLAUSES, ids=name_of)
def test_groups_whose_machines_come_at_once_keep_to_the_interface(clause: Clause) -> None:
    check(clause, quick_world)


@pytest.mark.parametrize("clause", CLAUSES, ids=name_of)
def test_groups_whose_machines_take_time_keep_to_the_interface(clause: Clause) -> None:
    check(clause, slow_world)
