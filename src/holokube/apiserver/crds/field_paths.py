"""Paths to fields of a custom resource, such as ``.spec.ports['http']``, checked against its schema."""

from __future__ import annotations

import re

from holokube.apiserver.crds.structural import Structural

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'", re.DOTALL)
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\",
}  # fmt: skip


class FieldPathError(ValueError):
    """Not a path, or not one of this schema; the message says why in upstream's words."""


def field_path(text: str, node: Structural, *, brackets: bool = True) -> tuple[str, Structural | None]:
    """The path as it stands in messages, and the schema of the field it leads to."""
    pieces = _TOKEN.findall(text)
    shown = ""
    at: Structural | None = node
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        if piece not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {piece}")
        if piece == "[" and not brackets:
            raise FieldPathError("array notation is not allowed")
        if position + 1 >= len(pieces):
            raise FieldPathError("unexpected end of JSON path")
        name = pieces[position + 1]
        if piece == "[":
            name = _unquote(name)
            if position + 2 >= len(pieces):
                raise FieldPathError("unexpected end of JSON path")
            if pieces[position + 2] != "]":
                raise FieldPathError(f"expected ] but got {pieces[position + 2]}")
            position += 1
        position += 2
        if at is not None and at.properties:
            if name not in at.properties:
                raise FieldPathError("does not refer to a valid field")
            shown, at = f"{shown}.{name}" if shown else name, at.properties[name]
        elif at is not None and at.has_additional:
            shown, at = f"{shown}[{name}]", at.additional
        else:
            raise FieldPathError("does not refer to a valid field")
    return shown, at


def _unquote(piece: str) -> str:
    if len(piece) < 2 or piece[0] != "'" or piece[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {piece}")

    def replace(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", replace, piece[1:-1], flags=re.DOTALL)
