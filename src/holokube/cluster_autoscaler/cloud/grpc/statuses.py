"""What gRPC calls errors."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from holokube.base.errors import HolokubeError, TransportError
from holokube.cluster_autoscaler.cloud.errors import (
    AutoscalerError,
    ErrorKind,
    NotImplementedByProvider,
    OutOfResourcesError,
)
from holokube.kube.errors import ApiError
from holokube.kube.protobuf import CannotEncode, Malformed

# The text travels in a header, and whoever refuses large headers drops the whole answer.
_TEXT_MAX: Final = 1500


class Status(NamedTuple):
    """A code by its name, such as ``NOT_FOUND``, and what is said."""

    code: str
    text: str


class CallRefused(Exception):
    """A call that makes no sense, whatever the provider would say."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


_BY_KIND: Final = {
    ErrorKind.CLOUD_PROVIDER: "FAILED_PRECONDITION",
    ErrorKind.API_CALL: "UNAVAILABLE",
    ErrorKind.INTERNAL: "INTERNAL",
    ErrorKind.TRANSIENT: "UNAVAILABLE",
    ErrorKind.CONFIGURATION: "FAILED_PRECONDITION",
    ErrorKind.NODE_GROUP_DOES_NOT_EXIST: "NOT_FOUND",
    ErrorKind.UNEXPECTED_SCALE_DOWN_STATE: "FAILED_PRECONDITION",
}
# UNIMPLEMENTED is for providers alone: to the autoscaler it means "go on without", not that something broke.
_BY_HTTP_CODE: Final = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
    410: "ABORTED", 413: "RESOURCE_EXHAUSTED", 422: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def status_of(error: Exception) -> Status:
    """The status that tells a client best what went wrong."""
    text = str(error) or type(error).__name__
    if isinstance(error, HolokubeError) and error.hint:
        text = f"{text}; {error.hint}"
    if isinstance(error, HolokubeError | CallRefused | Malformed):
        return Status(_code_of(error), text[:_TEXT_MAX])
    return Status(_code_of(error), f"{type(error).__name__}: {text}"[:_TEXT_MAX])


def _code_of(error: Exception) -> str:
    match error:
        case CallRefused():
            return error.code
        case NotImplementedByProvider():
            return "UNIMPLEMENTED"
        case OutOfResourcesError():
            return "RESOURCE_EXHAUSTED"
        case AutoscalerError():
            return _BY_KIND[error.kind]
        case ApiError():
            return _BY_HTTP_CODE.get(error.http_code, "INTERNAL")
        case TransportError():
            return "UNAVAILABLE"
        case Malformed():
            return "INVALID_ARGUMENT"
        case CannotEncode():
            return "INTERNAL"
        case asyncio.TimeoutError():
            return "DEADLINE_EXCEEDED"
    return "INTERNAL"
