"""Renders Go templates over JSON objects, as kwok does for the status of a Stage.

A missing field is nil, and so is any field of nil. Unlike Go's json.Number, numbers of the object are numbers: they
compare with numbers, and zero is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holokube.hollow.stages.errors import TemplateError
from holokube.hollow.stages.template_functions import FUNCTIONS, is_true, printed
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
from holokube.hollow.stages.template_parser import parse_template
from holokube.kube.yaml_text import YamlError, load_documents

Function = Callable[..., Any]

_SHORT_CIRCUIT = ("and", "or")
_OUTPUT_MAX = 1_500_000
"""Nothing larger fits into an API object, and a range over an integer could write any amount."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Template:
    """A parsed template."""

    __slots__ = ("_nodes",)

    def __init__(self, text: str, *, functions: tuple[str, ...] = ()) -> None:
        """``functions`` are those that every rendering provides, besides the general ones."""
        # kwok trims the text, so that a template of spaces only is nothing at all.
        self._nodes = parse_template(text.strip(), {*FUNCTIONS, *functions, *_SHORT_CIRCUIT})

    def render(self, data: Any, functions: Mapping[str, Function] | None = None) -> str:
        """The text for one object."""
        run = _Rendering(data, {**FUNCTIONS, **(functions or {})})
        run.block(self._nodes, data)
        return "".join(run.out)

    def render_yaml(self, data: Any, functions: Mapping[str, Function] | None = None) -> Any:
        """The text, read as one YAML document."""
        text = self.render(data, functions)
        try:
            documents = load_documents(text.encode())
        except YamlError as error:
            raise TemplateError(f"the rendered text is not YAML: {error}") from error
        if len(documents) > 1:
            raise TemplateError(f"the rendered text has {len(documents)} YAML documents, not one")
        return documents[0] if documents else None


class _Rendering:
    def __init__(self, data: Any, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._scopes: list[dict[str, Any]] = [{"$": data}]
        self.out: list[str] = []
        self._length = 0

    def block(self, nodes: tuple[Node, ...], dot: Any) -> None:
        for node in nodes:
            if isinstance(node, Text):
                self._write(node.text)
            elif isinstance(node, Output):
                value = self._pipeline(node.pipeline, dot)
                if not node.pipeline.variables:
                    self._write(printed(value))
            elif isinstance(node, Branch):
                self._branch(node, dot)
            elif isinstance(node, Loop):
                self._loop(node, dot)
            else:
                self._jump(node)

    def _write(self, text: str) -> None:
        self._length += len(text)
        if self._length > _OUTPUT_MAX:
            raise TemplateError(f"the rendered text is longer than {_OUTPUT_MAX} characters")
        self.out.append(text)

    @staticmethod
    def _jump(node: Jump) -> None:
        raise _Break if node.word == "break" else _Continue

    def _branch(self, node: Branch, dot: Any) -> None:
        self._scopes.append({})
        try:
            value = self._pipeline(node.pipeline, dot)
            if is_true(value):
                self.block(node.body, value if node.word == "with" else dot)
            else:
                self.block(node.otherwise, dot)
        finally:
            self._scopes.pop()

    def _loop(self, node: Loop, dot: Any) -> None:
        names = node.pipeline.variables
        value = self._pipeline(Pipeline(node.pipeline.commands), dot)
        pairs = _pairs(value, node.line)
        if not pairs:
            self._scopes.append({})
            try:
                self.block(node.otherwise, dot)
            finally:
                self._scopes.pop()
            return
        for key, item in pairs:
            self._scopes.append({})
            try:
                if names:
                    values = (item,) if len(names) == 1 else (key, item)
                    for name, bound in zip(names, values, strict=True):
                        self._bind(name, bound, assigns=node.pipeline.assigns)
                self.block(node.body, item)
            except _Continue:
                continue
            except _Break:
                break
            finally:
                self._scopes.pop()

    def _bind(self, name: str, value: Any, *, assigns: bool) -> None:
        if assigns:
            for scope in reversed(self._scopes):
                if name in scope:
                    scope[name] = value
                    return
        self._scopes[-1][name] = value

    def _variable(self, name: str) -> Any:
        return next(scope[name] for scope in reversed(self._scopes) if name in scope)

    def _pipeline(self, pipeline: Pipeline, dot: Any) -> Any:
        value: Any = None
        for number, command in enumerate(pipeline.commands):
            if isinstance(command, Call):
                value = self._call(command, dot, (value,) if number else ())
            else:
                value = self._operand(command, dot)
        for name in pipeline.variables:
            self._bind(name, value, assigns=pipeline.assigns)
        return value

    def _operand(self, operand: Operand, dot: Any) -> Any:
        if isinstance(operand, Literal):
            return operand.value
        if isinstance(operand, Call):
            return self._call(operand, dot, ())
        value = self._base(operand, dot)
        for name in operand.fields:
            value = _field(value, name)
        return value

    def _base(self, path: Path, dot: Any) -> Any:
        if path.base is None:
            return dot
        if isinstance(path.base, str):
            return self._variable(path.base)
        return self._pipeline(path.base, dot)

    def _call(self, call: Call, dot: Any, last: tuple[Any, ...]) -> Any:
        if call.function in _SHORT_CIRCUIT:
            return self._short_circuit(call, dot, last)
        arguments = [self._operand(argument, dot) for argument in call.arguments]
        try:
            return self._functions[call.function](*arguments, *last)
        except TemplateError as error:
            raise TemplateError(f"line {call.line}: {call.function}: {error}", supported=error.supported) from error
        except (TypeError, ValueError, KeyError, IndexError, ArithmeticError) as error:
            raise TemplateError(f"line {call.line}: {call.function}: {_why(error)}") from error

    def _short_circuit(self, call: Call, dot: Any, last: tuple[Any, ...]) -> Any:
        """``and`` and ``or`` give one of their arguments, and look at no more than they need."""
        if not call.arguments and not last:
            raise TemplateError(f"line {call.line}: {call.function} needs an argument")
        value: Any = None
        for argument in call.arguments:
            value = self._operand(argument, dot)
            if is_true(value) == (call.function == "or"):
                return value
        return last[0] if last else value


def _why(error: Exception) -> str:
    text = str(error)
    if isinstance(error, TypeError) and "argument" in text:
        return f"wrong number of arguments ({text})"
    return text or type(error).__name__


def _field(value: Any, name: str) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(name)
    raise TemplateError(f"there is no field {name!r} in the {type(value).__name__} {printed(value)[:40]!r}")


def _pairs(value: Any, line: int) -> list[tuple[Any, Any]]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, int) and not isinstance(value, bool):
        if value > _OUTPUT_MAX:
            raise TemplateError(f"line {line}: a range over {value} is too long")
        return [(number, number) for number in range(value)]
    raise TemplateError(f"line {line}: range cannot go over the {type(value).__name__} {printed(value)[:40]!r}")
