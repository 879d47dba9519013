"""Kubernetes' protobuf: objects as messages and back, from field numbers that are data.

A message becomes the JSON that Go would have written for the same struct, and the other way round. ``messages`` holds
one file per API package; ``fields`` reads them, ``wire`` knows varints and lengths, ``decoding`` and ``encoding`` go
through messages of any such table, ``envelope`` adds what HTTP bodies have around them.
"""

from holokube.kube.protobuf.decoding import Decoder
from holokube.kube.protobuf.encoding import CannotEncode, Encoder
from holokube.kube.protobuf.envelope import MEDIA_TYPE, decode_envelope, decode_object, encode_envelope, encode_object
from holokube.kube.protobuf.fields import Field, read_rows
from holokube.kube.protobuf.wire import Malformed

__all__ = [
    "MEDIA_TYPE",
    "CannotEncode",
    "Decoder",
    "Encoder",
    "Field",
    "Malformed",
    "decode_envelope",
    "decode_object",
    "encode_envelope",
    "encode_object",
    "read_rows",
]
