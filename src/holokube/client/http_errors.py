"""Turns what can go wrong on the wire into errors that say what, where and what to do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from holokube.base.errors import TransportError
from holokube.kube.errors import ApiError

_QUOTED_MAX = 300


def api_error(code: int, body: bytes, headers: Mapping[str, str], what: str) -> ApiError:
    """The error for an answer of 400 or more, whether its body is a Status or a proxy's web page."""
    status = _status(code, body, what)
    wait_s = retry_after_s(headers)
    details = status.get("details")
    if wait_s is not None and not (isinstance(details, dict) and details.get("retryAfterSeconds")):
        status["details"] = {**(details or {}), "retryAfterSeconds": wait_s}
    return ApiError.from_status(status, code)


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """The Retry-After header in seconds; Kubernetes never sends it as a date."""
    text = headers.get("Retry-After", "").strip()
    return int(text) if text.isascii() and text.isdecimal() else None


def _status(code: int, body: bytes, what: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        return parsed
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{what}: the server answered {code}: {quoted(body) or 'without a message'}",
        "code": code,
    }


def quoted(body: bytes) -> str:
    """The beginning of a body, on one line, fit for a message."""
    text = " ".join(body[: 4 * _QUOTED_MAX].decode("utf-8", "replace").split())
    text = "".join(ch if ch.isprintable() else "?" for ch in text)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}..."


def transport_error(error: BaseException, what: str, server: str) -> TransportError:
    """The error for a request that got no (complete) answer."""
    why, hint = _explain(error, server)
    return TransportError(f"{what}: {why}", hint=hint)


def _explain(error: BaseException, server: str) -> tuple[str, str]:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"the certificate of {server} is not trusted: {_certificate_reason(error.certificate_error)}",
                "Check certificate-authority(-data) and tls-server-name of the cluster in the kubeconfig.",
            )
        case aiohttp.ClientSSLError():
            return (
                f"no TLS connection to {server}: {error.os_error}",
                "Check that the server speaks TLS on this port and that the client certificate is valid.",
            )
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return (
                f"the proxy does not let us reach {server}: {error}",
                "Check proxy-url in the kubeconfig, HTTPS_PROXY and NO_PROXY.",
            )
        case aiohttp.ClientConnectorDNSError():
            return (
                f"the name of {server} cannot be resolved: {error.os_error}",
                "Check `server` in the kubeconfig, and the network.",
            )
        case aiohttp.ClientConnectorError():
            return (
                f"cannot connect to {server}: {error.os_error.strerror or error.os_error}",
                "Check that the API server runs and that `server` in the kubeconfig names it.",
            )
        case aiohttp.ConnectionTimeoutError():
            return (
                f"no connection to {server} within the time limit",
                "Check the network, and that `server` in the kubeconfig is right.",
            )
        case asyncio.TimeoutError():
            return (
                f"no answer from {server} within the time limit; a write may have taken effect",
                "Read the object before trying again; the server may be overloaded.",
            )
        case _:
            why = str(error) or type(error).__name__
            return (
                f"the connection to {server} broke ({why}); a write may have taken effect",
                "Read the object before trying again.",
            )


def _certificate_reason(error: BaseException) -> str:
    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)
