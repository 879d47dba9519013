"""What can be wrong with a Stage.

::

    UsageError
      StageError        a Stage that cannot be used as it is written
    ValueError
      TemplateError     a template that cannot be parsed, or not be rendered for an object
      QueryError        a jq expression beyond the part that is understood
"""

from __future__ import annotations

from holokube.base.errors import UsageError


class StageError(UsageError):
    """A Stage that cannot be used; says in which file, which stage, and what is understood instead."""


class TemplateError(ValueError):
    """A template that cannot be parsed or rendered."""

    def __init__(self, message: str, *, supported: str = "") -> None:
        super().__init__(message)
        self.supported = supported


class QueryError(ValueError):
    """A jq expression that is not understood."""
