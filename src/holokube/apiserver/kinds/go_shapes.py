"""What Go writes, and what it leaves out, whatever the user sent.

The real server decodes a body into Go structs and encodes those again. A struct that is not behind a pointer is
always written, even when it is empty (``"status": {"loadBalancer": {}}``); so is a field without ``omitempty``
(``"reportingComponent": ""``, ``"rules": null``); and a field with ``omitempty`` vanishes when it is zero
(``"unschedulable": false``). ``go_shapes.json`` beside this module says which, for every type of the built-in API.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, ClassVar

import orjson

from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.kube.types import JsonObject

_DROP, _ONE, _LIST, _MAP, _NULL_LIST = range(5)


class GoShape:
    """One Go struct."""

    __slots__ = ("_actions", "_missing_structs", "_missing_values")

    def __init__(self) -> None:
        # Per field that needs a look: what to do, and the shape of what is inside.
        self._actions: dict[str, tuple[int, GoShape | None]] = {}
        self._missing_values: tuple[tuple[str, Any], ...] = ()
        self._missing_structs: tuple[tuple[str, GoShape], ...] = ()

    def describe(self, source: JsonObject, find: dict[str, GoShape]) -> None:
        """Take over one entry of the data file; ``find`` has the shapes of all types."""
        empty: list[str] = source.get("null", [])
        self._actions = dict.fromkeys(source.get("omit", ()), (_DROP, None))
        self._actions.update(dict.fromkeys(empty, (_NULL_LIST, None)))
        for section, action in (("structs", _ONE), ("pointers", _ONE), ("lists", _LIST), ("maps", _MAP)):
            for key, name in source.get(section, {}).items():
                self._actions[key] = (_NULL_LIST if key in empty else action, find[name])
        zeros: JsonObject = source.get("zeros", {})
        self._missing_values = (*zeros.items(), *((key, None) for key in empty))
        self._missing_structs = tuple((key, find[name]) for key, name in source.get("structs", {}).items())

    def apply(self, obj: JsonObject) -> None:
        """Give a decoded object, in place, the form in which the real server would write it."""
        actions = self._actions
        dropped: list[str] = []
        for key, value in obj.items():
            action = actions.get(key)
            if action is None or value is None:
                continue
            code, inner = action
            if code == _DROP:
                # Unlike 0 and "", a time or list cannot be here: the data file lists scalars only.
                if not value:
                    dropped.append(key)
            elif code == _ONE:
                inner.apply(value)  # type: ignore[union-attr]  # a struct always has a shape
            elif code == _MAP:
                for part in value.values():
                    inner.apply(part)  # type: ignore[union-attr]  # likewise
            else:
                if not value:
                    if code == _NULL_LIST:
                        obj[key] = None
                elif inner is not None:
                    for part in value:
                        inner.apply(part)
        for key in dropped:
            del obj[key]
        if self._missing_values or self._missing_structs:
            self.add_missing(obj)

    def add_missing(self, obj: JsonObject) -> None:
        """Add what is always written; the part of ``apply`` that concerns fields that are not there."""
        for key, zero in self._missing_values:
            if key not in obj:
                obj[key] = zero
        for key, shape in self._missing_structs:
            if key not in obj:
                created: JsonObject = {}
                obj[key] = created
                shape.apply(created)

    def leaves_out_zero(self, field: str) -> bool:
        """Whether a field vanishes when it is zero."""
        return self._actions.get(field) == (_DROP, None)

    def beside(self, field: str) -> GoShape:
        """The same shape, which leaves one field as it is, or absent."""
        other = GoShape()
        other._actions = {key: action for key, action in self._actions.items() if key != field}
        other._missing_values = tuple(missing for missing in self._missing_values if missing[0] != field)
        other._missing_structs = tuple(missing for missing in self._missing_structs if missing[0] != field)
        return other

    def has_nothing_to_do(self) -> bool:
        """Whether ``apply`` leaves every object as it is."""
        return not (self._actions or self._missing_values or self._missing_structs)

    def prune(self) -> bool:
        """Forget fields whose values are left as they are; whether there were any."""
        idle = [
            key for key, (code, inner) in self._actions.items()
            if code in (_ONE, _LIST, _MAP) and inner is not None and inner.has_nothing_to_do()
        ]  # fmt: skip
        for key in idle:
            del self._actions[key]
        return bool(idle)


@cache
def _all_shapes() -> dict[str, GoShape]:
    text = resources.files("holokube.apiserver.kinds").joinpath("go_shapes.json").read_bytes()
    sources: dict[str, JsonObject] = orjson.loads(text)
    shapes = {name: GoShape() for name in sources}
    for name, source in sources.items():
        shapes[name].describe(source, shapes)
    while any(shape.prune() for shape in shapes.values()):
        continue
    return shapes


def go_shape(name: str) -> GoShape:
    """The shape of a type, such as ``core.v1.Node``."""
    return _all_shapes()[name]


class GoKind(Kind):
    """A kind whose objects get the form that Go would give them, before its own defaults are set."""

    go_type: ClassVar[str]
    tracks_generation = False

    def __init__(self) -> None:
        self._shape = go_shape(self.go_type)
        self._shape_beside_spec = self._shape.beside("spec")
        self._empty: JsonObject = {}
        self._shape.apply(self._empty)

    def empty_object(self) -> JsonObject:
        return self._empty

    def default(self, obj: JsonObject) -> None:
        self._shape.apply(obj)
        self.set_defaults(obj)

    def default_beside_spec(self, obj: JsonObject) -> None:
        self._shape_beside_spec.apply(obj)
        self.set_status_defaults(obj["status"])

    def set_defaults(self, obj: JsonObject) -> None:
        """The kind's own defaults; everything that Go always writes is there already."""

    def set_status_defaults(self, status: JsonObject) -> None:
        """Those of its defaults that concern the status, for kinds whose status stands alone."""

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        if self.has_status and "status" not in new:
            # The status of the request was thrown away; an empty one takes its place.
            self._shape.apply(new)
