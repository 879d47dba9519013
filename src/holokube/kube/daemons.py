"""What the pods of DaemonSets have that others do not: they stay on nodes with problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.kube.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE_DISK_PRESSURE,
    NODE_MEMORY_PRESSURE,
    NODE_NETWORK_UNAVAILABLE,
    NODE_NOT_READY,
    NODE_PID_PRESSURE,
    NODE_UNREACHABLE,
    NODE_UNSCHEDULABLE,
)
from holokube.kube.types import JsonObject

# Daemons stay on nodes with problems: they may be what repairs them.
_TOLERATED: Final = (
    (NODE_NOT_READY, NO_EXECUTE),
    (NODE_UNREACHABLE, NO_EXECUTE),
    (NODE_DISK_PRESSURE, NO_SCHEDULE),
    (NODE_MEMORY_PRESSURE, NO_SCHEDULE),
    (NODE_PID_PRESSURE, NO_SCHEDULE),
    (NODE_UNSCHEDULABLE, NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = ((NODE_NETWORK_UNAVAILABLE, NO_SCHEDULE),)


def with_daemon_tolerations(spec: JsonObject) -> JsonObject:
    """A pod's spec with the tolerations that the DaemonSet controller adds."""
    wanted = [*_TOLERATED, *(_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())]
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in wanted:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        same = [i for i, t in enumerate(tolerations) if _is_same_kind(t, toleration)]
        if same:
            tolerations[same[0]] = toleration
        else:
            tolerations.append(toleration)
    return {**spec, "tolerations": tolerations}


def _is_same_kind(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(
        (left.get(name) or default) == (right.get(name) or default)
        for name, default in (("key", ""), ("operator", "Equal"), ("effect", ""), ("value", ""))
    )
