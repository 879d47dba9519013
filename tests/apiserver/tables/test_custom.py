from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holokube.apiserver.tables.custom import custom_layout
from holokube.apiserver.tables.layout import Ages

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def cell(type: str, value: Any, path: str = ".spec.value") -> Any:
    layout = custom_layout([{"name": "V", "type": type, "jsonPath": path}])
    return layout.cells({"metadata": {"name": "n"}, "spec": {"value": value}}, Ages(NOW))[1]


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("integer", 3, 3),
        ("integer", 3.9, 3),
        ("integer", "3", None),
        ("integer", 1e21, -(2**63)),
        ("number", 3, 3.0),
        ("number", True, None),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("string", "text", "text"),
        ("string", 7, "7"),
        ("string", False, "false"),
        ("string", 1.5, "1.5"),
        ("string", 2.0, "2"),
        ("string", 1e21, "1e+21"),
        ("string", None, "<no value>"),
        ("string", {"b": 1, "a": "<"}, '{"a":"\\u003c","b":1}'),
        ("date", "2026-01-01T00:00:00Z", "24h"),
        ("date", "yesterday", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
    ],
)
def test_a_value_is_shown_by_the_type_of_its_column(type: str, value: Any, expected: Any) -> None:
    shown = cell(type, value)
    assert shown == expected
    assert shown.__class__ is expected.__class__


def test_a_value_that_is_not_there_is_null() -> None:
    assert cell("string", 1, ".spec.other") is None


def test_only_the_first_of_several_values_is_shown() -> None:
    assert cell("string", ["a", "b"], ".spec.value[*]") == "a"


def test_a_definition_without_columns_shows_the_age() -> None:
    layout = custom_layout([])
    assert [c["name"] for c in layout.columns] == ["Name", "Age"]
    obj = {"metadata": {"name": "n", "creationTimestamp": "2026-01-01T23:00:00Z"}}
    assert layout.cells(obj, Ages(NOW)) == ["n", "60m"]


def test_columns_take_over_what_the_definition_says() -> None:
    declared = {
        "name": "Size", "type": "integer", "format": "int32", "priority": 1, "description": "How big.",
        "jsonPath": ".spec.size",
    }  # fmt: skip
    shown = custom_layout([declared]).columns[1]
    assert shown == {key: value for key, value in declared.items() if key != "jsonPath"}


def test_columns_after_a_path_that_cannot_be_read_are_left_out() -> None:
    paths = {"A": ".a", "B": ".b[?", "C": ".c"}
    declared = [{"name": name, "type": "string", "jsonPath": path} for name, path in paths.items()]
    assert [c["name"] for c in custom_layout(declared).columns] == ["Name", "A"]
