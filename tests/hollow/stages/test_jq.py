"""The jq expressions that Stages use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.stages.errors import QueryError
from holokube.hollow.stages.jq import Query, compile_query

POD: dict[str, Any] = {
    "metadata": {"annotations": {"a.b/c": "1s", "empty": ""}, "ownerReferences": [{"kind": "Job"}, {"kind": "X"}]},
    "status": {
        "phase": "Running",
        "count": 3,
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
        "containerStatuses": [{"state": {"running": {"startedAt": "t"}}}, {"state": {}}],
    },
}


@pytest.mark.parametrize(
    ("expression", "results"),
    [
        (".status.phase", ["Running"]),
        (".status.nothing.at.all", []),
        ('.metadata.annotations["a.b/c"]', ["1s"]),
        ('.metadata.annotations."a.b/c"', ["1s"]),
        ('.metadata.annotations["empty"]', [""]),
        ('.metadata.labels["x"]', []),
        (".metadata.ownerReferences.[].kind", ["Job", "X"]),
        (".metadata.ownerReferences[].kind", ["Job", "X"]),
        (".metadata.ownerReferences[0].kind", ["Job"]),
        (".metadata.ownerReferences[-1].kind", ["X"]),
        (".status.containerStatuses.[].state.running.startedAt", ["t"]),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        ('.status.conditions.[] | select( .type != "Ready" and .status == "False" ) | .type', ["Other"]),
        ('.status.conditions.[] | select( .type == "A" or (.status == "True" | not) ) | .type', ["Other"]),
        (".missing.[] | .x", []),
        (".missing[]?", []),
        ('.status.missing // "fallback"', ["fallback"]),
        (".status.conditions | length", [2]),
        ('.status | has("phase")', [True]),
        ('.status.conditions | any(.type == "Ready")', [True]),
        ('.status.conditions | all(.type == "Ready")', [False]),
        ("select(.status.count > 2) | .status.count", [3]),
        ("select(.status.count >= 4) | .status.count", []),
        ('.status.phase | startswith("Run")', [True]),
        (".status.conditions | first | .type", ["Ready"]),
        (".status.count | tostring", ["3"]),
    ],
)  # fmt: skip
def test_expressions_find_what_jq_finds(expression: str, results: list[Any]) -> None:
    assert compile_query(expression).run(POD) == results


@pytest.mark.parametrize(
    "expression",
    ["", ".a | reduce", ".a = 1", ".a[", ".a | map(.b)", "select(.a ==)", ".[1:2]", ".a..b", "{a: 1}", '"open'],
)
def test_what_is_not_understood_is_refused(expression: str) -> None:
    with pytest.raises(QueryError):
        compile_query(expression)


def test_an_expression_that_fails_half_way_yields_nothing_at_all() -> None:
    assert compile_query(".[] | .a").run([{"a": 1}, "text"]) == []


@given(st.text(alphabet='.[]()|"?=!<> abselct0-/', max_size=40))
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    try:
        query = Query(text)
    except QueryError:
        return
    assert isinstance(query.run({"a": [{"b": 1}, "c"]}), list)
