"""price."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.expanders.context import ExpanderContext, Step
from holokube.cluster_autoscaler.expanders.price import PriceExpander, preferred_cpu_milli
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.kube.resources import pod_requests
from tests.cluster_autoscaler.scale_up.objects import option, pods_of, template


class Prices:
    """A node costs by its name, a pod a cent per core and half a cent per GiB."""

    def __init__(self, nodes: dict[str, float]) -> None:
        self.nodes = nodes

    async def node_price(self, node: dict[str, Any], start_s: float, end_s: float) -> float:
        assert end_s - start_s == 3600
        group = node["metadata"]["name"].removeprefix("template-node-for-").removesuffix("-1")
        if group not in self.nodes:
            raise CloudError(f"{group} is not for sale", hint="Look for another one.")
        return self.nodes[group]

    async def pod_price(self, pod: dict[str, Any], start_s: float, end_s: float) -> float:
        assert end_s - start_s == 3600
        requests = pod_requests(pod)
        return 0.01 * requests["cpu"] / 1000 + 0.005 * requests["memory"] / 1000 / 2**30


def context(prices: dict[str, float], *, nodes: int = 4, gpu_label: str = "gpu") -> ExpanderContext:
    ctx = ExpanderContext(0.0, Rng(1), nodes, gpu_label, Prices(prices))
    ctx.steps.append(Step("price", ()))
    return ctx


def best_of(options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
    return asyncio.run(PriceExpander().best_options(options, ctx))


def test_the_score_is_the_published_formula() -> None:
    ctx = context({"a": 0.3})
    best_of([option("a", 3, pods_of("x", 5), cpu="8")], ctx)
    stabiliser = 0.005 + 0.005 * 500 / 1024
    ratio = (0.9 + stabiliser) / (5 * 0.015 + stabiliser)
    suppressed = (4 - 1) * (1 - math.tanh(2 / 15)) + 1
    assert ctx.steps[-1].scores[0].value == pytest.approx(ratio * suppressed, rel=1e-12)


def test_the_cheaper_of_two_equal_machines_wins_and_forgets_its_similar_groups() -> None:
    placed = pods_of("x", 2)
    options = [option("a", 1, placed, similar=("b",)), option("b", 1, placed, similar=("a",))]
    best = best_of(options, context({"a": 0.2, "b": 0.1}))
    assert [(one.group_id, one.similar) for one in best] == [("b", ())]
    assert "price-expander: all_nodes_price=0.100000 pods_price=0.030000" in best[0].debug


def test_equal_scores_are_a_tie() -> None:
    placed = pods_of("x", 2)
    best = best_of([option("a", 1, placed), option("b", 1, placed)], context({"a": 0.2, "b": 0.2}))
    assert [one.group_id for one in best] == ["a", "b"]


def test_a_small_cluster_prefers_small_machines_even_if_they_are_a_little_dearer() -> None:
    placed = pods_of("x", 2, cpu="500m")
    options = [option("large", 1, placed, cpu="32"), option("small", 1, placed, cpu="2")]
    assert best_of(options, context({"large": 0.1, "small": 0.11}, nodes=3))[0].group_id == "small"
    assert best_of(options, context({"large": 0.1, "small": 0.11}, nodes=500))[0].group_id == "large"


def test_a_group_that_does_not_exist_yet_counts_double() -> None:
    placed = pods_of("x", 2)
    options = [option("new", 1, placed, exists=False), option("old", 1, placed)]
    assert best_of(options, context({"new": 0.1, "old": 0.15}))[0].group_id == "old"


def test_machines_with_accelerators_are_the_last_resort() -> None:
    placed = pods_of("x", 2)
    fast = template("fast", **{"nvidia.com/gpu": "1"})
    labelled = template("labelled", labels={"gpu": "t4"})
    for info, name in ((fast, "fast"), (labelled, "labelled")):
        options = [option(name, 1, placed, info=info), option("plain", 5, placed)]
        best = best_of(options, context({name: 0.01, "plain": 0.5}))
        assert best[0].group_id == "plain"


def test_what_has_no_price_is_out_of_the_race() -> None:
    placed = pods_of("x", 2)
    best = best_of([option("a", 1, placed), option("b", 1, placed)], context({"b": 9.0}))
    assert [one.group_id for one in best] == ["b"]
    assert best_of([option("a", 1, placed)], context({})) == []


def test_a_provider_that_lost_its_prices_offers_nothing() -> None:
    assert best_of([option("a")], ExpanderContext(0.0, Rng(1))) == []


def test_the_preferred_machine_grows_with_the_cluster() -> None:
    sizes = [preferred_cpu_milli(nodes) for nodes in (0, 2, 3, 6, 7, 20, 21, 60, 61, 200, 201)]
    assert sizes == [1000, 1000, 2000, 2000, 4000, 4000, 8000, 8000, 16000, 16000, 32000]
