"""Small series for small charts: bounded, however long and however fast time passes."""

from __future__ import annotations

from typing import Final

POINTS_MAX: Final = 360
"""More than a small chart has pixels to tell apart."""

Point = tuple[float, ...]
"""The time in Unix seconds, and a value per series."""


class History:
    """Points with a least distance, which doubles when they become too many.

    With a ``window_s`` the distance stops growing when the points cover it, and the oldest fall off; without one, the
    history is always the whole of it, coarser and coarser.
    """

    def __init__(self, *, window_s: float | None = None, points_max: int = POINTS_MAX) -> None:
        if points_max < 2:
            raise ValueError(f"a history needs two points or more, not {points_max}")
        self._window_s = window_s
        self._points_max = points_max
        self._step_s = 1.0
        self._points: list[Point] = []
        self.compactions = 0
        """How often points were taken away: whoever keeps a copy has to take all of them anew."""

    def add(self, point: Point) -> None:
        """Take a point. The last one stands in for those to come until it is a step away from the one before it, so
        that the end is always current."""
        points = self._points
        if len(points) > 1 and points[-1][0] - points[-2][0] < self._step_s:
            points[-1] = point
            return
        points.append(point)
        if len(points) > self._points_max:
            self.compactions += 1
        while len(self._points) > self._points_max:
            self._compact()

    def _compact(self) -> None:
        if self._window_s is not None and self._step_s * self._points_max >= self._window_s:
            # A quarter at once: one at a time, every point would be a compaction.
            del self._points[: max(1, self._points_max // 4)]
            return
        self._step_s *= 2
        kept: list[Point] = []
        for point in self._points[:-1]:
            if not kept or point[0] - kept[-1][0] >= self._step_s:
                kept.append(point)
        self._points = [*kept, self._points[-1]]

    @property
    def last(self) -> Point | None:
        return self._points[-1] if self._points else None

    def points(self) -> list[Point]:
        """All points, oldest first."""
        return list(self._points)

    def __len__(self) -> int:
        return len(self._points)
