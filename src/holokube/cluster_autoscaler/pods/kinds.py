"""Which pods are alike: those with the same labels, and the same spec as far as a scheduler could care.

Upstream compares specs pod by pod with everything seen before. Here every pod gets its kind once, and pods are alike
if they have the same kind. Nearly all pods are written alike but for names that somebody made up for them, so texts
are compared first, and meanings only if no such text was seen; and even that only of pods that do not plainly have the
spec of another one. What was found out about a pod is remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, cast

import orjson

from holokube.cluster_autoscaler.objects import (
    DAEMON_SET_POD_ANNOTATION,
    SCALE_UP_DELAY_ANNOTATION,
    has_tpu_requests,
    pod_key,
    priority_of,
    requests_gpu,
    time_s,
)
from holokube.kube import quantity
from holokube.kube.types import JsonObject
from holokube.packing import PodClass

_EMPTY: Final[Mapping[str, Any]] = {}
_NAMED: Final = b'"name":%b'
_BOUND: Final = b'"nodeName":%b'
_GAP: Final = b"\0"
# Where a pod is bound to does not make it another kind of pod, nor does what its name or its controller gave it.
_DROPPED: Final = frozenset({"nodeName", "hostname", "volumes", "containers", "initContainers"})
_DROPPED_OF_CONTAINERS: Final = frozenset({"env", "volumeMounts"})
_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
_PARTS_MAX: Final = 4096
_ABSENT_IF_EMPTY: Final = frozenset({"nodeSelector", "overhead", "resources", "requests", "limits", "matchLabels"})


class PodKind:
    """Pods that are alike. Kinds are compared by identity; get them from :class:`PodKinds`."""

    __slots__ = ("cls", "has_own_claims", "has_tpus", "is_gpu", "priority")

    def __init__(self, pod: JsonObject) -> None:
        spec = pod.get("spec") or _EMPTY
        self.priority: int | None = priority_of(pod)
        self.is_gpu = requests_gpu(pod)
        """Whether members ask for accelerators."""
        self.has_tpus = has_tpu_requests(pod)
        self.has_own_claims = any(volume.get("ephemeral") is not None for volume in spec.get("volumes") or ())
        """Whether claims are made for each member, which then are not alike to volume filters."""
        self.cls: PodClass | None = None
        """What the packing engine takes members for, once it was asked."""


class PodFacts:
    """What is remembered of one pod."""

    __slots__ = ("controller", "created_s", "delay_text", "identity", "is_daemon", "is_going", "kind", "pod")

    def __init__(self, pod: JsonObject, kind: PodKind) -> None:
        metadata = pod["metadata"]
        self.pod, self.kind = pod, kind
        self.identity: str = metadata.get("uid") or pod_key(pod)
        """What hints know it by."""
        self.created_s = time_s(metadata.get("creationTimestamp"))
        self.is_going = bool(metadata.get("deletionTimestamp"))
        """Whether it is on its way out; spreading counts such pods no more."""
        self.controller: str | None = None
        """The uid of its controller."""
        self.is_daemon = False
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller"):
                self.controller = owner.get("uid") or ""
                self.is_daemon = owner.get("kind") == "DaemonSet"
                break
        self.delay_text: str | None = None
        """How long it wants to wait before a node is added for it."""
        annotations = metadata.get("annotations")
        if annotations:
            self.delay_text = annotations.get(SCALE_UP_DELAY_ANNOTATION)
            if annotations.get(DAEMON_SET_POD_ANNOTATION) == "true":
                self.is_daemon = True


class PodKinds:
    """The kinds of all pods that were asked about lately."""

    def __init__(self) -> None:
        self._by_text: dict[bytes, PodKind] = {}
        self._by_content: dict[bytes, PodKind] = {}
        self._by_parts: dict[Hashable, tuple[Mapping[str, Any], PodKind]] = {}
        """A spec without its node, and the kind of it, by namespace, labels and the identity of its containers.

        Whoever made pods from one template mostly has them share what they have in common.
        """
        # An object is remembered together with its facts, so that no other can have its id while it is.
        self._known: dict[int, PodFacts] = {}
        self._known_before: dict[int, PodFacts] = {}
        self._kept: dict[int, PodFacts] = {}

    def kind_of(self, pod: JsonObject) -> PodKind:
        """The kind of a pod."""
        return self.facts_of(pod).kind

    def facts_of(self, pod: JsonObject) -> PodFacts:
        """What there is to know about a pod; objects are immutable, so what was once found out holds."""
        number = id(pod)
        facts = self._kept.get(number) or self._known.get(number)
        if facts is None:
            facts = self._known_before.get(number)
            if facts is None:
                facts = PodFacts(pod, self._find(pod))
            self._known[number] = facts
        return facts

    def facts_of_all(self, pods: Sequence[JsonObject]) -> list[PodFacts]:
        """The same for many pods, of which most were asked about in the turn before."""
        numbers = list(map(id, pods))
        found = list(map(self._known_before.get, numbers))
        if None in found:
            facts_of = self.facts_of
            for place, facts in enumerate(found):
                if facts is None:
                    found[place] = facts_of(pods[place])
        known = cast("list[PodFacts]", found)
        self._known.update(zip(numbers, known, strict=True))
        return known

    def keep(self, pod: JsonObject, before: PodFacts | None = None) -> PodFacts:
        """The same, remembered until it is told to be ``let_go``.

        ``before`` is what was kept of an earlier form of the pod, which it takes the place of. Often nothing but the
        status is another one since then, and the pod is of the same kind without a look.
        """
        number = id(pod)
        facts = self._known.get(number) or self._known_before.get(number)
        if facts is None:
            is_alike = before is not None and _is_plainly_alike(before.pod, pod)
            facts = PodFacts(pod, before.kind if before is not None and is_alike else self._find(pod))
        if before is not None:
            self.let_go(before)
        self._kept[number] = facts
        return facts

    def let_go(self, facts: PodFacts) -> None:
        """A pod that was kept is nobody's any more."""
        self._kept.pop(id(facts.pod), None)

    def drop_old(self) -> None:
        """Forget pods that nobody asked about since the last time this was called, and kinds without pods."""
        self._known_before, self._known = self._known, {}
        remembered = len(self._known_before) + len(self._kept)
        if len(self._by_text) + len(self._by_content) > 4 * remembered + 1024:
            alive = {id(facts.kind) for known in (self._known_before, self._kept) for facts in known.values()}
            # All at once: a kind that is found by its text must be the one that is found by its content.
            self._by_parts.clear()
            self._by_text = {text: kind for text, kind in self._by_text.items() if id(kind) in alive}
            self._by_content = {content: kind for content, kind in self._by_content.items() if id(kind) in alive}

    def _find(self, pod: JsonObject) -> PodKind:
        metadata, spec = pod["metadata"], pod.get("spec") or _EMPTY
        namespace, labels = metadata.get("namespace") or "", metadata.get("labels") or _EMPTY
        plain = spec
        if "nodeName" in spec:
            plain = dict(spec)
            del plain["nodeName"]
        parts = namespace, id(spec.get("containers")), *labels.items()
        known = self._by_parts.get(parts)
        # What is the same object need not be compared, and what has another one at the same address now differs.
        if known is not None and known[0] == plain:
            return known[1]
        kind = self._find_by_meaning(pod, namespace, labels, spec)
        if len(self._by_parts) >= _PARTS_MAX:
            self._by_parts.clear()
        self._by_parts[parts] = plain, kind
        return kind

    def _find_by_meaning(
        self, pod: JsonObject, namespace: str, labels: Mapping[str, str], spec: Mapping[str, Any]
    ) -> PodKind:
        text = _text_of(namespace, labels, spec)
        kind = self._by_text.get(text)
        if kind is None:
            content = orjson.dumps((namespace, labels, _canonical(essence_of(spec))), option=orjson.OPT_SORT_KEYS)
            kind = self._by_content.get(content)
            if kind is None:
                kind = self._by_content[content] = PodKind(pod)
            if _has_only_own_gaps(text, spec):
                self._by_text[text] = kind
        return kind


def _is_plainly_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether a later form of a pod has the very spec and the labels of the earlier one."""
    was, is_ = old["metadata"], new["metadata"]
    return (
        old.get("spec") is new.get("spec") and was.get("labels") == is_.get("labels")
        and was.get("namespace") == is_.get("namespace")
    )  # fmt: skip


def _text_of(namespace: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> bytes:
    """A pod as text with gaps where its projected volumes, whose names are random, and its node are named.

    Equal texts have gaps in the same places, so two pods are alike if their texts are equal and the gaps of one of
    them are all where they should be.
    """
    text = orjson.dumps((namespace, labels, spec))
    for volume in spec.get("volumes") or ():
        if volume.get("projected") is not None:
            text = text.replace(_NAMED % orjson.dumps(volume.get("name", "")), _GAP)
    node_name = spec.get("nodeName")
    if node_name:
        text = text.replace(_BOUND % orjson.dumps(node_name), _GAP)
    return text


def _has_only_own_gaps(text: bytes, spec: Mapping[str, Any]) -> bool:
    projected = set(_projected(spec))
    if len(projected) > 1:
        return False
    mounts = sum(
        mount.get("name") in projected
        for field in ("containers", "initContainers")
        for container in spec.get(field) or ()
        for mount in container.get("volumeMounts") or ()
    )
    return text.count(_GAP) == len(projected) + mounts + bool(spec.get("nodeName"))


def _projected(spec: Mapping[str, Any]) -> list[str]:
    return [volume.get("name", "") for volume in spec.get("volumes") or () if volume.get("projected") is not None]


def essence_of(spec: Mapping[str, Any]) -> JsonObject:
    """A pod's spec without what upstream leaves out of comparisons.

    That is the environment, the host name, and projected volumes (tokens, whose names are random) with their mounts.
    """
    essence = {name: value for name, value in spec.items() if name not in _DROPPED}
    projected = set(_projected(spec))
    kept = [volume for volume in spec.get("volumes") or () if volume.get("projected") is None]
    if kept:
        essence["volumes"] = kept
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if containers:
            essence[field] = [_essence_of_container(container, projected) for container in containers]
    return essence


def _essence_of_container(container: Mapping[str, Any], projected: set[str]) -> Mapping[str, Any]:
    mounts = container.get("volumeMounts")
    if "env" not in container and not (mounts and projected):
        return container
    essence = {name: value for name, value in container.items() if name not in _DROPPED_OF_CONTAINERS}
    if mounts:
        kept = [mount for mount in mounts if mount.get("name") not in projected]
        if kept:
            essence["volumeMounts"] = kept
    return essence


def _canonical(value: Any, name: str = "") -> Any:
    """A value in which equal amounts are written alike, and what is empty is left out where that means the same."""
    if isinstance(value, Mapping):
        if name in _AMOUNTS:
            return {key: _amount(amount) for key, amount in value.items()}
        return {
            key: _canonical(part, key)
            for key, part in value.items()
            if part is not None and part != [] and not (part == {} and key in _ABSENT_IF_EMPTY)
        }
    if isinstance(value, list):
        return [_canonical(part) for part in value]
    return value


def _amount(written: str | int | float) -> int | str:
    amount = quantity.parse(written)
    return amount.milli() if amount.is_milli() else str(amount)
