"""Sharing an increase."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.scale_up.balancing import balance, describe
from tests.cluster_autoscaler.scale_up.objects import group


def shared(nodes: int, **sizes: tuple[int, int]) -> dict[str, int]:
    groups = [group(name, target=target, most=most) for name, (target, most) in sizes.items()]
    return {increase.group_id: increase.new_size for increase in balance(groups, nodes)}


def test_the_measured_ten_nodes_make_eight_and_three() -> None:
    assert shared(10, a=(1, 10), b=(0, 3)) == {"a": 8, "b": 3}


def test_the_smaller_group_catches_up_first() -> None:
    assert shared(2, a=(5, 10), b=(1, 10)) == {"b": 3}
    assert shared(5, a=(5, 10), b=(2, 10)) == {"a": 6, "b": 6}


def test_there_is_never_more_than_there_is_room_for() -> None:
    assert shared(100, a=(1, 3), b=(2, 3)) == {"a": 3, "b": 3}
    assert shared(5, a=(3, 3)) == {}


def test_a_group_beyond_its_maximum_gets_nothing() -> None:
    assert shared(2, a=(7, 5), b=(0, 5)) == {"b": 2}


def test_a_group_that_does_not_tell_its_size_is_an_error() -> None:
    with pytest.raises(AutoscalerError, match="does not tell its size"):
        balance([group("a", target=None)], 1)
    with pytest.raises(AutoscalerError, match="at least one group"):
        balance([], 1)


def test_increases_read_as_upstream_writes_them() -> None:
    found = balance([group("a", target=1), group("b", target=1)], 2)
    assert describe(found) == "[{a 1->2 (max: 10)} {b 1->2 (max: 10)}]"


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6), st.integers(0, 60)
)
def test_shares_are_those_of_always_serving_the_smallest(sizes: list[tuple[int, int]], nodes: int) -> None:
    groups = [group(f"g{i}", target=target, most=most) for i, (target, most) in enumerate(sizes)]
    targets = [target for target, _ in sizes]
    for _ in range(nodes):
        open_groups = [i for i, (_, most) in enumerate(sizes) if targets[i] < most]
        if not open_groups:
            break
        targets[min(open_groups, key=lambda i: targets[i])] += 1
    found = {increase.group_id: increase.new_size for increase in balance(groups, nodes)}
    got = [found.get(f"g{i}", target) for i, (target, _) in enumerate(sizes)]
    # Of equals it does not matter which one has one more, so long as all are within their limits.
    assert sorted(got) == sorted(targets)
    assert all(size <= max(most, target) for size, (target, most) in zip(got, sizes, strict=True))
