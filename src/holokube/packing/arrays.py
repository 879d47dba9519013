"""Names for the arrays that the engine works on.

Rows are nodes. A filter answers for all rows at once (``ALL``) or for the few that changed (an index array),
through the same code, so that an incremental answer cannot differ from a full one.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
IdArray: TypeAlias = NDArray[np.intp]
"""Small numbers that other arrays are indexed by; any narrower type would be widened at every look-up."""
RowArray: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = slice | RowArray

ALL: Final = slice(None)

_A = TypeVar("_A", bound=NDArray[Any])


def grown(array: _A, length: int) -> _A:
    """A copy with at least ``length`` entries along the first axis; the new ones are zero."""
    larger = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger  # type: ignore[return-value]  # numpy forgets that the dtype is the same


def true_for(rows: Rows, capacity: int) -> BoolArray:
    """A mask over ``rows`` that refuses nothing."""
    return np.ones(capacity if isinstance(rows, slice) else len(rows), dtype=np.bool_)
