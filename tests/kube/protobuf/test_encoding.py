"""Objects become messages that are read as the same objects."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.protobuf import CannotEncode, Decoder, Encoder, decode_object, encode_object, read_rows
from holokube.kube.protobuf.fields import kubernetes_fields
from tests.kube.protobuf.objects import full_node, full_pod

ROWS = {
    "Whole": (
        (1, "text", "string", False), (2, "count", "int32", False), (3, "large", "int64", False),
        (4, "yes", "bool", False), (5, "ratio", "double", False), (6, "part", "Whole", False),
        (7, "parts", "[]Whole", False), (8, "names", "{}string", False), (9, "by_name", "{}Whole", False),
        (10, "data", "raw", False), (11, "counts", "{}int32", False), (12, "texts", "[]string", False),
    ),
}  # fmt: skip
FIELDS = {name: read_rows(rows) for name, rows in ROWS.items()}
ENCODER, DECODER = Encoder(FIELDS.get), Decoder(FIELDS.get)


def of_google() -> Any:
    """The same message in Google's library, which knows nothing of ours."""
    field_types = descriptor_pb2.FieldDescriptorProto
    types = {
        "string": field_types.TYPE_STRING, "int32": field_types.TYPE_INT32, "int64": field_types.TYPE_INT64,
        "bool": field_types.TYPE_BOOL, "double": field_types.TYPE_DOUBLE, "raw": field_types.TYPE_BYTES,
        "Whole": field_types.TYPE_MESSAGE,
    }  # fmt: skip
    file = descriptor_pb2.FileDescriptorProto(name="whole.proto", package="tests", syntax="proto3")
    message = file.message_type.add(name="Whole")

    def add(owner: Any, number: int, name: str, kind: str, label: int) -> None:
        field = owner.field.add(name=name, number=number, type=types[kind], label=label)
        if kind == "Whole":
            field.type_name = ".tests.Whole"
        elif label == field_types.LABEL_OPTIONAL and owner is message:
            # As Kubernetes' messages, which tell zero from nothing.
            field.proto3_optional = True
            field.oneof_index = len(owner.oneof_decl)
            owner.oneof_decl.add(name=f"_{name}")

    for number, name, spelled, _ in ROWS["Whole"]:
        kind = spelled.removeprefix("[]").removeprefix("{}")
        if spelled.startswith("{}"):
            entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
            entry.options.map_entry = True
            add(entry, 1, "key", "string", field_types.LABEL_OPTIONAL)
            add(entry, 2, "value", kind, field_types.LABEL_OPTIONAL)
            message.field.add(
                name=name, number=number, type=field_types.TYPE_MESSAGE, label=field_types.LABEL_REPEATED,
                type_name=f".tests.Whole.{entry.name}",
            )  # fmt: skip
        else:
            add(message, number, name, kind, field_types.LABEL_REPEATED if spelled.startswith("[]") else 1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tests.Whole"))


WHOLE = of_google()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
INT32 = st.integers(-(2**31), 2**31 - 1)
WHOLES = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "text": TEXTS, "count": INT32, "large": st.integers(-(2**63), 2**63 - 1), "yes": st.booleans(),
            "ratio": st.floats(allow_nan=False, allow_infinity=False), "data": st.binary(max_size=200),
            "names": st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3),
            "counts": st.dictionaries(TEXTS, INT32, min_size=1, max_size=3),
            "texts": st.lists(TEXTS, min_size=1, max_size=3),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "text": TEXTS, "part": inner, "parts": st.lists(inner, min_size=1, max_size=2),
            "by_name": st.dictionaries(TEXTS, inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)  # fmt: skip


def google_message(value: dict[str, Any]) -> Any:
    message = WHOLE()
    for name, found in value.items():
        if name == "part":
            message.part.CopyFrom(google_message(found))
        elif name == "parts":
            message.parts.extend(map(google_message, found))
        elif name == "by_name":
            for key, inner in found.items():
                message.by_name[key].CopyFrom(google_message(inner))
        elif name in ("names", "counts"):
            getattr(message, name).update(found)
        elif name == "texts":
            message.texts.extend(found)
        else:
            setattr(message, name, found)
    return message


@given(WHOLES)
def test_what_is_written_is_read_alike_by_us_and_by_googles_library(value: dict[str, Any]) -> None:
    raw = ENCODER.encode(value, "Whole")
    assert DECODER.decode(raw, "Whole") == value
    read = WHOLE()
    read.ParseFromString(raw)
    assert read == google_message(value)


@given(WHOLES)
def test_what_googles_library_writes_is_read(value: dict[str, Any]) -> None:
    found = DECODER.decode(google_message(value).SerializeToString(), "Whole")
    assert found == value


def test_a_node_comes_back_as_it_was() -> None:
    node = full_node()
    assert decode_object(encode_object(node, "v1", "Node"), "v1", "Node") == node


def test_a_pod_comes_back_as_it_was_but_for_what_go_takes_for_nothing() -> None:
    pod = full_pod()
    found = decode_object(encode_object(pod, "v1", "Pod"), "v1", "Pod")
    # Go's JSON leaves out a plain field that is zero; false behind a pointer stays.
    del pod["spec"]["hostNetwork"]
    assert found == pod
    assert found["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is False
    assert found["spec"]["terminationGracePeriodSeconds"] == 0
    assert found["spec"]["volumes"][0] == {"name": "scratch", "emptyDir": {}}


def test_numbers_are_quantities_and_null_is_nothing() -> None:
    node = {"metadata": {"name": "n", "creationTimestamp": None}, "status": {"capacity": {"cpu": 2, "pods": 1.5}}}
    assert decode_object(encode_object(node, "v1", "Node"), "v1", "Node") == {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "2", "pods": "1500m"}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "api_version", "part"),
    [
        ("Secret", "v1", {"data": {"k": "AP8="}}),
        ("PodDisruptionBudget", "policy/v1", {"spec": {"minAvailable": 3}}),
        ("PodDisruptionBudget", "policy/v1", {"spec": {"minAvailable": "30%"}}),
        ("Lease", "coordination.k8s.io/v1", {"spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}}),
        ("ControllerRevision", "apps/v1", {"data": {"spec": {"x": [1, None]}}, "revision": -4}),
        ("Pod", "v1", {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {}}}]}}),
        ("Pod", "v1", {"metadata": {"deletionTimestamp": "1969-12-31T23:59:59Z"}}),
        (
            "CustomResourceDefinition",
            "apiextensions.k8s.io/v1",
            {"spec": {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "default": {"a": 1}, "minimum": 1.5, "enum": [3, "x"], "items": {"type": "string"},
                "additionalProperties": True, "properties": {"a": {"additionalProperties": {"type": "string"}}},
            }}}]}},
        ),
    ],
)  # fmt: skip
def test_types_with_a_form_of_their_own_come_back(kind: str, api_version: str, part: dict[str, Any]) -> None:
    found = decode_object(encode_object(part, api_version, kind), api_version, kind)
    assert contains(found, part)


def contains(found: Any, part: Any) -> bool:
    """Structs that Go always writes may stand around it, empty."""
    if isinstance(part, dict):
        return all(key in found and contains(found[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(found) and all(map(contains, found, part))
    return bool(found == part)


def test_every_message_of_the_tables_can_be_planned() -> None:
    """A type that the tables name and do not have would be found only when somebody uses the field."""
    encoder, seen, left = Encoder(kubernetes_fields), set(), ["io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.Node"]
    while left:
        message = left.pop()
        if message in seen:
            continue
        seen.add(message)
        encoder.encode({}, message)
        fields = kubernetes_fields(message)
        assert fields is not None
        left += [field.type for field in fields.values() if "." in field.type]
    assert len(seen) > 100


@pytest.mark.parametrize(
    ("node", "where"),
    [
        ({"metadata": {"labels": ["a"]}}, "metadata.labels: "),
        ({"metadata": "n"}, "metadata: str is not an object"),
        ({"metadata": {"name": 7}}, "metadata.name: "),
        ({"metadata": {"generation": 2**63}}, "metadata.generation: .* 64 bits"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp: "),
        ({"spec": {"taints": {"key": "a"}}}, "spec.taints: dict is not a list"),
        ({"spec": {"unschedulable": "yes"}}, "spec.unschedulable: .* neither"),
        ({"status": {"capacity": {"cpu": [1]}}}, "status.capacity"),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_refused_by_its_field(node: dict[str, Any], where: str) -> None:
    with pytest.raises(CannotEncode, match=f"^{where}"):
        encode_object(node, "v1", "Node")


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(CannotEncode, match="Unicorn"):
        encode_object({}, "v1", "Unicorn")
