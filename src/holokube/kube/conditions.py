"""Status conditions: read them, and set them without changing the object one was given.

``lastTransitionTime`` moves only when ``status`` does. The caller gives the time, in the API's own text form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from holokube.kube.types import JsonObject

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]
_NO_STATUS: Final[Mapping[str, Any]] = {}


def conditions_of(obj: Mapping[str, Any]) -> list[JsonObject]:
    """``status.conditions`` of an object; not a copy."""
    return (obj.get("status") or _NO_STATUS).get("conditions") or []


def find_condition(conditions: Iterable[JsonObject], type: str) -> JsonObject | None:
    """The condition of that type in a list."""
    for condition in conditions:
        if condition.get("type") == type:
            return condition
    return None


def get_condition(obj: Mapping[str, Any], type: str) -> JsonObject | None:
    """The condition of that type of an object."""
    # As the two above do; it is asked too often for two more calls each time.
    for condition in (obj.get("status") or _NO_STATUS).get("conditions") or ():
        if condition.get("type") == type:
            found: JsonObject = condition
            return found
    return None


def has_status(obj: Mapping[str, Any], type: str, status: ConditionStatus) -> bool:
    """Whether the condition is there with that status."""
    # As ``get_condition`` finds it, without another call.
    for condition in (obj.get("status") or _NO_STATUS).get("conditions") or ():
        if condition.get("type") == type:
            return bool(condition.get("status") == status)
    return False


def is_true(obj: Mapping[str, Any], type: str) -> bool:
    """Whether the condition is there and True."""
    # As ``has_status`` has it, without another call.
    for condition in (obj.get("status") or _NO_STATUS).get("conditions") or ():
        if condition.get("type") == type:
            return bool(condition.get("status") == "True")
    return False


def is_false(obj: Mapping[str, Any], type: str) -> bool:
    """Whether the condition is there and False; an absent condition is neither."""
    return has_status(obj, type, "False")


def set_condition(
    conditions: list[JsonObject], condition: Mapping[str, Any], *, now: str
) -> list[JsonObject]:
    """The list with ``condition`` in it; the very same list if nothing would change.

    Fields that ``condition`` does not have are kept from the condition it replaces. If the status changes or
    the condition is new, ``lastTransitionTime`` is the one given in ``condition``, or else ``now``; otherwise
    it stays.
    """
    for i, old in enumerate(conditions):
        if old.get("type") != condition["type"]:
            continue
        new = {**old, **condition}
        if old.get("status") == condition.get("status"):
            if "lastTransitionTime" in old:
                new["lastTransitionTime"] = old["lastTransitionTime"]
        elif "lastTransitionTime" not in condition:
            new["lastTransitionTime"] = now
        if new == old:
            return conditions
        return [*conditions[:i], new, *conditions[i + 1 :]]
    return [*conditions, {"lastTransitionTime": now, **condition}]


def remove_condition(conditions: list[JsonObject], type: str) -> list[JsonObject]:
    """The list without the condition of that type; the very same list if it is not there."""
    for found in conditions:
        if found.get("type") == type:
            return [condition for condition in conditions if condition.get("type") != type]
    return conditions


def with_condition(obj: JsonObject, condition: Mapping[str, Any], *, now: str) -> JsonObject:
    """The object with the condition set; the very same object if nothing would change."""
    return _with_conditions(obj, set_condition(conditions_of(obj), condition, now=now))


def without_condition(obj: JsonObject, type: str) -> JsonObject:
    """The object without the condition; the very same object if it is not there."""
    return _with_conditions(obj, remove_condition(conditions_of(obj), type))


def _with_conditions(obj: JsonObject, conditions: list[JsonObject]) -> JsonObject:
    if conditions is conditions_of(obj) or (not conditions and not conditions_of(obj)):
        return obj
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": conditions}}
