from __future__ import annotations

import pytest

from holokube.client.resources import NODES
from holokube.workloads import node_ttl_controller
from holokube.workloads.node_ttl_controller import ANNOTATION, next_step
from tests.builders import node
from tests.workloads.housekeeping import House


@pytest.mark.parametrize(
    ("step", "nodes", "expected"),
    [(0, 100, 0), (0, 101, 1), (1, 95, 1), (1, 89, 0), (0, 5000, 4), (4, 1900, 4), (4, 1000, 3), (4, 0, 0)],
)  # fmt: skip
def test_a_step_is_left_only_well_beyond_its_end(step: int, nodes: int, expected: int) -> None:
    assert next_step(step, nodes) == expected


def test_every_node_is_told_and_told_again_when_the_cluster_has_grown() -> None:
    with House(node_ttl_controller.build) as home:
        home.create(NODES, node("n0"))
        home.pass_time(1)
        assert home.get(NODES, "n0")["metadata"]["annotations"] == {ANNOTATION: "0"}
        home.load([node(f"n{number}") for number in range(1, 101)])
        home.pass_time(1)
        assert home.get(NODES, "n100")["metadata"]["annotations"] == {ANNOTATION: "15"}
        home.patch(NODES, "n0", {"metadata": {"labels": {"any": "change"}}})
        home.pass_time(1)
        assert home.get(NODES, "n0")["metadata"]["annotations"] == {ANNOTATION: "15"}


def test_a_wrong_value_is_put_right() -> None:
    with House(node_ttl_controller.build) as home:
        home.create(NODES, {**node("n"), "metadata": {"name": "n", "annotations": {ANNOTATION: "soon"}}})
        home.pass_time(1)
        assert home.get(NODES, "n")["metadata"]["annotations"] == {ANNOTATION: "0"}
