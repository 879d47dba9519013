"""Whether the loop is alive."""

from __future__ import annotations

from holokube.base.clock import VirtualClock
from holokube.cluster_autoscaler.loop.health import HealthCheck
from holokube.cluster_autoscaler.options import AutoscalerOptions


def test_who_waits_to_lead_is_healthy_for_ever() -> None:
    clock = VirtualClock()
    health = HealthCheck(clock, AutoscalerOptions())
    clock.advance(100_000)
    assert health.problem() is None
    health.start_monitoring()
    assert health.problem() is None, "its time begins now"


def test_the_first_turn_has_twenty_minutes() -> None:
    clock = VirtualClock()
    health = HealthCheck(clock, AutoscalerOptions())
    health.start_monitoring()
    clock.advance(1200)
    assert health.problem() is None
    clock.advance(1)
    assert health.problem() == "Error: last activity more 20m1s ago, last success more than 20m1s ago"


def test_later_ten_minutes_without_a_turn_are_too_long() -> None:
    clock = VirtualClock()
    health = HealthCheck(clock, AutoscalerOptions())
    health.start_monitoring()
    health.succeeded()
    clock.advance(600)
    assert health.problem() is None
    clock.advance(1)
    assert health.problem() is not None
    health.active()
    assert health.problem() is None
    health.stop_monitoring()
    clock.advance(10_000)
    assert health.problem() is None


def test_turns_that_all_fail_are_unhealthy_after_a_quarter_of_an_hour() -> None:
    clock = VirtualClock()
    health = HealthCheck(clock, AutoscalerOptions())
    health.start_monitoring()
    health.succeeded()
    for _ in range(16):
        clock.advance(60)
        health.active()
    assert health.problem() == "Error: last activity more 0s ago, last success more than 16m0s ago"
