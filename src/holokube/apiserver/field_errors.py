"""Collects broken rules, worded like upstream's ``field.Error`` so that clients can match on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from holokube.kube.errors import Cause


class FieldErrors:
    """A list of causes with one method per kind of rule. Paths look like ``spec.containers[0].name``."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []

    def __bool__(self) -> bool:
        return bool(self.causes)

    def _add(self, reason: str, path: str, message: str) -> None:
        self.causes.append(Cause(reason=reason, message=message, field=path))

    def required(self, path: str, detail: str = "") -> None:
        self._add("FieldValueRequired", path, _with_detail("Required value", detail))

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self._add("FieldValueInvalid", path, _with_detail(f"Invalid value: {show(value)}", detail))

    def type_invalid(self, path: str, value: Any, detail: str) -> None:
        self._add("FieldValueTypeInvalid", path, _with_detail(f"Invalid value: {show(value)}", detail))

    def not_supported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """The supported values are listed in the order given; upstream mostly sorts them."""
        listed = ", ".join(show(item) for item in supported)
        detail = f"supported values: {listed}" if listed else ""
        self._add("FieldValueNotSupported", path, _with_detail(f"Unsupported value: {show(value)}", detail))

    def duplicate(self, path: str, value: Any) -> None:
        self._add("FieldValueDuplicate", path, f"Duplicate value: {show(value)}")

    def forbidden(self, path: str, detail: str) -> None:
        self._add("FieldValueForbidden", path, _with_detail("Forbidden", detail))

    def not_found(self, path: str, value: Any) -> None:
        self._add("FieldValueNotFound", path, f"Not found: {show(value)}")

    def too_long(self, path: str, value: Any, limit: int) -> None:  # noqa: ARG002 - upstream hides the value
        self._add("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")

    def too_many(self, path: str, actual: int, limit: int) -> None:
        items = "item" if limit == 1 else "items"
        self._add("FieldValueTooMany", path, f"Too many: {actual}: must have at most {limit} {items}")

    def all_invalid(self, path: str, value: Any, details: Iterable[str]) -> None:
        """One ``Invalid value`` per message; a validator of ``kube.names`` returns such messages."""
        for detail in details:
            self.invalid(path, value, detail)


def _with_detail(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def show(value: Any) -> str:
    """A value as upstream prints it in a message: strings quoted, everything else as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return orjson.dumps(value).decode()
