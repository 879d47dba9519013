"""Protobuf bodies become the JSON that Go would have written for the same object."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.http.protobuf import decode_body
from holokube.kube.errors import BadRequest

MAGIC = b"k8s\x00"


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: bytes | str | int | float) -> bytes:
    """One field; texts and messages by length, whole numbers as varints."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, *fields: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, b"".join(fields))


def decoded(api_version: str, kind: str, *fields: bytes) -> dict[str, Any]:
    found = decode_body(envelope(api_version, kind, *fields))
    assert (found.pop("apiVersion"), found.pop("kind")) == (api_version, kind)
    return found


def test_maps_and_texts_are_read() -> None:
    meta = field(1, "settings") + field(11, field(1, "a") + field(2, "b")) + field(11, field(1, "c") + field(2, ""))
    found = decoded("v1", "ConfigMap", field(1, meta), field(2, field(1, "k") + field(2, "ü")))
    assert found == {"metadata": {"name": "settings", "labels": {"a": "b", "c": ""}}, "data": {"k": "ü"}}


def test_bytes_become_base64() -> None:
    found = decoded("v1", "Secret", field(2, field(1, "k") + field(2, b"\x00\xff")), field(3, "Opaque"))
    assert found == {"data": {"k": base64.b64encode(b"\x00\xff").decode()}, "type": "Opaque"}


def test_zeros_of_plain_fields_are_left_out_and_of_pointers_kept() -> None:
    spec = field(1, 0) + field(5, 0)
    # replicas is a pointer: nobody set it, or somebody set it to zero. minReadySeconds is not.
    assert decoded("apps/v1", "Deployment", field(2, spec)) == {"spec": {"replicas": 0}}


def test_negative_numbers_keep_their_sign() -> None:
    assert decoded("scheduling.k8s.io/v1", "PriorityClass", field(2, -5)) == {"value": -5}


def test_quantities_times_and_numbers_or_texts_look_as_in_json() -> None:
    hard = field(1, "cpu") + field(2, field(1, "1500m"))
    assert decoded("v1", "ResourceQuota", field(2, field(1, hard))) == {"spec": {"hard": {"cpu": "1500m"}}}
    meta = field(8, field(1, 1_767_225_600) + field(2, 0))
    assert decoded("v1", "Node", field(1, meta)) == {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    # Go's zero time; the real Go JSON leaves it out here, and shows null where a type insists on it.
    assert decoded("v1", "Node", field(1, field(8, b""))) == {"metadata": {}}
    lease = field(4, field(1, 1_767_225_600) + field(2, 123_456_789))
    assert decoded("coordination.k8s.io/v1", "Lease", field(2, lease)) == {
        "spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}
    }
    for value, expected in ((field(2, 3), 3), (field(1, 1) + field(3, "30%"), "30%")):
        found = decoded("policy/v1", "PodDisruptionBudget", field(2, field(1, value)))
        assert found == {"spec": {"minAvailable": expected}}


def test_embedded_structs_are_merged_into_their_owner() -> None:
    volume = field(1, "data") + field(2, field(1, field(1, "/srv")))
    found = decoded("v1", "Pod", field(2, field(1, volume)))
    assert found == {"spec": {"volumes": [{"name": "data", "hostPath": {"path": "/srv"}}]}}


def test_delete_options_are_read_in_every_group() -> None:
    for group_version in ("v1", "policy/v1", "apps/v1"):
        options = field(1, 0) + field(2, field(1, "uid-1")) + field(4, "Foreground") + field(5, "All")
        assert decoded(group_version, "DeleteOptions", options) == {
            "gracePeriodSeconds": 0, "preconditions": {"uid": "uid-1"}, "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        }  # fmt: skip


def test_schemas_of_definitions_take_their_odd_shapes() -> None:
    text = field(5, "string")
    props = b"".join(
        (
            field(5, "object"),
            field(8, field(1, b'{"a":1}')),
            field(11, 1.5),
            field(20, field(1, b"3")),
            field(24, field(1, text)),
            field(30, field(1, 1)),
        )
    )
    version = field(1, "v1") + field(4, field(1, props))
    found = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema == {
        "type": "object", "default": {"a": 1}, "minimum": 1.5, "enum": [3], "items": {"type": "string"},
        "additionalProperties": True,
    }  # fmt: skip


def test_fields_of_newer_clients_are_skipped() -> None:
    assert decoded("v1", "Namespace", field(900, "new"), field(1, field(1, "n"))) == {"metadata": {"name": "n"}}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "four bytes"),
        (b'{"kind":"Pod"}', "four bytes"),
        (MAGIC, "no kind"),
        (envelope("v1", "Unicorn"), "no kind"),
        (envelope("../../x/v1", "Pod"), "no kind"),
        (MAGIC + b"\x0a\xff", "cut off"),
        (envelope("v1", "Pod", b"\x12\x7f"), "longer than what holds it"),
        (envelope("v1", "Pod", b"\x0b"), "wire type 3"),
        (envelope("v1", "Pod", field(1, 5)), "wire type 0"),
        (envelope("v1", "ConfigMap", field(2, field(1, b"\xff"))), "not UTF-8"),
        (envelope("v1", "Node", field(1, field(8, field(1, 2**62)))), "out of range"),
    ],
)
def test_what_is_not_a_message_is_a_bad_request(body: bytes, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        decode_body(body)


def test_envelopes_within_envelopes_come_to_an_end() -> None:
    body = envelope("v1", "Namespace")
    for _ in range(2000):
        webhook = field(1, body)
        body = envelope("apps/v1", "ControllerRevision", field(2, webhook))
    with pytest.raises(BadRequest):
        decode_body(body)


@given(data=st.binary(max_size=60), kind=st.sampled_from(["Pod", "Node", "Event", "Service", "Secret"]))
def test_any_bytes_are_read_or_refused(data: bytes, kind: str) -> None:
    try:
        found = decode_body(envelope("v1", kind, data))
    except BadRequest:
        return
    assert found["kind"] == kind
