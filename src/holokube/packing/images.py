"""Which nodes have which container images, for the score that saves pulling them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_NONE: Final[Mapping[int, int]] = {}


class ImageTable:
    """Image sizes by name and node. Each change costs as much as the node has images."""

    __slots__ = ("_listed", "_sizes", "version")

    def __init__(self) -> None:
        self.version = 0
        """Moves with every change."""
        self._sizes: dict[str, dict[int, int]] = {}
        self._listed: dict[int, Sequence[Mapping[str, Any]]] = {}

    def set(self, row: int, images: Sequence[Mapping[str, Any]]) -> None:
        """Note ``status.images`` of a node; heartbeats repeat it, and cost a comparison."""
        before = self._listed.get(row, ())
        if before is images or before == images:
            return
        self.version += 1
        for image in before:
            for name in image.get("names") or ():
                rows = self._sizes.get(name)
                if rows is not None:
                    rows.pop(row, None)
                    if not rows:
                        del self._sizes[name]
        for image in images:
            for name in image.get("names") or ():
                self._sizes.setdefault(name, {}).setdefault(row, image.get("sizeBytes") or 0)
        if images:
            self._listed[row] = images
        else:
            self._listed.pop(row, None)

    def sizes(self, name: str) -> Mapping[int, int]:
        """The rows that have an image, and its size in bytes there."""
        return self._sizes.get(name, _NONE)
