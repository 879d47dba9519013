"""Reads a status that is to take the place of a stored one.

Whoever keeps a status up to date counts: from one write to the next a few numbers change, and the rest is sent back as
it was read. Such a status is decoded, and given the form in which Go writes it, in one go; what is shared with the
stored one was read when that was written. Whatever is odd about a status is left to ``bodies``.
"""

from __future__ import annotations

from typing import Any

from holokube.apiserver.kinds.go_shapes import GoShape
from holokube.apiserver.plain_decode import INT_RANGES, Odd, plain_object
from holokube.kube.schema import Schema, Shape
from holokube.kube.types import JsonObject


class StatusReader:
    """Reads statuses of one kind."""

    __slots__ = ("_counts", "_schema", "_shape")

    def __init__(self, schema: Schema, shape: GoShape) -> None:
        self._schema = schema
        self._shape = shape
        # Per number its least and greatest value, and whether Go leaves a zero out.
        self._counts: dict[str, tuple[int, int, bool]] = {
            name: (*INT_RANGES.get(field.format, INT_RANGES["int64"]), shape.leaves_out_zero(name))
            for name, field in schema.fields.items()
            if field.shape is Shape.INTEGER
        }

    def read(self, status: JsonObject, known: JsonObject) -> JsonObject | None:
        """A status as it is stored, sharing with ``known``, the stored one, what was shared before; None if something
        is odd about it."""
        counts = self._counts
        made: JsonObject = {}
        rest: JsonObject = {}
        for key, part in status.items():
            if type(part) is int:
                bounds = counts.get(key)
                if bounds is None or not bounds[0] <= part <= bounds[1]:
                    return None
                if part or not bounds[2]:
                    made[key] = part
            else:
                # What has to be read keeps its place meanwhile.
                made[key] = part
                if part is None or part is not known.get(key):
                    rest[key] = part
        if rest and not self._read_rest(rest, made):
            return None
        self._shape.add_missing(made)
        return made

    def _read_rest(self, rest: JsonObject, made: dict[str, Any]) -> bool:
        try:
            read = plain_object(rest, self._schema, 1)
        except Odd:
            return False
        there = [*read]
        # What it adds because it is not in this part is nothing to go by.
        self._shape.apply(read)
        for key in rest:
            if key in there and key in read:
                made[key] = read[key]
            else:
                del made[key]
        return True
