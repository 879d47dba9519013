from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.client.lines import LineSplitter, LineTooLongError


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b".")), max_size=10), st.data())
def test_lines_come_out_whole_however_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    splitter = LineSplitter(100)
    seen: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += splitter.feed(stream[start:end])
    assert seen == [line for line in lines if line.strip()]
    assert splitter.rest() == b"rest"


def test_a_line_over_the_limit_is_refused_whether_it_ends_or_not() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"x" * 10) == []
    with pytest.raises(LineTooLongError):
        splitter.feed(b"x")
    with pytest.raises(LineTooLongError):
        LineSplitter(10).feed(b"x" * 11 + b"\n")
    splitter = LineSplitter(10)
    splitter.feed(b"x" * 6)
    with pytest.raises(LineTooLongError):
        splitter.feed(b"x" * 6 + b"\n")
