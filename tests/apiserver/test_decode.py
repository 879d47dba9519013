from __future__ import annotations

from typing import Any

import pytest

from holokube.apiserver.decode import DecodeError, Decoder, parse_json, parse_yaml
from holokube.apiserver.types import TypeCatalog
from holokube.kube.errors import BadRequest
from holokube.kube.schema import Schema

CATALOG = TypeCatalog()


def schema_of(kind: str, group: str = "") -> Schema:
    found = CATALOG.schema_of_kind(group, "v1", kind)
    assert found is not None
    return found


def decode(value: dict[str, Any], kind: str = "Pod", group: str = "") -> dict[str, Any]:
    return Decoder().decode(value, schema_of(kind, group))


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


def test_quantities_get_their_canonical_form() -> None:
    pod = decode(container(resources={"requests": {"cpu": "1000m", "memory": 1024}}))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1024"}


def test_times_get_their_canonical_form() -> None:
    pod = decode({"metadata": {"creationTimestamp": "2026-01-01T01:00:00.5+01:00"}})
    assert pod["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_nulls_and_empty_lists_vanish() -> None:
    assert decode({"metadata": {"labels": {}, "finalizers": [], "name": None}}) == {"metadata": {}}


def test_an_empty_object_stays_because_it_may_mean_something() -> None:
    pod = decode({"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []}})
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_unknown_fields_are_dropped_and_reported_with_their_path() -> None:
    decoder = Decoder()
    body = {"spec": {"containers": [{"name": "c", "frob": 1}]}, "extra": {}}
    out = decoder.decode(body, schema_of("Pod"))
    assert out == {"spec": {"containers": [{"name": "c"}]}}
    assert decoder.unknown_fields == ["spec.containers[0].frob", "extra"]


def test_the_result_shares_nothing_with_the_input() -> None:
    body = {"data": {"a": "b"}, "metadata": {"labels": {"x": "y"}}}
    out = decode(body, "ConfigMap")
    out["data"]["a"] = "changed"
    out["metadata"]["labels"]["x"] = "changed"
    assert body == {"data": {"a": "b"}, "metadata": {"labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            {"data": {"x": 1}},
            "ConfigMap",
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            container(image=5),
            "Pod",
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            {"spec": {"containers": {"name": 5}}},
            "Pod",
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"spec": {"hostNetwork": "yes"}},
            "Pod",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": 1.5}},
            "Pod",
            ("json: cannot unmarshal number into Go struct field "
             "PodSpec.spec.terminationGracePeriodSeconds of type int64"),
        ),
        (
            {"spec": {"priority": 2**31}},
            "Pod",
            "json: cannot unmarshal number 2147483648 into Go value of type int32",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_as_go_names_it(body: dict[str, Any], kind: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(body, kind)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (container(resources={"requests": {"cpu": "a lot"}}), "Pod"),
        ({"data": {"x": "not base64!"}}, "Secret"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "Pod"),
        (container(ports=[{"containerPort": 80, "hostPort": True}]), "Pod"),
    ],
)
def test_malformed_scalars_are_refused(body: dict[str, Any], kind: str) -> None:
    with pytest.raises(DecodeError):
        decode(body, kind)


def test_nesting_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(300):
        schema = {"properties": {"a": schema}, "type": "object"}
    crd = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    with pytest.raises(DecodeError, match="max depth"):
        decode(crd, "CustomResourceDefinition", "apiextensions.k8s.io")


def test_duplicate_keys_are_found_with_their_path_whatever_the_spacing() -> None:
    value, duplicates = parse_json(b'{"a": {"x": 1, "x": 2}, "l": [{"y": 1, "y": 1}]}')
    assert value == {"a": {"x": 2}, "l": [{"y": 1}]}
    assert duplicates == ["a.x", "l[0].y"]


def test_compact_json_without_duplicates_takes_the_fast_way() -> None:
    assert parse_json(b'{"a":1,"b":{"c":[1,2]}}\n') == ({"a": 1, "b": {"c": [1, 2]}}, [])


@pytest.mark.parametrize("text", [b"", b"{", b"nope", b"\xff\xfe", b"{} {}"])
def test_malformed_json_is_a_bad_request(text: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_json(text)


def test_yaml_dates_stay_strings() -> None:
    assert parse_yaml(b"a: 2026-01-01\nb: 2026-01-01T00:00:00Z\n") == {"a": "2026-01-01", "b": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("text", [b"a: [", b"a: &x [*x]", b"!!python/object:os.system {}", b"? [1, 2]\n: 3"])
def test_malformed_yaml_is_a_bad_request(text: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_yaml(text)


def test_a_yaml_bomb_is_refused_before_it_grows() -> None:
    lines = [b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 60)]
    with pytest.raises(BadRequest, match="aliasing"):
        parse_yaml(b"\n".join(lines))
