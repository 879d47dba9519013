"""priority."""

from __future__ import annotations

import pytest

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.expanders.priority import (
    CONFIG_MAP,
    PrioritiesError,
    PriorityExpander,
    parse_priorities,
)
from tests.builders import config_map
from tests.cluster_autoscaler.scale_up.objects import option


def kept(ids: str, text: str | None) -> tuple[list[str], list[str]]:
    """The groups that are left of these, and the events."""
    maps = {} if text is None else {CONFIG_MAP: config_map(CONFIG_MAP, "kube-system", priorities=text)}
    ctx = ExpanderContext(0.0, Rng(1), config_maps=maps)
    best = PriorityExpander().best_options([option(name) for name in ids.split()], ctx)
    return [one.group_id for one in best], [warning.reason for warning in ctx.warnings]


def test_the_highest_number_with_a_match_wins() -> None:
    text = "10: [spot]\n50: ['^reserved-']\n20: ['.*']"
    assert kept("spot-a reserved-a reserved-b other", text) == (["reserved-a", "reserved-b"], [])
    assert kept("spot-a other", text) == (["spot-a", "other"], [])


def test_patterns_match_anywhere_in_the_id() -> None:
    assert kept("my-spot-group other-spot", "1: [spot]") == (["my-spot-group", "other-spot"], [])


def test_groups_without_a_match_are_not_used_while_another_matches() -> None:
    assert kept("a b c", "1: ['^b$']") == (
        ["b"], ["PriorityConfigMapNotMatchedGroup", "PriorityConfigMapNotMatchedGroup"]
    )


def test_without_any_match_nothing_is_filtered() -> None:
    assert kept("a b", "1: [x]") == (
        ["a", "b"],
        ["PriorityConfigMapNotMatchedGroup", "PriorityConfigMapNotMatchedGroup", "PriorityConfigMapNoGroupMatched"],
    )


def test_priorities_below_minus_one_are_never_chosen() -> None:
    assert kept("a b", "-1: [a]\n-5: [b]") == (["a"], [])
    assert kept("a b", "-5: [a, b]") == (["a", "b"], ["PriorityConfigMapNoGroupMatched"])


def test_a_missing_config_map_filters_nothing_and_says_nothing() -> None:
    assert kept("a b", None) == (["a", "b"], [])


@pytest.mark.parametrize("text", ["", "5", "x: [a]", "5: a", "5: [1]", "5: ['(']", "5: [a", "true: [a]"])
def test_a_config_map_that_makes_no_sense_filters_nothing_and_says_so(text: str) -> None:
    assert kept("a b", text) == (["a", "b"], ["PriorityConfigMapInvalid"])


def test_a_config_map_without_the_key_says_so() -> None:
    maps = {CONFIG_MAP: config_map(CONFIG_MAP, "kube-system", other="x")}
    ctx = ExpanderContext(0.0, Rng(1), config_maps=maps)
    assert len(PriorityExpander().best_options([option("a"), option("b")], ctx)) == 2
    assert ctx.warnings[0].message == (
        "Wrong configmap for priority expander, doesn't contain priorities key. Ignoring update."
    )


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(PrioritiesError, match="regexp rule for priority 7 and rule \\("):
        parse_priorities("7: ['(']")
