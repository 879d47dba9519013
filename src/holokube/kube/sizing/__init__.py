"""Node-specific sizing: what a DaemonSet's pods ask for, as a share of the node they run on.

``annotations.py`` reads what users write, ``amounts.py`` spreads a budget in whole units, ``sizing.py`` brings both
together for one pod on one node. Everything is integers: thousandths of cores, and bytes.
"""

from holokube.kube.sizing.annotations import (
    ENABLED_LABEL,
    ORIGINAL_ANNOTATION,
    PREFIX,
    STATUS_ANNOTATION,
    SizingProblem,
    is_enabled,
    node_name_of,
)
from holokube.kube.sizing.sizing import Sizing, check, is_sized_on_arrival, size, sized_pod, sized_requests

__all__ = [
    "ENABLED_LABEL",
    "ORIGINAL_ANNOTATION",
    "PREFIX",
    "STATUS_ANNOTATION",
    "Sizing",
    "SizingProblem",
    "check",
    "is_enabled",
    "is_sized_on_arrival",
    "node_name_of",
    "size",
    "sized_pod",
    "sized_requests",
]
