"""Whose pods are: the topmost owner, found over the caches that controllers use anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.client.cache import Lister
from holokube.client.resources import JOBS, REPLICA_SETS
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

_STATIC: Final = "Node"


class Owners:
    """``namespace/kind/name`` of the workload that a pod belongs to."""

    def __init__(self, informers: InformerSet) -> None:
        self._between: dict[str, Lister] = {
            "ReplicaSet": informers.get(REPLICA_SETS).lister,
            "Job": informers.get(JOBS).lister,
        }
        self._known: dict[str, str] = {}

    def workload_of(self, pod: Mapping[str, Any]) -> str:
        """The workload's name; a pod that nobody owns is its own."""
        meta = pod["metadata"]
        namespace = meta.get("namespace", "")
        owner = controller_of(meta)
        if owner is None:
            return f"{namespace}/Pod/{meta['name']}"
        uid = owner["uid"]
        known = self._known.get(uid)
        if known is not None:
            return known
        between = self._between.get(owner["kind"])
        found = between.get(owner["name"], namespace) if between is not None else None
        above = controller_of(found["metadata"]) if found is not None else None
        top = above if above is not None else owner
        name = f"{namespace}/{top['kind']}/{top['name']}"
        if between is None or found is not None:
            self._known[uid] = name
        return name

    def knows(self, uid: str) -> bool:
        """Whether the workload of pods with this controller has been found, and stays what it is."""
        return uid in self._known


def is_daemon(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is there for its node's sake."""
    owner = controller_of(pod["metadata"])
    return owner is not None and owner["kind"] in ("DaemonSet", _STATIC)


def controller_of(meta: Mapping[str, Any]) -> JsonObject | None:
    """The owner that an object's metadata names as its controller."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            found: JsonObject = reference
            return found
    return None
