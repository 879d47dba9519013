"""Cuts what an HTTP/1.1 server sends into answers. Knows what API servers use of it, and refuses the rest."""

from __future__ import annotations

from dataclasses import dataclass

HEAD_BYTES_MAX = 64 * 1024
ANSWER_BYTES_MAX = 64 * 1024 * 1024
_NO_BODY = frozenset({204, 304})


class WireError(Exception):
    """The other side does not speak HTTP/1.1 as we know it."""


@dataclass(slots=True)
class Answer:
    """One complete answer."""

    code: int
    head: bytes
    """Status line and headers, in lower case."""
    body: bytes

    @property
    def is_last(self) -> bool:
        """Whether the server will close the connection without reading what was sent behind this request."""
        return b"\r\nconnection: close" in self.head

    @property
    def headers(self) -> dict[str, str]:
        """The one header that matters beyond the framing."""
        found = header(self.head, b"retry-after")
        return {"Retry-After": found.decode("latin-1")} if found else {}


def header(head: bytes, name: bytes) -> bytes:
    """The value of a header, empty when there is none; ``head`` and ``name`` in lower case."""
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start:end].strip() if end >= 0 else head[start:].strip()


def read_head(buffer: bytes, at: int) -> tuple[int, bytes, int] | None:
    """Status code, head in lower case, and where the body starts; None while the head is incomplete."""
    end = buffer.find(b"\r\n\r\n", at)
    if end < 0:
        if len(buffer) - at > HEAD_BYTES_MAX:
            raise WireError("the head of an answer does not end")
        return None
    head = buffer[at:end].lower()
    if not head.startswith(b"http/1.") or not head[9:12].isdigit():
        raise WireError(f"the answer does not begin like HTTP: {bytes(head[:40])!r}")
    return int(head[9:12]), head, end + 4


def content_length(head: bytes) -> int | None:
    """The announced length of the body."""
    text = header(head, b"content-length")
    if not text:
        return None
    if not text.isdigit():
        raise WireError(f"content-length is {text!r}")
    return int(text)


def is_chunked(head: bytes) -> bool:
    return header(head, b"transfer-encoding") == b"chunked"


class AnswerParser:
    """Collects bytes until answers are complete; several may come at once."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    @property
    def is_between(self) -> bool:
        """Whether no answer has been begun."""
        return not self._rest

    def feed(self, data: bytes) -> list[Answer]:
        buffer = self._rest + data if self._rest else data
        answers: list[Answer] = []
        at = 0
        while at < len(buffer):
            begun = read_head(buffer, at)
            if begun is None:
                break
            code, head, start = begun
            if code < 200:
                # 100 Continue and its like announce an answer, they are none.
                at = start
                continue
            ended = _body(buffer, code, head, start)
            if ended is None:
                break
            body, at = ended
            answers.append(Answer(code, head, body))
        self._rest = buffer[at:]
        if len(self._rest) > ANSWER_BYTES_MAX:
            raise WireError(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        return answers


def _body(buffer: bytes, code: int, head: bytes, start: int) -> tuple[bytes, int] | None:
    """The body and where the next answer begins; None while it is incomplete."""
    length = content_length(head)
    if length is not None:
        end = start + length
        return (buffer[start:end], end) if len(buffer) >= end else None
    if code in _NO_BODY:
        return b"", start
    if not is_chunked(head):
        raise WireError("an answer with neither a length nor chunks")
    chunks = ChunkDecoder()
    body = chunks.feed(buffer[start:])
    return (body, len(buffer) - len(chunks.rest)) if chunks.is_complete else None


class ChunkDecoder:
    """Takes the framing of chunks out of a stream."""

    __slots__ = ("_left", "is_complete", "rest")

    def __init__(self) -> None:
        self.rest = b""
        """What could not be decoded yet; after the last chunk, what came behind it."""
        self.is_complete = False
        self._left = 0
        """How much of the current chunk, with its line end, is still to come."""

    def feed(self, data: bytes) -> bytes:
        """The content in what has come, as far as it is complete."""
        buffer = self.rest + data if self.rest else data
        parts: list[bytes] = []
        at, size = 0, len(buffer)
        while at < size and not self.is_complete:
            if self._left > 2:
                end = min(size, at + self._left - 2)
                parts.append(buffer[at:end])
                self._left -= end - at
                at = end
            elif self._left:
                # The line end behind a chunk, which may itself be cut in two.
                step = min(self._left, size - at)
                self._left -= step
                at += step
            else:
                line = buffer.find(b"\r\n", at)
                if line < 0:
                    break
                length = _chunk_size(buffer[at:line])
                if length == 0:
                    # Trailers, which nobody sends us, end like a head does.
                    end = line if buffer.startswith(b"\r\n", line + 2) else buffer.find(b"\r\n\r\n", line + 2)
                    if end < 0 or size < end + 4:
                        break
                    self.is_complete = True
                    at = end + 4
                else:
                    self._left = length + 2
                    at = line + 2
        self.rest = buffer[at:]
        return b"".join(parts)


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";", 1)[0], 16)
    except ValueError:
        raise WireError(f"{line[:40]!r} is no size of a chunk") from None
