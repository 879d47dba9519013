"""Whole objects: by their kind, and in the envelope that HTTP bodies have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.kube.protobuf.decoding import MAGIC, Decoder
from holokube.kube.protobuf.encoding import CannotEncode, Encoder
from holokube.kube.protobuf.fields import META_PACKAGE, RUNTIME_PACKAGE, kubernetes_fields, package_of
from holokube.kube.protobuf.wire import Malformed
from holokube.kube.types import JsonObject

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_UNKNOWN = f"{RUNTIME_PACKAGE}.Unknown"


def decode_envelope(body: bytes) -> JsonObject:
    """The object in an envelope of runtime.Unknown, as JSON with apiVersion and kind."""
    if not body.startswith(MAGIC):
        raise Malformed("the body does not start with the four bytes that mark Kubernetes' protobuf")
    envelope = _DECODER.decode(body[len(MAGIC) :], _UNKNOWN)
    return decode_object(envelope.get("-", b""), envelope.get("apiVersion", ""), envelope.get("kind", ""))


def decode_object(raw: bytes, api_version: str, kind: str) -> JsonObject:
    """The object of a known kind, as JSON with apiVersion and kind."""
    message = _message_for(api_version, kind)
    if message is None:
        raise Malformed(f'no kind "{kind}" is registered for version "{api_version}" that can be sent as protobuf')
    return {"apiVersion": api_version, "kind": kind, **_DECODER.decode(raw, message)}


def encode_envelope(obj: Mapping[str, Any]) -> bytes:
    """A body for ``Content-Type: application/vnd.kubernetes.protobuf``."""
    kind = {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", "")}
    raw = encode_object(obj, kind["apiVersion"], kind["kind"])
    return MAGIC + _ENCODER.encode({**kind, "-": raw}, _UNKNOWN)


def encode_object(obj: Mapping[str, Any], api_version: str, kind: str) -> bytes:
    """The bare message of an object, as Go's ``Marshal`` writes it; which kind it is must be known to the reader."""
    message = _message_for(api_version, kind)
    if message is None:
        raise CannotEncode(f'no kind "{kind}" of version "{api_version}" can be sent as protobuf')
    return _ENCODER.encode(obj, message)


def _message_for(api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return f"{META_PACKAGE}.DeleteOptions"
    name = f"{package_of(group, version)}.{kind}"
    return name if kind and kubernetes_fields(name) is not None else None


_DECODER = Decoder(kubernetes_fields, decode_envelope)
_ENCODER = Encoder(kubernetes_fields)
