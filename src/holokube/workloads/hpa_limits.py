"""From what the metrics ask for to what may be done about it: stabilization, rates, smallest and largest size. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

DOWNSCALE_STABILIZATION_S: Final = 300.0
"""``--horizontal-pod-autoscaler-downscale-stabilization``."""
_KEPT_S: Final = 3600.0
"""The longest window that the API allows."""
_SCALE_UP_FACTOR: Final = 2
_SCALE_UP_LEAST: Final = 4

_DEFAULT_UP: Final[Mapping[str, Any]] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DEFAULT_DOWN: Final[Mapping[str, Any]] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}

Sample = tuple[float, int]
"""When, in Unix seconds, and how many replicas."""


@dataclass(frozen=True, slots=True)
class History:
    """What is remembered of one autoscaler; lost with the process, as upstream's is."""

    recommendations: tuple[Sample, ...] = ()
    scaled_up: tuple[Sample, ...] = ()
    scaled_down: tuple[Sample, ...] = ()

    def begun(self, replicas: int, now_s: float) -> History:
        """A first look at a target holds its size for the stabilization window."""
        return self if self.recommendations else replace(self, recommendations=((now_s, replicas),))

    def recommended(self, replicas: int, now_s: float) -> History:
        return replace(self, recommendations=_kept((*self.recommendations, (now_s, replicas)), now_s))

    def rescaled(self, before: int, after: int, now_s: float) -> History:
        if after > before:
            return replace(self, scaled_up=_kept((*self.scaled_up, (now_s, after - before)), now_s))
        return replace(self, scaled_down=_kept((*self.scaled_down, (now_s, before - after)), now_s))


def _kept(samples: Iterable[Sample], now_s: float) -> tuple[Sample, ...]:
    return tuple(sample for sample in samples if sample[0] >= now_s - _KEPT_S)


@dataclass(frozen=True, slots=True)
class Limited:
    """The size that may be set, and two things to say about it."""

    replicas: int
    history: History
    able_reason: str
    able_message: str
    is_limited: bool
    limit_reason: str
    limit_message: str


_MATCHES = ("ReadyForNewScale", "recommended size matches current size")
_DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def limit(
    behavior: Mapping[str, Any] | None,
    current: int,
    desired: int,
    least: int,
    most: int,
    history: History,
    now_s: float,
    downscale_stabilization_s: float = DOWNSCALE_STABILIZATION_S,
) -> Limited:
    """Applies the rules of ``spec.behavior``, or those from before there was one."""
    if behavior is None:
        stable = _stabilized(desired, history, now_s, downscale_stabilization_s)
        able = _MATCHES if stable == desired else _DOWN_STABILIZED
        replicas, why = _within_bounds(current, stable, least, most)
    else:
        up, down = _rules(behavior, "scaleUp", _DEFAULT_UP), _rules(behavior, "scaleDown", _DEFAULT_DOWN)
        if down.get("stabilizationWindowSeconds") is None:
            down = {**down, "stabilizationWindowSeconds": downscale_stabilization_s}
        stable = _stabilized_by_rules(current, desired, up, down, history, now_s)
        stabilized = _UP_STABILIZED if desired >= current else _DOWN_STABILIZED
        able = _MATCHES if stable == desired else stabilized
        replicas, why = _within_rates(current, stable, least, most, up, down, history, now_s)
    return Limited(replicas, history.recommended(desired, now_s), *able, replicas != stable, *why)


def _rules(behavior: Mapping[str, Any], direction: str, default: Mapping[str, Any]) -> Mapping[str, Any]:
    given = behavior.get(direction) or {}
    return {**default, **{key: value for key, value in given.items() if value is not None}}


def _stabilized(desired: int, history: History, now_s: float, window_s: float) -> int:
    return max((desired, *(r for at_s, r in history.recommendations if at_s >= now_s - window_s)))


def _stabilized_by_rules(
    current: int,
    desired: int,
    up: Mapping[str, Any],
    down: Mapping[str, Any],
    history: History,
    now_s: float,
) -> int:
    """No higher than all recommendations of the upward window, no lower than all of the downward one."""
    up_from_s = now_s - float(up.get("stabilizationWindowSeconds") or 0)
    down_from_s = now_s - float(down["stabilizationWindowSeconds"])
    lowest = min((desired, *(r for at_s, r in history.recommendations if at_s > up_from_s)))
    highest = max((desired, *(r for at_s, r in history.recommendations if at_s > down_from_s)))
    return min(max(current, lowest), highest)


def _within_bounds(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    fastest = max(_SCALE_UP_FACTOR * current, _SCALE_UP_LEAST)
    if desired < least:
        return least, _TOO_FEW
    if desired > min(most, fastest):
        return (fastest, _UP_LIMIT) if most > fastest else (most, _TOO_MANY)
    return desired, _WITHIN


def _within_rates(
    current: int,
    desired: int,
    least: int,
    most: int,
    up: Mapping[str, Any],
    down: Mapping[str, Any],
    history: History,
    now_s: float,
) -> tuple[int, tuple[str, str]]:
    if desired > current:
        fastest = max(current, _rate_limit(current, up, history, now_s, upward=True))
        if desired > min(most, fastest):
            return (fastest, _UP_LIMIT) if most > fastest else (most, _TOO_MANY)
    elif desired < current:
        fastest = min(current, _rate_limit(current, down, history, now_s, upward=False))
        if desired < max(least, fastest):
            return (fastest, _DOWN_LIMIT) if least < fastest else (least, _TOO_FEW)
    return desired, _WITHIN


def _rate_limit(
    current: int, rules: Mapping[str, Any], history: History, now_s: float, *, upward: bool
) -> int:
    """As far as the policies let the size go; ``Max`` and ``Min`` are about the change, not about the size."""
    select = rules.get("selectPolicy")
    if select == "Disabled":
        return current
    reached = []
    for policy in rules.get("policies") or ():
        period_s, value = float(policy["periodSeconds"]), int(policy["value"])
        added = _changed(history.scaled_up, period_s, now_s)
        removed = _changed(history.scaled_down, period_s, now_s)
        at_start = current - added + removed
        if policy["type"] == "Pods":
            reached.append(at_start + value if upward else at_start - value)
        elif upward:
            # Rounded up: a change of less than one replica would never come about.
            reached.append(math.ceil(at_start * (1 + value / 100)))
        else:
            reached.append(int(at_start * (1 - value / 100)))
    if not reached:
        return current
    wants_most_change = select != "Min"
    return max(reached) if wants_most_change == upward else min(reached)


def _changed(samples: Iterable[Sample], period_s: float, now_s: float) -> int:
    return sum(replicas for at_s, replicas in samples if at_s > now_s - period_s)
