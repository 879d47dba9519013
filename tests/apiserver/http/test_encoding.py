"""Lists in pieces, and pieces in gzip."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.answers import ListResult
from holokube.apiserver.http import compression, encoding
from holokube.apiserver.resources import ResourceTable
from holokube.apiserver.types import TypeCatalog
from holokube.store.values import Stored

TABLE = ResourceTable(TypeCatalog())


def pods(count: int, size_bytes: int = 10, *, ordered: bool = True) -> ListResult:
    kind = {"kind": "Pod", "apiVersion": "v1"}
    items = []
    for number in range(count):
        rest = {"metadata": {"name": f"p-{number}"}, "spec": {"x": "y" * size_bytes}}
        items.append(Stored({**kind, **rest} if ordered else {**rest, **kind}, number))
    return ListResult(items, 7)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("count", "size_bytes"), [(0, 0), (1, 10), (2, 10), (500, 10_000), (3, 2_000_000)])
def test_a_list_is_the_same_in_pieces_and_as_an_object(count: int, size_bytes: int, ordered: bool) -> None:
    served = TABLE.find("", "v1", "pods")
    assert served is not None
    result = pods(count, size_bytes, ordered=ordered)
    pieces = encoding.list_pieces(served, result)
    whole = b"".join(pieces)
    assert len(whole) == pieces.length
    assert json.loads(whole) == encoding.list_object(served, result)
    if count == 500:
        assert max(len(piece) for piece in pieces) < 2 * encoding.PIECE_BYTES


@given(st.lists(st.binary(max_size=3000), max_size=12))
def test_pieces_make_one_gzip_stream(pieces: list[bytes]) -> None:
    async def packed() -> bytes:
        return b"".join([part async for part in compression.gzip_pieces(pieces)])

    stream = asyncio.run(packed())
    assert gzip.decompress(stream) == b"".join(pieces)
    reader = zlib.decompressobj(31)
    # One member, for not all clients look for a second.
    assert reader.decompress(stream) == b"".join(pieces)
    assert reader.eof and not reader.unused_data


def test_a_text_is_cut_into_pieces_and_put_together_again() -> None:
    body = bytes(range(256)) * 10_000
    assert b"".join(encoding.Pieces.of(body)) == body == gzip.decompress(compression.gzip(body))
