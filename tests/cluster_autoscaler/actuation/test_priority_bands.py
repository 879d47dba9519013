from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.actuation.priority_bands import bands, single_band
from holokube.kube.types import JsonObject


def _pod(name: str, priority: int | None) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {} if priority is None else {"priority": priority}}


def test_without_bands_all_pods_go_at_once() -> None:
    pods = [_pod("a", None), _pod("b", -5), _pod("c", 2_000_000_000)]
    (band,) = bands(single_band(600), pods, [])
    assert band.full == pods
    assert band.grace_s == 600


@pytest.mark.parametrize(
    ("priority", "band"),
    [(None, 0), (-1, 0), (0, 0), (9, 0), (10, 1), (11, 1), (99, 1), (100, 2), (101, 2), (10**9, 2)],
)
def test_a_pod_belongs_to_the_highest_band_not_above_it(priority: int | None, band: int) -> None:
    found = bands(((100, 3), (0, 1), (10, 2)), [_pod("p", priority)], [])
    assert [len(one.full) for one in found] == [int(index == band) for index in range(3)]
    assert [one.grace_s for one in found] == [1, 2, 3]


def test_best_effort_pods_are_kept_apart() -> None:
    must, may = _pod("a", 0), _pod("b", 50)
    found = bands(((0, 1), (50, 2)), [must], [may])
    assert [(one.full, one.best_effort) for one in found] == [([must], []), ([], [may])]
