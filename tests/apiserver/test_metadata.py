from __future__ import annotations

from typing import Any

import pytest

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
