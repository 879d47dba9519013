"""Cutting a byte stream into answers, wherever the network cut it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.wire.answers import HEAD_BYTES_MAX, Answer, AnswerParser, ChunkDecoder, WireError


def with_length(code: int, body: bytes, *more: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d Whatever" % code, b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(code: int, body: bytes, size: int) -> bytes:
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 %d OK\r\nTransfer-Encoding: chunked\r\n\r\n" % code + framed + b"0\r\n\r\n"


def feed_in_pieces(parser: AnswerParser, data: bytes, cuts: list[int]) -> list[Answer]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [answer for a, b in pairwise(places) for answer in parser.feed(data[a:b])]


bodies = st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 20)), min_size=1, max_size=5)


@given(bodies, st.lists(st.integers(0, 10_000), max_size=12))
def test_answers_are_the_same_however_the_stream_is_cut(given_bodies: list[tuple[bytes, int]], cuts: list[int]) -> None:
    stream = b"".join(chunked(200, body, size) if size else with_length(201, body) for body, size in given_bodies)
    parser = AnswerParser()
    answers = feed_in_pieces(parser, stream, cuts)
    assert [(a.code, a.body) for a in answers] == [(200 if size else 201, body) for body, size in given_bodies]
    assert parser.is_between


@given(st.binary(max_size=200), st.integers(1, 30), st.lists(st.integers(0, 10_000), max_size=12))
def test_chunks_are_joined_as_they_come(body: bytes, size: int, cuts: list[int]) -> None:
    framed = chunked(200, body, size).partition(b"\r\n\r\n")[2] + b"next"
    places = [0, *sorted(cut % (len(framed) + 1) for cut in cuts), len(framed)]
    decoder = ChunkDecoder()
    found = b""
    for a, b in pairwise(places):
        if not decoder.is_complete:
            found += decoder.feed(framed[a:b])
            behind = framed[b:]
    assert found == body and decoder.is_complete
    assert decoder.rest + behind == b"next"


def test_an_interim_answer_is_none() -> None:
    stream = b"HTTP/1.1 100 Continue\r\n\r\n" + with_length(200, b"{}")
    assert [answer.code for answer in AnswerParser().feed(stream)] == [200]


def test_an_answer_without_content_has_no_body() -> None:
    answers = AnswerParser().feed(b"HTTP/1.1 204 No Content\r\n\r\n" + with_length(200, b"x"))
    assert [(answer.code, answer.body) for answer in answers] == [(204, b""), (200, b"x")]


def test_headers_are_found_in_any_case() -> None:
    (answer,) = AnswerParser().feed(with_length(429, b"", b"retry-AFTER:  7 ", b"CONNECTION: close"))
    assert answer.headers == {"Retry-After": "7"} and answer.is_last
    (plain,) = AnswerParser().feed(with_length(200, b""))
    assert plain.headers == {} and not plain.is_last


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"x" * (HEAD_BYTES_MAX + 1),
    ],
)
def test_what_is_no_answer_is_refused(stream: bytes) -> None:
    with pytest.raises(WireError):
        AnswerParser().feed(stream)
