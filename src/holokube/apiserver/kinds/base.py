"""What can be particular to one kind, and what all kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from holokube.apiserver.field_errors import FieldErrors
from holokube.base.rng import Rng
from holokube.kube import names
from holokube.kube.schema import Schema
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.status_reading import StatusReader


class Lookup(Protocol):
    """How a kind sees other objects of the same server; reads only."""

    def find(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None: ...

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]: ...


class WriteContext(NamedTuple):
    """What a kind may use while an object is being written."""

    now: datetime
    rng: Rng
    lookup: Lookup
    user: str = ""
    dry_run: bool = False
    user_uid: str = ""
    user_groups: tuple[str, ...] = ()


class Kind:
    """The rules of one resource. The base class fits a kind that is merely stored.

    Every hook gets ``new``, a private copy which it may change in place, and ``old``, the stored object, which it
    may not. The order of a create is ``default``, admission, ``prepare_create``, ``validate``; of an update
    ``default``, admission, ``prepare_update``, ``validate_update``.
    """

    allow_create_on_update: ClassVar[bool] = False
    """PUT to a name that does not exist creates the object."""
    allow_unconditional_update: ClassVar[bool] = True
    """PUT without a resourceVersion overwrites whatever is there."""
    tracks_generation: ClassVar[bool] = True
    """metadata.generation starts at 1 and moves whenever the spec does."""
    has_status: bool = False
    """There is a status subresource: the main resource ignores status and vice versa. Set by the registry."""
    keeps_status_on_create: ClassVar[bool] = False
    """Status given at creation is stored although there is a status subresource (nodes)."""
    field_labels: ClassVar[frozenset[str]] = frozenset()
    """All field selectors that a kind with some of its own understands; empty means metadata.name and
    metadata.namespace, as for most kinds."""
    allows_plain_finalizers: ClassVar[bool] = False
    """Finalizers need no domain (custom resources, where it is only a warning)."""
    returns_deleted_object: ClassVar[bool] = False
    """The answer to a delete is the object that was deleted, not a Status."""
    is_made_in_numbers: ClassVar[bool] = False
    """Objects of this kind often differ in nothing but their names, so that it pays to remember what became of one."""
    follows_job_patterns: ClassVar[bool] = False
    """``job_patterns`` knows what becomes of an object that differs from others in its name and a few texts."""
    status_stands_alone: ClassVar[bool] = False
    """``default_beside_spec`` can be used where only the status of an object is written."""
    template_stands_alone: ClassVar[bool] = False
    """There is a pod template in ``spec.template`` on which no default of the rest depends."""
    settles_on_update: ClassVar[bool] = False
    """An object that was updated, all of it, is as settled as one that was created; see ``Stored.settled``."""
    prepares_only_metadata: ClassVar[bool] = False
    """``prepare_status_update`` puts back metadata that a write of the status may not change, and does no more."""
    repeats_status: ClassVar[bool] = False
    """The same changes of status are made to many objects, and are valid or not by what the old status and the new one
    say, whatever the spec; see ``status_repeats`` for what that leaves out."""
    is_graceful: ClassVar[bool] = False
    """Deleted objects may linger for a grace period (pods)."""
    cascades_by_default: ClassVar[str] = "Background"
    """What a delete without propagationPolicy does to dependents; batch/v1 Jobs and RCs orphan."""

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        """Why a name (or, with ``prefix``, a generateName) cannot be used; empty if it can."""
        return names.is_dns1123_subdomain(name.removesuffix("-") + "a" if prefix and name.endswith("-") else name)

    def empty_object(self) -> JsonObject:
        """What an object with nothing set looks like on the wire; not to be changed."""
        return {}

    def default(self, obj: JsonObject) -> None:
        """Fill in what the user left out. Must change nothing when called a second time."""

    def default_beside_spec(self, obj: JsonObject) -> None:
        """As ``default``, for an object whose spec is stored, and must neither change nor be changed."""
        raise NotImplementedError(f"{type(self).__name__}: the status does not stand alone")

    def status_reader(self, obj: JsonObject, schema: Schema) -> StatusReader | None:
        """Who reads a status that is to be put into a stored object, where nothing but the status gets defaults, and
        no others than what Go writes; None elsewhere."""
        return None

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        """Set what the server owns (status, allocated addresses)."""

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        """Carry over what the main resource may not change. Status is dealt with by the caller."""

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        """Same for the status subresource. Spec and most metadata are dealt with by the caller."""

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        """Rules for a new object."""

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        """Rules for a change. Kinds whose spec rules hold for both call their own ``validate``."""
        self.validate(new, errors)

    def stays_valid(self, new: JsonObject, old: JsonObject) -> bool:
        """Whether an object that was found valid, with the same spec, cannot have become invalid by the change of the
        rest of it. The rules for all metadata are checked elsewhere."""
        return False

    def merged_spec(self, spec: JsonObject, asked: JsonObject) -> JsonObject | None:
        """A stored spec after a merge patch, a new one that shares nothing with the patch, where that only sets fields
        to what no default changes and ``prepare_update`` leaves alone; None where it takes a longer look to tell."""
        return None

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        """Rules for a status change."""

    def prepare_door(self, door: str, new: JsonObject, old: JsonObject) -> bool:
        """Keep of ``new`` only what may be changed through another door (resize, ephemeralcontainers, finalize,
        approval); False if the kind has no such door."""
        return False

    def validate_door(self, door: str, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        """Rules for a write through such a door."""

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        """Texts that ``kubectl`` shows as ``Warning:``."""
        return []

    def name_warnings(self, new: JsonObject) -> list[str]:
        """Those warnings about a new object that its name alone calls for, besides ``warnings_besides_name``."""
        return []

    def warnings_besides_name(self, new: JsonObject) -> list[str]:
        """All other warnings about a new object of a kind that is made in numbers."""
        return []

    def repeat_key(self, new: JsonObject) -> bytes | None:
        """Of an object that admission let in: everything besides its name that decides what ``prepare_create``
        makes of it and whether it is valid; None if that cannot be said."""
        return None

    def goes_by_spec(self, spec: JsonObject, annotations: Mapping[str, str]) -> bool:
        """Whether nothing of the metadata of a new object with this spec, and no annotation of the same keys as these,
        has a part in what is made of it and whether it is valid, apart from the rules for all metadata."""
        return False

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        """Values of ``field_labels`` for one object, metadata.name and metadata.namespace left out."""
        return {}

    def grace_period_s(self, obj: JsonObject, requested_s: int | None) -> int:
        """How long a deleted object lingers; 0 removes it at once. Only pods linger."""
        return 0

    def lingers(self, obj: JsonObject) -> bool:
        """Whether a deleted object stays although it has no finalizers (a namespace with spec.finalizers)."""
        return False

    def mark_deleted(self, obj: JsonObject) -> None:
        """Change an object (top level and metadata are private) that is only marked for deletion."""

    def spec_changed(self, new: JsonObject, old: JsonObject) -> bool:
        """Whether the generation moves: anything besides metadata and status differs."""
        return _without_status(new) != _without_status(old)


def _without_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status", "apiVersion", "kind")}


KindFactory = Callable[[], Kind]
