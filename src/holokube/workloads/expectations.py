"""What a controller has done and its cache does not show yet.

A controller that counts replicas in a cache must not count before its own last writes have arrived there, or
it would do them again. Upstream counts events and gives up after five minutes; here every write is remembered
by name, and the cache itself is asked: an object that was created is expected until the cache shows it or has
come past its version, one that was deleted until it is gone or marked as being deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.client.cache import object_key
from holokube.client.informer import Informer
from holokube.kube.types import JsonObject

EXPIRES_S = 300.0
"""After this time the cache is believed whatever it shows, as upstream does."""
RECHECK_S = 5.0
"""When to look again: an object that came and went between two lists sends no event that would wake us."""


@dataclass(slots=True)
class _Expected:
    created: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By key: uid and version."""
    deleted: dict[str, str] = field(default_factory=dict)
    """By key: uid."""
    since_s: float = 0.0
    newest: int | None = 0
    """The highest version among those created; None if one of them is no number."""


class Expectations:
    """The writes of one controller on one kind of object, by the controller's own keys."""

    def __init__(self, clock: Clock, informer: Informer) -> None:
        self._clock = clock
        self._informer = informer
        self._by_owner: dict[str, _Expected] = {}

    def created(self, owner: str, obj: Mapping[str, Any]) -> None:
        """The server answered a create with this object."""
        meta = obj["metadata"]
        version = str(meta.get("resourceVersion") or "")
        expected = self._of(owner)
        expected.created[object_key(obj)] = (meta["uid"], version)
        if not version.isdecimal():
            expected.newest = None
        elif expected.newest is not None and (number := int(version)) > expected.newest:
            expected.newest = number

    def deleted(self, owner: str, obj: Mapping[str, Any]) -> None:
        """The server took a delete of this object."""
        self._of(owner).deleted[object_key(obj)] = obj["metadata"]["uid"]

    def met(self, owner: str) -> bool:
        """Whether the cache shows all that was done for this owner."""
        expected = self._by_owner.get(owner)
        if expected is None:
            return True
        if self._clock.monotonic() - expected.since_s < EXPIRES_S:
            if expected.created:
                reached = self._informer.resource_version
                if expected.newest is not None and reached.isdecimal() and int(reached) >= expected.newest:
                    # As the rule is: the cache has come past all of them.
                    expected.created.clear()
                else:
                    self._drop_shown(expected.created)
            if expected.deleted:
                expected.deleted = {
                    key: uid for key, uid in expected.deleted.items() if not self._deleted_shows(key, uid)
                }
            if expected.created or expected.deleted:
                return False
        del self._by_owner[owner]
        return True

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        self._by_owner.pop(owner, None)

    def _of(self, owner: str) -> _Expected:
        expected = self._by_owner.get(owner)
        if expected is None:
            expected = self._by_owner[owner] = _Expected()
        expected.since_s = self._clock.monotonic()
        return expected

    def _drop_shown(self, created: dict[str, tuple[str, str]]) -> None:
        """Takes out what the cache shows, or has come past the version of."""
        by_key = self._informer.lister.by_key
        reached = self._informer.resource_version
        reached_number = int(reached) if reached.isdecimal() else -1
        shown = []
        for key, (uid, version) in created.items():
            cached = by_key(key)
            if (cached is not None and cached["metadata"]["uid"] == uid) or (
                version.isdecimal() and reached_number >= int(version)
            ):
                shown.append(key)
        for key in shown:
            del created[key]

    def _deleted_shows(self, key: str, uid: str) -> bool:
        cached = self._informer.lister.by_key(key)
        return (
            cached is None
            or cached["metadata"]["uid"] != uid
            or bool(cached["metadata"].get("deletionTimestamp"))
        )


class OwnWrites:
    """Tells whether a cache has caught up with what was last written to an object."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._versions: dict[str, int] = {}

    def wrote(self, obj: Mapping[str, Any]) -> None:
        """The server answered a write with this object."""
        version = str(obj["metadata"].get("resourceVersion") or "")
        if version.isdecimal():
            self._versions[object_key(obj)] = int(version)

    def shown(self, key: str) -> bool:
        """Whether the cache shows the object as written, or later."""
        written = self._versions.get(key)
        if written is None:
            return True
        # Where the cache is complete up to that version it shows the object, or that it is gone.
        reached = self._informer.resource_version
        is_shown = reached.isdecimal() and int(reached) >= written
        if not is_shown:
            cached = self._informer.lister.by_key(key)
            own = str(cached["metadata"].get("resourceVersion") or "") if cached is not None else ""
            is_shown = own.isdecimal() and int(own) >= written
        if is_shown:
            del self._versions[key]
        return is_shown

    def forget(self, key: str) -> None:
        self._versions.pop(key, None)


_LOOKED_AT: Final = ("generation", "deletionTimestamp", "labels", "annotations", "ownerReferences", "finalizers")


class Echoes:
    """Tells which changes show nothing but a status that the controller itself wrote.

    It was made from all that there is to look at: as long as nothing else changes, of which one is told, a look at it
    finds nothing to do. What was not written for good, because more was to be done, is not to be noted.
    """

    def __init__(self) -> None:
        self._written: dict[str, JsonObject] = {}

    def wrote(self, key: str, obj: JsonObject) -> None:
        """The server answered the write of a status with this object."""
        self._written[key] = obj

    def latest(self, key: str, cached: JsonObject) -> JsonObject:
        """The state to go on from: the one written last, as long as the cache lags behind it. What is written on top of
        an older one is refused."""
        written = self._written.get(key)
        if written is None or written is cached:
            return cached
        mine, theirs = written["metadata"], cached["metadata"]
        version, reached = mine.get("resourceVersion") or "", theirs.get("resourceVersion") or ""
        if not (version.isdecimal() and reached.isdecimal() and int(version) > int(reached)):
            return cached
        return written if mine["uid"] == theirs["uid"] else cached

    def is_one(self, old: Mapping[str, Any] | None, new: JsonObject | None) -> bool:
        """Whether a change is to the very state that was written last, and only in the status."""
        if old is None or new is None:
            return False
        was, now = old["metadata"], new["metadata"]
        # A resync, of which old and new are one, is a look that was asked for.
        if was is now:
            return False
        key = object_key(new)
        written = self._written.get(key)
        if written is None:
            return False
        if written is not new:
            mine = written["metadata"]
            if mine.get("resourceVersion") != now.get("resourceVersion") or mine["uid"] != now["uid"]:
                return False
            # That of the cache, which is kept anyway.
            self._written[key] = new
        # Changes that were missed may come together with the one that was made.
        for part in _LOOKED_AT:
            before, after = was.get(part), now.get(part)
            if before is not after and before != after:
                return False
        before, after = old.get("spec"), new.get("spec")
        return before is after or before == after

    def forget(self, key: str) -> None:
        self._written.pop(key, None)
