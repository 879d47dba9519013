"""How long a group is left alone."""

from __future__ import annotations

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, InstanceError
from holokube.cluster_autoscaler.cluster_state.backoff import ExponentialBackoff

ERROR = InstanceError(ErrorClass.OTHER, "boom", "it went wrong")


def backoff() -> ExponentialBackoff:
    return ExponentialBackoff(initial_s=300, max_s=1800, reset_after_s=10_800)


def test_the_first_failure_costs_five_minutes_to_the_second() -> None:
    known = backoff()
    assert known.status("g", 0) is None
    assert known.back_off("g", ERROR, 1000) == 1300
    status = known.status("g", 1300)
    assert status is not None and status.error is ERROR
    assert known.status("g", 1300.001) is None
    assert known.status("other", 1000) is None


def test_it_doubles_only_after_it_was_served_and_up_to_a_limit() -> None:
    known = backoff()
    known.back_off("g", ERROR, 0)
    assert known.back_off("g", ERROR, 100) == 400, "a second failure of the same attempt starts it anew, no longer"
    now_s, lengths = 401.0, []
    for _ in range(4):
        until_s = known.back_off("g", ERROR, now_s)
        lengths.append(until_s - now_s)
        now_s = until_s + 1
    assert lengths == [600, 1200, 1800, 1800]


def test_failures_are_forgotten_three_hours_after_the_last() -> None:
    known = backoff()
    known.back_off("g", ERROR, 0)
    known.back_off("g", ERROR, 301)
    known.remove_stale(301 + 10_800)
    assert known.back_off("g", ERROR, 301 + 10_800) == 301 + 10_800 + 1200
    known.remove_stale(301 + 2 * 10_800 + 1)
    assert known.back_off("g", ERROR, 50_000) == 50_300


def test_a_group_can_be_pardoned() -> None:
    known = backoff()
    known.back_off("g", ERROR, 0)
    known.remove("g")
    assert known.status("g", 0) is None
