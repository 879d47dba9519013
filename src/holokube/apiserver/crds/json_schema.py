"""Checks values against the JSON schema of a CRD, with the words of upstream's validator.

Every ``Check`` is compiled once per CRD version. A check that fails on a part which an update did not change does not
count (upstream calls this ratcheting), so that a schema may become stricter without making old objects unwritable.
The result of a check includes how many of its rules were looked at: that number decides which alternative of an
``anyOf`` upstream complains about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.apiserver.crds import formats
from holokube.apiserver.crds.correlation import UNCORRELATED, old_items_of
from holokube.apiserver.crds.patterns import PatternError, compile_pattern
from holokube.apiserver.field_errors import FieldErrors, show
from holokube.kube.errors import Cause
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

NO_FIELD: Final = "<nil>"
_TYPE_NAMES: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip
_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_MAX_FLOAT32: Final = 3.4028234663852886e38
_MAX_JSON_INTEGER: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule. ``name`` is the path, or None where upstream does not say it apart from the text."""

    reason: str
    name: str | None
    message: str

    def cause(self, prefix: str) -> Cause:
        if self.name in (None, "", "."):
            return Cause(self.reason, self.message, prefix or NO_FIELD)
        name = str(self.name).removeprefix(".")
        return Cause(self.reason, self.message, f"{prefix}.{name}" if prefix else name)


class Problems:
    """Broken rules in order, each text once."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[Problem, None] = {}

    def invalid(self, name: str, value: Any, text: str, *, reason: str = "FieldValueInvalid") -> None:
        self.found[Problem(reason, name, f"Invalid value: {show_number(value)}: {text}")] = None

    def general(self, text: str) -> None:
        self.found[Problem("FieldValueInvalid", None, f'Invalid value: "": {text}')] = None

    def add(self, reason: str, name: str, message: str) -> None:
        self.found[Problem(reason, name, message)] = None

    def wrong_type(self, name: str, wanted: str, found: str) -> None:
        text = f"{name} in body must be of type {wanted}: {go_quote(found)}"
        self.add("FieldValueTypeInvalid", name, f"Invalid value: {go_quote(found)}: {text}")


def show_number(value: Any) -> str:
    return go_float(value) if isinstance(value, float) else show(value)


def go_float(value: float) -> str:
    """A number as Go's ``%v`` prints a float64."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    if not exponent:
        return text
    number = int(power)
    return f"{mantissa}e{'-' if number < 0 else '+'}{abs(number):02d}"


def same(left: Any, right: Any) -> bool:
    """Equal as JSON values: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(part, right[key]) for key, part in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


class Check:
    """One level of a JSON schema."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        get = source.get
        own_type = str(get("type") or "")
        int_or_string = bool(get("x-kubernetes-int-or-string"))
        self._types = ("integer", "string") if int_or_string else ((own_type,) if own_type else ())
        self._single = self._types[0] if len(self._types) == 1 else ""
        self._nullable = bool(get("nullable"))
        self._format = formats.effective_format(self._single, str(get("format") or ""))
        self._format_check = formats.check_of(self._format) if self._format else None
        self._enum: list[Any] = get("enum") or []
        self._max_length, self._min_length = get("maxLength"), get("minLength")
        self._pattern = str(get("pattern") or "")
        self._source = source
        self._numeric = any(get(key) is not None for key in ("maximum", "minimum", "multipleOf"))
        self._max_items, self._min_items = get("maxItems"), get("minItems")
        self._unique = bool(get("uniqueItems"))
        self._max_properties, self._min_properties = get("maxProperties"), get("minProperties")
        self._required: tuple[str, ...] = tuple(get("required") or ())
        self._properties = {name: Check(part) for name, part in (get("properties") or {}).items()}
        extra, items = get("additionalProperties"), get("items")
        self._closed = extra is False
        self._additional = Check(extra) if isinstance(extra, Mapping) else None
        self._items = Check(items) if isinstance(items, Mapping) else None
        self._old_items = old_items_of(source)
        self._all_of = [Check(part) for part in get("allOf") or ()]
        self._any_of = [Check(part) for part in get("anyOf") or ()]
        self._one_of = [Check(part) for part in get("oneOf") or ()]
        self._not = Check(source["not"]) if get("not") is not None else None
        self._combined = bool(self._all_of or self._any_of or self._one_of or self._not)

    def part_alone(self, name: str) -> Check | None:
        """The rules of one property, if none of the object as a whole depends on its value; None otherwise."""
        is_plain = not (self._combined or self._enum or self._closed or self._required)
        if not is_plain or self._min_properties is not None or self._max_properties is not None:
            return None
        return self._properties.get(name)

    @property
    def has_no_bounds(self) -> bool:
        """Whether elements of a list are checked each by itself."""
        bounds = (self._max_items, self._min_items)
        return bounds == (None, None) and not (self._unique or self._combined or self._enum)

    @property
    def is_any_time(self) -> bool:
        """Whether all times are valid, and nothing but times."""
        is_bound = (self._max_length, self._min_length) != (None, None) or bool(self._pattern or self._enum)
        return self._types == ("string",) and self._format == "date-time" and not (is_bound or self._combined)

    def times(self) -> tuple[str, ...]:
        """The properties of an object, or of each element of a list, that can be any time."""
        if self._items is not None:
            return self._items.times()
        return tuple(name for name, check in self._properties.items() if check.is_any_time)

    def problems(self, value: Any, old: Any = UNCORRELATED) -> list[Problem]:
        """All broken rules of a whole value; ``old`` is the one that an update replaces."""
        problems = Problems()
        self.ratchet(value, old, "", problems)
        return list(problems.found)

    def report(self, value: Any, errors: FieldErrors, old: Any = UNCORRELATED, prefix: str = "") -> None:
        errors.causes.extend(problem.cause(prefix) for problem in self.problems(value, old))

    def ratchet(self, value: Any, old: Any, path: str, problems: Problems) -> int:
        """Like ``run``, but what was wrong before may stay wrong."""
        if old is UNCORRELATED:
            return self.run(value, old, path, problems)
        if value is old:
            return 1
        own = Problems()
        count = self.run(value, old, path, own)
        if own.found and not same(value, old):
            problems.found.update(own.found)
        return count

    def run(self, value: Any, old: Any, path: str, problems: Problems) -> int:
        """Check one value; returns how many rules were looked at, counted as upstream counts."""
        count = self._check_type(value, path, problems)
        if value is None:
            self._check_enum(value, path, problems)
            return count
        # Two for the combination of schemas, one each for the enumeration and the whole.
        count += (1 if self._types or self._format else 0) + 4
        if self._combined:
            count += self._check_combined(value, old, path, problems)
        kind = type(value)
        if kind is str:
            count += 1 + (1 if self._format_check is not None else 0)
            self._check_string(value, path, problems)
        elif kind is int or kind is float:
            count += 2
            if self._numeric or self._single:
                self._check_number(value, path, problems)
        elif kind is list:
            count += 2 + self._check_list(value, old, path, problems)
        if self._enum:
            self._check_enum(value, path, problems)
        if kind is dict:
            count += 1 + self._check_object(value, old, path, problems)
        return count

    def _check_type(self, value: Any, path: str, problems: Problems) -> int:
        types, format_ = self._types, self._format
        if value is None:
            if types and not self._nullable:
                problems.wrong_type(path, ",".join(types), "null")
                return 0
            return 1
        if not types and not format_:
            return 0
        kind = type(value)
        found = _TYPE_NAMES[kind]
        fits = found in types
        if not fits and kind is float:
            fits = "integer" in types and value.is_integer() and abs(value) <= _MAX_JSON_INTEGER
        elif not fits and kind is int:
            fits = "number" in types
        if format_ and kind is not str and kind is not list and not fits:
            problems.wrong_type(path, format_, {int: "int64", float: "float64"}.get(kind, ""))
            return 0
        if format_ and (kind is str or kind is list) and not ("number" in types or "integer" in types):
            return 1
        if not fits:
            problems.wrong_type(path, ",".join(types), found)
            return 0
        return 1

    def _check_enum(self, value: Any, path: str, problems: Problems) -> None:
        if self._enum and not any(same(value, allowed) for allowed in self._enum if allowed is not None):
            listed = ", ".join(go_quote(v if isinstance(v, str) else show_number(v)) for v in self._enum)
            message = f"Unsupported value: {show_number(value)}: supported values: {listed}"
            problems.add("FieldValueNotSupported", path, message)

    def _check_string(self, value: str, path: str, problems: Problems) -> None:
        if self._max_length is not None and len(value) > self._max_length:
            limit = self._max_length
            problems.add("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")
        elif self._min_length is not None and len(value) < self._min_length:
            problems.invalid(path, value, f"{path} in body should be at least {self._min_length} chars long")
        elif self._pattern and not self._matches(value):
            problems.invalid(path, value, f"{path} in body should match '{self._pattern}'")
        if self._format_check is not None and not self._format_check(value):
            text = f"{path} in body must be of type {self._format}: {go_quote(value)}"
            problems.invalid(path, value, text, reason="FieldValueTypeInvalid")

    def _matches(self, value: str) -> bool:
        try:
            return compile_pattern(self._pattern)(value)
        except PatternError:
            return False

    def _check_number(self, value: float, path: str, problems: Problems) -> None:
        self._check_range(value, "Checked", path, problems)
        whole = type(value) is int
        for key, limit in ((key, self._source.get(key)) for key in ("multipleOf", "minimum", "maximum")):
            if limit is None:
                continue
            name = {"multipleOf": "MultipleOf", "minimum": "Minimum boundary", "maximum": "Maximum boundary"}[
                key
            ]
            fits = self._check_range(limit, name, path, problems)
            # Whole numbers are compared with the whole part of a limit, as upstream does.
            bound = int(limit) if whole and fits else limit
            shown = go_float(float(bound)) if not isinstance(bound, int) else str(bound)
            if key == "multipleOf":
                if bound <= 0:
                    problems.invalid(
                        path, bound, f"factor MultipleOf declared for {path} must be positive: {shown}"
                    )
                elif not _is_multiple(value, bound):
                    problems.invalid(path, value, f"{path} in body should be a multiple of {shown}")
            elif key == "minimum":
                exclusive = bool(self._source.get("exclusiveMinimum"))
                if value < bound or (exclusive and value == bound):
                    words = "greater than" if exclusive else "greater than or equal to"
                    problems.invalid(path, value, f"{path} in body should be {words} {shown}")
            else:
                exclusive = bool(self._source.get("exclusiveMaximum"))
                if value > bound or (exclusive and value == bound):
                    words = "less than" if exclusive else "less than or equal to"
                    problems.invalid(path, value, f"{path} in body should be {words} {shown}")

    def _check_range(self, value: float, what: str, path: str, problems: Problems) -> bool:
        """Whether a number can be of the declared type at all."""
        if self._single == "integer":
            low, high = _RANGES.get(self._format, _RANGES["int64"])
            fits = float(value).is_integer() and low <= value <= high
        elif self._single == "number" and self._format == "float":
            fits = abs(value) <= _MAX_FLOAT32
        else:
            fits = True
        if not fits:
            kind = (
                f"{self._single} with format {self._format}"
                if self._format
                else f"{self._single} (default format)"
            )
            problems.general(f"{what} value must be of type {kind} in {path}")
        return fits

    def _check_list(self, value: list[Any], old: Any, path: str, problems: Problems) -> int:
        count = 0
        if self._items is not None:
            for index, (item, known) in enumerate(zip(value, self._old_items(value, old), strict=True)):
                if item is known:
                    count += 1
                    continue
                count += self._items.ratchet(item, known, f"{path}[{index}]", problems)
        if self._min_items is not None and len(value) < self._min_items:
            problems.invalid(path, len(value), f"{path} in body should have at least {self._min_items} items")
        if self._max_items is not None and len(value) > self._max_items:
            problems.add("FieldValueTooMany", path, _too_many(len(value), self._max_items))
        if self._unique and any(same(a, b) for i, a in enumerate(value) for b in value[:i]):
            problems.invalid(path, "", f"{path} in body shouldn't contain duplicates")
        return count

    def _check_object(self, value: JsonObject, old: Any, path: str, problems: Problems) -> int:
        count = 0
        size = len(value)
        if self._min_properties is not None and size < self._min_properties:
            problems.invalid(
                path, size, f"{path} in body should have at least {self._min_properties} properties"
            )
        if self._max_properties is not None and size > self._max_properties:
            problems.add("FieldValueTooMany", path, _too_many(size, self._max_properties))
        before: Mapping[str, Any] = old if isinstance(old, dict) else {}
        if self._closed or self._additional is not None:
            for key, part in value.items():
                if key in self._properties:
                    continue
                if self._additional is not None:
                    known = before.get(key, UNCORRELATED)
                    count += self._additional.ratchet(part, known, f"{path}.{key}", problems)
                else:
                    problems.invalid(path, key, f"{path}.{key} in body is a forbidden property")
        for name, check in self._properties.items():
            if name in value:
                part, known = value[name], before.get(name, UNCORRELATED)
                if part is known:
                    count += 1
                    continue
                count += check.ratchet(part, known, f"{path}.{name}" if path else name, problems)
        for name in self._required:
            if name not in value:
                problems.add("FieldValueRequired", f"{path}.{name}", "Required value")
        return count

    def _check_combined(self, value: Any, old: Any, path: str, problems: Problems) -> int:
        count = 0
        if self._any_of:
            count += self._check_any(value, old, path, problems)
        if self._one_of:
            count += self._check_one(value, old, path, problems)
        if self._all_of:
            valid = 0
            for check in self._all_of:
                own = Problems()
                count += check.run(value, old, path, own)
                valid += not own.found
                problems.found.update(own.found)
            if valid != len(self._all_of):
                none = "" if valid else ". None validated"
                problems.general(f'"{path}" must validate all the schemas (allOf){none}')
        if self._not is not None:
            own = Problems()
            self._not.run(value, old, path, own)
            if not own.found:
                problems.general(f'"{path}" must not validate the schema (not)')
        return count

    def _check_any(self, value: Any, old: Any, path: str, problems: Problems) -> int:
        best, best_count = Problems(), -1
        for check in self._any_of:
            own = Problems()
            count = check.run(value, old, path, own)
            if not own.found:
                return count
            if count > best_count:
                best, best_count = own, count
        problems.general(f'"{path}" must validate at least one schema (anyOf)')
        problems.found.update(best.found)
        return best_count

    def _check_one(self, value: Any, old: Any, path: str, problems: Problems) -> int:
        best, best_count = Problems(), -1
        valid_counts: list[int] = []
        for check in self._one_of:
            own = Problems()
            count = check.run(value, old, path, own)
            if not own.found:
                valid_counts.append(count)
            elif not valid_counts and count > best_count:
                best, best_count = own, count
        if len(valid_counts) == 1:
            return valid_counts[0]
        found = f"Found {len(valid_counts)} valid alternatives" if valid_counts else "Found none valid"
        problems.general(f'"{path}" must validate one and only one schema (oneOf). {found}')
        if valid_counts:
            return 0
        problems.found.update(best.found)
        return best_count


def _too_many(actual: int, limit: int) -> str:
    return f"Too many: {actual}: must have at most {limit} {'item' if limit == 1 else 'items'}"


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))
