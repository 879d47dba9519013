"""Each write is decoded once, although the server tells of it twice: in its answer, and in the watch.

A version belongs to one write of one object, so that two texts with the same version are the same object. Decoding is
much of what a pod costs a fleet; finding the version in the bytes costs next to nothing.
"""

from __future__ import annotations

from holokube.hollow.wire.slim import Slimmer
from holokube.kube.types import JsonObject

ECHOES_MAX = 4096
"""Answers whose echo has not come. A watch that is behind by more decodes again."""

_VERSION = b'"resourceVersion":"'


def version_in(text: bytes) -> str:
    """The resourceVersion in an object that is not decoded; empty if there is none.

    Quotes inside strings are escaped, so the text searched for can only be a key, and servers write it before anything
    in which users could have a key of that name.
    """
    at = text.find(_VERSION)
    if at < 0:
        return ""
    start = at + len(_VERSION)
    return text[start : text.find(b'"', start)].decode()


class Echoes:
    """Answers, until the watch tells of them too."""

    def __init__(self, slim: Slimmer) -> None:
        """``slim`` makes objects smaller in place, as soon as they are decoded."""
        self._slim = slim
        self._waiting: dict[str, JsonObject] = {}
        self._taken: JsonObject | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, answer: JsonObject, before: JsonObject | None = None) -> JsonObject:
        """An object that was decoded from an answer, and what it was like before; returns what to keep of it."""
        kept = self._slim(answer, before)
        version = kept["metadata"].get("resourceVersion")
        if version:
            self._waiting[version] = kept
            if len(self._waiting) > ECHOES_MAX:
                del self._waiting[next(iter(self._waiting))]
        return kept

    def take(self, text: bytes) -> JsonObject | None:
        """The object in a text of the watch, if it is the echo of an answer."""
        if not self._waiting:
            return None
        taken = self._waiting.pop(version_in(text), None)
        if taken is not None:
            self._taken = taken
        return taken

    def keep(self, obj: JsonObject) -> JsonObject:
        """What an informer keeps of an object; an echo is small already."""
        if obj is self._taken:
            self._taken = None
            return obj
        return self._slim(obj)
