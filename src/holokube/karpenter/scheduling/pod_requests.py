"""What a pod takes of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from holokube.kube.resources import PODS, ResourceVector, parse_resources, pod_requests

_ONE: Final = 1000
_EMPTY: Final[Mapping[str, Any]] = {}


def requests_of(pod: Mapping[str, Any]) -> ResourceVector:
    """What a pod takes of a node, with one of ``pods``; a resize in progress counts with the larger amount."""
    spec = pod.get("spec") or _EMPTY
    containers: Sequence[Mapping[str, Any]] = spec.get("containers") or ()
    if len(containers) == 1 and not (spec.get("initContainers") or spec.get("overhead") or spec.get("resources")):
        requests = (containers[0].get("resources") or _EMPTY).get("requests") or _EMPTY
        statuses = (pod.get("status") or _EMPTY).get("containerStatuses")
        if not statuses or (len(statuses) == 1 and _is_as_asked(statuses[0], requests)):
            return _of_one_container(tuple(requests.items()))
    found = pod_requests(pod, use_status=True)
    found[PODS] = _ONE
    return found


def _is_as_asked(status: Mapping[str, Any], requests: Mapping[str, Any]) -> bool:
    """Whether a container has what it asks for, and no resize is under way."""
    actual = status.get("resources")
    if actual is None:
        return True
    allocated = status.get("allocatedResources")
    return (actual.get("requests") or _EMPTY) == requests and (allocated is None or allocated == requests)


@lru_cache(maxsize=65_536)
def _of_one_container(requests: tuple[tuple[str, str | int | float], ...]) -> ResourceVector:
    found = parse_resources(dict(requests))
    found[PODS] = _ONE
    return found
