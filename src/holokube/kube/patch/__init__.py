"""The four ways to change an object: JSON patch, merge patch, strategic merge patch, server-side apply.

None of them changes its inputs. What can go wrong, with the status code upstream's server answers::

    PatchError                   400  the patch document itself is malformed
    ├── PatchTooLarge            413  more operations or copied bytes than allowed
    ├── PatchNotApplicable       422  well-formed, but it does not fit this object
    │   ├── PatchPathMissing     422  an operation names a place that is not there
    │   └── PatchTestFailed      422  a ``test`` operation found another value
    └── PatchTypeError           500  the patch does not fit the type of the object

A conflict of server-side apply is ``apply.ApplyConflict``, an ``ApiError`` with code 409.
"""

from __future__ import annotations

from typing import ClassVar


class PatchError(ValueError):
    """The patch document itself is malformed."""

    code: ClassVar[int] = 400


class PatchTooLarge(PatchError):
    """The patch has more operations, or copies more bytes, than the server allows."""

    code = 413


class PatchNotApplicable(PatchError):
    """The patch is well-formed but cannot be applied to this object."""

    code = 422


class PatchPathMissing(PatchNotApplicable):
    """An operation names a place that the object does not have."""


class PatchTestFailed(PatchNotApplicable):
    """A ``test`` operation found another value."""


class PatchTypeError(PatchError):
    """The patch does not fit the type of the object; upstream's server answers with 500 here."""

    code = 500
