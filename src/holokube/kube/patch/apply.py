"""Server-side apply: merge a configuration into the live object and keep account of who applied what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holokube.kube.errors import Cause, Conflict
from holokube.kube.patch import PatchError, PatchTypeError
from holokube.kube.patch.fieldset import (
    FieldSet,
    Trie,
    difference,
    escape_html,
    format_path,
    intersection,
    recursive_difference,
    union,
)
from holokube.kube.patch.managed_fields import (
    Entry,
    Identity,
    compare_objects,
    identity_of,
    make_entry,
    root_of,
    sort_entries,
    starting_entries,
    stripped,
    updated_entries,
)
from holokube.kube.patch.typed import ObjectNode
from holokube.kube.patch.typed_check import join_errors, type_errors
from holokube.kube.patch.typed_lists import EMPTIED, same_value
from holokube.kube.schema import Schema

BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that somebody else set to another value."""

    manager: str
    """The owner as messages name it: ``"kubectl-edit" using apps/v1``."""
    path: tuple[str, ...]

    @property
    def field(self) -> str:
        return format_path(self.path)


class ApplyConflict(Conflict):
    """409: the configuration changes fields that other managers own; ``conflicts`` lists them."""

    def __init__(self, conflicts: list[FieldConflict]) -> None:
        causes = [
            Cause("FieldManagerConflict", f"conflict with {each.manager}", each.field) for each in conflicts
        ]
        super().__init__(
            _conflict_message(conflicts),
            details={"causes": [cause.to_json() for cause in causes]},
            hint="drop these fields from the configuration, use the owner's values, or apply with force",
        )
        self.conflicts = conflicts


def apply(
    live: Mapping[str, Any] | None,
    applied: Mapping[str, Any],
    manager: str,
    api_version: str,
    *,
    force: bool,
    now: datetime | str,
    schema: Schema,
    ignore: FieldSet | None = None,
    subresource: str = "",
    empty: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The live object after the configuration was applied; ``live`` itself if nothing changes at all.

    ``empty`` is what an object with nothing set looks like: such values belong to nobody.

    Raises ``ApplyConflict`` unless ``force``, ``PatchError`` for a configuration that may not be applied and
    ``PatchTypeError`` for one that does not fit the schema.
    """
    _check_applied(applied, api_version, schema)
    identity: Identity = (manager or "unknown", "Apply", "", subresource)
    run = _Apply(live or {}, applied, identity, api_version, schema, ignore, now, empty or {})
    try:
        changed, entries = run.result(force=force)
    except ApplyConflict as error:
        if manager != KUBECTL:
            raise
        # What client-side apply set, and is still so, kubectl may take over without asking.
        allowed = _last_applied_set(live or {}, api_version, schema)
        if allowed is None:
            raise
        rest = [each for each in error.conflicts if not allowed.contains(each.path)]
        if rest:
            raise ApplyConflict(rest) from None
        changed, entries = run.result(force=True)
    return _finish(live, run, changed, entries, now)


def _finish(
    live: Mapping[str, Any] | None,
    run: _Apply,
    out: dict[str, Any],
    entries: list[Entry],
    now: datetime | str,
) -> dict[str, Any]:
    """Put the entries into the object; the time of the applier moves only if the object changed."""
    is_same = same_value(out, run.live)
    if run.identity[0] == KUBECTL:
        out = _with_last_applied(out, run.applied)
    mine = [position for position, entry in enumerate(entries) if identity_of(entry) == run.identity]
    if mine and not is_same:
        entry = entries[mine[0]]
        entries[mine[0]] = make_entry(run.identity, entry["apiVersion"], now, entry["fieldsV1"])
    entries = sort_entries(entries)
    if isinstance(live, dict) and entries == run.live_entries and same_value(out, run.live):
        return live
    metadata = dict(out.get("metadata") or ())
    if entries:
        metadata["managedFields"] = entries
    return {**out, "metadata": metadata}


class _Apply:
    """One configuration on its way into one live object."""

    def __init__(
        self,
        live: Mapping[str, Any],
        applied: Mapping[str, Any],
        identity: Identity,
        api_version: str,
        schema: Schema,
        ignore: FieldSet | None,
        now: datetime | str,
        empty: Mapping[str, Any],
    ) -> None:
        self._empty = empty
        self.live_entries = starting_entries(live, None, ignore_request=True)
        self.live = {**live, "metadata": _bare_metadata(live)} if live else {}
        self.applied = applied
        self.identity = identity
        self._api_version = api_version
        self._schema = schema
        self._ignore = ignore
        self._now = now
        self._node: ObjectNode = root_of(schema)

    def result(self, *, force: bool) -> tuple[dict[str, Any], list[Entry]]:
        """The merged object without ``managedFields``, and the entries, the applier's with its old time."""
        entries = self._entries_before()
        previous = next((entry for entry in entries if identity_of(entry) == self.identity), None)
        others = [entry for entry in entries if entry is not previous]
        mine = self._node.mentioned(dict(self.applied)) or {}
        if self._ignore is not None:
            mine = recursive_difference(mine, self._ignore.trie)
        merged: dict[str, Any] = self._node.merge(self.live, dict(self.applied))
        pruned = merged
        if previous is not None:
            pruned = self._pruned(merged, previous["fieldsV1"], mine, others)
        changed, removed = compare_objects(self.live, pruned, self._schema, self._ignore)
        if not force:
            _raise_conflicts(others, changed)
        kept: list[Entry] = []
        for entry in others:
            fields = entry["fieldsV1"]
            left = difference(difference(fields, changed), removed)
            if left:
                kept.append(entry if left is fields else {**entry, "fieldsV1": left})
        own = stripped(mine)
        if own:
            time = previous.get("time") if previous is not None else None
            kept.append(make_entry(self.identity, self._api_version, time, own))
        return (merged if pruned is merged else _without_emptied(pruned)), kept

    def _entries_before(self) -> list[Entry]:
        if not self.live_entries:
            if not self.live:
                return []
            # The object was never tracked: whoever wrote it until now is kept as one unnamed updater.
            changed, removed = compare_objects(self._empty, self.live, self._schema, self._ignore)
            first: Identity = (BEFORE_FIRST_APPLY, "Update", self._api_version, self.identity[3])
            return updated_entries([], changed, removed, first, self._now)
        entries = []
        for entry in self.live_entries:
            fields = self._node.reconciled(entry["fieldsV1"])
            entries.append(entry if fields is entry["fieldsV1"] else {**entry, "fieldsV1": fields})
        return entries

    def _pruned(
        self, merged: dict[str, Any], last: Trie, mine: Trie, others: list[Entry]
    ) -> dict[str, Any]:
        """Without what this manager applied last time, does not apply now, and nobody else owns."""
        if not difference(last, stripped(mine)):
            return merged
        node = self._node
        last = node.with_named_parents(last)
        everything = node.with_named_parents(node.mentioned(merged) or {})
        owned = mine
        for entry in others:
            owned = union(owned, entry["fieldsV1"], root=True)
        pruned = _object(node.remove(merged, last))
        # Add back what others own, or this configuration does.
        still_there = node.with_named_parents(node.mentioned(pruned) or {})
        kept = union(still_there, node.with_named_parents(owned), root=True)
        pruned = _object(node.remove(merged, difference(everything, kept)))
        # Add back what this manager never applied: nobody owns it, or an updater set it.
        still_there = node.with_named_parents(node.mentioned(pruned) or {})
        gone = intersection(difference(everything, still_there), last)
        return _object(node.remove(merged, gone))


def _check_applied(applied: Mapping[str, Any], api_version: str, schema: Schema) -> None:
    version = applied.get("apiVersion")
    if version != api_version:
        raise PatchError(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {api_version}"
        )
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise PatchError("metadata.managedFields must be nil")
    errors = type_errors(dict(applied), schema)
    if errors:
        meta = metadata if isinstance(metadata, dict) else {}
        group_version = api_version if "/" in api_version else f"/{api_version}"
        what = (
            f"{meta.get('namespace', '')}/{meta.get('name', '')}; "
            f"{group_version}, Kind={applied.get('kind', '')}"
        )
        raise PatchTypeError(f"failed to create typed patch object ({what}): {join_errors(errors)}")


def _raise_conflicts(others: list[Entry], changed: Trie) -> None:
    conflicts: list[FieldConflict] = []
    if changed:
        for entry in sorted(others, key=identity_of):
            both = FieldSet(intersection(entry["fieldsV1"], changed))
            conflicts += [FieldConflict(describe_manager(entry), path) for path in both.paths()]
    if conflicts:
        raise ApplyConflict(conflicts)


def describe_manager(entry: Entry) -> str:
    """An owner as conflict messages name it."""
    text = orjson.dumps(entry.get("manager", "")).decode()
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry["operation"] == "Update":
        text += f" using {entry['apiVersion']}"
    return text


def _conflict_message(conflicts: list[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].field}"
    lines: list[str] = []
    for manager in dict.fromkeys(each.manager for each in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {each.field}" for each in conflicts if each.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _bare_metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _without_emptied(value: Any) -> Any:
    """Containers that lost their last part in pruning are not stored."""
    if isinstance(value, dict):
        return {key: _without_emptied(inner) for key, inner in value.items() if inner is not EMPTIED}
    if isinstance(value, list):
        return [_without_emptied(inner) for inner in value if inner is not EMPTIED]
    return value


def _last_applied_set(live: Mapping[str, Any], api_version: str, schema: Schema) -> FieldSet | None:
    """The fields that ``kubectl apply`` without server-side apply set and that still have those values."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return None
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or type_errors(last, schema):
        return None
    node = root_of(schema)
    changed: Trie = {}
    removed: Trie = {}
    node.compare_fields(last, {**live, "metadata": _bare_metadata(live)}, changed, removed)
    mentioned = node.mentioned(last) or {}
    return FieldSet(difference(difference(mentioned, changed), removed))


def _with_last_applied(out: dict[str, Any], applied: Mapping[str, Any]) -> dict[str, Any]:
    """Keep kubectl's annotation true, if the object carries one: client-side apply may take over again."""
    metadata = out.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return out
    config = dict(applied)
    if isinstance(config.get("metadata"), dict) and config["metadata"].get("annotations"):
        kept = {key: value for key, value in config["metadata"]["annotations"].items() if key != LAST_APPLIED}
        config["metadata"] = {key: value for key, value in config["metadata"].items() if key != "annotations"}
        if kept:
            config["metadata"]["annotations"] = kept
    text = escape_html(orjson.dumps(config, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode())
    if annotations[LAST_APPLIED] == text:
        return out
    return {**out, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}
