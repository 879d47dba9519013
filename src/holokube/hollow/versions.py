"""Which of two states of an object is the newer one."""

from __future__ import annotations

from holokube.kube.types import JsonObject


def is_newer(a: JsonObject, b: JsonObject) -> bool:
    """By resourceVersion; of versions that are no numbers, only being different can be told."""
    mine, theirs = a["metadata"].get("resourceVersion", ""), b["metadata"].get("resourceVersion", "")
    if mine == theirs:
        return False
    if not (mine.isdecimal() and theirs.isdecimal()):
        return True
    # Texts of the same length compare as their numbers do.
    return bool(mine > theirs) if len(mine) == len(theirs) else int(mine) > int(theirs)
