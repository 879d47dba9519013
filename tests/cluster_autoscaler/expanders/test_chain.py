"""Expanders one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.expanders.chain import BUILT_IN, build_chain
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option
from tests.cluster_autoscaler.scale_up.objects import option, pods_of


def context(seed: int = 1) -> ExpanderContext:
    return ExpanderContext(0.0, Rng(seed))


def choose(names: Sequence[str], options: Sequence[Option], ctx: ExpanderContext) -> str:
    best = asyncio.run(build_chain(names).choose(options, ctx))
    return best.group_id if best is not None else ""


def test_the_next_expander_breaks_the_ties_of_the_one_before() -> None:
    options = [option("a", 3, pods_of("x", 4)), option("b", 2, pods_of("x", 4)), option("c", 1, pods_of("x", 3))]
    ctx = context()
    assert choose(("most-pods", "least-nodes"), options, ctx) == "b"
    assert [(step.expander, step.offered, step.kept) for step in ctx.steps] == [
        ("most-pods", ("a", "b", "c"), ("a", "b")),
        ("least-nodes", ("a", "b"), ("b",)),
    ]
    assert [score.value for score in ctx.steps[0].scores] == [4.0, 4.0, 3.0]


def test_an_expander_that_leaves_one_option_ends_the_chain() -> None:
    ctx = context()
    assert choose(("least-nodes", "most-pods"), [option("a", 2), option("b", 1)], ctx) == "b"
    assert [step.expander for step in ctx.steps] == ["least-nodes"]


def test_ties_at_the_end_are_drawn_and_every_option_has_its_chance() -> None:
    options = [option("a", 1), option("b", 1), option("c", 1)]
    assert {choose(("least-nodes",), options, context(seed)) for seed in range(40)} == {"a", "b", "c"}


def test_the_same_seed_draws_the_same_option() -> None:
    options = [option("a"), option("b"), option("c")]
    assert len({choose(("random",), options, context(7)) for _ in range(5)}) == 1


def test_without_options_nothing_is_chosen() -> None:
    for name in BUILT_IN:
        assert choose((name,), [], context()) == ""


def test_an_expander_may_take_its_time() -> None:
    class Slow:
        name = "grpc"

        async def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
            del ctx
            await asyncio.sleep(0)
            return [options[-1]]

    chain = build_chain(("grpc",), {"grpc": Slow()})
    best = asyncio.run(chain.choose([option("a"), option("b")], context()))
    assert best is not None
    assert best.group_id == "b"


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("most-pods", "price", "most-pods"), "most-pods was specified multiple times"),
        (("biggest",), "biggest is not supported"),
        (("random", "price"), "price came after random"),
    ],
)
def test_a_chain_that_makes_no_sense_is_refused(names: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(AutoscalerError, match=complaint):
        build_chain(names)
