"""least-waste."""

from __future__ import annotations

import math

import pytest

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.expanders.context import ExpanderContext, Step
from holokube.cluster_autoscaler.expanders.least_waste import LeastWasteExpander, waste_of
from holokube.cluster_autoscaler.scale_up.option import Batch, Option
from tests.cluster_autoscaler.scale_up.objects import option, pod, pods_of, template


def best_of(*options: Option) -> list[str]:
    best = LeastWasteExpander().best_options(options, ExpanderContext(0.0, Rng(1)))
    return [one.group_id for one in best]


def test_waste_is_the_share_of_capacity_that_no_placed_pod_asks_for() -> None:
    placed = pods_of("x", 3, cpu="1", memory="2Gi")
    assert waste_of(option(nodes=2, pods=placed, cpu="2", memory="8Gi")) == (0.25, 0.625)


def test_the_seeds_one_to_seven_workload_wastes_less_on_the_smaller_machines() -> None:
    # Pods of one core and 7Gi: half of a 1:16 machine stays empty, an eighth of a 1:8 machine.
    placed = pods_of("x", 4, cpu="1", memory="7Gi")
    large = option("large", 2, placed, cpu="2", memory="32Gi")
    small = option("small", 4, placed, cpu="1", memory="8Gi")
    assert waste_of(large) == (0.0, 1 - 28 / 64)
    assert waste_of(small) == (0.0, 1 - 28 / 32)
    assert best_of(large, small) == ["small"]


def test_only_exactly_equal_waste_is_a_tie() -> None:
    placed = pods_of("x", 2)
    assert best_of(option("a", 1, placed), option("b", 1, placed), option("c", 2, placed)) == ["a", "b"]


def test_an_option_without_any_waste_is_found() -> None:
    full = pods_of("x", 4, cpu="1", memory="4Gi")
    assert best_of(option("a", 1, full), option("b", 2, full)) == ["a"]


def test_pods_that_are_alike_are_counted_without_being_listed() -> None:
    exemplar = pod("p", cpu="500m", memory="1Gi")
    one = Option("a", 1, (exemplar,) * 3, template("a", "4", "8Gi"), kinds=(Batch(exemplar, 3),))
    assert waste_of(one) == (1 - 1.5 / 4, 1 - 3 / 8)


def test_a_machine_without_capacity_does_not_end_the_loop() -> None:
    nothing = option("none", 1, (), cpu="0", memory="0")
    assert math.isnan(waste_of(nothing)[0])
    assert best_of(option("a", 1, pods_of("x", 1)), nothing) == ["a"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_scores_are_told_whatever_the_order(order: tuple[str, str]) -> None:
    ctx = ExpanderContext(0.0, Rng(1))
    options = {"a": option("a", 1, pods_of("x", 2)), "b": option("b", 2, pods_of("x", 2))}
    ctx.steps.append(Step("least-waste", order))
    LeastWasteExpander().best_options([options[name] for name in order], ctx)
    told = {score.group_id: score.text for score in ctx.steps[-1].scores}
    assert told["a"] == "would waste 50.00% CPU, 87.50% Memory, 68.75% Blended"
