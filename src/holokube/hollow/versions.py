"""Which of two states of an object is the newer one."""

from __future__ import annotations

from holokube.kube.types import JsonObject


def is_newer(a: JsonObject, b: JsonObject) -> bool:
    """By resourceVersion; of versions that are no numbers, only being different can be told."""
    return is_newer_version(a["metadata"].get("resourceVersion", ""), b["metadata"].get("resourceVersion", ""))


def is_newer_version(mine: str, theirs: str) -> bool:
    """As ``is_newer``, of the versions themselves."""
    if mine == theirs:
        return False
    if not (mine.isdecimal() and theirs.isdecimal()):
        return True
    # Texts of the same length compare as their numbers do.
    return mine > theirs if len(mine) == len(theirs) else int(mine) > int(theirs)
