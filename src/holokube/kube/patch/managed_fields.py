"""Who set which field: ``metadata.managedFields`` on every write that is not an apply.

The entries are kept in the API's own form. An entry of which nothing changed is the same dict as before, so
that a status patch touches one entry and shares the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holokube.kube.patch import PatchTypeError
from holokube.kube.patch.fieldset import (
    FieldSet,
    FieldSetError,
    Trie,
    difference,
    parse_trie,
    recursive_difference,
    union,
)
from holokube.kube.patch.typed import ObjectNode, node_of
from holokube.kube.schema import Schema, Shape
from holokube.kube.timeformat import format_time

MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"
STRIPPED_METADATA = tuple(
    f"f:{field}"
    for field in (
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
        "managedFields", "resourceVersion",
    )
)  # fmt: skip

Entry = dict[str, Any]
Identity = tuple[str, str, str, str]
"""Manager, operation, API version (empty for Apply, which has one entry over all versions), subresource."""


def field_set(obj: Mapping[str, Any], schema: Schema) -> FieldSet:
    """Every field a configuration mentions, as an applier would come to own it (identity fields included)."""
    return FieldSet(root_of(schema).mentioned(dict(obj)) or {})


def record_update(
    live: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    manager: str,
    api_version: str,
    *,
    now: datetime | str,
    schema: Schema,
    operation: str = "Update",
    subresource: str = "",
    ignore: FieldSet | None = None,
    empty: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """``new`` with ``managedFields`` that say what this write changed.

    ``live`` is None on create; ``empty`` is then what an object with nothing set looks like, so that nobody comes to
    own zero values. ``ignore`` are the fields this endpoint does not store (``status`` on the main
    resource, ``spec`` on the status subresource). An object whose lists break their own type loses its
    ``managedFields``, as upstream has it, rather than failing the write.
    """
    metadata = dict(new.get("metadata") or ())
    asked = metadata.pop("managedFields", None)
    entries = starting_entries(live, asked, ignore_request=bool(subresource))
    out = dict(new)
    out["metadata"] = metadata
    if not entries and live is not None and (live.get("metadata") or {}).get("uid"):
        # Ownership is tracked from creation on, or from the first apply; a reset ends it.
        return out
    try:
        changed, removed = compare_objects(live or empty or {}, out, schema, ignore)
    except PatchTypeError:
        return out
    identity = (manager or "unknown", operation, api_version, subresource)
    entries = updated_entries(entries, changed, removed, identity, now)
    if entries:
        metadata["managedFields"] = entries
    return out


def compare_objects(
    live: Mapping[str, Any], new: Mapping[str, Any], schema: Schema, ignore: FieldSet | None = None
) -> tuple[Trie, Trie]:
    """What ``new`` changed or added and what it removed, without identity fields and ignored fields."""
    before = dict(live)
    metadata = before.get("metadata")
    if metadata and "managedFields" in metadata:
        before["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    changed: Trie = {}
    removed: Trie = {}
    root_of(schema).compare_fields(before, new if type(new) is dict else dict(new), changed, removed)
    changed, removed = stripped(changed), stripped(removed)
    if ignore is not None:
        changed = recursive_difference(changed, ignore.trie)
        removed = recursive_difference(removed, ignore.trie)
    return changed, removed


def stripped(trie: Trie) -> Trie:
    """The set without what nobody owns: the identity of the object and what the server keeps count of."""
    out = {
        element: below for element, below in sorted(trie.items()) if element not in ("f:apiVersion", "f:kind")
    }
    metadata = out.get("f:metadata")
    if metadata is not None:
        kept = {
            element: below
            for element, below in metadata.items()
            if element != "." and element not in STRIPPED_METADATA
        }
        if kept:
            out["f:metadata"] = kept
        else:
            del out["f:metadata"]
    return out


def updated_entries(
    entries: list[Entry], changed: Trie, removed: Trie, identity: Identity, now: datetime | str
) -> list[Entry]:
    """The entries after an update by ``identity`` that changed and removed these fields."""
    if not changed and not removed:
        return entries
    out: list[Entry] = []
    owned = changed
    manager = identity[0]
    for entry in entries:
        fields: Trie = entry.get("fieldsV1") or {}
        if changed and entry.get("manager", "") == manager and identity_of(entry) == identity:
            own = difference(fields, removed) if removed else fields
            owned = union(own, changed, root=True)
            continue
        left = difference(fields, changed) if changed else fields
        if removed:
            left = difference(left, removed)
        if left is fields:
            out.append(entry)
        elif left:
            out.append({**entry, "fieldsV1": left})
    if changed:
        out.append(make_entry(identity, identity[2], now, owned))
    return sort_entries(_capped(out))


def make_entry(identity: Identity, api_version: str, now: datetime | str | None, fields: Trie) -> Entry:
    """One entry, members in the order of upstream's JSON."""
    manager, operation, _, subresource = identity
    entry: Entry = {"manager": manager, "operation": operation, "apiVersion": api_version}
    if now is not None:
        entry["time"] = now if isinstance(now, str) else format_time(now)
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if subresource:
        entry["subresource"] = subresource
    return entry


def identity_of(entry: Entry) -> Identity:
    operation = entry["operation"]
    version = "" if operation == "Apply" else entry["apiVersion"]
    return (entry.get("manager", ""), operation, version, entry.get("subresource", ""))


def sort_entries(entries: list[Entry]) -> list[Entry]:
    """Upstream's order: Apply before Update, then by time, manager, version and subresource."""
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def starting_entries(live: Mapping[str, Any] | None, asked: Any, *, ignore_request: bool) -> list[Entry]:
    """The entries a write starts from: those of the request if it sends usable ones, else the live ones.

    ``[]`` and ``[{}]`` in a request reset them. A subresource never takes them from the request.
    """
    held = (live.get("metadata") or {}).get("managedFields") if live is not None else None
    if asked is None or ignore_request or asked is held:
        return _trusted(held)
    if asked == [] or asked == [{}]:
        return []
    if asked == held:
        return _trusted(held)
    try:
        return decode_entries(asked) or _trusted(held)
    except FieldSetError:
        return _trusted(held)


def _trusted(entries: Any) -> list[Entry]:
    """Stored entries were decoded when they were written; only their outline is looked at again."""
    if not entries:
        return []
    for entry in entries:
        if entry.get("fieldsType") != "FieldsV1" or not entry.get("apiVersion"):
            return []
        if entry.get("operation") not in ("Apply", "Update"):
            return []
    return list(entries)


def decode_entries(asked: Any) -> list[Entry]:
    """Entries sent by a client, checked and spelled canonically."""
    if not isinstance(asked, list):
        raise FieldSetError("metadata.managedFields must be an array")
    found: dict[Identity, Entry] = {}
    for position, entry in enumerate(asked):
        if not isinstance(entry, dict):
            raise FieldSetError(f"managed fields entry {position} must be an object")
        if entry.get("operation") not in ("Apply", "Update"):
            raise FieldSetError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise FieldSetError("apiVersion must not be empty")
        kind = entry.get("fieldsType")
        if not kind:
            raise FieldSetError(f"missing fieldsType in managed fields entry {position}")
        if kind != "FieldsV1":
            raise FieldSetError(f'invalid fieldsType "{kind}" in managed fields entry {position}')
        identity = identity_of(entry)
        fields = parse_trie(entry.get("fieldsV1") or {})
        found[identity] = make_entry(identity, entry["apiVersion"], _utc(entry.get("time")), fields)
    return sort_entries(list(found.values()))


def _utc(time: Any) -> str | None:
    if not isinstance(time, str) or time.endswith("Z"):
        return time if isinstance(time, str) else None
    try:
        return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError as error:
        raise FieldSetError(f"time {time!r} of a managed fields entry cannot be read: {error}") from error


def _capped(entries: list[Entry]) -> list[Entry]:
    """At most so many updaters: the oldest of each version are merged into one bucket."""
    if len(entries) <= MAX_UPDATE_MANAGERS:
        return entries
    updaters = [entry for entry in entries if entry["operation"] == "Update"]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return entries
    by_identity = {identity_of(entry): entry for entry in entries}
    first_of_version: dict[str, Identity] = {}
    count = len(updaters)
    for entry in sorted(updaters, key=lambda each: (each.get("time") or "", _identity_text(each))):
        if count <= MAX_UPDATE_MANAGERS:
            break
        version, identity = entry["apiVersion"], identity_of(entry)
        first = first_of_version.get(version)
        if first is None:
            first_of_version[version] = identity
            continue
        bucket = (ANCIENT_CHANGES, "Update", version, "")
        held = by_identity.get(bucket) or by_identity.pop(first)
        fields = union(entry["fieldsV1"], held["fieldsV1"], root=True)
        del by_identity[identity]
        by_identity[bucket] = make_entry(bucket, version, entry.get("time"), fields)
        count -= 1
    return list(by_identity.values())


def _identity_text(entry: Entry) -> str:
    """How upstream spells an identity, which decides between entries of the same second."""
    manager, operation, version, subresource = identity_of(entry)
    return f"{manager}\0{operation}\0{version}\0{subresource}"


def without_time_changes(live: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """``new`` with the times of ``live`` if nothing but times of entries differs: such a write is none."""
    old_metadata, metadata = live.get("metadata") or {}, new.get("metadata") or {}
    old, entries = old_metadata.get("managedFields"), metadata.get("managedFields")
    if not old or not entries or old is entries or len(old) != len(entries) or old == entries:
        return new
    if any(_timeless(a) != _timeless(b) for a, b in zip(old, entries, strict=True)):
        return new
    reverted = {**new, "metadata": {**metadata, "managedFields": old}}
    return reverted if reverted == live else new


def _timeless(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if key != "time"}


def root_of(schema: Schema) -> ObjectNode:
    node = node_of(schema)
    return node if isinstance(node, ObjectNode) else _UNTYPED_ROOT


# Custom resources without a schema: every object is owned field by field, every list as one piece.
_UNTYPED_ROOT = ObjectNode(Schema(Shape.MAP))
