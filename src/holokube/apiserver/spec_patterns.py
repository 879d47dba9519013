"""Patterns for objects that differ in their metadata as well: the pods of one job and of the next.

What becomes of the spec of such an object depends on the spec alone, as long as the metadata is plain: made of the
same fields, and of texts that nothing but the rules for all metadata look at. These are checked for each object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import generated_name, validate_metadata
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.repeats import Pattern

_SOME_LETTERS: Final = "xxxxx"
_BODY: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_TEXTS: Final = ("labels", "annotations")
_PLAIN: Final = frozenset({"generateName", "namespace", *_TEXTS, "finalizers", "ownerReferences"})
_OF_THE_SERVER: Final = frozenset({"name", "uid", "creationTimestamp", "generation", "resourceVersion"})
_ONLY_TEXT: Final = {str}


class SpecPattern(NamedTuple):
    """What came of a body, and would come of another one with the same spec and the same fields of metadata."""

    pattern: Pattern
    api_version: str
    kind: str
    fields: list[str]
    """Of the metadata, as they were sent."""
    finalizers: list[str] | None
    owner: list[tuple[str, object]]
    """The fields of its owner, with the types of texts and the values of everything else."""

    def metadata_for(self, kind: Kind, namespace: str, body: JsonObject) -> JsonObject | None:
        """The metadata of an object with the same spec, whose name, uid and time are still to be set; None if its body
        is of another form, or there is something to say about it."""
        meta = body.get("metadata")
        if len(body) != len(_BODY) or body.get("apiVersion") != self.api_version or body.get("kind") != self.kind:
            return None
        if type(meta) is not dict or [*meta] != self.fields or meta.get("namespace") != namespace:
            return None
        if meta.get("finalizers") != self.finalizers or not _is_text(meta, kind, body["spec"]):
            return None
        is_owned = "ownerReferences" in meta
        owners: Any = meta.get("ownerReferences")
        if is_owned and (type(owners) is not list or len(owners) != 1 or _owner(owners[0]) != self.owner):
            return None
        made: JsonObject = self.pattern.obj["metadata"].copy()
        made["generateName"] = meta["generateName"]
        # Whether a generated name is valid does not depend on which of the possible letters are drawn.
        made["name"] = generated_name(meta["generateName"], _SOME_LETTERS)
        for key in _TEXTS:
            if key in made:
                made[key] = meta[key].copy()
        if is_owned:
            made["ownerReferences"] = [owners[0].copy()]
        errors = FieldErrors()
        # What is as in the pattern was found valid there.
        known = self.pattern.obj["metadata"]
        validate_metadata({"metadata": made}, kind, namespaced=True, errors=errors, known=known)
        return None if errors else made


def spec_pattern(pattern: Pattern, kind: Kind, meta: JsonObject) -> SpecPattern | None:
    """The pattern for objects with the spec of one that was created with ``meta``; None if its metadata is not plain,
    or somebody changed it."""
    obj = pattern.obj
    made: JsonObject = obj["metadata"]
    if not (_PLAIN.issuperset(meta) and meta.keys() <= made.keys() and meta.get("namespace") == pattern.namespace):
        return None
    if any([*meta[key]] != [*made[key]] for key in _TEXTS if key in meta) or not _is_text(meta, kind, obj["spec"]):
        return None
    if {key: made[key] for key in meta} != meta or made.keys() - _OF_THE_SERVER != meta.keys():
        return None
    owners = meta.get("ownerReferences")
    owner = [] if owners is None else _owner(owners[0]) if len(owners) == 1 else None
    if owner is None or (owners is not None and _owner(made["ownerReferences"][0]) != owner):
        return None
    return SpecPattern(pattern, obj["apiVersion"], obj["kind"], [*meta], meta.get("finalizers"), owner)


def _is_text(meta: JsonObject, kind: Kind, spec: JsonObject) -> bool:
    """Whether labels and annotations are texts that no rule of the kind looks at."""
    if type(meta.get("generateName")) is not str or not meta["generateName"]:
        return False
    for key in _TEXTS:
        if key in meta:
            texts = meta[key]
            if type(texts) is not dict or set(map(type, texts.values())) != _ONLY_TEXT:
                return False
    return kind.goes_by_spec(spec, meta.get("annotations") or {})


def _owner(owner: Any) -> list[tuple[str, object]] | None:
    if type(owner) is not dict:
        return None
    return [(key, str if type(value) is str else (type(value), value)) for key, value in owner.items()]
