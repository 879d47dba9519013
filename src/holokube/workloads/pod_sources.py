"""Which owners a changed pod concerns: the one that controls it, or all that might adopt it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import orjson

from holokube.client.audience import EVERYTHING, Concern
from holokube.client.cache import object_key
from holokube.client.informer import EventType, Informer
from holokube.client.resources import Resource
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.sources import Change, InformerSource
from holokube.workloads.ownership import controller_of, group_of
from holokube.workloads.pod_book import HEEDED, PodBook


def selector_of(owner: JsonObject) -> LabelSelector:
    """What a workload's own ``spec.selector`` selects."""
    return _selector(orjson.dumps(owner["spec"].get("selector")))


# An owner is looked at again for each change of each of its pods, and its selector is always the same.
@lru_cache(maxsize=16_384)
def _selector(text: bytes) -> LabelSelector:
    return LabelSelector.from_json(orjson.loads(text))


class PodOwnerSource(InformerSource[str]):
    """Feeds the keys of a child's controller of one kind; an orphan's, those whose selectors match it.

    It serves pods, and other objects that are controlled the same way.
    """

    def __init__(
        self,
        children: Informer,
        owner_resource: Resource,
        owners: Informer,
        selector_of: Callable[[JsonObject], LabelSelector],
        *,
        concerns: Concern | None = None,
        heeds: int = EVERYTHING,
    ) -> None:
        super().__init__(
            children, self._owners_of, predicates=[_may_matter], concerns=concerns, heeds=heeds,
            controlled_by=(owner_resource.group, owner_resource.kind),
        )  # fmt: skip
        self._resource = owner_resource
        self._api_version, self._kind = owner_resource.api_version, owner_resource.kind
        self._owners = owners
        self._selector_of = selector_of

    def _on_event(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        # Nearly all changes are to children whose controller stays the same.
        latest = new if new is not None else old
        assert latest is not None
        meta = latest["metadata"]
        references = meta.get("ownerReferences")
        if references:
            before = references if old is None else old["metadata"].get("ownerReferences")
            if before is references or before == references:
                for reference in references:
                    if reference.get("controller"):
                        # As ``_is_ours`` has it, without a call where the version is ours as well.
                        is_plain = reference.get("apiVersion") == self._api_version
                        is_ours = reference.get("kind") == self._kind if is_plain else self._is_ours(reference)
                        if is_ours and self._enqueue is not None:
                            self._enqueue(f"{meta['namespace']}/{reference['name']}")
                        return
        super()._on_event(type, old, new)

    def _is_ours(self, reference: JsonObject) -> bool:
        resource = self._resource
        api_version = reference.get("apiVersion") or ""
        return reference.get("kind") == resource.kind and (
            api_version == self._api_version or group_of(api_version) == resource.group
        )

    def _owners_of(self, child: JsonObject) -> list[str]:
        space = child["metadata"]["namespace"]
        reference = controller_of(child)
        if reference is not None:
            return [f"{space}/{reference['name']}"] if self._is_ours(reference) else []
        if child["metadata"].get("deletionTimestamp"):
            return []
        labels = child["metadata"].get("labels") or {}
        return [
            object_key(owner) for owner in self._owners.lister.list(space)
            if (selector := self._selector_of(owner)).matches(labels) and not selector.is_empty
        ]  # fmt: skip


class CountedPodSource(PodOwnerSource):
    """Feeds the keys of those whose numbers of pods may have changed, and keeps the book of them on the way."""

    def __init__(
        self, pods: Informer, owner_resource: Resource, owners: Informer,
        selector_of: Callable[[JsonObject], LabelSelector], book: PodBook,
    ) -> None:  # fmt: skip
        super().__init__(pods, owner_resource, owners, selector_of, concerns=book.takes_note, heeds=HEEDED)
        self._book = book

    def start(self, enqueue: Callable[[str], None]) -> None:
        # All that there is is told of anew.
        self._book.clear()
        super().start(enqueue)


def _may_matter(change: Change) -> bool:
    """An orphan concerns nobody unless it is new, or something changed that decides who may adopt it."""
    if controller_of(change.object) is not None:
        return True
    if change.old is None:
        return True
    if change.new is None:
        return False
    old, new = change.old["metadata"], change.new["metadata"]
    return old.get("labels") != new.get("labels") or controller_of(change.old) is not None
