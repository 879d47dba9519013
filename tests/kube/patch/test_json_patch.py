from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.patch import (
    PatchError,
    PatchNotApplicable,
    PatchPathMissing,
    PatchTestFailed,
    PatchTooLarge,
)
from holokube.kube.patch.json_patch import MAX_COPIED_BYTES, MAX_OPERATIONS, apply_json_patch


def op(kind: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **rest}


@pytest.mark.parametrize(
    ("doc", "operations", "expected"),
    [
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"a": [1, 3]}, [op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [op("add", "/a/1", value=2)], {"a": [1, 2]}),
        ({"a": [1]}, [op("add", "/a/-", value=2)], {"a": [1, 2]}),
        ({"a": [1, 2]}, [op("add", "/a/-1", value=3)], {"a": [1, 2, 3]}),
        ({"a": None}, [op("add", "/a", value=None)], {"a": None}),
        ({"a": 1}, [op("add", "/b")], {"a": 1, "b": None}),
        ({"a": 1, "b": 2}, [op("remove", "/a")], {"b": 2}),
        ({"a": [1, 2]}, [op("remove", "/a/0")], {"a": [2]}),
        ({"a": [1, 2]}, [op("remove", "/a/-1")], {"a": [1]}),
        ({"a": None}, [op("remove", "/a")], {}),
        ({"a": 1}, [op("replace", "/a", value=[])], {"a": []}),
        ({"a": 1}, [op("replace", "", value={"b": 1})], {"b": 1}),
        ({"a": {"b": 1}, "c": {}}, [op("move", "/c/d", **{"from": "/a/b"})], {"a": {}, "c": {"d": 1}}),
        ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"})], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"x/y": 1, "m~n": 2}, [op("remove", "/x~1y"), op("replace", "/m~0n", value=3)], {"m~n": 3}),
        ({"~1": 1}, [op("remove", "/~01")], {}),
        ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
        ({"a": 1}, [op("test", "/a", value=1)], {"a": 1}),
        ({"a": {"b": [1, {"c": None}]}}, [op("test", "/a", value={"b": [1, {"c": None}]})], None),
        ({"a": 1}, [op("test", "", value={"a": 1})], None),
    ],
)
def test_operations_do_what_the_rfc_says(doc: Any, operations: Any, expected: Any) -> None:
    before = copy.deepcopy(doc)
    assert apply_json_patch(doc, operations) == (before if expected is None else expected)
    assert doc == before


def test_replace_of_a_missing_object_key_adds_it_like_kube_apiserver() -> None:
    assert apply_json_patch({}, [op("replace", "/a", value=1)]) == {"a": 1}


def test_copy_of_a_missing_object_key_writes_null_like_kube_apiserver() -> None:
    assert apply_json_patch({}, [op("copy", "/a", **{"from": "/b"})]) == {"a": None}


def test_a_missing_key_passes_a_test_for_null() -> None:
    assert apply_json_patch({}, [op("test", "/a", value=None)]) == {}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (op("remove", "/nope"), "Unable to remove nonexistent key: nope"),
        (op("remove", "/list/5"), "Unable to access invalid index: 5"),
        (op("remove", "/list/-"), 'parsing "-"'),
        (op("add", "/nope/x", value=1), 'add operation does not apply: doc is missing path: "/nope/x"'),
        (op("add", "/list/4", value=1), "Unable to access invalid index: 4"),
        (op("add", "/list/x", value=1), 'parsing "x"'),
        (op("add", "", value=1), 'doc is missing path: ""'),
        (op("add", "/name/x", value=1), "doc is missing path"),
        (op("replace", "/list/3", value=1), "doc is missing key: /list/3"),
        (op("move", "/x", **{"from": "/nope"}), "Unable to remove nonexistent key"),
        (op("copy", "/x", **{"from": "/nope/y"}), "doc is missing from path: /nope/y"),
        (op("test", "/nope/y", value=1), "is missing path: /nope/y"),
    ],
)
def test_places_that_are_not_there_cannot_be_patched(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchPathMissing) as caught:
        apply_json_patch({"name": "x", "list": [1, 2, 3]}, [operation])
    assert message in str(caught.value)
    assert caught.value.code == 422


@pytest.mark.parametrize("value", [2, "1", True, 1.0, None, [1], {"a": 1}])
def test_a_failed_test_stops_the_patch(value: Any) -> None:
    with pytest.raises(PatchTestFailed, match="testing value /a failed"):
        apply_json_patch({"a": 1}, [op("add", "/b", value=1), op("test", "/a", value=value)])


@pytest.mark.parametrize("patch", [{}, "x", None, 1, [1], [[]]])
def test_a_document_that_is_no_list_of_operations_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({}, patch)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "operation", [{}, {"op": "frob", "path": "/a"}, {"op": "add"}, {"op": "move", "path": "/a"}]
)
def test_operations_that_make_no_sense_cannot_be_applied(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchNotApplicable) as caught:
        apply_json_patch({"a": 1}, [operation])
    assert caught.value.code == 422


def test_too_many_operations_are_refused() -> None:
    operations = [op("test", "/a", value=1)] * (MAX_OPERATIONS + 1)
    with pytest.raises(PatchTooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        apply_json_patch({"a": 1}, operations)
    assert apply_json_patch({"a": 1}, operations[1:]) == {"a": 1}


def test_copies_may_not_blow_the_object_up() -> None:
    big = "x" * (MAX_COPIED_BYTES // 2)
    copies = [op("copy", f"/{n}", **{"from": "/a"}) for n in range(2)]
    with pytest.raises(PatchTooLarge, match="exceeding the limit 3145728"):
        apply_json_patch({"a": big}, copies)


def test_a_copied_value_lives_on_its_own() -> None:
    doc = {"a": {"b": [1]}}
    out = apply_json_patch(doc, [
        op("add", "/a/b/-", value=2),
        op("copy", "/a/c", **{"from": "/a"}),
        op("add", "/a/b/-", value=3),
    ])  # fmt: skip
    assert out == {"a": {"b": [1, 2, 3], "c": {"b": [1, 2]}}}


def test_values_of_the_patch_are_not_written_to_by_later_operations() -> None:
    value: dict[str, Any] = {"list": []}
    out = apply_json_patch({}, [op("add", "/a", value=value), op("add", "/a/list/-", value=1)])
    assert out == {"a": {"list": [1]}}
    assert value == {"list": []}


SCALARS = st.one_of(st.integers(0, 3), st.sampled_from(["s", "t"]), st.booleans())
KEYS = st.sampled_from(["a", "b", "x/y", "~t"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCS = st.dictionaries(KEYS, VALUES, max_size=4)


def pointers(value: Any, prefix: str = "") -> list[str]:
    found = [prefix]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        found += pointers(inner, f"{prefix}/{jsonpointer.escape(str(step))}")
    return found


@given(data=st.data(), doc=DOCS)
@settings(max_examples=300, deadline=None)
def test_the_jsonpatch_library_agrees(data: st.DataObject, doc: dict[str, Any]) -> None:
    operations: list[dict[str, Any]] = []
    current = copy.deepcopy(doc)
    for _ in range(data.draw(st.integers(1, 4))):
        known = [pointer for pointer in pointers(current) if pointer]
        steps = st.sampled_from(["a", "new", "0", "1", "7", "-"])
        anywhere = st.tuples(st.sampled_from(["", *known]), steps).map("/".join)
        path = data.draw(st.sampled_from(known) | anywhere if known else anywhere)
        kind = data.draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]))
        operation = op(kind, path)
        if kind in ("move", "copy"):
            if not known:
                continue
            operation["from"] = data.draw(st.sampled_from(known))
            if path.startswith(operation["from"]):
                # The library refuses moves into themselves; copies into themselves are tested above.
                continue
        elif kind != "remove":
            operation["value"] = data.draw(VALUES)
        if kind == "replace" and path not in known:
            continue
        operations.append(operation)
        try:
            expected = jsonpatch.apply_patch(doc, operations)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
            with pytest.raises(PatchNotApplicable):
                apply_json_patch(doc, operations)
            operations.pop()
            continue
        before = copy.deepcopy(doc)
        assert apply_json_patch(doc, operations) == expected
        assert doc == before
        current = expected
