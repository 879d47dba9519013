"""By which labels pods without spread constraints of their own are spread: those of their services and owner."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from holokube.client.cache import Lister
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.packing.nodes import labels_of
from holokube.scheduler.scores import spread_selector

_KEPT: Final = 4096

SelectorOf = Callable[[JsonObject], LabelSelector | None]


class DefaultSpread:
    """Remembers the answer for pods with the same owner and labels."""

    def __init__(self, services: Lister, owners: Mapping[str, Lister]) -> None:
        """``owners`` are the listers of ReplicaSets, StatefulSets and ReplicationControllers, by kind."""
        self._services = services
        self._owners = owners
        self._known: dict[Hashable, LabelSelector | None] = {}
        self._latest: dict[str, tuple[str, Mapping[str, str], LabelSelector | None]] = {}
        """By the uid of the owner, the last of its pods: the next one mostly has the same labels."""

    def forget(self) -> None:
        """A service or an owner changed."""
        self._known.clear()
        self._latest.clear()

    def selector_of(self, pod: JsonObject) -> LabelSelector | None:
        """What selects a pod; None if nothing does."""
        metadata = pod["metadata"]
        if (pod.get("spec") or {}).get("topologySpreadConstraints"):
            return None
        reference = next((r for r in metadata.get("ownerReferences") or () if r.get("controller")), None)
        namespace, labels = metadata.get("namespace", ""), labels_of(pod)
        uid = (reference or {}).get("uid") or ""
        latest = self._latest.get(uid)
        if latest is not None and latest[0] == namespace and latest[1] == labels:
            return latest[2]
        selector = self._selector_of(pod, namespace, labels, reference)
        if uid:
            if len(self._latest) >= _KEPT:
                self._latest.clear()
            self._latest[uid] = namespace, labels, selector
        return selector

    def _selector_of(
        self, pod: JsonObject, namespace: str, labels: Mapping[str, str], reference: JsonObject | None
    ) -> LabelSelector | None:
        key = (namespace, reference and reference.get("uid"), frozenset(labels.items()))
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            owner = None
            if reference is not None and reference.get("kind") in self._owners:
                owner = self._owners[reference["kind"]].get(reference["name"], namespace)
            self._known[key] = spread_selector(pod, self._services.list(namespace), owner)
        return self._known[key]
