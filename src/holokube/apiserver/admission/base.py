"""Admission: the last words on a write before it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from holokube.apiserver.kinds.base import Lookup
from holokube.apiserver.resources import Served
from holokube.kube.errors import Cause, Forbidden, forbidden
from holokube.kube.types import JsonObject

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
GroupResource = tuple[str, str]

CREATE_ONLY: frozenset[Operation] = frozenset({"CREATE"})
UPDATE_ONLY: frozenset[Operation] = frozenset({"UPDATE"})
CREATE_OR_UPDATE: frozenset[Operation] = frozenset({"CREATE", "UPDATE"})
ANY_WRITE: frozenset[Operation] = frozenset({"CREATE", "UPDATE", "DELETE"})

PODS: GroupResource = ("", "pods")
NAMESPACES: GroupResource = ("", "namespaces")
NODES: GroupResource = ("", "nodes")
CLAIMS: GroupResource = ("", "persistentvolumeclaims")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    name: str = "system:holokube"
    uid: str = ""
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    user_agent: str = ""


IN_PROCESS = Caller()


@dataclass(slots=True)
class Attributes:
    """One write on its way through admission. Mutating plugins change ``obj`` in place or replace it.

    ``obj`` and ``old`` are in the storage version, whatever version ``served`` names. ``old`` is shared and
    must not be changed.
    """

    operation: Operation
    served: Served
    namespace: str
    name: str
    subresource: str
    obj: JsonObject | None
    old: JsonObject | None
    caller: Caller
    lookup: Lookup
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Plugin:
    """A built-in admission plugin: synchronous, raises an ``ApiError`` to refuse.

    The class attributes say which writes it wants to see. The chain calls it for those only, so that a write
    costs nothing in plugins that have nothing to do with it.
    """

    resources: ClassVar[frozenset[GroupResource] | None] = None
    """None is every resource."""
    operations: ClassVar[frozenset[Operation]] = CREATE_ONLY
    subresources: ClassVar[frozenset[str] | None] = frozenset({""})
    """None is the object and all that hangs below it."""
    runs_last: ClassVar[bool] = False
    """Validates after the webhooks have."""
    only_refuses: ClassVar[bool] = False
    """``mutate`` changes nothing; it may only say no."""
    sets_what_is_settled: ClassVar[bool] = False
    """What ``mutate`` sets is what it would be had it been sent, decoded and defaulted."""
    only_sets_on_update: ClassVar[bool] = False
    """When an object is updated, ``mutate`` at most sets fields of its spec, and changes nothing inside of them."""

    looks_at: ClassVar[frozenset[str] | None] = None
    """The buckets of all objects besides the new one that have a part in what it does at a creation: as long as these
    stay as they are, it does the same to the same object, whoever creates it. None if that cannot be said."""

    goes_by_spec: ClassVar[bool] = False
    """Of a pod that is created, and of the template of a workload, it looks at nothing but the spec, and annotations of
    Kubernetes' own domain."""

    heeds: ClassVar[frozenset[str] | None] = None
    """The buckets of all objects that ``has_no_say`` looks at; as long as these stay as they are, it says the same to
    the same question. None if something else has a part in it."""

    leaves_settled_pods: ClassVar[bool] = False
    """Of a pod that it has seen before, and whose spec stays the very same, it neither changes nor refuses anything."""

    def mutate(self, attributes: Attributes) -> None:
        """Change the object, or refuse it, before it is validated."""

    def validate(self, attributes: Attributes) -> None:
        """Refuse the object after it has been validated; nothing may be changed any more."""

    def has_no_say(self, lookup: Lookup, operation: Operation, namespace: str) -> bool:  # noqa: ARG002 - a hook
        """Whether, as things stand, it would let pass every such write that it wants to see, whatever the object is."""
        return False

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:  # noqa: ARG002 - a hook
        """``looks_at`` for a creation that it let pass, where that depends on the object."""
        return self.looks_at

    def wants(self, resource: GroupResource, operation: Operation, subresource: str) -> bool:
        return (
            (self.resources is None or resource in self.resources)
            and operation in self.operations
            and (self.subresources is None or subresource in self.subresources)
        )


def refuse(attributes: Attributes, why: str, causes: Iterable[Cause] = ()) -> Forbidden:
    """The 403 with which a plugin says no. An object whose name is yet to be generated goes by its prefix."""
    name = attributes.name
    if not name:
        meta = (attributes.obj or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    problem = forbidden(attributes.served.group, attributes.served.plural, name, why)
    listed = [cause.to_json() for cause in causes]
    if listed:
        problem.details["causes"] = listed
    return problem
