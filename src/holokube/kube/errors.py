"""The API's own errors: each is a ``Status`` object with a code and a reason.

The server raises them, the wire carries them as JSON, the client raises the same classes again::

    ApiError
    ├── BadRequest 400          ├── Conflict 409              ├── UnsupportedMediaType 415
    ├── Unauthorized 401        ├── AlreadyExists 409         ├── Invalid 422
    ├── Forbidden 403           ├── Gone 410                  ├── TooManyRequests 429
    ├── NotFound 404            ├── Expired 410               ├── InternalError 500
    ├── MethodNotAllowed 405    ├── RequestEntityTooLarge 413 ├── ServiceUnavailable 503
    └── NotAcceptable 406                                     └── Timeout 504
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from holokube.base.errors import HolokubeError


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why an object was refused, tied to a field such as ``spec.containers[0].image``."""

    reason: str
    message: str
    field: str = ""

    def to_json(self) -> dict[str, str]:
        body = {"reason": self.reason, "message": self.message}
        if self.field:
            body["field"] = self.field
        return body


class ApiError(HolokubeError):
    """An answer of the API server that is not a success."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after_s: int | None = None,
        hint: str = "",
        status: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.details: dict[str, Any] = dict(details or {})
        if retry_after_s is not None:
            self.details.setdefault("retryAfterSeconds", retry_after_s)
        self._status = dict(status) if status is not None else None

    @property
    def http_code(self) -> int:
        """The status code on the wire; an answer of an unknown kind keeps its own."""
        if self._status is not None:
            return int(self._status.get("code") or self.code)
        return self.code

    @property
    def status_reason(self) -> str:
        """The ``reason`` on the wire; an answer of an unknown kind keeps its own."""
        if self._status is not None:
            return str(self._status.get("reason") or "")
        return self.reason

    @property
    def retry_after_s(self) -> int | None:
        value = self.details.get("retryAfterSeconds")
        return int(value) if value is not None else None

    @property
    def causes(self) -> list[Cause]:
        return [
            Cause(reason=c.get("reason", ""), message=c.get("message", ""), field=c.get("field", ""))
            for c in self.details.get("causes", [])
        ]

    def to_status(self) -> dict[str, Any]:
        """The ``Status`` object that goes over the wire."""
        if self._status is not None:
            return self._status
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @staticmethod
    def from_status(status: Mapping[str, Any], http_code: int = 0) -> ApiError:
        """The error that a ``Status`` body stands for; unknown reasons fall back on the code."""
        code = int(status.get("code") or http_code or 500)
        reason = str(status.get("reason") or "")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
        message = str(status.get("message") or reason or f"the server answered {code}")
        details = status.get("details")
        return kind(
            message,
            details=details if isinstance(details, Mapping) else None,
            status={**status, "code": code},
        )


class BadRequest(ApiError):
    """The request itself is malformed."""

    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    """Nobody knows who asks."""

    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """The caller, or this change, is not allowed."""

    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    """No such object, resource or path."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The resource does not know this verb."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    """None of the accepted media types can be produced."""

    code = 406
    reason = "NotAcceptable"


class Conflict(ApiError):
    """Another write came first, or another manager owns the field."""

    code = 409
    reason = "Conflict"


class AlreadyExists(ApiError):
    """Create found an object of that name."""

    code = 409
    reason = "AlreadyExists"


class Gone(ApiError):
    """The thing asked for is no longer there."""

    code = 410
    reason = "Gone"


class Expired(ApiError):
    """The resource version has left the history window: list again."""

    code = 410
    reason = "Expired"


class RequestEntityTooLarge(ApiError):
    """The body is over the limit."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The body is in a format the server does not read."""

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    """The object is well-formed but breaks a rule; ``causes`` say which."""

    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    """Not now; ``retry_after_s`` says when."""

    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    """The server failed."""

    code = 500
    reason = "InternalError"


class ServiceUnavailable(ApiError):
    """The server is not up, or is going down."""

    code = 503
    reason = "ServiceUnavailable"


class Timeout(ApiError):
    """The server gave up waiting."""

    code = 504
    reason = "Timeout"


_KINDS: tuple[type[ApiError], ...] = (
    BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict, AlreadyExists,
    Gone, Expired, RequestEntityTooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError,
    ServiceUnavailable, Timeout,
)  # fmt: skip
_BY_REASON = {kind.reason: kind for kind in _KINDS}
_BY_CODE = {kind.code: kind for kind in reversed(_KINDS)}


def details_for(
    group: str, kind: str, name: str, causes: Iterable[Cause] = (), uid: str = ""
) -> dict[str, Any]:
    """``details`` of a Status; for most errors upstream puts the plural resource name into ``kind``."""
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if uid:
        details["uid"] = uid
    listed = [cause.to_json() for cause in causes]
    if listed:
        details["causes"] = listed
    return details


def qualified(group: str, resource: str) -> str:
    """``deployments.apps``, or just ``pods`` for the core group: how messages name a resource."""
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> NotFound:
    return NotFound(
        f'{qualified(group, resource)} "{name}" not found', details=details_for(group, resource, name)
    )


def already_exists(group: str, resource: str, name: str) -> AlreadyExists:
    return AlreadyExists(
        f'{qualified(group, resource)} "{name}" already exists', details=details_for(group, resource, name)
    )


def conflict(group: str, resource: str, name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}',
        details=details_for(group, resource, name),
    )


def forbidden(group: str, resource: str, name: str, why: str) -> Forbidden:
    subject = f'{qualified(group, resource)} "{name}"' if name else qualified(group, resource)
    return Forbidden(f"{subject} is forbidden: {why}", details=details_for(group, resource, name))


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> Invalid:
    """422 with one cause per broken rule, worded like upstream's aggregate of field errors."""
    listed = list(causes)
    parts = [f"{c.field}: {c.message}" if c.field else c.message for c in listed]
    unique = list(dict.fromkeys(parts))
    text = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    return Invalid(
        f'{qualified(group, kind)} "{name}" is invalid: {text}',
        details=details_for(group, kind, name, listed),
    )


OBJECT_WAS_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
