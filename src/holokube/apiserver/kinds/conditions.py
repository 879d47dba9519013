"""Rules for metav1 conditions, as newer kinds have them in their status."""

from __future__ import annotations

import re
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.kube import names
from holokube.kube.types import JsonObject

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32768


def check_conditions(conditions: list[JsonObject], path: str, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in seen:
            errors.duplicate(f"{at}.type", kind)
        seen.add(kind)
        errors.all_invalid(f"{at}.type", kind, names.is_qualified_name(kind))
        status = condition.get("status", "")
        if status not in _STATUSES:
            errors.not_supported(f"{at}.status", status, _STATUSES)
        observed = condition.get("observedGeneration", 0)
        if observed < 0:
            errors.invalid(f"{at}.observedGeneration", observed, "must be greater than or equal to zero")
        if not condition.get("lastTransitionTime"):
            errors.required(f"{at}.lastTransitionTime")
        _check_reason(condition.get("reason", ""), f"{at}.reason", errors)
        if len(condition.get("message", "")) > _MESSAGE_MAX:
            errors.too_long(f"{at}.message", "", _MESSAGE_MAX)


def _check_reason(reason: str, path: str, errors: FieldErrors) -> None:
    if not reason:
        errors.required(path)
        return
    if not _REASON.fullmatch(reason):
        errors.invalid(
            path, reason,
            "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
            "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
            "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
            "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
        )  # fmt: skip
    if len(reason) > _REASON_MAX:
        errors.too_long(path, "", _REASON_MAX)
