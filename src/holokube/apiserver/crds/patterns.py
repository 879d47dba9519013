"""RE2 patterns, which the API speaks, as Python ones.

RE2 has no look-around and no back-references, its ``$`` means the very end, its classes are ASCII. Patterns that
RE2 would not take are refused with its words, so that a CRD accepted here is accepted by a real cluster too.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final


class PatternError(ValueError):
    """Not a valid RE2 pattern; the message is that of Go's parser."""


_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ", "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_SCRIPTS: Final = {
    "Latin": "A-Za-z\xaa\xba\xc0-\xd6\xd8-\xf6\xf8-\u02b8\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Han": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134a",
}
_BAD_ESCAPE = "error parsing regexp: invalid escape sequence: `{}`"
_BAD_PERL = "error parsing regexp: invalid or unsupported Perl syntax: `{}`"
_SIMPLE_ESCAPES = frozenset("aftnrvdDwWsSbB")
_MAX_REPEAT = 1000


@lru_cache(maxsize=2048)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """A test whether a text contains a match."""
    translated = _Translator(pattern).translate()
    try:
        search = re.compile(translated, re.ASCII).search
    except (re.error, OverflowError, RecursionError) as problem:
        if "unterminated subpattern" in str(problem):
            raise PatternError(f"error parsing regexp: missing closing ): `{pattern}`") from None
        if "unbalanced parenthesis" in str(problem):
            raise PatternError(f"error parsing regexp: unexpected ): `{pattern}`") from None
        raise PatternError(f"error parsing regexp: {problem}: `{pattern}`") from None
    return lambda text: search(text) is not None


class _Translator:
    """Reads an RE2 pattern from left to right and writes a Python one."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._repeated = False
        """The last thing written was a repetition; RE2 refuses a second one."""

    def translate(self) -> str:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\\":
                self._escape()
            elif char == "[":
                self._char_class()
            elif char == "(":
                self._group()
            elif char in "*+?" or (char == "{" and self._is_repeat()):
                self._repeat()
                continue
            else:
                self._out.append({"$": "\\Z", "{": "\\{", "}": "\\}"}.get(char, char))
                self._at += 1
            self._repeated = False
        return "".join(self._out)

    def _escape(self) -> None:
        text, at = self._text, self._at
        if at + 1 >= len(text):
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        char = text[at + 1]
        if char == "z":
            self._out.append("\\Z")
        elif char == "A":
            self._out.append("\\A")
        elif char == "Q":
            end = text.find("\\E", at + 2)
            literal = text[at + 2 : end if end >= 0 else len(text)]
            self._out.append(re.escape(literal))
            self._at = end + 2 if end >= 0 else len(text)
            return
        elif char in "pP":
            self._out.append(f"[{self._property()}]")
            return
        elif char == "x":
            self._out.append(self._hex())
            return
        elif char in _SIMPLE_ESCAPES:
            self._out.append(text[at : at + 2])
        elif char in "01234567":
            self._out.append(self._octal())
            return
        elif char.isalnum():
            raise PatternError(_BAD_ESCAPE.format(text[at : at + 2]))
        else:
            self._out.append(re.escape(char))
        self._at += 2

    def _octal(self) -> str:
        found = re.match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", self._text[self._at + 1 :])
        if found is None:
            raise PatternError(_BAD_ESCAPE.format(self._text[self._at : self._at + 2]))
        self._at += 1 + found.end()
        return f"\\x{int(found[0], 8) & 0xFF:02x}"

    def _hex(self) -> str:
        found = re.match(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})", self._text[self._at :])
        if found is None or int(found[1] or found[2], 16) > sys.maxunicode:
            raise PatternError(_BAD_ESCAPE.format(self._text[self._at : self._at + 2]))
        self._at += found.end()
        return f"\\U{int(found[1] or found[2], 16):08x}"

    def _property(self) -> str:
        """The inside of a class for ``\\p{...}``."""
        found = re.match(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))", self._text[self._at :])
        name = (found[3] or found[4]) if found is not None else ""
        ranges = _SCRIPTS.get(name) or (_category(name) if len(name) <= 2 and name else "")
        if found is None or not ranges:
            shown = found[0] if found is not None else self._text[self._at : self._at + 2]
            raise PatternError(f"error parsing regexp: invalid character class range: `{shown}`")
        self._at += found.end()
        negated = (found[1] == "P") != bool(found[2])
        return _complement(name, ranges) if negated else ranges

    def _char_class(self) -> None:
        text = self._text
        start = self._at
        self._at += 1
        parts = ["["]
        if text[self._at : self._at + 1] == "^":
            parts.append("^")
            self._at += 1
        first = True
        while True:
            if self._at >= len(text):
                raise PatternError(f"error parsing regexp: missing closing ]: `{text[start:]}`")
            char = text[self._at]
            if char == "]" and not first:
                break
            parts.append(self._class_part(char))
            first = False
        self._at += 1
        self._out.append("".join(parts) + "]")

    def _class_part(self, char: str) -> str:
        text = self._text
        posix = re.match(r"\[:(\^?)(\w*):\]", text[self._at :]) if char == "[" else None
        if posix is not None:
            if posix[2] not in _POSIX:
                raise PatternError(f"error parsing regexp: invalid character class range: `{posix[0]}`")
            self._at += posix.end()
            return _complement(posix[2], _POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
        if char == "\\":
            following = text[self._at + 1 : self._at + 2]
            if following in ("p", "P"):
                return self._property()
            before = len(self._out)
            self._escape()
            escaped = "".join(self._out[before:])
            del self._out[before:]
            return escaped
        self._at += 1
        # Python would warn about, or read as set operations, what are plain letters here.
        return f"\\{char}" if char in "[&~|]" else char

    def _group(self) -> None:
        text, at = self._text, self._at
        if not text.startswith("(?", at):
            self._out.append("(")
            self._at += 1
            return
        named = re.match(r"\(\?P?<(\w+)>", text[at:])
        if named is not None:
            self._out.append(f"(?P<{named[1]}>")
            self._at += named.end()
            return
        flags = re.match(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])", text[at:])
        if flags is None or (not flags[1] and not flags[2] and flags[3] == ")"):
            raise PatternError(_BAD_PERL.format(text[at : at + (4 if text.startswith("(?<", at) else 3)]))
        self._at += flags.end()
        added = flags[1].replace("U", "")
        removed = (flags[2] or "").replace("U", "")
        if flags[3] == ":":
            self._out.append(f"(?{added}{'-' + removed if removed else ''}:")
        elif not self._out:
            self._out.append(f"(?{added})" if added else "")
        else:
            # Python allows flags only at the start of a pattern; from here on they hold in a group of their own.
            rest = _Translator(text[self._at :]).translate()
            self._out.append(
                f"(?{added}{'-' + removed if removed else ''}:{rest})" if added or removed else rest
            )
            self._at = len(text)

    def _is_repeat(self) -> bool:
        return re.match(r"\{\d+(,\d*)?\}", self._text[self._at :]) is not None

    def _repeat(self) -> None:
        found = re.match(r"(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??", self._text[self._at :])
        assert found is not None
        if self._repeated:
            raise PatternError(f"error parsing regexp: invalid nested repetition operator: `{found[0]}`")
        if not self._out or self._out[-1] in ("(", "|") or self._out[-1].startswith("(?"):
            raise PatternError(f"error parsing regexp: missing argument to repetition operator: `{found[0]}`")
        low, high = int(found[1] or 0), int(found[2] or found[1] or 0)
        if low > _MAX_REPEAT or high > _MAX_REPEAT or (found[2] and high < low):
            raise PatternError(f"error parsing regexp: invalid repeat count: `{found[0]}`")
        self._out.append(found[0])
        self._at += found.end()
        self._repeated = True


@lru_cache(maxsize=64)
def _category(name: str) -> str:
    """All letters of a Unicode category such as ``L`` or ``Lu``, as the inside of a class."""
    return _as_ranges(lambda char: unicodedata.category(char).startswith(name))


@lru_cache(maxsize=64)
def _complement(_name: str, ranges: str) -> str:
    inside = re.compile(f"[{ranges}]", re.ASCII).match
    return _as_ranges(lambda char: inside(char) is None)


def _as_ranges(wanted: Callable[[str], bool]) -> str:
    out: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and wanted(chr(code))
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            out.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(out)
