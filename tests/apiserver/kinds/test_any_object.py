"""Whatever the decoder lets through, the rules of a kind answer: they never fail themselves."""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import conversion
from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.all_kinds import kind_for
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.apiserver.kinds.other_registry import OTHER_KINDS
from holokube.apiserver.resources import ResourceTable, Served
from holokube.apiserver.types import TypeCatalog
from holokube.base.rng import Rng
from holokube.kube.errors import BadRequest, Invalid
from holokube.kube.schema import Schema, Shape
from holokube.kube.types import JsonObject
from holokube.store.values import Stored
from tests.apiserver.kinds.workload_steps import NobodyThere

_TABLE = ResourceTable(TypeCatalog())
_CONTEXT = WriteContext(datetime(2026, 1, 1, tzinfo=UTC), Rng(1), NobodyThere(), "somebody")
_WORDS = (
    "", "a", "a.b", "a/b", "A_", "x" * 70, "*", "None", "10.96.0.5", "fd00::1", "10.0.0.0/8", "True", "v1", "In",
    "Exists", "-1", "é", "\n", "/", " ", "NodePort", "LoadBalancer", "ExternalName", "Local", "ClientIP", "Container",
    "Pod", "Queue", "Limited", "Exempt", "Resource", "Pods", "Object", "JSONPatch", "ServiceAccount", "User", "IPv4",
    "IPv6", "FQDN", "50%", "PersistentVolumeClaim", "Namespace", "Bound", "kubernetes.io/tls", "storage", "cpu",
)  # fmt: skip
_SCALARS: dict[Shape, tuple[Any, ...]] = {
    Shape.INTEGER: (0, 1, -1, 80, 30000, 70000, 2**31 - 1),
    Shape.NUMBER: (0, 1.5),
    Shape.BOOLEAN: (True, False),
    Shape.QUANTITY: ("0", "1", "-1", "100m", "1Gi", "1e3", "0.0000001", "9999999999999999999"),
    Shape.INT_OR_STRING: (0, 1, -5, "50%", "abc", "", "120%", 70000),
    Shape.ANY: ({}, {"a": 1}, [], "x", 3, True),
}
_FORMATS: dict[str, tuple[str, ...]] = {
    "date-time": ("2026-01-01T00:00:00.000000Z",),
    "byte": ("", "aGk=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFiYwotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0t"),
}


def _value(schema: Schema, draw: Random, depth: int) -> Any:
    if draw.random() < 0.04:
        return None
    if schema.shape is Shape.OBJECT:
        likely = 0.7 if depth < 3 else 0.4 if depth < 9 else 0.0
        return {key: _value(part, draw, depth + 1) for key, part in schema.fields.items() if draw.random() < likely}
    if schema.shape is Shape.LIST:
        return [_value(schema.items, draw, depth + 1) for _ in range(draw.choice((0, 1, 1, 2, 3)))]
    if schema.shape is Shape.MAP:
        return {draw.choice(_WORDS): _value(schema.items, draw, depth + 1) for _ in range(draw.choice((0, 1, 2)))}
    if schema.shape in _SCALARS:
        return copy.deepcopy(draw.choice(_SCALARS[schema.shape]))
    return draw.choice(_FORMATS.get(schema.format) or schema.enum or _WORDS)


def _decoded(served: Served, kind: Kind, draw: Random) -> JsonObject:
    while True:
        body = {key: _value(part, draw, 1) for key, part in served.schema.fields.items()}
        body.update(apiVersion=served.api_version, kind=served.kind, metadata={"name": "x", "namespace": "default"})
        try:
            obj = Decoder().decode(body, served.schema)
        except DecodeError:
            continue
        obj = conversion.to_storage(served, obj)
        kind.default(obj)
        return obj


def _write_in_every_way(kind: Kind, first: JsonObject, second: JsonObject) -> None:
    old = copy.deepcopy(first)
    if kind.has_status and not kind.keeps_status_on_create:
        old.pop("status", None)
    kind.prepare_create(old, _CONTEXT)
    kind.validate(old, FieldErrors())
    kind.warnings(old, None)
    kind.field_values(old)
    if kind.has_status:
        old["status"] = copy.deepcopy(first["status"])
        changed = {**copy.deepcopy(old), "status": copy.deepcopy(second["status"])}
        kind.prepare_status_update(changed, old, _CONTEXT)
        kind.validate_status_update(changed, old, FieldErrors())
        second = {**second, "status": copy.deepcopy(old["status"])}
    new = copy.deepcopy(second)
    kind.prepare_update(new, old, _CONTEXT)
    kind.validate_update(new, old, FieldErrors())
    kind.warnings(new, old)
    kind.spec_changed(new, old)


_SERVED = [
    served
    for (group, plural) in OTHER_KINDS
    if group != "apiextensions.k8s.io"
    for resource_type in [_TABLE.type(group, plural)]
    if resource_type is not None
    for served in [_TABLE.find(group, version, plural) for version in resource_type.versions]
    if served is not None
]


@pytest.mark.parametrize("served", _SERVED, ids=lambda served: f"{served.api_version} {served.plural}")
@settings(max_examples=12, deadline=None)
@given(draw=st.randoms(use_true_random=False, note_method_calls=False))
def test_any_object_is_stored_or_refused(served: Served, draw: Random) -> None:
    kind = kind_for(served.group, served.plural)
    kind.has_status = "status" in served.info.subresources
    first, second = _decoded(served, kind, draw), _decoded(served, kind, draw)
    again = copy.deepcopy(first)
    kind.default(again)
    assert again == first, "defaulting twice must be the same as defaulting once"
    conversion.to_served(served, Stored(first, 1))
    with suppress(BadRequest, Invalid):
        _write_in_every_way(kind, first, second)
