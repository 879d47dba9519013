"""``--nodes``: what is understood, and what is refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec, parse_all


def test_minimum_maximum_and_name_are_divided_by_colons() -> None:
    assert NodeSpec.parse("1:10:workers") == NodeSpec(1, 10, "workers")


def test_a_name_may_contain_colons() -> None:
    assert NodeSpec.parse("0:3:arn:aws:autoscaling") == NodeSpec(0, 3, "arn:aws:autoscaling")


def test_a_group_may_begin_empty_and_may_have_a_fixed_size() -> None:
    assert NodeSpec.parse("0:0:none").max_size == 0
    assert NodeSpec.parse("+5:5:fixed") == NodeSpec(5, 5, "fixed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not of the form MIN:MAX:NAME"),
        ("workers", "not of the form MIN:MAX:NAME"),
        ("1:workers", "not of the form MIN:MAX:NAME"),
        ("a:10:workers", "the minimum 'a' is not an integer"),
        ("1:1e3:workers", "the maximum '1e3' is not an integer"),
        ("1: 2:workers", "the maximum ' 2' is not an integer"),
        ("1_0:20:workers", "the minimum '1_0' is not an integer"),
        (":1:workers", "the minimum '' is not an integer"),
        ("-1:10:workers", "must not be below 0"),
        ("3:2:workers", "must not be below the minimum"),
        ("1:2:", "the name must not be empty"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        NodeSpec.parse(text)
    assert said in caught.value.message and f"--nodes={text}" in caught.value.message
    assert "MIN:MAX:NAME" in caught.value.hint


def test_a_group_given_twice_is_refused() -> None:
    assert [spec.name for spec in parse_all(["0:1:b", "0:1:a"])] == ["b", "a"]
    with pytest.raises(UsageError, match="'a' was given as 0:1:a already"):
        parse_all(["0:1:a", "0:2:b", "1:3:a"])


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text(min_size=1))
def test_what_is_written_is_read_again(low: int, more: int, name: str) -> None:
    spec = NodeSpec(low, low + more, name)
    assert NodeSpec.parse(str(spec)) == spec
