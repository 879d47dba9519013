"""Errors become the codes that say most about them."""

from __future__ import annotations

import pytest

from holokube.base.errors import HolokubeError, TransportError
from holokube.cluster_autoscaler.cloud.errors import (
    AutoscalerError,
    CloudError,
    ErrorKind,
    NotImplementedByProvider,
    OutOfResourcesError,
)
from holokube.cluster_autoscaler.cloud.grpc.statuses import CallRefused, status_of
from holokube.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from holokube.kube.protobuf import CannotEncode, Malformed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotImplementedByProvider("x"), "UNIMPLEMENTED"),
        (OutOfResourcesError("x"), "RESOURCE_EXHAUSTED"),
        (CloudError("x"), "FAILED_PRECONDITION"),
        (CloudError("x", kind=ErrorKind.TRANSIENT), "UNAVAILABLE"),
        (CloudError("x", kind=ErrorKind.API_CALL), "UNAVAILABLE"),
        (CloudError("x", kind=ErrorKind.NODE_GROUP_DOES_NOT_EXIST), "NOT_FOUND"),
        (AutoscalerError("x"), "INTERNAL"),
        (CallRefused("NOT_FOUND", "x"), "NOT_FOUND"),
        (TransportError("x"), "UNAVAILABLE"),
        (NotFound("x"), "NOT_FOUND"),
        (Conflict("x"), "ABORTED"),
        (AlreadyExists("x"), "ABORTED"),
        (Forbidden("x"), "PERMISSION_DENIED"),
        (Unauthorized("x"), "UNAUTHENTICATED"),
        (Invalid("x"), "INVALID_ARGUMENT"),
        (TooManyRequests("x"), "RESOURCE_EXHAUSTED"),
        (ServiceUnavailable("x"), "UNAVAILABLE"),
        (InternalError("x"), "INTERNAL"),
        (Malformed("x"), "INVALID_ARGUMENT"),
        (CannotEncode("x"), "INTERNAL"),
        (HolokubeError("x"), "INTERNAL"),
        (TimeoutError("x"), "DEADLINE_EXCEEDED"),
        (ZeroDivisionError("x"), "INTERNAL"),
    ],
)
def test_every_error_has_its_code(error: Exception, code: str) -> None:
    assert status_of(error).code == code


def test_only_a_provider_says_that_it_does_not_implement_something() -> None:
    """The autoscaler goes on without what is not implemented, and must not when something is broken."""
    assert status_of(MethodNotAllowed("x")).code == "INTERNAL"
    assert status_of(NotImplementedError("x")).code == "INTERNAL"


def test_hints_are_part_of_what_is_said_and_nothing_is_endless() -> None:
    assert status_of(CloudError("no", hint="do so")).text == "no; do so"
    assert status_of(ZeroDivisionError()).text == "ZeroDivisionError: ZeroDivisionError"
    assert len(status_of(CloudError("x" * 100_000)).text) == 1500
