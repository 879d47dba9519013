from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.eviction_limits import EvictionLimits, Obstacle
from tests.karpenter.disruption.objects import NOW_S, daemon, mirror, pdb, pod

NOW, NEVER = Obstacle.NONE_ALLOWED_NOW, Obstacle.NEVER
NOT_READY = {"type": "Ready", "status": "False"}


def test_a_budget_that_allows_nothing_now_is_an_obstacle() -> None:
    limits = EvictionLimits([pdb("b", "web", allowed=0)])
    assert limits.obstacles(pod("a", labels={"app": "web"}), NOW_S, NOW) == ("default/b",)
    assert limits.obstacles(pod("a", labels={"app": "other"}), NOW_S, NOW) == ()


def test_a_budget_that_allows_one_is_none() -> None:
    assert EvictionLimits([pdb("b", "web", allowed=1)]).obstacles(pod("web"), NOW_S, NOW) == ()


def test_a_budget_of_another_namespace_does_not_count() -> None:
    elsewhere = pdb("b", "web", allowed=0)
    elsewhere["metadata"]["namespace"] = "elsewhere"
    assert EvictionLimits([elsewhere]).obstacles(pod("web"), NOW_S, NOW) == ()


def test_two_budgets_are_an_obstacle_whatever_they_allow() -> None:
    limits = EvictionLimits([pdb("b", "web", allowed=5), pdb("c", "web", allowed=5)])
    assert limits.obstacles(pod("web"), NOW_S, NOW) == ("default/b", "default/c")
    assert limits.obstacles(pod("web"), NOW_S, NEVER) == ("default/b", "default/c")


def test_pods_that_are_not_evicted_meet_no_obstacle() -> None:
    limits = EvictionLimits([pdb("b", "web", allowed=0)])
    labels = {"app": "web"}
    for one in (
        mirror("a", labels=labels),
        pod("a", labels=labels, phase="Succeeded"),
        pod("a", labels=labels, tolerations=[{"operator": "Exists"}]),
    ):
        assert limits.obstacles(one, NOW_S, NOW) == ()
    assert limits.obstacles(daemon("a", labels=labels), NOW_S, NOW) == ("default/b",)


def test_an_unready_pod_passes_where_the_budget_says_so() -> None:
    unready = pod("web", conditions=(NOT_READY,))
    assert EvictionLimits([pdb("b", "web", allowed=0)]).obstacles(unready, NOW_S, NOW) == ("default/b",)
    lenient = EvictionLimits([pdb("b", "web", allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow")])
    assert lenient.obstacles(unready, NOW_S, NOW) == ()
    assert lenient.obstacles(pod("web"), NOW_S, NOW) == ("default/b",)


@pytest.mark.parametrize(
    ("spec", "never"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": "100%"}, True),
        ({"maxUnavailable": "0"}, False),
        ({"maxUnavailable": 1}, False),
        ({"minAvailable": 3}, False),
        ({}, False),
    ],
)
def test_some_budgets_never_let_a_pod_go(spec: dict[str, Any], never: bool) -> None:
    limits = EvictionLimits([pdb("b", "web", allowed=1, **spec)])
    assert bool(limits.obstacles(pod("web"), NOW_S, NEVER)) is never
    assert limits.is_movable(pod("web"), NOW_S) is not never


def test_a_protected_pod_is_not_expected_to_move() -> None:
    limits = EvictionLimits()
    assert limits.is_movable(pod("a"), NOW_S)
    assert not limits.is_movable(pod("a", annotations={"karpenter.sh/do-not-disrupt": "true"}), NOW_S)
    assert not limits.is_movable(daemon("a"), NOW_S)


def test_limits_are_read_again_when_a_budget_is_another_object() -> None:
    budgets = [pdb("b", "web", allowed=0), pdb("c", "api", allowed=0)]
    limits = EvictionLimits(budgets)
    assert limits.at(list(budgets)) is limits
    for others in (budgets[:1], [*budgets, pdb("d", "db")], [pdb("b", "web", allowed=1), budgets[1]], []):
        assert limits.at(others).essence == EvictionLimits(others).essence
    assert limits.at([pdb("b", "web", allowed=1), budgets[1]]).obstacles(pod("web"), NOW_S, NOW) == ()
