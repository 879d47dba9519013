from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.crds.json_schema import Check
from holokube.apiserver.crds.shaping import apply_defaults, drop_nulls, private, prune
from holokube.apiserver.crds.structural import structural

NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "x", "yy"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
DEFAULTS = {"string": "s", "integer": 1, "boolean": True}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    kinds = ["string", "integer", "boolean"] + (["object", "array", "map", "any"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Any]
    if kind == "object":
        schema = {
            "type": "object",
            "properties": draw(st.dictionaries(NAMES, schemas(depth - 1), max_size=3)),
        }
        if draw(st.booleans()):
            schema["x-kubernetes-preserve-unknown-fields"] = True
    elif kind == "map":
        schema = {"type": "object", "additionalProperties": draw(schemas(depth - 1))}
    elif kind == "array":
        schema = {"type": "array", "items": draw(schemas(depth - 1))}
    elif kind == "any":
        schema = {"x-kubernetes-preserve-unknown-fields": True}
    else:
        schema = {"type": kind}
        if draw(st.booleans()):
            schema["default"] = DEFAULTS[kind]
    if draw(st.booleans()):
        schema["nullable"] = True
    return schema


@given(schemas(), VALUES)
def test_a_second_pruning_finds_nothing(schema: dict[str, Any], value: Any) -> None:
    node = structural(schema)
    once = private(value)
    prune(once, node)
    twice = private(once)
    assert prune(twice, node) == []
    assert twice == once


@given(schemas(), VALUES)
def test_a_second_defaulting_changes_nothing(schema: dict[str, Any], value: Any) -> None:
    node = structural(schema)
    once = private(value)
    drop_nulls(once, node)
    apply_defaults(once, node)
    twice = private(once)
    drop_nulls(twice, node)
    apply_defaults(twice, node)
    assert twice == once


@given(schemas(), VALUES)
def test_pruning_keeps_what_the_schema_says_and_reports_the_rest(schema: dict[str, Any], value: Any) -> None:
    pruned = private(value)
    unknown = prune(pruned, structural(schema))
    assert bool(unknown) == (pruned != private(value))


@given(schemas(), VALUES)
def test_a_valid_value_stays_valid_when_it_is_shaped(schema: dict[str, Any], value: Any) -> None:
    check, node = Check(schema), structural(schema)
    if check.problems(value):
        return
    shaped = private(value)
    prune(shaped, node)
    drop_nulls(shaped, node)
    apply_defaults(shaped, node)
    assert check.problems(shaped) == []


@given(VALUES)
def test_a_private_copy_shares_nothing(value: Any) -> None:
    before = orjson.dumps(value)
    copy = private(value)
    assert copy == value
    _spoil(copy)
    assert orjson.dumps(value) == before


def _spoil(value: Any) -> None:
    if isinstance(value, dict):
        for part in value.values():
            _spoil(part)
        value.clear()
    elif isinstance(value, list):
        for part in value:
            _spoil(part)
        value.clear()


def test_numbers_are_read_as_go_reads_them() -> None:
    assert private([1.0, 1.5, 2**63, -(2**63)]) == [1, 1.5, float(2**63), -(2**63)]
    assert [type(n) for n in private([1.0, 1.5, 2**63, 5])] == [int, float, float, int]


def test_elements_of_a_list_that_preserves_unknown_fields_keep_them_at_their_own_level() -> None:
    item = {"type": "object", "properties": {"known": {"type": "object", "properties": {}}}}
    node = structural({"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": item})
    value = [{"free": 1, "known": {"lost": 1}}]
    assert prune(value, node) == ["[0].known.lost"]
    assert value == [{"free": 1, "known": {}}]
