"""Grids and lists of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.lab.sweep.settings import combine, parse_axis, read_list, split_values


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b", ["a", "b"]),
        ("1", ["1"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("{a: 1, b: 2},x", ["{a: 1, b: 2}", "x"]),
        ("'a,b', \"c,d\"", ["'a,b'", '"c,d"']),
        ("a,,b", ["a", "", "b"]),
        ("", [""]),
    ],
)
def test_commas_separate_unless_they_are_inside_something(text: str, parts: list[str]) -> None:
    assert list(split_values(text)) == parts


def test_values_are_read_as_yaml_and_shown_as_written() -> None:
    found = parse_axis('spec.x[web].y=20,"40",[1,2],true')
    assert [setting.texts for setting in found] == [
        {"spec.x[web].y": text} for text in ("20", '"40"', "[1,2]", "true")
    ]
    values: list[Any] = [setting.overrides["spec.x[web].y"] for setting in found]
    assert values == [20, "40", [1, 2], True]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("p=[--expander=random],[--expander=price]", [["--expander=random"], ["--expander=price"]]),
        ("p={kind: constant, replicas: 3},7", [{"kind": "constant", "replicas": 3}, 7]),
        ("p='20','x'", ["20", "x"]),
    ],
)
def test_lists_mappings_and_quoted_texts_are_values_like_others(text: str, values: list[object]) -> None:
    assert [one.overrides["p"] for one in parse_axis(text)] == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.seed", "not of the form PATH=VALUE"),
        ("=1", "not of the form PATH=VALUE"),
        ("spec.seed=", "a value is missing"),
        ("spec.seed=1,,2", "a value is missing"),
        ("spec.seed=1,2,1", "a value is there twice"),
        ("spec.seed={a", "is no value"),
    ],
)
def test_a_bad_axis_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_axis(text)


def test_a_grid_has_every_value_with_every_other_the_last_changing_fastest() -> None:
    found = combine([parse_axis("a=1,2"), parse_axis("b=x,y,z")])
    assert [tuple(setting.texts.values()) for setting in found] == [
        ("1", "x"), ("1", "y"), ("1", "z"), ("2", "x"), ("2", "y"), ("2", "z"),
    ]  # fmt: skip
    assert [setting.texts for setting in combine([])] == [{}], "a sweep of nothing is one run"


def test_a_path_is_not_set_twice() -> None:
    with pytest.raises(UsageError, match="a is set twice"):
        combine([parse_axis("a=1,2"), parse_axis("a=3")])


def test_a_list_has_a_choice_in_each_row(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text('spec.seed,policy,"spec.x[a].y"\n1,none,\n\n2,,"[1,2]"\n')
    first, second = read_list(path)
    assert (first.texts, first.policy) == ({"spec.seed": "1"}, "none")
    assert (second.overrides, second.policy) == ({"spec.seed": 2, "spec.x[a].y": [1, 2]}, "")
    assert len(combine([parse_axis("spec.duration=1h,2h"), [first, second]])) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a column without a name"),
        (b"spec.seed,\n1,2\n", "a column without a name"),
        (b"spec.seed\n", "has no rows"),
        (b"a,a\n1,2\n", "the header has a twice"),
        (b"a,b\n1\n", "line 2: 1 cells under 2 names"),
        (b"\xff\xfe", "is not text"),
    ],
)
def test_a_bad_list_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "l.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_list(path)


def test_a_missing_list_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_list(tmp_path / "none.csv")
