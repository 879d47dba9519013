from collections.abc import Iterable

import pytest

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import Deletions, NodeToRemove
from holokube.cluster_autoscaler.scale_down.budgets import GroupBatch, crop_to_budgets
from tests.cluster_autoscaler.scale_down.world import make_group, make_node, make_pod

Cropped = list[tuple[str, list[str]]]


def atomic(group_id: str, size: int, members: Iterable[str]) -> GroupView:
    return make_group(group_id, size=size, members=members, zero_or_max_node_scaling=True)


def crop(
    empty: list[str],
    drain: list[str],
    groups: Iterable[GroupView],
    *,
    in_flight: Deletions | None = None,
    parallel: int = 10,
    drains: int = 1,
) -> tuple[list[GroupBatch], list[GroupBatch]]:
    """Nodes are named after their group: ``a1`` is of group ``a``."""
    nodes = [make_node(name) for group in groups for name in (one.id.removeprefix("test:") for one in group.instances)]
    return crop_to_budgets(
        [NodeToRemove(make_node(name)) for name in empty],
        [NodeToRemove(make_node(name), (make_pod("p"),)) for name in drain],
        options=AutoscalerOptions(max_scale_down_parallelism=parallel, max_drain_parallelism=drains),
        deletions=in_flight or Deletions(),
        groups={group.id: group for group in groups},
        group_of_node={name: name[0] for name in (*empty, *drain)},
        nodes=nodes,
    )


def named(batches: list[GroupBatch]) -> Cropped:
    return [(batch.group.id, [node.name for node in batch.nodes]) for batch in batches]


ORDINARY = [make_group("a"), make_group("b")]


@pytest.mark.parametrize(
    ("empty", "drain", "parallel", "drains", "expected"),
    [
        (["a1", "b1"], ["a2"], 10, 1, ([("a", ["a1"]), ("b", ["b1"])], [("a", ["a2"])])),
        (["a1", "b1", "a2"], [], 2, 1, ([("a", ["a1", "a2"])], [])),
        (["a1", "b1"], ["a2"], 2, 1, ([("a", ["a1"]), ("b", ["b1"])], [])),
        ([], ["a1", "a2", "b1"], 10, 1, ([], [("a", ["a1"])])),
        ([], ["a1", "b1", "b2"], 10, 2, ([], [("a", ["a1"]), ("b", ["b1"])])),
        (["a1"], ["a2", "a3"], 2, 5, ([("a", ["a1"])], [("a", ["a2"])])),
    ],
)
def test_empty_nodes_go_first_within_the_limits(
    empty: list[str], drain: list[str], parallel: int, drains: int, expected: tuple[Cropped, Cropped]
) -> None:
    found = crop(empty, drain, ORDINARY, parallel=parallel, drains=drains)
    assert (named(found[0]), named(found[1])) == expected


def test_deletions_in_flight_count() -> None:
    in_flight = Deletions(empty=("x",), drained=("y",))
    empty, drain = crop(["a1", "a2"], ["b1"], ORDINARY, in_flight=in_flight, parallel=3, drains=1)
    assert named(empty) == [("a", ["a1"])]
    assert drain == []


def test_a_node_of_no_group_is_left_out() -> None:
    assert crop(["z1"], [], ORDINARY) == ([], [])


def test_an_atomic_group_goes_before_others_and_as_a_whole() -> None:
    groups = [atomic("a", 2, ["a1", "a2"]), make_group("b")]
    empty, _ = crop(["b1", "b2", "a1", "a2"], [], groups, parallel=3)
    assert named(empty) == [("a", ["a1", "a2"]), ("b", ["b1"])]
    assert [batch.batch_size for batch in empty] == [2, 0]


def test_a_part_of_an_atomic_group_stays() -> None:
    assert crop(["a1"], [], [atomic("a", 2, ["a1", "a2"])]) == ([], [])


def test_machines_that_never_registered_are_not_waited_for() -> None:
    empty, _ = crop(["a1", "a2"], [], [atomic("a", 5, ["a1", "a2"])])
    assert named(empty) == [("a", ["a1", "a2"])]
    assert empty[0].batch_size == 2


def test_an_atomic_group_may_be_partly_empty() -> None:
    empty, drain = crop(["a1"], ["a2"], [atomic("a", 2, ["a1", "a2"])])
    assert (named(empty), named(drain)) == ([("a", ["a1"])], [("a", ["a2"])])
    assert (empty[0].batch_size, drain[0].batch_size) == (2, 2)


def test_one_oversized_atomic_group_may_overflow_and_then_nothing_else_goes() -> None:
    names = [f"a{number}" for number in range(5)]
    groups = [atomic("a", 5, names), atomic("b", 1, ["b1"]), make_group("c")]
    empty, drain = crop([*names, "b1", "c1"], ["c2"], groups, parallel=3)
    assert named(empty) == [("a", names)]
    assert drain == []
    drained = crop([], ["a0", "a1", "a2", "a3", "a4", "b1"], groups, drains=1)[1]
    assert named(drained) == [("a", names)]


def test_no_atomic_group_overflows_once_the_limits_are_used() -> None:
    in_flight = Deletions(empty=("x", "y"))
    assert crop(["a1", "a2"], [], [atomic("a", 2, ["a1", "a2"])], in_flight=in_flight, parallel=2) == ([], [])
