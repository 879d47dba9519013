"""The functions of templates: Go's own, those of sprig that Stages use, and kwok's that need no object."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from holokube.hollow.stages.errors import TemplateError

_VERB = re.compile(r"%([-+# 0]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_REPEAT_MAX = 100_000

NODE_CONDITIONS: tuple[dict[str, str], ...] = tuple(
    {"type": kind, "status": status, "reason": reason, "message": message}
    for kind, status, reason, message in (
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
    )
)


def is_true(value: Any) -> bool:
    """Go's notion of truth: not zero and not empty."""
    return bool(value)


def printed(value: Any) -> str:
    """As ``fmt.Print`` would write it."""
    if value is None:
        return "<no value>"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _printed_float(value)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_nested(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(_nested, value)) + "]"
    return str(value)


def _nested(value: Any) -> str:
    return "<nil>" if value is None else printed(value)


def _printed_float(value: float) -> str:
    if math.isfinite(value) and value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def quote(value: Any = None) -> str:
    """A JSON string: of a string itself, of anything else of its JSON."""
    text = value if isinstance(value, str) else _json(value)
    return json.dumps(text, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def to_yaml(value: Any, indent: int = 0) -> str:
    """YAML; with an indent on lines of its own, so many levels in."""
    text = str(yaml.safe_dump(_plain(value), default_flow_style=False, width=math.inf, allow_unicode=True))
    text = text.removesuffix("...\n")
    if indent > 0:
        text = f"\n{text}".replace("\n", "\n" + "  " * indent)
    return text


def _plain(value: Any) -> Any:
    """Lists and dicts of their own, as YAML would write an object that occurs twice as an alias."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list | tuple | str):
            if not isinstance(key, int) or isinstance(key, bool):
                raise TemplateError(f"cannot index a list with {printed(key)!r}")
            if not 0 <= key < len(value):
                raise TemplateError(f"index {key} is out of range, there are {len(value)}")
            value = value[key]
        elif value is None:
            raise TemplateError("there is nothing to index: the value is nil")
        else:
            raise TemplateError(f"cannot index {printed(value)!r}")
    return value


def _slice(value: Any, start: int = 0, end: int | None = None) -> Any:
    end = len(value) if end is None else end
    if not 0 <= start <= end <= len(value):
        raise TemplateError(f"slice {start}:{end} is out of range, there are {len(value)}")
    return value[start:end]


def _length(value: Any) -> int:
    if value is None:
        raise TemplateError("nil has no length")
    return len(value.encode() if isinstance(value, str) else value)


def _same(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (first, second))
    if not numbers and type(first) is not type(second):
        raise TemplateError(f"cannot compare {printed(first)!r} with {printed(second)!r}: they are of different types")
    return bool(first == second)


def _eq(first: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("needs something to compare with")
    return any(_same(first, other) for other in others)


def _ordered(first: Any, second: Any) -> tuple[Any, Any]:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (first, second))
    if not numbers and not (isinstance(first, str) and isinstance(second, str)):
        raise TemplateError(f"cannot order {printed(first)!r} and {printed(second)!r}")
    return first, second


def _lt(first: Any, second: Any) -> bool:
    a, b = _ordered(first, second)
    return bool(a < b)


def _le(first: Any, second: Any) -> bool:
    a, b = _ordered(first, second)
    return bool(a <= b)


def _print(*values: Any) -> str:
    """Go puts a space between two operands when neither is a string."""
    text, was_string = "", True
    for number, value in enumerate(values):
        is_string = isinstance(value, str)
        text += (" " if number and not is_string and not was_string else "") + printed(value)
        was_string = is_string
    return text


def _printf(form: str, *values: Any) -> str:
    left = list(values)

    def verb(match: re.Match[str]) -> str:
        flags, width, precision, letter = match.groups()
        if letter == "%":
            return "%"
        if letter not in "svdqxXftgeT":
            raise TemplateError(f"the verb %{letter} is not supported")
        if not left:
            return f"%!{letter}(MISSING)"
        return _formatted(left.pop(0), flags or "", width, precision, letter)

    text = _VERB.sub(verb, form)
    if left:
        text += f"%!(EXTRA {', '.join(map(printed, left))})"
    return text


def _formatted(value: Any, flags: str, width: str | None, precision: str | None, letter: str) -> str:
    if letter == "q":
        text = json.dumps(printed(value), ensure_ascii=False)
    elif letter == "d":
        text = str(_int(value))
    elif letter in "xX":
        text = format(value, letter) if isinstance(value, int) else str(value).encode().hex()
    elif letter in "fge":
        text = format(float(value), f".{precision or 6}{letter}")
    else:
        text = printed(value)
        if letter == "s" and precision:
            text = text[: int(precision)]
    if width:
        size = min(int(width), _REPEAT_MAX)
        if "-" in flags:
            return text.ljust(size)
        return text.zfill(size) if "0" in flags and letter in "dfge" else text.rjust(size)
    return text


def _int(value: Any = None) -> int:
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return 0
    return int(value or 0)


def _dict(*pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at in range(0, len(pairs), 2):
        found[printed(pairs[at])] = pairs[at + 1] if at + 1 < len(pairs) else ""
    return found


def _default(fallback: Any, value: Any = None) -> Any:
    return value if is_true(value) else fallback


def _ternary(yes: Any, no: Any, condition: Any) -> Any:
    return yes if is_true(condition) else no


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if is_true(value)), None)


def _join(separator: str, values: Any) -> str:
    return separator.join(map(printed, values)) if isinstance(values, list | tuple) else printed(values)


def _indent(spaces: int, text: str) -> str:
    pad = " " * min(max(spaces, 0), _REPEAT_MAX)
    return pad + text.replace("\n", "\n" + pad)


def _trunc(size: int, text: str) -> str:
    return text[:size] if size >= 0 else text[size:]


def _div(first: Any, second: Any) -> int:
    divisor = _int(second)
    if divisor == 0:
        raise TemplateError("division by zero")
    # Go rounds towards zero.
    return math.trunc(_int(first) / divisor)


def _first(values: Sequence[Any]) -> Any:
    return values[0] if values else None


def _last(values: Sequence[Any]) -> Any:
    return values[-1] if values else None


def _until(count: int) -> list[int]:
    return list(range(min(count, _REPEAT_MAX)))


def _merge(*dicts: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for given in reversed(dicts):
        merged.update(given)
    return merged


def _from_json(text: str) -> Any:
    return json.loads(text)


def _quoted(mark: str) -> Callable[..., str]:
    def run(*values: Any) -> str:
        if mark == "'":
            return " ".join(f"'{printed(value)}'" for value in values if value is not None)
        return " ".join(json.dumps(printed(value), ensure_ascii=False) for value in values if value is not None)

    return run


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # Go's own; ``and`` and ``or`` are evaluated by the renderer.
    "not": lambda value: not is_true(value),
    "eq": _eq,
    "ne": lambda first, second: not _same(first, second),
    "lt": _lt,
    "le": _le,
    "gt": lambda first, second: not _le(first, second),
    "ge": lambda first, second: not _lt(first, second),
    "index": _index,
    "slice": _slice,
    "len": _length,
    "print": _print,
    "println": lambda *values: " ".join(map(printed, values)) + "\n",
    "printf": _printf,
    # kwok's
    "Quote": quote,
    "YAML": to_yaml,
    "NodeConditions": lambda: [dict(condition) for condition in NODE_CONDITIONS],
    # sprig's
    "default": _default, "empty": lambda value=None: not is_true(value), "coalesce": _coalesce,
    "ternary": _ternary, "dict": _dict, "list": lambda *values: list(values),
    "get": lambda given, key: given.get(key, ""), "hasKey": lambda given, key: key in given,
    "keys": lambda given: sorted(given), "values": lambda given: [given[key] for key in sorted(given)],
    "merge": _merge, "first": _first, "last": _last, "has": lambda value, given: value in (given or ()),
    "append": lambda given, value: [*given, value], "concat": lambda *given: [item for one in given for item in one],
    "until": _until, "quote": _quoted('"'), "squote": _quoted("'"), "toString": lambda value: printed(value),
    "int": _int, "int64": _int, "upper": lambda text: text.upper(), "lower": lambda text: text.lower(),
    "trim": lambda text: text.strip(), "trimSuffix": lambda end, text: text.removesuffix(end),
    "trimPrefix": lambda start, text: text.removeprefix(start),
    "replace": lambda old, new, text: text.replace(old, new), "contains": lambda part, text: part in text,
    "hasPrefix": lambda start, text: text.startswith(start), "hasSuffix": lambda end, text: text.endswith(end),
    "join": _join, "splitList": lambda separator, text: text.split(separator), "trunc": _trunc,
    "indent": _indent, "nindent": lambda spaces, text: "\n" + _indent(spaces, text),
    "add": lambda *values: sum(map(_int, values)), "add1": lambda value: _int(value) + 1,
    "sub": lambda first, second: _int(first) - _int(second),
    "mul": lambda *values: math.prod(map(_int, values)), "div": _div,
    "mod": lambda first, second: int(math.fmod(_int(first), _int(second))),
    "max": lambda *values: max(map(_int, values)), "min": lambda *values: min(map(_int, values)),
    "toJson": _json, "fromJson": _from_json,
    "b64enc": lambda text: base64.b64encode(text.encode()).decode(),
    "b64dec": lambda text: base64.b64decode(text).decode(),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}  # fmt: skip
