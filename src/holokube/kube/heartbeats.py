"""Heartbeats that are told once instead of every ten seconds.

On virtual time a thousand healthy nodes would write nothing but leases. A lease with this mark stands for renewals that
go on for as long as the mark is there. Whoever gives the heartbeat up takes the mark away and writes the time at which
the last renewal would have been, so that those who watch for silence find out when they would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONTINUOUS: Final = "holokube.dev/renewed-continuously"
"""Annotation of a Lease."""


def is_continuous(lease: Mapping[str, Any] | None) -> bool:
    """Whether the lease counts as renewed at this very moment."""
    if lease is None:
        return False
    return CONTINUOUS in (lease["metadata"].get("annotations") or ())
