"""Names for the plain JSON values that everything is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An API object, or a part of one. Immutable by convention: build a new dict, never change one you got."""

Labels: TypeAlias = Mapping[str, str]
"""Labels, annotations or a node selector."""
