"""Parses Go templates: text, and actions in ``{{ }}``.

Understood are pipelines, variables, ``if``, ``else if``, ``else``, ``with``, ``range``, ``break``, ``continue``,
``end``, comments and the trimming ``{{-`` and ``-}}``; not ``define``, ``template`` and ``block``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from holokube.hollow.stages.errors import TemplateError
from holokube.hollow.stages.template_nodes import (
    Branch,
    Call,
    Jump,
    Literal,
    Loop,
    Node,
    Operand,
    Output,
    Path,
    Pipeline,
    Text,
)

_ACTION = re.compile(
    r"\{\{(?P<left>-(?=\s))?(?P<body>(?:\s*/\*.*?\*/\s*)|(?:\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|[^\"`])*?)(?P<right>(?<=\s)-)?\}\}",
    re.DOTALL,
)
_TOKEN = re.compile(
    r"""(?P<space>\s+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<raw>`[^`]*`)
  | (?P<number>[+-]?\d+(?:\.\d+)?)
  | (?P<variable>\$\w*)
  | (?P<field>\.[A-Za-z_]\w*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<op>:=|[=.,|()])""",
    re.VERBOSE,
)
_CONTROL = ("if", "else", "end", "range", "with", "break", "continue", "define", "template", "block")
_UNSUPPORTED = ("define", "template", "block")
_CONSTANTS = {"true": True, "false": False, "nil": None}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    spaced: bool
    """Whether there was a space before it: ``.a.b`` is one path, ``.a .b`` are two."""


def parse_template(text: str, functions: Collection[str]) -> tuple[Node, ...]:
    """The nodes of a template that uses only these functions."""
    return _Parser(text, frozenset(functions)).parse()


@dataclass(slots=True)
class _Piece:
    """Text, or the tokens of an action."""

    text: str
    tokens: list[_Token] | None
    line: int


def _pieces(text: str) -> list[_Piece]:
    found: list[_Piece] = []
    at = 0
    trim = False
    for match in _ACTION.finditer(text):
        before = text[at : match.start()]
        if trim:
            before = before.lstrip()
        if match["left"]:
            before = before.rstrip()
        line = text.count("\n", 0, match.start()) + 1
        if before:
            found.append(_Piece(before, None, line))
        body = match["body"]
        if not body.strip().startswith("/*"):
            found.append(_Piece(body.strip(), _tokens(body, line), line))
        at, trim = match.end(), bool(match["right"])
    rest = text[at:].lstrip() if trim else text[at:]
    if "{{" in rest:
        line = text.count("\n", 0, text.index("{{", at)) + 1
        raise TemplateError(f"line {line}: an action is not closed with }}}}")
    if rest:
        found.append(_Piece(rest, None, 0))
    return found


def _tokens(body: str, line: int) -> list[_Token]:
    found: list[_Token] = []
    at, spaced = 0, True
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None:
            raise TemplateError(f"line {line}: cannot read {body[at : at + 20].strip()!r} in {{{{{body}}}}}")
        kind = match.lastgroup
        assert kind is not None
        at = match.end()
        if kind == "space":
            spaced = True
            continue
        found.append(_Token(kind, match.group(), spaced))
        spaced = False
    return found


class _Parser:
    def __init__(self, text: str, functions: frozenset[str]) -> None:
        self._pieces = _pieces(text)
        self._functions = functions
        self._at = 0
        self._tokens: list[_Token] = []
        self._place = 0
        self._line = 0
        self._scopes: list[set[str]] = [{"$"}]
        self._loops = 0

    def parse(self) -> tuple[Node, ...]:
        nodes, word = self._block()
        if word:
            raise TemplateError(f"line {self._line}: {{{{{word}}}}} without an if, with or range before it")
        return nodes

    # Blocks

    def _block(self) -> tuple[tuple[Node, ...], str]:
        """The nodes up to an ``else`` or ``end``, and which of them it was."""
        nodes: list[Node] = []
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            if piece.tokens is None:
                nodes.append(Text(piece.text))
                continue
            self._tokens, self._place, self._line = piece.tokens, 0, piece.line
            word = self._control_word()
            if word in ("else", "end"):
                return tuple(nodes), word
            nodes.append(self._action(word))
        return tuple(nodes), ""

    def _control_word(self) -> str:
        if not self._tokens:
            raise TemplateError(f"line {self._line}: an action is empty")
        first = self._tokens[0]
        if first.kind != "word" or first.text not in _CONTROL:
            return ""
        self._place = 1
        if first.text in _UNSUPPORTED:
            raise self._error(f"{{{{{first.text}}}}} is not supported")
        return first.text

    def _action(self, word: str) -> Node:
        line = self._line
        if word in ("break", "continue"):
            if not self._loops:
                raise self._error(f"{{{{{word}}}}} outside a range")
            self._finish()
            return Jump(word)
        if not word:
            pipeline = self._pipeline(most_variables=1)
            self._finish()
            return Output(pipeline, line)
        return self._control(word, line)

    def _control(self, word: str, line: int) -> Node:
        self._scopes.append(set(self._scopes[-1]))
        pipeline = self._pipeline(most_variables=2 if word == "range" else 1, in_range=word == "range")
        self._finish()
        self._loops += word == "range"
        body, ended = self._block()
        self._loops -= word == "range"
        otherwise: tuple[Node, ...] = ()
        if ended == "else":
            otherwise = self._otherwise(word)
        elif not ended:
            raise TemplateError(f"line {line}: {{{{{word}}}}} is not closed with {{{{end}}}}")
        self._scopes.pop()
        if word == "range":
            return Loop(pipeline, body, otherwise, line)
        return Branch(word, pipeline, body, otherwise, line)

    def _otherwise(self, word: str) -> tuple[Node, ...]:
        line = self._line
        if self._place < len(self._tokens):
            # ``else if`` is an ``if`` in the ``else``, which shares the ``end``.
            following = self._tokens[self._place].text
            if following != word or word == "range":
                raise self._error(f"{{{{else {following}}}}} does not belong to a {word}")
            self._place += 1
            return (self._control(word, line),)
        nodes, ended = self._block()
        if ended != "end":
            raise TemplateError(f"line {line}: {{{{else}}}} is not closed with {{{{end}}}}")
        return nodes

    # Pipelines

    def _error(self, what: str) -> TemplateError:
        return TemplateError(f"line {self._line}: {what}")

    def _peek(self, ahead: int = 0) -> _Token | None:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _is(self, text: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == "op" and token.text == text

    def _finish(self) -> None:
        token = self._peek()
        if token is not None:
            raise self._error(f"unexpected {token.text!r}")

    def _pipeline(self, *, most_variables: int = 0, in_range: bool = False) -> Pipeline:
        names, assigns = self._declaration(most_variables, in_range)
        commands = [self._command()]
        while self._is("|"):
            self._place += 1
            commands.append(self._command())
            if not isinstance(commands[-1], Call):
                raise self._error("only functions can stand behind a |")
        if not assigns:
            self._scopes[-1].update(names)
        return Pipeline(tuple(commands), names, assigns)

    def _declaration(self, most: int, in_range: bool) -> tuple[tuple[str, ...], bool]:
        first = self._peek()
        if not most or first is None or first.kind != "variable":
            return (), False
        names = [first.text]
        ahead = 1
        second = self._peek(2)
        if in_range and self._is(",", 1) and second is not None and second.kind == "variable":
            names.append(second.text)
            ahead = 3
        if self._is(":=", ahead) or self._is("=", ahead):
            assigns = self._is("=", ahead)
            self._place += ahead + 1
            for name in names if assigns else ():
                self._check_variable(name)
            return tuple(names), assigns
        return (), False

    def _check_variable(self, name: str) -> None:
        if name not in self._scopes[-1]:
            raise self._error(f"undefined variable {name!r}")

    def _command(self) -> Operand | Call:
        token = self._peek()
        if token is None:
            raise self._error("a value is missing")
        if token.kind == "word" and token.text not in _CONSTANTS:
            self._place += 1
            arguments: list[Operand] = []
            while (following := self._peek()) is not None and not (
                following.kind == "op" and following.text in ("|", ")")
            ):
                arguments.append(self._operand())
            return self._call(token.text, tuple(arguments))
        return self._operand()

    def _call(self, name: str, arguments: tuple[Operand, ...]) -> Call:
        if name not in self._functions:
            raise TemplateError(
                f"line {self._line}: function {name!r} is not supported",
                supported=f"functions {', '.join(sorted(self._functions))}",
            )
        return Call(name, arguments, self._line)

    def _operand(self) -> Operand:
        token = self._peek()
        assert token is not None
        self._place += 1
        if token.kind == "string":
            return Literal(_unquoted(token.text, self._line))
        if token.kind == "raw":
            return Literal(token.text[1:-1])
        if token.kind == "number":
            return Literal(float(token.text) if "." in token.text else int(token.text))
        if token.kind == "word":
            if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text])
            return self._call(token.text, ())
        if token.kind == "field":
            return Path(None, (token.text[1:], *self._fields()))
        if token.kind == "variable":
            self._check_variable(token.text)
            return Path(token.text, self._fields())
        if token.text == ".":
            return Path(None, ())
        if token.text == "(":
            inner = self._pipeline()
            if not self._is(")"):
                raise self._error("a ) is missing")
            self._place += 1
            return Path(inner, self._fields())
        raise self._error(f"unexpected {token.text!r}")

    def _fields(self) -> tuple[str, ...]:
        names = []
        while (token := self._peek()) is not None and token.kind == "field" and not token.spaced:
            names.append(token.text[1:])
            self._place += 1
        return tuple(names)


def _unquoted(text: str, line: int) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise TemplateError(f"line {line}: {text} is not a string that is understood") from error
