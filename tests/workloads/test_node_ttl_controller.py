from __future__ import annotations

import pytest

from holokube.client.resources import NODES
from holokube.workloads import node_ttl_controller
from holokube.workloads.node_ttl_controller import ANNOTATION, NodeTtl, next_step
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


def test_a_node_that_has_what_it_is_to_have_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    usual = NodeTtl.reconcile

    async def counted(self: NodeTtl, key: str) -> None:
        looks.append(key)
        await usual(self, key)

    monkeypatch.setattr(NodeTtl, "reconcile", counted)
    with House(node_ttl_controller.build) as home:
        home.create(NODES, node("n"))
        home.pass_time(1)
        assert looks.pop(0) == "n"
        looks.clear()
        home.patch(NODES, "n", {"metadata": {"labels": {"any": "change"}}})
        home.pass_time(1)
        assert not looks
        home.patch(NODES, "n", {"metadata": {"annotations": {ANNOTATION: "soon"}}})
        home.pass_time(1)
        assert looks and home.get(NODES, "n")["metadata"]["annotations"] == {ANNOTATION: "0"}
        looks.clear()
        home.delete(NODES, "n")
        home.pass_time(1)
        assert not looks
