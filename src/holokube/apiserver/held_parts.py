"""Parts of a body that are the very ones of the stored object that it is to replace: nothing becomes of them.

Whoever scales a workload sends its template back as it was read, and whoever labels a node its status. These were
decoded, defaulted and found valid when they were written; they are left out where a body is read, and put back.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holokube.apiserver.kinds.base import Kind
from holokube.kube.types import JsonObject


class HeldParts(NamedTuple):
    """What is left out; None where nothing is."""

    status: JsonObject | None
    template: JsonObject | None

    def left_out_of(self, value: JsonObject) -> JsonObject:
        """The value with something empty in the place of each part, so that each has its place."""
        if self.status is not None:
            value = {**value, "status": {}}
        if self.template is not None:
            value = {**value, "spec": {**value["spec"], "template": {}}}
        return value

    def put_back(self, obj: JsonObject) -> None:
        """Put the parts into the object that was read without them."""
        if self.status is not None:
            obj["status"] = self.status
        if self.template is not None:
            obj["spec"]["template"] = self.template


NOTHING_HELD: Final = HeldParts(None, None)


def held_parts(kind: Kind, value: JsonObject, known: JsonObject) -> HeldParts:
    """The parts of a value for the main resource that are those of ``known``, which is stored and settled."""
    status, template = None, None
    if kind.has_status and type(known.get("status")) is dict and value.get("status") is known["status"]:
        status = known["status"]
    if kind.template_stands_alone:
        spec = value.get("spec")
        if type(spec) is dict and spec is not known["spec"] and spec.get("template") is known["spec"]["template"]:
            template = known["spec"]["template"]
    return HeldParts(status, template)
