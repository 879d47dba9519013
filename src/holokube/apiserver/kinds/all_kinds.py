"""Which rules belong to which resource."""

from __future__ import annotations

from collections.abc import Mapping

from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.kinds.other_registry import OTHER_KINDS
from holokube.apiserver.kinds.workload_registry import WORKLOAD_KINDS

KINDS: Mapping[tuple[str, str], type[Kind]] = {**OTHER_KINDS, **WORKLOAD_KINDS}


def kind_for(group: str, plural: str) -> Kind:
    """The rules of a built-in resource; kinds without rules of their own are merely stored."""
    return KINDS.get((group, plural), Kind)()
