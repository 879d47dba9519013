"""What a reconcile hands back, and the error that asks for no second try."""

from __future__ import annotations

import msgspec

from holokube.base.errors import HolokubeError


class Result(msgspec.Struct, frozen=True):
    """When to look again, although nothing may have changed.

    ``None``: only on a change. ``0``: at once; a controller puts its growing delay on it, as upstream does
    for ``Requeue: true``, while a singleton loops right away. Anything more: after so many seconds.
    """

    requeue_after_s: float | None = None


DONE = Result()


class TerminalError(HolokubeError):
    """A reconcile that cannot succeed until the object changes: logged and counted, not tried again."""
