"""What pods of a DaemonSet take of a node when their size goes by the node's.

Such a pod asks for one thing in the template and for another once it is admitted for a node, so that one class has
as many sizes as there are sizes of nodes. Each is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from holokube.kube.quantity import Quantity
from holokube.kube.resources import CPU, MEMORY, ResourceVector
from holokube.kube.sizing import is_sized_on_arrival, sized_pod
from holokube.packing.podclass import requests_nonzero_of, requests_of

_EMPTY: Final[Mapping[str, Any]] = {}


class DaemonSize(NamedTuple):
    """What a pod takes of nodes of one size."""

    requests: ResourceVector
    requests_nonzero: tuple[int, int]


class DaemonSizes:
    """The sizes of one class. Members agree on everything that they depend on, which is ``key``."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        metadata, spec = pod.get("metadata") or _EMPTY, pod.get("spec") or _EMPTY
        self._pod = {
            "metadata": {name: metadata.get(name) for name in ("labels", "annotations")},
            "spec": {name: spec.get(name) for name in ("containers", "initContainers", "resources", "overhead")},
        }
        self.key = sizing_key(pod)
        self._by_node_size: dict[tuple[int, int], DaemonSize] = {}

    def on(self, cpu_milli: int, memory_milli: int) -> DaemonSize:
        """On a node with that much allocatable, in milli-units of both."""
        found = self._by_node_size.get((cpu_milli, memory_milli))
        if found is None:
            allocatable = {CPU: str(Quantity(cpu_milli, -3)), MEMORY: str(Quantity(memory_milli, -3))}
            pod = sized_pod(self._pod, {"status": {"allocatable": allocatable}})
            found = DaemonSize(requests_of(pod), requests_nonzero_of(pod))
            self._by_node_size[cpu_milli, memory_milli] = found
        return found


def sizing_key(pod: Mapping[str, Any]) -> bytes:
    """What tells pods apart that are sized by their node; empty for all others."""
    if not is_sized_on_arrival(pod):
        return b""
    metadata, spec = pod["metadata"], pod.get("spec") or _EMPTY
    containers = [(c.get("name"), c.get("resources")) for c in spec.get("containers") or ()]
    sidecars = [(c.get("name"), c.get("resources"), c.get("restartPolicy")) for c in spec.get("initContainers") or ()]
    parts = (metadata.get("annotations"), containers, sidecars, spec.get("resources"), spec.get("overhead"))
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
