"""How a webhook call can end other than well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.kube.errors import ApiError, InternalError


class CallFailed(Exception):
    """There was no usable answer; what becomes of the write is up to the failurePolicy."""

    def __init__(self, webhook: str, reason: str) -> None:
        super().__init__(f'failed calling webhook "{webhook}": {reason}')


class TransportFailed(Exception):
    """No answer, or one that is not a success."""


def internal_error(why: str) -> InternalError:
    """The 500 with which upstream, too, reports webhooks that do not work."""
    return InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


def denial(webhook: str, result: Mapping[str, Any] | None) -> ApiError:
    """What the client is told when a webhook says no: the webhook's own Status, its name in front."""
    given = result or {}
    denied = f'admission webhook "{webhook}" denied the request'
    why = given.get("message") or given.get("reason")
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": given.get("metadata") or {},
        "status": "Failure",
        "message": f"{denied}: {why}" if why else f"{denied} without explanation",
    }
    for key in ("reason", "details"):
        if given.get(key):
            status[key] = given[key]
    # A refusal never comes with a code that says success.
    code = given.get("code")
    status["code"] = code if isinstance(code, int) and code >= 400 else 400
    return ApiError.from_status(status)
