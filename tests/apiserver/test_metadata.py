from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import carry_identity, validate_metadata, validate_metadata_update


def problems(namespaced: bool = True, **meta: Any) -> list[tuple[str, str]]:
    errors = FieldErrors()
    obj = {"metadata": {"name": "x", "namespace": "default", **meta}}
    validate_metadata(obj, Kind(), namespaced=namespaced, errors=errors)
    return [(cause.reason, cause.field) for cause in errors.causes]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, []),
        ({"name": ""}, [("FieldValueRequired", "metadata.name")]),
        ({"name": "A"}, [("FieldValueInvalid", "metadata.name")]),
        ({"generateName": "Bad_"}, [("FieldValueInvalid", "metadata.generateName")]),
        ({"generateName": "fine-"}, []),
        ({"namespace": ""}, [("FieldValueRequired", "metadata.namespace")]),
        ({"namespace": "a.b"}, [("FieldValueInvalid", "metadata.namespace")]),
        ({"labels": {"a b": "c"}}, [("FieldValueInvalid", "metadata.labels")]),
        ({"labels": {"a": "c d"}}, [("FieldValueInvalid", "metadata.labels")]),
        ({"annotations": {"A.Capital": "anything goes here \n"}}, []),
        ({"annotations": {"a b": ""}}, [("FieldValueInvalid", "metadata.annotations")]),
        ({"annotations": {"a": "x" * 262_145}}, [("FieldValueTooLong", "metadata.annotations")]),
        ({"finalizers": ["kubernetes", "example.com/x"]}, []),
        ({"finalizers": ["plain"]}, [("FieldValueInvalid", "metadata.finalizers[0]")]),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, [("FieldValueInvalid", "metadata.finalizers")]),
        ({"generation": -1}, [("FieldValueInvalid", "metadata.generation")]),
    ],
)
def test_rules_of_metadata(meta: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problems(**meta) == expected


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    assert problems(namespaced=False) == [("FieldValueForbidden", "metadata.namespace")]


def owner(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", **fields}


def test_only_one_owner_controls() -> None:
    assert problems(ownerReferences=[owner("a", controller=True), owner("b")]) == []
    two = problems(ownerReferences=[owner("a", controller=True), owner("b", controller=True)])
    assert two == [("FieldValueInvalid", "metadata.ownerReferences")]


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    errors = FieldErrors()
    validate_metadata_update({"metadata": after}, {"metadata": before}, errors)
    return [cause.field for cause in errors.causes]


def test_identity_is_immutable() -> None:
    before = {"name": "a", "namespace": "n", "uid": "u"}
    assert changes(before, {**before, "uid": "v"}) == ["metadata.uid"]
    assert changes(before, {**before, "deletionTimestamp": "2026-01-01T00:00:00Z"}) == ["metadata.deletionTimestamp"]


def test_no_finalizer_can_be_added_to_what_is_being_deleted() -> None:
    before = {"name": "a", "deletionTimestamp": "t", "finalizers": ["x/y"]}
    assert changes(before, {**before, "finalizers": ["x/y", "x/z"]}) == ["metadata.finalizers"]
    assert changes(before, {**before, "finalizers": []}) == []


def test_what_an_update_leaves_out_is_filled_in() -> None:
    old = {"metadata": {"uid": "u", "creationTimestamp": "t", "deletionTimestamp": "d", "generation": 3}}
    new: dict[str, Any] = {"metadata": {"selfLink": "/x", "creationTimestamp": "other", "generation": 9}}
    carry_identity(new, old)
    assert new["metadata"] == old["metadata"]


METADATA = st.fixed_dictionaries(
    {"name": st.sampled_from(["x", "y", "A", ""])},
    optional={
        "generateName": st.sampled_from(["fine-", "Bad_"]), "namespace": st.sampled_from(["default", "a.b", ""]),
        "labels": st.dictionaries(st.sampled_from(["a", "b", "a b"]), st.sampled_from(["c", "c d"])),
        "annotations": st.dictionaries(st.sampled_from(["a", "a b"]), st.sampled_from(["", "anything goes"])),
        "finalizers": st.lists(st.sampled_from(["orphan", "foregroundDeletion", "plain", "example.com/x"])),
        "ownerReferences": st.lists(st.sampled_from([owner("x"), owner("y", controller=True), owner("")])),
        "generation": st.sampled_from([0, 1, -1]),
    },
)  # fmt: skip


@given(known=METADATA, meta=METADATA, namespaced=st.booleans())
def test_what_was_found_valid_is_not_looked_at_again_and_everything_else_is(
    known: dict[str, Any], meta: dict[str, Any], namespaced: bool
) -> None:
    def causes(meta: dict[str, Any], known: dict[str, Any]) -> list[Any]:
        errors = FieldErrors()
        validate_metadata({"metadata": meta}, Kind(), namespaced=namespaced, errors=errors, known=known)
        return errors.causes

    valid = {} if causes(known, {}) else known
    assert causes(meta, valid) == causes(meta, {})
    assert causes({**meta, "labels": {}}, valid) == causes({**meta, "labels": {}}, {})


def test_what_is_known_is_taken_for_valid() -> None:
    errors = FieldErrors()
    meta = {"name": "A", "labels": {"a b": "c"}, "finalizers": ["plain"]}
    validate_metadata({"metadata": meta}, Kind(), namespaced=False, errors=errors, known=meta)
    assert not errors
