"""Stabilization, policies and bounds of autoscaling. Many numbers are those of upstream's own tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.workloads.hpa_limits import History, Limited, limit

NOW_S = 1_000_000.0


def rules(
    pods: int = 0, pods_s: int = 0, percent: int = 0, percent_s: int = 0, window_s: int = 0, select: str = "Max"
) -> dict[str, Any]:
    policies = []
    if pods:
        policies.append({"type": "Pods", "value": pods, "periodSeconds": pods_s})
    if percent:
        policies.append({"type": "Percent", "value": percent, "periodSeconds": percent_s})
    return {"policies": policies, "selectPolicy": select, "stabilizationWindowSeconds": window_s}


def spread(*changes: int, over_s: float = 120) -> tuple[tuple[float, int], ...]:
    """Changes spread evenly over the last seconds, the newest just now."""
    step_s = over_s / len(changes)
    return tuple((NOW_S - over_s + step_s * (number + 1) - 1, change) for number, change in enumerate(changes))


def limited(
    current: int, desired: int, least: int, most: int, up: dict[str, Any] | None = None,
    down: dict[str, Any] | None = None, history: History | None = None,
) -> Limited:  # fmt: skip
    behavior = {key: value for key, value in (("scaleUp", up), ("scaleDown", down)) if value}
    return limit(behavior, current, desired, least, most, history or History(), NOW_S)


UPS = History(scaled_up=spread(1, 5, 9))
DOWNS = History(scaled_down=spread(1, 5, 9))


@pytest.mark.parametrize(
    ("current", "desired", "least", "most", "up", "down", "history", "replicas", "reason"),
    [
        (5, 7, 3, 8, None, None, None, 7, "DesiredWithinRange"),
        (3, 1, 2, 8, None, None, None, 2, "TooFewReplicas"),
        (20, 1000, 1, 10, None, None, None, 10, "TooManyReplicas"),
        (100, 1000, 100, 150, None, None, None, 150, "TooManyReplicas"),
        (3, 1000, 1, 2000, rules(percent=1, percent_s=60), None, None, 4, "ScaleUpLimit"),
        (1000, 3, 3, 2000, None, rules(20, 60), None, 980, "ScaleDownLimit"),
        (10, 50, 1, 1000, None, None, None, 20, "ScaleUpLimit"),
        (10, 500, 1, 1000, rules(100, 60, 100, 60), None, None, 110, "ScaleUpLimit"),
        (10, 500, 1, 1000, rules(2, 60, 100, 60), None, None, 20, "ScaleUpLimit"),
        (10, 500, 1, 1000, rules(2, 60, 100, 60, select="Min"), None, None, 12, "ScaleUpLimit"),
        (10, 500, 1, 1000, rules(2, 60, 100, 60, select="Disabled"), None, None, 10, "ScaleUpLimit"),
        (10, 50, 1, 1000, rules(100, 60), None, None, 50, "DesiredWithinRange"),
        (10, 50, 1, 1000, rules(30, 60), None, None, 40, "ScaleUpLimit"),
        (10, 50, 1, 1000, rules(percent=200, percent_s=60), None, None, 30, "ScaleUpLimit"),
        (100, 2, 1, 1000, None, rules(20, 60, 1, 60), None, 80, "ScaleDownLimit"),
        (100, 2, 1, 1000, None, rules(2, 60, 1, 60), None, 98, "ScaleDownLimit"),
        (100, 2, 1, 1000, None, rules(20, 60, 1, 60, select="Min"), None, 99, "ScaleDownLimit"),
        (100, 2, 1, 1000, None, rules(20, 60, select="Disabled"), None, 100, "ScaleDownLimit"),
        (10, 0, 1, 1000, None, rules(100, 60), None, 1, "TooFewReplicas"),
        (10, 2, 5, 1000, None, rules(percent=100, percent_s=60), None, 5, "TooFewReplicas"),
        (10, 2, 1, 1000, None, rules(5, 60), None, 5, "ScaleDownLimit"),
        (10, 5, 1, 1000, None, rules(percent=50, percent_s=60), None, 5, "DesiredWithinRange"),
        (100, 500, 1, 200, rules(300, 60), None, UPS, 200, "TooManyReplicas"),
        (100, 500, 1, 1000, rules(5, 120), None, UPS, 100, "ScaleUpLimit"),
        (100, 500, 1, 1000, rules(150, 120), None, UPS, 235, "ScaleUpLimit"),
        (100, 500, 1, 1000, rules(percent=200, percent_s=120), None, UPS, 255, "ScaleUpLimit"),
        (6, 24, 1, 1000, rules(percent=300, percent_s=300), None,
         History(scaled_up=spread(4), scaled_down=spread(2)), 16, "ScaleUpLimit"),
        (10, 5, 1, 1000, None, rules(percent=100, percent_s=15), DOWNS, 5, "DesiredWithinRange"),
        (100, 0, 5, 1000, None, rules(130, 120), DOWNS, 5, "TooFewReplicas"),
        (100, 2, 1, 1000, None, rules(10, 120), DOWNS, 100, "ScaleDownLimit"),
    ],
)  # fmt: skip
def test_policies(
    current: int, desired: int, least: int, most: int, up: dict[str, Any], down: dict[str, Any],
    history: History | None, replicas: int, reason: str,
) -> None:  # fmt: skip
    found = limited(current, desired, least, most, up, down, history)
    assert (found.replicas, found.limit_reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("current", "desired", "least", "most", "replicas", "reason", "is_limited"),
    [
        (1, 1, 1, 10, 1, "DesiredWithinRange", False),
        (1, 100, 1, 10, 4, "ScaleUpLimit", True),
        (10, 100, 1, 1000, 20, "ScaleUpLimit", True),
        (10, 100, 1, 15, 15, "TooManyReplicas", True),
        (5, 2, 3, 10, 3, "TooFewReplicas", True),
    ],
)
def test_without_behavior_a_size_at_most_doubles(
    current: int, desired: int, least: int, most: int, replicas: int, reason: str, is_limited: bool
) -> None:
    found = limit(None, current, desired, least, most, History(), NOW_S)
    assert (found.replicas, found.limit_reason, found.is_limited) == (replicas, reason, is_limited)


def recommended(*samples: tuple[float, int]) -> History:
    return History(recommendations=tuple((NOW_S - ago_s, replicas) for ago_s, replicas in samples))


def test_the_highest_recommendation_of_five_minutes_stands_before_a_size_goes_down() -> None:
    history = recommended((301, 12), (200, 9), (10, 7))
    for behavior in (None, {}):
        found = limit(behavior, 10, 5, 1, 100, history, NOW_S)
        assert (found.replicas, found.able_reason) == (9, "ScaleDownStabilized")
        assert found.history.recommendations[-1] == (NOW_S, 5)
    found = limit({"scaleDown": {"stabilizationWindowSeconds": 60}}, 10, 5, 1, 100, history, NOW_S)
    assert found.replicas == 7
    found = limit({"scaleDown": {"stabilizationWindowSeconds": 0}}, 10, 5, 1, 100, history, NOW_S)
    assert (found.replicas, found.able_reason) == (5, "ReadyForNewScale")


def test_a_window_upwards_takes_the_lowest_recommendation() -> None:
    history = recommended((90, 3), (30, 6))
    up = {"scaleUp": rules(50, 15, window_s=60)}
    found = limit(up, 4, 10, 1, 100, history, NOW_S)
    assert (found.replicas, found.able_reason) == (6, "ScaleUpStabilized")
    assert limit(up, 4, 10, 1, 100, recommended((90, 3)), NOW_S).replicas == 10


def test_the_first_look_holds_the_size_it_finds() -> None:
    history = History().begun(8, NOW_S)
    assert limit(None, 8, 1, 1, 10, history, NOW_S + 200).replicas == 8
    assert limit(None, 8, 1, 1, 10, history, NOW_S + 301).replicas == 1
    assert history.begun(3, NOW_S + 1) is history


def test_what_is_remembered_is_bounded() -> None:
    history = History()
    for beat in range(2000):
        history = history.recommended(beat % 7, NOW_S + beat * 15).rescaled(1, 2, NOW_S + beat * 15)
    assert len(history.recommendations) == len(history.scaled_up) == 241
    assert history.rescaled(5, 3, NOW_S).scaled_down == ((NOW_S, 2),)


@given(
    current=st.integers(1, 200), desired=st.integers(0, 500), least=st.integers(1, 50), extra=st.integers(0, 200),
    samples=st.lists(st.tuples(st.floats(0, 400), st.integers(1, 300)), max_size=5),
    behavior=st.sampled_from([None, {}, {"scaleUp": rules(3, 30)}, {"scaleDown": rules(2, 30, window_s=100)}]),
)  # fmt: skip
def test_a_size_stays_within_its_bounds_and_never_goes_against_all_wishes(
    current: int, desired: int, least: int, extra: int, samples: list[tuple[float, int]], behavior: Any
) -> None:
    most = max(least, current) + extra
    current = max(current, least)
    found = limit(behavior, current, desired, least, most, recommended(*samples), NOW_S)
    assert min(least, current) <= found.replicas <= max(most, current)
    wishes = [desired, current, *(replicas for _, replicas in samples)]
    assert min(min(wishes), current) <= found.replicas or found.replicas == least
    assert found.replicas <= max(*wishes, least)
