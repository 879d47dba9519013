"""``x-kubernetes-validations``: rules in CEL that values of a custom resource must keep.

The evaluator is an extra (``pip install holokube[cel]``). Without it rules are stored and not evaluated; whoever
writes a CRD with rules is told so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any, Final

import orjson

from holokube.apiserver.crds.cel_functions import Function, functions
from holokube.apiserver.crds.cel_syntax import (
    is_plain,
    local_variables,
    located,
    mentions,
    rewrite,
    tokens_of,
)
from holokube.apiserver.crds.correlation import UNCORRELATED, old_items_of
from holokube.apiserver.crds.field_paths import FieldPathError, field_path
from holokube.apiserver.crds.json_schema import NO_FIELD, same
from holokube.apiserver.crds.structural import Structural
from holokube.apiserver.expressions import interpreter
from holokube.apiserver.field_errors import FieldErrors, show
from holokube.kube import timeformat
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject

NOT_INSTALLED: Final = (
    "x-kubernetes-validations are stored but not evaluated: "
    "install the extra \"cel\" (pip install 'holokube[cel]')"
)
_MAX_MESSAGE_BYTES: Final = 5 * 1024
_KEPT: Final = 1024
_MAX_KEPT_BYTES: Final = 2048
_RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TYPE_NAMES: Final = frozenset(
    {
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "timestamp",
        "duration",
    }
)
_NAMESPACES: Final = frozenset(
    {"math", "sets", "lists", "strings", "base64", "format", "ip", "optional", "cel"}
)
_BUILT_IN: Final = frozenset(
    {
        "contains", "startsWith", "endsWith", "matches", "size", "int", "uint", "double", "string", "bytes", "bool",
        "timestamp", "duration", "type", "dyn", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate",
        "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds", "hasValue", "value", "orValue",
        "or", "of", "none", "ofNonZeroValue", "has", "all", "exists", "exists_one", "map", "filter", "bind", "optMap",
        "optFlatMap",
    }
)  # fmt: skip


class RuleError(ValueError):
    """An expression that cannot be compiled; the message is the detail of upstream's cause."""


@cache
def _evaluator() -> tuple[Any, Mapping[str, Function]] | None:
    """The CEL package and all functions, or nothing if it is not installed."""
    cel = interpreter()
    if cel is None:
        return None
    from cel.stdlib import STDLIB_FUNCTIONS

    return cel, {**STDLIB_FUNCTIONS, **functions(cel.OptionalValue)}


def is_installed() -> bool:
    """Whether rules can be evaluated."""
    return _evaluator() is not None


class Expression:
    """A compiled expression over ``self`` and ``oldSelf``."""

    def __init__(self, text: str) -> None:
        evaluator = _evaluator()
        assert evaluator is not None
        self._cel, known = evaluator
        try:
            if is_plain(text):
                # Errors shall point into the text that the user wrote.
                self._cel.compile(text)
            self._program = self._cel.compile(rewrite(text))
        except ValueError as problem:
            found = str(problem).partition("ERROR:")
            shown = (found[1] + found[2]).replace("\n| ", "\n | ") if found[1] else str(problem)
            raise RuleError(f"compilation failed: {shown.rstrip()}") from None
        self.uses_old_self = mentions(text, "oldSelf")
        _check_references(text, known)
        used = set(self._program.functions())
        self._functions = {name: known[name] for name in known if name.rpartition(".")[2] in used}

    def evaluate(self, self_value: Any, old_value: Any = UNCORRELATED, *, optional_old: bool = False) -> Any:
        variables = {"self": self_value}
        if optional_old:
            optional = self._cel.OptionalValue
            variables["oldSelf"] = optional.none() if old_value is UNCORRELATED else optional.of(old_value)
        elif old_value is not UNCORRELATED:
            variables["oldSelf"] = old_value
        if not self._functions:
            return self._program.execute(variables)
        return self._program.execute(self._cel.Context(variables=variables, functions=self._functions))


def _check_references(text: str, known: Mapping[str, Function]) -> None:
    """Complain about variables and functions that nobody defines."""
    tokens = tokens_of(text)
    variables = local_variables(tokens) | _TYPE_NAMES | _NAMESPACES | {"self", "oldSelf"}
    known_functions = {name.rpartition(".")[2] for name in known} | _BUILT_IN
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text in ("true", "false", "null", "in"):
            continue
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        selected = index > 0 and tokens[index - 1].text in (".", ".?")
        if following is not None and following.text == "(":
            if token.text not in known_functions:
                raise _undeclared(text, following.at, token.text)
        elif not selected and token.text not in variables and not (following and following.text == ":"):
            raise _undeclared(text, token.at, token.text)


def _undeclared(text: str, at: int, name: str) -> RuleError:
    shown = located(text, at, f"undeclared reference to '{name}' (in container '')")
    return RuleError(f"compilation failed: {shown}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``x-kubernetes-validations``, compiled."""

    source: JsonObject
    expression: Expression
    message_expression: Expression | None
    field: str
    optional_old: bool

    @property
    def is_immutability(self) -> bool:
        """Whether it asks for nothing but that a value stays as it is, which need not be asked of one that did."""
        return not self.optional_old and self.source["rule"] == "self == oldSelf"

    @property
    def label(self) -> str:
        return str(self.source.get("message") or self.source["rule"]).strip()

    def detail(self, self_value: Any, old_value: Any) -> str:
        """What to tell whoever broke the rule."""
        if self.message_expression is not None:
            try:
                text = self.message_expression.evaluate(self_value, old_value)
            except Exception:
                text = None
            if isinstance(text, str):
                text = text.strip()
                if text and "\n" not in text and len(text.encode("utf-8", "replace")) <= _MAX_MESSAGE_BYTES:
                    return text
        message = str(self.source.get("message") or "").strip()
        return message or f"failed rule: {self.label}"


class RuleTree:
    """The rules of a schema and of all schemas inside of it that have any.

    A part of an object that an update leaves as it was may go on breaking rules, so that only rules about transitions
    are evaluated there. This is also what makes a status update cheap: the rules of the spec are not even looked at.
    """

    def __init__(self, node: Structural, rules: list[Rule], view: Callable[[Any], Any] | None) -> None:
        self._node = node
        self._rules = rules
        self._view = view
        self._old_items = old_items_of(node.source)
        self._kept: set[bytes | None] = set()
        """Values, as texts, that keep all rules that do not ask for what was before."""
        self._kept_unchanged: set[bytes | None] = set()
        """Values, as texts, that keep all rules when they take the place of themselves."""
        self.properties: dict[str, RuleTree] = {}
        self.items: RuleTree | None = None
        self.additional: RuleTree | None = None

    @cached_property
    def asks_of_unchanged(self) -> bool:
        """Whether a rule here or below has something to ask of a value that stays as it is: one that compares with the
        old value, and asks for more than that it stays."""
        parts = [
            *self.properties.values(),
            *(part for part in (self.items, self.additional) if part is not None),
        ]
        return any(map(_asks_of_unchanged, self._rules)) or any(part.asks_of_unchanged for part in parts)

    def has_nothing_to_ask_beside(self, field: str) -> bool:
        """Whether no rule looks at more than one field, or at another than this one, and none asks for anything of this
        one while it stays as it is."""
        if self._rules or self.items is not None or self.additional is not None:
            return False
        return all(name == field and not tree.asks_of_unchanged for name, tree in self.properties.items())

    def evaluate(self, value: Any, old: Any, errors: FieldErrors, path: str = "") -> None:
        """Report broken rules of a whole value; ``old`` is the one that an update replaces, or None."""
        self.walk(value, UNCORRELATED if old is None else old, path, errors, unchanged=False)

    def walk(self, value: Any, old: Any, path: str, errors: FieldErrors, *, unchanged: bool) -> None:
        """``unchanged`` says that the closest part around this one whose past is known has not changed."""
        if value is None:
            return
        if old is not UNCORRELATED and not unchanged:
            unchanged = value is old
            # Of an object without rules of its own it is enough to know it part by part.
            if not unchanged and (self._rules or not isinstance(value, dict)):
                unchanged = value == old and same(value, old)
        if unchanged and not self.asks_of_unchanged:
            return
        if self._rules:
            self._check_all(value, old, path, errors, unchanged=unchanged)
        if isinstance(value, dict):
            before: Mapping[str, Any] = old if isinstance(old, dict) else {}
            for key, part in value.items():
                named = self.properties.get(key)
                tree = named or self.additional
                if tree is not None:
                    known = before.get(key)
                    known = UNCORRELATED if known is None else known
                    at = (f"{path}.{key}" if path else key) if named is not None else f"{path}[{key}]"
                    tree.walk(part, known, at, errors, unchanged=unchanged)
        elif isinstance(value, list) and self.items is not None:
            matching = self._old_items(value, old)
            for index, part in enumerate(value):
                self.items.walk(part, matching[index], f"{path}[{index}]", errors, unchanged=unchanged)

    def _check_all(self, value: Any, old: Any, path: str, errors: FieldErrors, *, unchanged: bool) -> None:
        """The rules of this level. What a rule says of a value alone it says each time: those are asked once."""
        rules, text, kept = self._rules, None, self._kept
        if unchanged:
            rules = [rule for rule in rules if _asks_of_unchanged(rule)]
            if rules and value is old:
                text, kept = _text(value), self._kept_unchanged
                if text in kept:
                    return
        else:
            text = _text(value)
            if text in kept:
                rules, text = [rule for rule in rules if rule.expression.uses_old_self], None
        count = len(errors.causes)
        for rule in rules:
            self._check(rule, value, old, path, errors)
        if text is not None and len(errors.causes) == count:
            if len(kept) >= _KEPT:
                kept.clear()
            kept.add(text)

    def _check(self, rule: Rule, value: Any, old: Any, path: str, errors: FieldErrors) -> None:
        if rule.expression.uses_old_self and old is UNCORRELATED and not rule.optional_old:
            # A rule about a transition says nothing about a value that was not there before.
            return
        view = self._view
        self_value = value if view is None else view(value)
        old_value = old if view is None or old is UNCORRELATED else view(old)
        try:
            kept = rule.expression.evaluate(self_value, old_value, optional_old=rule.optional_old)
        except Exception as problem:
            shown = f"Invalid value: {show(self._node.type)}: {_runtime_error(problem, rule)}"
            self._add(errors, path, "FieldValueInvalid", shown)
            return
        if kept is not True:
            self._report(rule, value, rule.detail(self_value, old_value), path, errors)

    def _report(self, rule: Rule, value: Any, detail: str, path: str, errors: FieldErrors) -> None:
        at = path
        if rule.field:
            at = rule.field if not path else f"{path}{'' if rule.field.startswith('[') else '.'}{rule.field}"
        shown = "" if self._node.type in ("object", "array") else f": {show(value)}"
        reason = rule.source.get("reason") or "FieldValueInvalid"
        texts = {
            "FieldValueForbidden": f"Forbidden: {detail}",
            "FieldValueRequired": f"Required value: {detail}",
            "FieldValueDuplicate": f"Duplicate value{shown}",
        }
        self._add(errors, at, reason, texts.get(reason, f"Invalid value{shown}: {detail}"))

    @staticmethod
    def _add(errors: FieldErrors, path: str, reason: str, message: str) -> None:
        errors.causes.append(Cause(reason, message, path or NO_FIELD))


def _text(value: Any) -> bytes | None:
    """A value by which another is known to be the same, down to the types of numbers; None for one that is large."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return None
    return text if len(text) <= _MAX_KEPT_BYTES else None


def _asks_of_unchanged(rule: Rule) -> bool:
    return rule.expression.uses_old_self and not rule.is_immutability


def _runtime_error(problem: Exception, rule: Rule) -> str:
    """The words of upstream's evaluator for an error."""
    text = str(problem)
    if isinstance(problem, TypeError):
        lead = "'no such overload': call arguments did not match a supported operator, function or macro signature"
        return f"{lead} for rule: {rule.label}"
    if isinstance(problem, KeyError):
        text = f"no such key: {problem.args[0] if problem.args else ''}"
    elif isinstance(problem, ZeroDivisionError):
        text = "division by zero"
    elif isinstance(problem, OverflowError):
        text = "integer overflow"
    else:
        text = _function_error(text)
    return f"{text} evaluating rule: {rule.label}"


def _function_error(text: str) -> str:
    """A conversion that failed, or the message of a function of ours, without what the evaluator says around it."""
    conversion = re.match(r"Function '(\w+)' error", text)
    if conversion is not None and conversion[1] in _CONVERSIONS:
        return f"type conversion error from 'string' to '{_CONVERSIONS[conversion[1]]}'"
    own = re.search(r"Python function call failed: \w+: (.*?)\. Check function arguments", text, re.DOTALL)
    return own[1] if own is not None else text


_CONVERSIONS: Final = {
    "duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp", "int": "int", "uint": "uint",
    "double": "double", "bool": "bool",
}  # fmt: skip


def compile_rule(source: JsonObject, node: Structural) -> Rule:
    """Compile one rule; ``RuleError`` says what is wrong with it."""
    expression = Expression(str(source["rule"]))
    message = str(source.get("messageExpression") or "").strip()
    field = ""
    if source.get("fieldPath"):
        try:
            field = field_path(str(source["fieldPath"]), node)[0]
        except FieldPathError as problem:
            raise RuleError(str(problem)) from None
    return Rule(
        source,
        expression,
        Expression(message) if message else None,
        field,
        bool(source.get("optionalOldSelf")),
    )


def compile_rules(node: Structural) -> RuleTree | None:
    """The rules of a schema; None if there are none, or nothing to evaluate them with."""
    if not has_rules(node) or not is_installed():
        return None
    rules: list[Rule] = []
    for source in node.source.get("x-kubernetes-validations") or ():
        try:
            rules.append(compile_rule(source, node))
        except RuleError:
            # Refused when the CRD is written; one that a store brings along is left out.
            continue
    tree = RuleTree(node, rules, view_of(node) if rules else None)
    for name, part in node.properties.items():
        inner = compile_rules(part)
        if inner is not None:
            tree.properties[name] = inner
    if node.items is not None:
        tree.items = compile_rules(node.items)
    if node.additional is not None:
        tree.additional = compile_rules(node.additional)
    return tree


def has_rules(node: Structural) -> bool:
    """Whether there are rules in a schema or below."""
    if node.source.get("x-kubernetes-validations"):
        return True
    parts = [*node.properties.values(), *(part for part in (node.items, node.additional) if part is not None)]
    return any(has_rules(part) for part in parts)


def escaped(name: str) -> str:
    """The name of a property as expressions spell it."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[.\-/]", lambda match: _ESCAPES[match[0]], name)


def view_of(node: Structural) -> Callable[[Any], Any] | None:
    """How expressions see values of a type: times are timestamps, names are escaped. None means as they are."""
    own_format = node.source.get("format")
    if node.type == "string":
        return _STRING_VIEWS.get(str(own_format))
    if node.type == "number":
        return lambda value: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if node.type == "array" and node.items is not None:
        items = view_of(node.items)
        return None if items is None else lambda value: _map_list(value, items)
    if node.type != "object":
        return None
    views = {name: view for name, part in node.properties.items() if (view := view_of(part)) is not None}
    renamed = {name: escaped(name) for name in node.properties if escaped(name) != name}
    extra = view_of(node.additional) if node.additional is not None else None
    if not views and not renamed and extra is None:
        return None
    return lambda value: _map_object(value, views, renamed, extra)


def _map_list(value: Any, items: Callable[[Any], Any]) -> Any:
    return [items(item) for item in value] if isinstance(value, list) else value


def _map_object(
    value: Any,
    views: Mapping[str, Callable[[Any], Any]],
    renamed: Mapping[str, str],
    extra: Callable[[Any], Any] | None,
) -> Any:
    if not isinstance(value, dict):
        return value
    out: JsonObject = {}
    for key, part in value.items():
        view = views.get(key) or extra
        out[renamed.get(key, key)] = part if view is None or part is None else view(part)
    return out


def _timestamp(value: Any) -> Any:
    try:
        return timeformat.parse_time(value)
    except (ValueError, TypeError):
        return value


def _date(value: Any) -> Any:
    try:
        return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
    except (ValueError, TypeError):
        return value


def _duration(value: Any) -> Any:
    try:
        return timedelta(microseconds=timeformat.parse_duration_ns(value) / 1000)
    except (ValueError, TypeError, OverflowError):
        return value


_STRING_VIEWS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "date-time": _timestamp,
    "date": _date,
    "duration": _duration,
}
