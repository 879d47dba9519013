"""Pods by priority, in exactly the order in which upstream looks at them.

Upstream sorts with Go's ``sort.Slice``, which is not stable: which of two pods with the same priority gets the last
free place on a node decides what the cluster is enlarged by.
"""

from __future__ import annotations

from holokube.base.go_sort import sort_as_go

__all__ = ["sort_as_go"]
