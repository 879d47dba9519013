from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.plain_decode import Odd, is_canonical_time, plain_object
from holokube.apiserver.types import TypeCatalog
from holokube.kube import timeformat
from holokube.kube.schema import Schema

CATALOG = TypeCatalog()
POD: dict[str, Any] = {
    "metadata": {
        "name": "p", "labels": {"a": "b"}, "finalizers": ["x/y"], "creationTimestamp": "2026-01-01T01:00:00+01:00",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}, "time": "2026-01-01T00:00:00Z"}],
    },
    "spec": {
        "containers": [{
            "name": "c", "args": ["a"], "ports": [{"containerPort": 80}], "tty": False,
            "resources": {"requests": {"cpu": "1000m"}, "limits": {}},
            "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
        }],
        "terminationGracePeriodSeconds": 30, "securityContext": {}, "tolerations": [],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "startTime": "2026-01-01T00:00:00Z"},
}  # fmt: skip
LEASE: dict[str, Any] = {
    "metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 40},
}  # fmt: skip
SECRET: dict[str, Any] = {"metadata": {"name": "s"}, "data": {"k": "aGk="}, "type": "Opaque"}
REVISION: dict[str, Any] = {"metadata": {"name": "r"}, "data": {"any": [1, {"thing": None}]}, "revision": 1}
SAMPLES = (("", "Pod", POD), ("coordination.k8s.io", "Lease", LEASE), ("", "Secret", SECRET),
           ("apps", "ControllerRevision", REVISION))  # fmt: skip
ODDITIES: tuple[Any, ...] = (
    None, [], {}, "", 0, 1.5, True, "text", 2**40, [None], {"k": None}, ["x", 1], {"unknown": "field"}, "1.50",
)  # fmt: skip


def schema_of(kind: str, group: str) -> Schema:
    found = CATALOG.schema_of_kind(group, "v1", kind)
    assert found is not None
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, part in inner for place in places(part, (*path, key))]


def changed(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    copied = value.copy()
    copied[path[0]] = changed(value[path[0]], path[1:], part)
    return copied


def by_the_careful_one(value: dict[str, Any], schema: Schema) -> tuple[bytes, list[str]] | str:
    decoder = Decoder()
    try:
        return orjson.dumps(decoder._object(value, schema, "", 0)), decoder.unknown_fields
    except DecodeError as problem:
        return str(problem)


def by_both(value: dict[str, Any], schema: Schema) -> tuple[bytes, list[str]] | str:
    decoder = Decoder()
    try:
        return orjson.dumps(decoder.decode(value, schema)), decoder.unknown_fields
    except DecodeError as problem:
        return str(problem)


@pytest.mark.parametrize(("group", "kind", "sample"), SAMPLES)
def test_what_is_plain_is_read_as_the_careful_reader_reads_it(group: str, kind: str, sample: dict[str, Any]) -> None:
    schema = schema_of(kind, group)
    assert by_both(sample, schema) == by_the_careful_one(sample, schema)


@settings(deadline=None)
@given(st.data())
def test_whatever_is_odd_is_left_to_the_careful_reader(data: st.DataObject) -> None:
    group, kind, value = data.draw(st.sampled_from(SAMPLES))
    schema = schema_of(kind, group)
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(value, data.draw(st.sampled_from(places(value))), data.draw(st.sampled_from(ODDITIES)))
    assert by_both(value, schema) == by_the_careful_one(value, schema)


def test_the_result_shares_nothing_with_the_body() -> None:
    schema = schema_of("Pod", "")
    before = orjson.dumps(POD)
    made = plain_object(POD, schema)
    made["metadata"]["labels"]["x"] = "y"
    made["metadata"]["finalizers"].append("z")
    made["metadata"]["managedFields"][0]["fieldsV1"]["f:b"] = {}
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert orjson.dumps(POD) == before


def test_an_unknown_field_is_odd() -> None:
    with pytest.raises(Odd):
        plain_object({"spec": {"colour": "red"}}, schema_of("Pod", ""))


def test_what_is_nested_too_deeply_is_odd() -> None:
    schema = schema_of("CustomResourceDefinition", "apiextensions.k8s.io")
    inner: dict[str, Any] = {"type": "object"}
    for _ in range(250):
        inner = {"properties": {"a": inner}}
    value = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": inner}}]}}
    assert by_both(value, schema) == by_the_careful_one(value, schema)


@given(st.integers(999, 3001), st.integers(0, 13), st.integers(0, 32), st.integers(0, 25), st.integers(0, 61))
def test_what_is_taken_for_a_time_as_it_is_written_is_one(
    year: int, month: int, day: int, hour: int, minute: int
) -> None:
    text = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:59Z"
    try:
        is_time = timeformat.format_time(timeformat.parse_time(text)) == text
    except ValueError:
        is_time = False
    found = is_canonical_time(text) is not None
    assert is_time or not found
    if 1000 <= year < 3000 and (month, day) != (2, 29):
        assert found == is_time
