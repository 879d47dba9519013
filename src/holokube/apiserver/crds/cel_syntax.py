"""The text of CEL expressions: cut into tokens, and rewritten where the evaluator lacks syntax that Kubernetes has.

Optional selection (``self.?a.b``, ``self[?key]``) becomes calls of functions, and ``cel.bind`` a comprehension. Calls
of ``size`` go to a function of our own: the evaluator counts the bytes of a string, CEL its characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TOKENS = re.compile(
    r"""
    (?P<string>(?:[rR]?[bB]?|[bB][rR])(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<space>\s+|//[^\n]*)
    | (?P<number>\d[\w.]*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<operator>\.\?|\[\?|[<>=!]=|&&|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMPREHENSIONS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
OPTIONAL_FIELD: Final = "optionalField"
SIZE: Final = "sizeInCharacters"


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    at: int


def tokens_of(text: str) -> list[Token]:
    """Everything but blanks and comments."""
    found = [Token(str(match.lastgroup), match[0], match.start()) for match in _TOKENS.finditer(text)]
    return [token for token in found if token.kind != "space"]


def mentions(text: str, name: str) -> bool:
    """Whether an expression uses a variable."""
    tokens = tokens_of(text)
    return any(
        token.text == name
        and token.kind == "name"
        and (index == 0 or tokens[index - 1].text not in (".", ".?"))
        for index, token in enumerate(tokens)
    )


def local_variables(tokens: list[Token]) -> set[str]:
    """Names that comprehensions and bindings introduce."""
    found: set[str] = set()
    for index, token in enumerate(tokens[:-2]):
        binds = token.text in _COMPREHENSIONS or (token.text == "bind" and index > 0)
        if binds and tokens[index + 1].text == "(" and tokens[index + 2].kind == "name":
            found.add(tokens[index + 2].text)
    return found


def is_plain(text: str) -> bool:
    """Whether the evaluator understands all syntax of an expression."""
    return ".?" not in text and "[?" not in text and "cel.bind" not in text


def rewrite(text: str) -> str:
    """The expression in the syntax of the evaluator; the very same text if nothing needs to change."""
    if is_plain(text) and "size" not in text:
        return text
    return " ".join(_rewritten([token.text for token in tokens_of(text)]))


def _rewritten(pieces: list[str]) -> list[str]:
    out: list[str] = []
    closing: list[str] = []
    optional = False
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        following = pieces[position + 1] if position + 1 < len(pieces) else ""
        called = position + 2 < len(pieces) and pieces[position + 2] == "("
        if pieces[position : position + 4] == ["cel", ".", "bind", "("]:
            end = _matching(pieces, position + 3)
            out.extend(_binding(pieces[position + 4 : end]))
            position = end + 1
            continue
        if piece == ".?" or (piece == "." and optional and not called):
            out.extend([".", OPTIONAL_FIELD, "(", f"'{following}'", ")"])
            optional = True
            position += 2
            continue
        if piece == "[?" or (piece == "[" and optional):
            out.extend([".", OPTIONAL_FIELD, "("])
            closing.append(")")
            optional = False
        elif piece == "[":
            out.append(piece)
            closing.append("]")
        elif piece == "]":
            out.append(closing.pop() if closing else piece)
            optional = out[-1] == ")"
        else:
            optional = False
            out.append(SIZE if piece == "size" and following == "(" else piece)
        position += 1
    return out


def _matching(pieces: list[str], opening: int) -> int:
    depth = 0
    for position in range(opening, len(pieces)):
        if pieces[position] in ("(", "[", "{", "[?"):
            depth += 1
        elif pieces[position] in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return position
    return len(pieces)


def _binding(arguments: list[str]) -> list[str]:
    """``cel.bind(x, value, body)`` as ``[value].map(x, body)[0]``."""
    parts: list[list[str]] = [[]]
    depth = 0
    for piece in arguments:
        depth += (piece in ("(", "[", "{", "[?")) - (piece in (")", "]", "}"))
        if piece == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(piece)
    if len(parts) != 3:
        return ["cel", ".", "bind", "(", *arguments, ")"]
    name, value, body = parts
    return ["[", *_rewritten(value), "]", ".", "map", "(", *name, ",", *_rewritten(body), ")", "[", "0", "]"]


def located(text: str, at: int, message: str) -> str:
    """A complaint about a place in an expression, drawn like upstream's compiler draws it."""
    before = text[:at]
    line = before.count("\n")
    column = at - (before.rfind("\n") + 1)
    shown = text.split("\n")[line]
    return f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {shown}\n | {'.' * column}^"
