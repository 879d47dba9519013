"""Reads bodies in Kubernetes' protobuf, which current Go clients (kubectl among them) send for built-in types.

Everything behind this module sees JSON. Answers are always JSON: clients that speak protobuf accept it as well.
"""

from __future__ import annotations

from holokube.kube.errors import BadRequest
from holokube.kube.protobuf import MEDIA_TYPE, Malformed, decode_envelope
from holokube.kube.types import JsonObject

__all__ = ["MEDIA_TYPE", "decode_body"]


def decode_body(body: bytes) -> JsonObject:
    """The object in an envelope of runtime.Unknown, as JSON with apiVersion and kind."""
    try:
        return decode_envelope(body)
    except (Malformed, RecursionError) as problem:
        raise BadRequest(
            f"couldn't get version/kind; protobuf parse error: {problem}",
            hint="send application/json if the client cannot be mended",
        ) from None
