"""What can be wrong with a catalogue."""

from __future__ import annotations

from holokube.base.errors import UsageError


class CatalogError(UsageError):
    """A catalogue cannot be understood; the message names file, type or line, and field."""
