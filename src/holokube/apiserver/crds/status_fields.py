"""Patches of the status of custom resources that replace plain fields and elements of lists, by the short way.

A controller says the same of one object after the other: a time, a condition. What becomes of such a value, and whether
it is valid, depends on the value alone where no rule looks at more than one field; it is found out once. Values that
differ in nothing but their times fare alike. Other fields, and values with something wrong about them, are left to the
long way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from holokube.apiserver.crds.list_types import check_lists
from holokube.apiserver.crds.shaping import apply_defaults, private, prune
from holokube.apiserver.crds.structural import ABSENT, Structural
from holokube.apiserver.decode import DecodeError
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.plain_decode import is_canonical_time
from holokube.apiserver.repeats import STRICTLY
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.crds.custom_kind import VersionRules
    from holokube.apiserver.crds.json_schema import Check

KEPT: Final = 4096
_NULL: Final = b"null"
_NO_TIMES: Final[JsonObject] = {}


class StatusFields:
    """Those fields of a status of which each can be replaced by itself."""

    def __init__(self, rules: VersionRules) -> None:
        status = rules.node.properties.get("status")
        self._plain: dict[str, _Values] = {}
        self._lists: dict[str, _Values] = {}
        self._objects: dict[str, _Values] = {}
        """Those that are objects are known as long as there is nothing to merge them with."""
        if status is None or rules.status_check is None or rules.scale is not None or not _stand_alone(rules):
            return
        if status.has_defaults or status.has_embedded:
            return
        for name, node in status.properties.items():
            check = rules.status_check.part_alone(name)
            if check is None or node.nullable:
                continue
            if node.type in ("string", "boolean", "integer"):
                self._plain[name] = _Values(node, check)
            elif node.list_type == "map" and len(node.list_keys) == 1 and check.has_no_bounds:
                self._lists[name] = _Values(node, check)
            elif node.type == "object":
                self._objects[name] = _Values(node, check)

    def first(self, patch: JsonObject) -> JsonObject | None:
        """The status that a merge patch gives to an object that has none; None if it has to go the long way."""
        # Whether an empty one is filled in, no field can tell.
        return self._patched({}, patch) if patch else None

    def patched(self, before: JsonObject, patch: JsonObject) -> JsonObject | None:
        """A status after a merge patch; None if it has to go the long way."""
        return self._patched(before, patch)

    def _patched(self, before: JsonObject, patch: JsonObject) -> JsonObject | None:
        status = before.copy()
        for name, value in patch.items():
            if name in self._plain:
                made = self._plain[name].read(value)
            elif name in self._lists and type(value) is list:
                made = self._lists[name].read_items(value, before.get(name))
            elif name in self._objects and type(value) is dict and name not in before:
                made = self._objects[name].read(value)
            else:
                return None
            if made is ABSENT:
                return None
            status[name] = made
        return status


class _Values:
    """What is known of values of one field."""

    __slots__ = ("_check", "_is_time", "_key", "_known", "_node", "_times")

    def __init__(self, node: Structural, check: Check) -> None:
        self._node = node
        self._check = check
        self._key = node.list_keys[0] if node.list_keys else ""
        self._is_time = check.is_any_time
        self._times = check.times() if self._key else ()
        # By text, and by which fields stand in it with some time or other.
        self._known: dict[tuple[bytes | str, ...], Any] = {}

    def read(self, value: Any) -> Any:
        """A value as it is stored; ABSENT if there is something to say about it."""
        if self._is_time and type(value) is str and is_canonical_time(value):
            return value
        timed = self._times_in(value) if self._times else _NO_TIMES
        try:
            text = orjson.dumps({**value, **dict.fromkeys(timed, "")} if timed else value, option=STRICTLY)
        except TypeError:
            return ABSENT
        found = self._known.get((text, *timed))
        if found is None:
            return self._learn((text, *timed), ABSENT if _NULL in text else self._checked(value))
        return found if found is ABSENT or not timed else {**found, **timed}

    def _times_in(self, value: Any) -> JsonObject:
        """The fields of an element of a list that any other time would do for."""
        if type(value) is not dict:
            return _NO_TIMES
        found = {}
        for name in self._times:
            time = value.get(name)
            if type(time) is str and is_canonical_time(time):
                found[name] = time
        return found

    def read_items(self, items: list[Any], before: Any) -> Any:
        """A list that is a map; elements that are the very same as before are known, wherever they stand."""
        known = set(map(id, before)) if type(before) is list else ()
        made = []
        for item in items:
            found = item if id(item) in known else self.read(item)
            if found is ABSENT:
                return ABSENT
            made.append(found)
        key = self._key
        return made if len({item.get(key) for item in made}) == len(made) else ABSENT

    def _learn(self, text: tuple[bytes | str, ...], made: Any) -> Any:
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[text] = made
        return made

    def _checked(self, value: Any) -> Any:
        if self._key and not (type(value) is dict and type(value.get(self._key)) is str):
            return ABSENT
        try:
            whole = private([value] if self._key else value)
        except DecodeError:
            return ABSENT
        if prune(whole, self._node):
            return ABSENT
        apply_defaults(whole, self._node)
        errors = FieldErrors()
        self._check.report(whole, errors)
        check_lists(whole, self._node, errors)
        if errors:
            return ABSENT
        return whole[0] if self._key else whole


def _stand_alone(rules: VersionRules) -> bool:
    """Whether no rule looks at the status, and none has anything to ask when the rest stays as it is."""
    tree = rules.rules
    return tree is None or tree.has_nothing_to_ask_beside("spec")
