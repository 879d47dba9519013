"""By which labels pods without spread constraints of their own are spread: those of their services and owner."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holokube.client.cache import Lister
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.packing.nodes import labels_of
from holokube.scheduler.scores import spread_selector

_KEPT: Final = 4096
_EMPTY: Final[Mapping[str, Any]] = {}

SelectorOf = Callable[[JsonObject], LabelSelector | None]


class _Latest(NamedTuple):
    """The last pod with certain references to its owners."""

    references: Sequence[JsonObject]
    """Held, so that no others can come to lie in their place."""
    labels: Mapping[str, str] | None
    namespace: str
    selector: LabelSelector | None


class DefaultSpread:
    """Remembers the answer for pods with the same owner and labels."""

    def __init__(self, services: Lister, owners: Mapping[str, Lister]) -> None:
        """``owners`` are the listers of ReplicaSets, StatefulSets and ReplicationControllers, by kind."""
        self._services = services
        self._owners = owners
        self._known: dict[Hashable, LabelSelector | None] = {}
        self._serving: dict[str, bool] = {}
        """By namespace that has services, whether any of them selects pods."""
        self._latest: dict[int, _Latest] = {}
        """By the identity of references to owners: those who make pods mostly give all of them the very same."""

    def forget(self) -> None:
        """A service or an owner changed."""
        self._known.clear()
        self._latest.clear()
        self._serving.clear()

    def selector_of(self, pod: JsonObject) -> LabelSelector | None:
        """What selects a pod; None if nothing does."""
        if (pod.get("spec") or _EMPTY).get("topologySpreadConstraints"):
            return None
        metadata = pod["metadata"]
        references, namespace = metadata.get("ownerReferences"), metadata.get("namespace", "")
        latest = self._latest.get(id(references))
        if (
            latest is not None and latest.references is references
            and latest.labels is metadata.get("labels") and latest.namespace == namespace
        ):  # fmt: skip
            return latest.selector
        reference = None
        for each in references or ():
            if each.get("controller"):
                reference = each
                break
        has_owner = reference is not None and reference.get("kind") in self._owners
        if not (has_owner or self._may_serve(namespace)):
            # As with a pod of a Job: there is nobody who could select it.
            return None
        selector = self._selector_of(pod, namespace, labels_of(pod), reference)
        if references:
            if len(self._latest) >= _KEPT:
                self._latest.clear()
            self._latest[id(references)] = _Latest(references, metadata.get("labels"), namespace, selector)
        return selector

    def _may_serve(self, namespace: str) -> bool:
        """Whether any service of a namespace selects pods; one that is not given means all."""
        found = self._serving.get(namespace)
        if found is None:
            if namespace and not self._services.has_any(namespace):
                return False
            if len(self._serving) >= _KEPT:
                self._serving.clear()
            services = self._services.list(namespace)
            found = any((service.get("spec") or _EMPTY).get("selector") is not None for service in services)
            self._serving[namespace] = found
        return found

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
