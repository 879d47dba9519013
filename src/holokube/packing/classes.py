"""Finding the class of a pod, quickly.

Most pods are copies of a pod seen before, so the parts of the spec that matter are compared as bytes first, and
compiled only when they are new. Compiled classes are compared once more by meaning: ``0.1`` cpu is ``100m``.

Labels count only as far as a selector asks for them; otherwise every pod of a StatefulSet, which carries its
own name as a label, would be a class of its own. When a new selector asks for another label, classes whose
members carry that label stop being one kind of pod and become stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import ReferenceType, WeakSet, WeakValueDictionary, ref

import orjson

from holokube.packing.daemon_sizes import DaemonSizes, sizing_key
from holokube.packing.podclass import PodClass, compile_class, relevant_volumes

_EMPTY: Final[Mapping[str, Any]] = {}
_MOST_PASSES: Final = 100
_TEMPLATES_KEPT: Final = 1024


@dataclass(slots=True)
class _Seen:
    """A pod whose class is known. Its spec and labels are copies, should somebody change the pod."""

    containers: Any
    """Held, so that no other list can come to lie in its place."""
    namespace: str | None
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    cls: ReferenceType[PodClass]

    def is_like(
        self, namespace: str | None, labels: Mapping[str, str], spec: Mapping[str, Any], watched: set[str]
    ) -> bool:
        """Whether another pod is of the same class; its labels may be others as far as no selector asks for them."""
        if self.namespace != namespace or self.spec != spec:
            return False
        own = self.labels
        for key in watched:  # noqa: SIM110 - a plain loop costs half of all() with a generator
            if own.get(key) != labels.get(key):
                return False
        return True


class ClassTable:
    """All classes in use. A class lives as long as a pod in the state or a caller holds it."""

    def __init__(self, *, size_daemons: bool = False) -> None:
        self._size_daemons = size_daemons
        self._by_bytes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._by_identity: WeakValueDictionary[Any, PodClass] = WeakValueDictionary()
        self._all: WeakSet[PodClass] = WeakSet()
        self._watched: set[str] = set()
        self._seen: dict[int, _Seen] = {}
        """By the identity of its list of containers, which copies of a template often have in common."""

    def class_of(self, pod: Mapping[str, Any], *, merge_label_keys: bool = False) -> PodClass:
        """The class of a Pod object."""
        if merge_label_keys:
            return self._class_of(pod, merge_label_keys)
        metadata, spec = pod.get("metadata") or _EMPTY, pod.get("spec") or _EMPTY
        namespace, labels = metadata.get("namespace"), metadata.get("labels") or _EMPTY
        containers = spec.get("containers")
        seen = self._seen.get(id(containers))
        if (
            seen is not None and seen.containers is containers
            and seen.is_like(namespace, labels, spec, self._watched)
        ):  # fmt: skip
            cls = seen.cls()
            if cls is not None and not cls.is_stale:
                if not cls.noted_keys.issuperset(labels):
                    self._note(cls, labels)
                return cls
        cls = self._class_of(pod, merge_label_keys)
        if containers and not (cls.claims and any(use.ephemeral_of for use in cls.claims)):
            if len(self._seen) >= _TEMPLATES_KEPT:
                self._seen.clear()
            self._seen[id(containers)] = _Seen(containers, namespace, dict(labels), dict(spec), ref(cls))
        return cls

    def keeps_class(self, cls: PodClass, was: Mapping[str, str], is_: Mapping[str, str]) -> bool:
        """Whether a pod of a class whose labels change, and nothing else, is still of the class, to the best of our
        knowledge; if so, the class knows these labels from now on."""
        if cls.is_stale:
            return False
        for key in self._watched:
            if was.get(key) != is_.get(key):
                return False
        if not cls.noted_keys.issuperset(is_):
            self._note(cls, is_)
        return True

    def _note(self, cls: PodClass, labels: Mapping[str, str]) -> None:
        """Note that members of a class have these labels, and which of them nobody asked for yet."""
        cls.ignored_keys.update(labels.keys() - self._watched)
        cls.noted_keys.update(labels)

    def _class_of(self, pod: Mapping[str, Any], merge_label_keys: bool) -> PodClass:
        labels = (pod.get("metadata") or _EMPTY).get("labels") or _EMPTY
        # A pod that an API server has seen has its size already.
        sizing = sizing_key(pod) if self._size_daemons and merge_label_keys else b""
        fingerprint = self._fingerprint(pod, labels, merge_label_keys) + sizing
        found = self._by_bytes.get(fingerprint)
        if found is None or found.is_stale:
            sizes = DaemonSizes(pod) if sizing else None
            compiled = compile_class(pod, merge_label_keys=merge_label_keys, sizes=sizes)
            self._watch(compiled.watched_keys())
            identity = compiled.identity(self._watched)
            found = self._by_identity.get(identity)
            if found is None or found.is_stale:
                found = self._by_identity[identity] = compiled
                self._all.add(compiled)
            self._by_bytes[self._fingerprint(pod, labels, merge_label_keys) + sizing] = found
        self._note(found, labels)
        return found

    def classify(self, pods: Iterable[Mapping[str, Any]], *, merge_label_keys: bool = False) -> list[PodClass]:
        """The class of each pod, none of them stale: a later pod's selectors may part earlier pods."""
        given = list(pods)
        for _ in range(_MOST_PASSES):
            classes = [self.class_of(pod, merge_label_keys=merge_label_keys) for pod in given]
            if not any(cls.is_stale for cls in classes):
                return classes
        raise AssertionError("selectors ask for finitely many labels, so a second pass finds no new ones")

    def _watch(self, keys: set[str]) -> None:
        new = keys - self._watched
        if not new:
            return
        self._watched |= new
        for cls in self._all:
            if not new.isdisjoint(cls.ignored_keys):
                cls.is_stale = True

    def _fingerprint(self, pod: Mapping[str, Any], labels: Mapping[str, str], merge_label_keys: bool) -> bytes:
        metadata, spec = pod.get("metadata") or _EMPTY, pod.get("spec") or _EMPTY
        watched = self._watched
        volumes = relevant_volumes(spec) if spec.get("volumes") else ()
        named = any("ephemeral" in volume for volume in volumes)
        constraints, affinity = spec.get("topologySpreadConstraints"), spec.get("affinity")
        return orjson.dumps((
            metadata.get("namespace"),
            {key: value for key, value in labels.items() if key in watched},
            [(c.get("resources"), c.get("ports")) for c in spec.get("containers") or ()],
            [(c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in spec.get("initContainers") or ()],
            spec.get("resources"), spec.get("overhead"), spec.get("nodeName"), spec.get("nodeSelector"),
            affinity, spec.get("tolerations"), constraints, volumes,
            (metadata.get("name"), metadata.get("uid")) if named else None,
            merge_label_keys,
        ))  # fmt: skip
