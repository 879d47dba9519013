"""random."""

from __future__ import annotations

from collections import Counter

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.expanders.random import RandomExpander
from tests.cluster_autoscaler.scale_up.objects import option


def test_every_option_is_equally_likely() -> None:
    ctx = ExpanderContext(0.0, Rng(3))
    options = [option("a", 1), option("b", 50)]
    drawn = Counter(RandomExpander().best_options(options, ctx)[0].group_id for _ in range(1000))
    assert 400 < drawn["a"] < 600


def test_nothing_is_drawn_from_nothing() -> None:
    assert RandomExpander().best_options([], ExpanderContext(0.0, Rng(3))) == []
