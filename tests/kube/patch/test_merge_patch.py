from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.patch import PatchError
from holokube.kube.patch.merge_patch import apply_merge_patch, create_merge_patch


@pytest.mark.parametrize(
    ("doc", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": {"b": "c"}}, {"a": [1]}, {"a": [1]}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": 1}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_patches_merge_as_the_rfc_says(doc: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((doc, patch))
    assert apply_merge_patch(doc, patch) == expected
    assert (doc, patch) == before


@pytest.mark.parametrize("patch", [[], "x", 1, None])
def test_an_object_cannot_become_something_else(patch: Any) -> None:
    with pytest.raises(PatchError, match="Invalid JSON Patch") as caught:
        apply_merge_patch({"a": 1}, patch)
    assert caught.value.code == 400


def test_untouched_subtrees_are_shared() -> None:
    doc = {"spec": {"x": [1]}, "status": {"y": 1}}
    out = apply_merge_patch(doc, {"status": {"y": 2}})
    assert out["spec"] is doc["spec"]


def test_equal_objects_need_no_patch() -> None:
    assert create_merge_patch({"a": {"b": [1]}}, {"a": {"b": [1]}}) == {}


def test_a_patch_is_as_small_as_it_can_be() -> None:
    old = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}
    new = {"a": 1, "b": {"c": 1, "d": 3}, "f": True}
    assert create_merge_patch(old, new) == {"b": {"d": 3}, "e": None, "f": True}


def test_true_and_one_are_different() -> None:
    assert create_merge_patch({"a": 1}, {"a": True}) == {"a": True}


JSON = st.recursive(
    st.integers(0, 2) | st.text("ab", max_size=1) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@given(old=OBJECTS, new=OBJECTS)
def test_creating_and_applying_a_patch_goes_round(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy((old, new))
    out = apply_merge_patch(old, create_merge_patch(old, new))
    assert out == new
    assert (old, new) == before
