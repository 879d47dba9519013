"""Columns of numbers as text for a page: byte planes of differences, deflated, in base64.

The page unpacks a block with ``DecompressionStream``: four bytes with the header's length, the header as JSON, then
each column. Sorted and slowly changing columns are kept as differences, and the first bytes of all values stand before
the second bytes of all: deflate makes a fifth of it.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

NEVER: Final = -1
"""In a column of ticks: it has not happened."""

# The highest level takes eight times as long for one hundredth less.
_LEVEL: Final = 6
_TICK_S: Final = 0.01
_TICKS_MAX: Final = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column: whole numbers of 32 bits, or floats of as many."""

    kind: Literal["i4", "f4"]
    values: NDArray[Any]
    difference: bool = False


def floats(values: Iterable[float]) -> Column:
    """A column of floats; seven digits survive."""
    return Column("f4", np.fromiter(values, dtype="<f8").astype("<f4"))


def integers(values: Iterable[int]) -> Column:
    """A column of whole numbers that follow no order."""
    return Column("i4", np.fromiter(values, dtype="<i4"))


def tick_s(duration_s: float) -> float:
    """The unit of time in which a run of this length fits into 32 bits."""
    return _TICK_S if duration_s / _TICK_S < _TICKS_MAX else 1.0


def ticks(values: Iterable[float | None], unit_s: float) -> Column:
    """A column of times."""
    column = np.fromiter((NEVER if at_s is None else round(at_s / unit_s) for at_s in values), dtype="<i4")
    return Column("i4", column, difference=True)


class StringTable:
    """Each different string once; columns hold its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Where a string stands."""
        return self._places.setdefault(text, len(self._places))

    def column(self, texts: Iterable[str]) -> Column:
        """A column of strings."""
        return integers(self.place(text) for text in texts)

    def strings(self) -> list[str]:
        """All of them, in order."""
        return list(self._places)


def pack(header: Mapping[str, Any], columns: Mapping[str, Column]) -> str:
    """A block as text."""
    kinds = [[name, column.kind, len(column.values), int(column.difference)] for name, column in columns.items()]
    text = orjson.dumps({**header, "columns": kinds}, option=orjson.OPT_NON_STR_KEYS, default=str)
    parts = [struct.pack("<I", len(text)), text, *(_planes(column) for column in columns.values())]
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    return base64.b64encode(deflater.compress(b"".join(parts)) + deflater.flush()).decode()


def unpack(block: str) -> tuple[dict[str, Any], dict[str, Sequence[float]]]:
    """What :func:`pack` packed: for those who read a report without a browser."""
    raw = zlib.decompress(base64.b64decode(block), -15)
    (length,) = struct.unpack_from("<I", raw)
    header: dict[str, Any] = orjson.loads(raw[4:4 + length])
    at = 4 + length
    columns: dict[str, Sequence[float]] = {}
    for name, kind, count, difference in header.pop("columns"):
        planes = np.frombuffer(raw, dtype=np.uint8, count=4 * count, offset=at).reshape(4, count)
        values = np.ascontiguousarray(planes.T).view(f"<{kind}").reshape(count)
        columns[name] = (np.cumsum(values, dtype=np.int32) if difference else values).tolist()
        at += 4 * count
    return header, columns


def _planes(column: Column) -> bytes:
    values = column.values
    if column.difference and len(values):
        # Differences wrap around as the sums do, so that any order of 32-bit numbers survives.
        values = np.diff(values, prepend=values.dtype.type(0))
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), 4)
    return flat.T.tobytes()
