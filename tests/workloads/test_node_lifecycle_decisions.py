from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holokube.workloads.node_lifecycle_decisions import Pace, Zones, ZoneState, zone_of
from tests.workloads.test_node_lifecycle_controller import ready_node

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ready", "silent", "state", "rate_per_s"),
    [
        (10, 0, ZoneState.NORMAL, 0.1),
        (1, 2, ZoneState.NORMAL, 0.1),
        (2, 3, ZoneState.PARTIAL, 0.0),
        (40, 60, ZoneState.PARTIAL, 0.01),
        (0, 3, ZoneState.FULL, 0.1),
    ],
)
def test_a_zone_is_given_up_at_the_pace_of_its_state(
    ready: int, silent: int, state: ZoneState, rate_per_s: float
) -> None:
    zones = Zones()
    zones.put("elsewhere", ready_node("elsewhere", "other"))
    for n in range(ready + silent):
        zones.put(f"n{n}", ready_node(f"n{n}", "a", "True" if n < ready else "Unknown"))
    zone = zone_of(ready_node("x", "a"))
    assert zones.state(zone) is state
    assert zones.eviction_rate_per_s(zone) == rate_per_s
    zones.put("elsewhere", None)
    assert zones.all_disrupted() == (ready == 0)


def test_a_pace_of_one_in_ten_seconds() -> None:
    pace = Pace()
    assert pace.wait_s(0.1, START) == 0
    assert pace.wait_s(0.1, START + timedelta(seconds=4)) == pytest.approx(6)
    assert pace.wait_s(0.0, START + timedelta(seconds=5)) is None
    assert pace.wait_s(0.1, START + timedelta(seconds=5)) == pytest.approx(5)
    assert pace.wait_s(0.1, START + timedelta(seconds=10)) == 0
