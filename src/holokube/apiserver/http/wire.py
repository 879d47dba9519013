"""A request as read off the wire, and an answer before it goes there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from multidict import CIMultiDictProxy, MultiMapping

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.http import encoding, protobuf
from holokube.apiserver.http.connections import DEFAULT_LIMITS, Limits
from holokube.apiserver.http.negotiation import Format
from holokube.kube.errors import ApiError, BadRequest, RequestEntityTooLarge, Timeout


@dataclass(slots=True)
class Request:
    """What a handler needs to know of a request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]
    body: bytes
    caller: Caller
    raw: web.BaseRequest
    warnings: list[str] = field(default_factory=list)
    """What decoding the body complained about; sent even with an error."""
    resource: str = ""
    """Set once the resource is known; metrics are labelled with it."""
    subresource: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    scope: str = ""


@dataclass(slots=True)
class Answer:
    """What goes back: bytes, or a stream that has been sent already."""

    code: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    stream: web.StreamResponse | None = None
    pieces: encoding.Pieces | None = None
    """Instead of ``body``, for what is long."""

    @staticmethod
    def of(value: Any, form: Format, code: int = 200) -> Answer:
        """An object in the format that was negotiated."""
        if form.yaml:
            return Answer(code, encoding.to_yaml(value), "application/yaml")
        return Answer(code, encoding.to_json(value, pretty=form.pretty))

    @staticmethod
    def status(problem: ApiError, form: Format = Format()) -> Answer:  # noqa: B008 - frozen
        """An error as a Status."""
        answer = Answer.of(problem.to_status(), form, problem.http_code)
        if problem.retry_after_s is not None:
            answer.headers["Retry-After"] = str(problem.retry_after_s)
        return answer


async def read_request(raw: web.BaseRequest, caller: Caller, limits: Limits = DEFAULT_LIMITS) -> Request:
    """Read the body, but no more of it and no longer than is decent."""
    body = b""
    if raw.can_read_body:
        if raw.headers.get("Expect", "").lower() == "100-continue" and raw.transport is not None:
            raw.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            if raw.content.is_eof() and raw.content.total_bytes <= limits.body_max_bytes:
                # All of it came together with the head, as small bodies do.
                body = raw.content.read_nowait()
            else:
                async with asyncio.timeout(limits.body_within_s):
                    body = await _body(raw, limits.body_max_bytes)
        except TimeoutError:
            raise Timeout(f"the body did not arrive within {limits.body_within_s:g} s") from None
        except web.RequestPayloadError as problem:
            raise BadRequest(f"the body cannot be read: {problem}") from None
    query = raw.query
    return Request(raw.method, raw.path, _single_values(query), raw.headers, body, caller, raw)


def _single_values(query: MultiMapping[str]) -> dict[str, str]:
    """Each parameter once; the first wins, as in Go."""
    found: dict[str, str] = {}
    for key, value in query.items():
        found.setdefault(key, value)
    return found


async def _body(raw: web.BaseRequest, max_bytes: int) -> bytes:
    length = raw.content_length
    if length is not None and length > max_bytes:
        raise _too_large(max_bytes)
    parts: list[bytes] = []
    size = 0
    async for chunk in raw.content.iter_any():
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(chunk)
    return b"".join(parts)


def _too_large(max_bytes: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {max_bytes}", details={})


def media_type(request: Request) -> str:
    """What the body is said to be, without parameters."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def delete_options_body(request: Request) -> Any:
    """The DeleteOptions of a delete, if there is a body."""
    if not request.body.strip():
        return None
    if media_type(request) == protobuf.MEDIA_TYPE:
        return protobuf.decode_body(request.body)
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as problem:
        raise BadRequest(f"couldn't get version/kind; json parse error: {problem}") from None
