"""The cluster as Karpenter sees it: pairs of Node and NodeClaim, their pods, marks and nominations.

Informers tell what changes. A claim that was just made is put in at once, without waiting for its event: a loop that
runs again before the event comes must know of it. While a claim has no instance yet the state counts as not synced,
and provisioning and disruption wait: nobody knows yet what the claim will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from holokube.base.clock import Clock
from holokube.client.cache import object_key
from holokube.client.informer import EventType, Informer
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import (
    DO_NOT_DISRUPT,
    INITIALIZED_LABEL,
    NODEPOOL_LABEL,
)
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.disruption.memory import ConsolidationMark, Mark
from holokube.karpenter.disruption.pods import is_terminal
from holokube.karpenter.scheduling.node_list import NodeList
from holokube.karpenter.scheduling.state_node import Reading, StateNode
from holokube.karpenter.state.changes import (
    counts_alike,
    has_mark,
    is_heartbeat,
    is_older,
    is_told_alike,
    stands_alike,
)  # fmt: skip
from holokube.karpenter.state.node_pods import NodePods
from holokube.karpenter.state.pod_times import PodTimes
from holokube.karpenter.state.pool_usage import PoolUsage
from holokube.kube.requirements import INSTANCE_TYPE_LABEL
from holokube.kube.resources import ResourceVector
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

_REMEMBERED_DELETIONS: Final = 10_000
_SERIAL: Final = attrgetter("serial")
_EMPTY: Final[JsonObject] = {}
_NO_PODS: Final[Reading] = (), (), True


@dataclass(slots=True)
class _Entry:
    """One instance; ``seen`` is what was last made of it."""

    node: JsonObject | None = None
    claim: JsonObject | None = None
    is_marked: bool = False
    nominated_until_s: float = 0.0
    provider_id: str = ""
    seen: StateNode | None = None
    before: StateNode | None = None
    """What was made of it the last time, before something changed."""
    serial: int = 0


class ClusterState:
    """Everything by provider id; nodes of no provider by their name."""

    def __init__(
        self,
        clock: Clock,
        informers: InformerSet,
        supports: Callable[[NodeClassRef], bool],
        *,
        nomination_s: float,
        needs: Sequence[Informer] = (),
    ) -> None:
        """``needs`` are further caches that must be filled before anything is decided."""
        self._clock = clock
        self._supports = supports
        self._nomination_s = nomination_s
        self._entries: dict[str, _Entry] = {}
        self._id_of_claim: dict[str, str] = {}
        self._id_of_node: dict[str, str] = {}
        self._unlaunched: set[str] = set()
        self._pods: dict[str, NodePods] = {}
        """By name of the node; only of those that have some."""
        self._serial = 0
        self._nodes: NodeList | None = None
        self._last_nodes = NodeList()
        self._places: dict[str, int] | None = None
        """Where each stands in the list, those that have come since then behind it; None when some have gone."""
        self._unlisted: dict[str, None] = {}
        self._leaving: dict[str, None] = {}
        self._suspects: dict[str, None] = {}
        self._nominated: dict[str, None] = {}
        self._binding: dict[str, str] = {}
        self._unbound: dict[str, JsonObject] = {}
        self._unbound_now: tuple[JsonObject, ...] | None = None
        self._deleted_uids: dict[str, None] = {}
        self._mark = ConsolidationMark(clock.time())
        self._moved_at_s: float | None = None
        """When something last changed that moves the mark, if that was after anybody last looked."""
        self._version = 0
        self._pod_version = 0
        self._timed_pods: set[str] = set()
        self._usage = PoolUsage()
        self._uncounted: dict[str, None] = {}
        self._counters: list[Callable[[], None]] = []
        self.pod_times = PodTimes()
        self.unsynced_since_s: float | None = None
        nodes, claims, pods, pools = map(informers.get, (NODES, NODE_CLAIMS, PODS, NODE_POOLS))
        self._claims = claims
        self._needs: tuple[Informer, ...] = (nodes, claims, pods, pools, *needs)
        """Caches that are not known to be filled yet."""
        nodes.add_handler(self._on_node)
        claims.add_handler(self._on_claim)
        pods.add_handler(self._on_pod)
        pools.add_handler(self._on_pool)

    # Reading

    def is_synced(self) -> bool:
        """Whether all caches are filled, and every claim has its instance."""
        if self._needs:
            # A cache that is filled stays so.
            self._needs = tuple(informer for informer in self._needs if not informer.has_synced)
        synced = not self._unlaunched and not self._needs
        if synced:
            self.unsynced_since_s = None
        elif self.unsynced_since_s is None:
            self.unsynced_since_s = self._clock.time()
        return synced

    def nodes(self) -> list[StateNode]:
        """All nodes, those on their way out as well. Nothing in them changes any more but the end of a nomination."""
        return list(self.all_nodes)

    @property
    def all_nodes(self) -> NodeList:
        """The same; the very same sequence until something changes."""
        if self._nodes is None:
            entries, places = self._entries, self._places
            if places is not None:
                changes = {places[one]: self._state_node(entries[one]) for one in self._unlisted}
                self._nodes = self._last_nodes.with_changes(changes)
            else:
                listed = [entry.seen or self._state_node(entry) for entry in entries.values()]
                self._places = {one: place for place, one in enumerate(entries)}
                self._nodes = self._last_nodes.replaced_by(listed)
            self._unlisted.clear()
            self._last_nodes = self._nodes
        return self._nodes

    @property
    def leaving_nodes(self) -> list[StateNode]:
        """Those of them that are on their way out."""
        nodes, places = self.all_nodes, self._places
        return nodes.at(sorted([places[one] for one in self._leaving])) if places is not None else []

    def node_named(self, name: str) -> StateNode | None:
        """The node of this name, which is that of its claim until it has registered."""
        by_node, by_claim = self._id_of_node.get(name), self._id_of_claim.get(name)
        if by_claim is None:
            # Nearly all are asked for by the names of their Nodes, which are not those of claims.
            node = self.node_of(by_node) if by_node else None
            return node if node is not None and node.name == name else None
        named = [
            node
            for one in {by_node, by_claim}
            if one and (node := self.node_of(one)) is not None and node.name == name
        ]
        return max(named, key=_SERIAL, default=None)

    def marked_nodes(self) -> list[StateNode]:
        """Those that carry the taint or the condition of a disruption, whoever carries it out."""
        if not self._suspects:
            return []
        found = [self._state_node(self._entries[one]) for one in self._suspects]
        return sorted(found, key=lambda node: node.serial)

    def count_nominated(self, now_s: float) -> int:
        """How many nodes pending pods are expected on."""
        for one in [o for o in self._nominated if not self._is_nominated(o, now_s)]:
            del self._nominated[one]
        return len(self._nominated)

    def _is_nominated(self, provider_id: str, now_s: float) -> bool:
        entry = self._entries.get(provider_id)
        return entry is not None and entry.nominated_until_s > now_s

    def node_of(self, provider_id: str) -> StateNode | None:
        """The node of an instance."""
        entry = self._entries.get(provider_id)
        return self._state_node(entry) if entry is not None else None

    def pods_on(self, node_name: str) -> list[JsonObject]:
        """The pods bound to a node."""
        found = self._pods.get(node_name)
        return found.list() if found is not None else []

    @property
    def unbound_pods(self) -> tuple[JsonObject, ...]:
        """The pods without a node, among them those that wait for one; the very same tuple until one changes."""
        if self._unbound_now is None:
            self._unbound_now = tuple(self._unbound.values())
        return self._unbound_now

    def usage_of(self, pool_name: str) -> ResourceVector:
        """Capacity of a pool's nodes that stay, and their number under ``nodes``."""
        self._recount()
        return self._usage.of(pool_name)

    @property
    def usage_version(self) -> int:
        """Differs when what pools use does."""
        self._recount()
        return self._usage.version

    def before_recounts(self, callback: Callable[[], None]) -> None:
        """Has it called whenever what pools use may have changed, or cannot be told because a claim is new."""
        self._counters.append(callback)

    def _tell_counters(self) -> None:
        for callback in self._counters:
            callback()

    def _count_anew(self, provider_id: str) -> None:
        self._uncounted[provider_id] = None
        self._tell_counters()

    def _recount(self) -> None:
        for provider_id in self._uncounted:
            entry = self._entries.get(provider_id)
            node = self._state_node(entry) if entry is not None else None
            if node is not None and node.pool_name and not node.is_marked_for_deletion:
                self._usage.put(provider_id, node.pool_name, node.capacity)
            else:
                self._usage.drop(provider_id)
        self._uncounted.clear()

    @property
    def version(self) -> tuple[int, int]:
        """Differs when anything about nodes or their pods does that decisions go by; time alone is not in it."""
        return self._version, self._pod_version

    @property
    def has_timed_pods(self) -> bool:
        """Whether pods are protected for a while only, so that what may be done to them changes by itself."""
        return bool(self._timed_pods)

    def knows_claim(self, name: str) -> bool:
        """Whether there is such a claim, made just now perhaps."""
        return name in self._id_of_claim

    def unlaunched_claims(self) -> list[str]:
        """Names of the claims without an instance."""
        return sorted(self._unlaunched)

    def consolidation_mark(self) -> Mark:
        """Moves when something changes that may make consolidation possible, and every five minutes."""
        if self._moved_at_s is not None:
            # Pods come and go by the dozen between two looks, which cannot tell one move from several.
            self._mark.move(self._moved_at_s)
            self._moved_at_s = None
        return self._mark.read(self._clock.time())

    def __len__(self) -> int:
        return len(self._entries)

    # Marks

    def nominate(self, provider_id: str) -> None:
        """A pending pod is expected on this node: leave it alone for a while."""
        entry = self._entries.get(provider_id)
        if entry is None:
            return
        now_s = self._clock.time()
        is_known = entry.nominated_until_s > now_s
        entry.nominated_until_s = now_s + self._nomination_s
        self._nominated[provider_id] = None
        # No pool uses more or less for that.
        self._version += 1
        if is_known and entry.seen is not None:
            entry.seen.prolong_nomination(entry.nominated_until_s)
        else:
            self._forget(entry)

    def mark_for_deletion(self, provider_ids: Iterable[str]) -> None:
        """A disruption command has chosen these nodes."""
        self._set_marks(provider_ids, is_marked=True)

    def unmark_for_deletion(self, provider_ids: Iterable[str]) -> None:
        """The command was given up."""
        self._set_marks(provider_ids, is_marked=False)

    def _set_marks(self, provider_ids: Iterable[str], *, is_marked: bool) -> None:
        for provider_id in provider_ids:
            entry = self._entries.get(provider_id)
            if entry is not None and entry.is_marked != is_marked:
                entry.is_marked = is_marked
                self._changed(entry)
                self._move_mark()

    # Changes

    def put_claim(self, claim: JsonObject) -> None:
        """Takes a claim over: from its event, or from the answer to its creation, whichever comes first."""
        metadata = claim["metadata"]
        if metadata["uid"] in self._deleted_uids:
            # Its end was heard of before the answer to its creation.
            return
        if not self._supports(NodeClassRef.from_json((claim.get("spec") or {}).get("nodeClassRef"))):
            return
        name = metadata["name"]
        provider_id = str((claim.get("status") or {}).get("providerID") or "")
        known_id = self._id_of_claim.get(name, "")
        if known_id and known_id != provider_id:
            self._remove_claim(name)
        self._id_of_claim[name] = provider_id
        if not provider_id:
            self._unlaunched.add(name)
            self._tell_counters()
            return
        self._unlaunched.discard(name)
        entry = self._entry(provider_id)
        if entry.claim is None or not is_older(claim, entry.claim):
            self._put_claim(entry, claim)

    def _put_claim(self, entry: _Entry, claim: JsonObject) -> None:
        known = entry.claim
        if known is None or not stands_alike(known, claim):
            self._replace(entry, entry.node, claim)
            return
        if not counts_alike(known, claim):
            self._count_anew(entry.provider_id)
        entry.claim = claim
        self._version += 1
        self._forget(entry)

    def forget_claim(self, name: str) -> None:
        """There is no such claim any more."""
        self._remove_claim(name)

    def _on_claim(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None:
            entry = self._entries.get((new.get("status") or {}).get("providerID") or "") if old is not None else None
            if entry is not None and entry.claim is old and old is not None and old.get("spec") is new.get("spec"):
                # Most changes are of the status of a claim that is what was last heard of.
                if is_told_alike(old, new):
                    entry.claim = new
                    self._version += 1
                    self._forget(entry)
                else:
                    self._put_claim(entry, new)
            else:
                self.put_claim(new)
            return
        assert old is not None
        self._deleted_uids[old["metadata"]["uid"]] = None
        if len(self._deleted_uids) > _REMEMBERED_DELETIONS:
            del self._deleted_uids[next(iter(self._deleted_uids))]
        self._remove_claim(old["metadata"]["name"])

    def _remove_claim(self, name: str) -> None:
        provider_id = self._id_of_claim.pop(name, "")
        self._unlaunched.discard(name)
        entry = self._entries.get(provider_id)
        if entry is None:
            return
        if entry.node is None:
            self._drop_entry(provider_id)
        entry.claim = None
        self._suspects.pop(provider_id, None)
        self._changed(entry)
        self._move_mark()

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._remove_node(old["metadata"]["name"])
            return
        name = new["metadata"]["name"]
        labels = new["metadata"].get("labels") or {}
        is_managed = bool(labels.get(NODEPOOL_LABEL))
        provider_id = str((new.get("spec") or {}).get("providerID") or "")
        # Our own node without an id or a type is half made: what it is shows later.
        if is_managed and (
            not provider_id or (not labels.get(INSTANCE_TYPE_LABEL) and not labels.get(INITIALIZED_LABEL))
        ):
            return
        provider_id = provider_id or name
        if self._id_of_node.get(name, provider_id) != provider_id:
            self._remove_node(name)
        self._id_of_node[name] = provider_id
        entry = self._entry(provider_id)
        if entry.node is not None and is_heartbeat(entry.node, new):
            # What was made of the node before holds, and all that others have worked out of it.
            entry.node = new
            return
        self._replace(entry, new, entry.claim)

    def _remove_node(self, name: str) -> None:
        provider_id = self._id_of_node.pop(name, "")
        entry = self._entries.get(provider_id)
        if entry is None:
            return
        if entry.claim is None:
            self._drop_entry(provider_id)
        entry.node = None
        self._suspects.pop(provider_id, None)
        self._changed(entry)
        self._move_mark()

    def _entry(self, provider_id: str) -> _Entry:
        found = self._entries.get(provider_id)
        if found is None:
            self._serial += 1
            found = self._entries[provider_id] = _Entry(provider_id=provider_id, serial=self._serial)
            if self._places is not None:
                self._places[provider_id] = len(self._places)
                self._forget(found)
        return found

    def _drop_entry(self, provider_id: str) -> None:
        del self._entries[provider_id]
        self._leaving.pop(provider_id, None)
        self._places = None

    def _replace(self, entry: _Entry, node: JsonObject | None, claim: JsonObject | None) -> None:
        """Takes new objects of an instance over, and sees whether that opens consolidation anew."""
        before = _standing(entry)
        entry.node, entry.claim = node, claim
        if has_mark(node, claim):
            self._suspects[entry.provider_id] = None
        else:
            self._suspects.pop(entry.provider_id, None)
        self._changed(entry)
        if before != _standing(entry):
            self._move_mark()

    def _on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._remove_pod(old)
            return
        metadata, spec = new["metadata"], new.get("spec") or _EMPTY
        # As ``object_key`` has it, without a call.
        namespace = metadata.get("namespace")
        key = f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
        node_name = spec.get("nodeName") or ""
        binding = self._binding.get(key)
        if old is not None and node_name and binding == node_name and old.get("spec") is spec:
            # Most changes are of the status of a pod that stays where it is known to be, and forbids what it did.
            if old["metadata"].get("annotations") is not metadata.get("annotations"):
                self._note_protection(key, new)
            self._put_pod(node_name, key, new)
            return
        if self._unbound.pop(key, None) is not None:
            self._unbound_now = None
        if self._timed_pods or metadata.get("annotations"):
            self._note_protection(key, new)
        if not node_name:
            self._unbound[key] = new
            self._unbound_now = None
            return
        if binding != node_name:
            self._unbind(key, binding, node_name)
            if not is_terminal(new):
                self._binding[key] = node_name
                self._moved_at_s = self._clock.time()
        self._put_pod(node_name, key, new)

    def _put_pod(self, node_name: str, key: str, pod: JsonObject) -> None:
        on_node = self._pods.get(node_name)
        if on_node is None:
            on_node = self._pods[node_name] = NodePods()
        if on_node.put(key, pod):
            self._pods_changed(node_name)
        else:
            # Nobody has looked since the last change, so that what was made of them then is forgotten already.
            self._pod_version += 1

    def _remove_pod(self, pod: JsonObject) -> None:
        key = object_key(pod)
        if self._unbound.pop(key, None) is not None:
            self._unbound_now = None
        self._timed_pods.discard(key)
        self._unbind(key, self._binding.pop(key, None), (pod.get("spec") or {}).get("nodeName") or "")
        self.pod_times.forget(key)
        self._move_mark()

    def _note_protection(self, key: str, pod: JsonObject) -> None:
        annotations = pod["metadata"].get("annotations")
        value = annotations.get(DO_NOT_DISRUPT) if annotations else None
        if value is not None and value != "true":
            self._timed_pods.add(key)
        else:
            self._timed_pods.discard(key)

    def _unbind(self, key: str, binding: str | None, node_name: str) -> None:
        """Takes the pod from where it was, and any of the same name from the node: names are used again."""
        for name in (binding, node_name) if binding and binding != node_name else (node_name,):
            on_node = self._pods.get(name)
            if on_node is not None and on_node.take(key):
                self._pods_changed(name)
                if not on_node:
                    del self._pods[name]

    def _on_pool(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        generation = [obj["metadata"].get("generation") if obj is not None else None for obj in (old, new)]
        if generation[0] != generation[1]:
            self._move_mark()

    def _pods_changed(self, node_name: str) -> None:
        self._pod_version += 1
        entry = self._entries.get(self._id_of_node.get(node_name, ""))
        if entry is not None and (entry.seen is not None or self._nodes is not None):
            self._forget(entry)

    def _changed(self, entry: _Entry) -> None:
        self._forget(entry)
        self._count_anew(entry.provider_id)
        self._version += 1

    def _forget(self, entry: _Entry) -> None:
        self._nodes = None
        self._unlisted[entry.provider_id] = None
        if entry.seen is not None:
            entry.before, entry.seen = entry.seen, None

    def _move_mark(self) -> None:
        self._moved_at_s = self._clock.time()

    def _state_node(self, entry: _Entry) -> StateNode:
        if entry.seen is None:
            on_node = self._pods.get(entry.node["metadata"]["name"]) if entry.node is not None else None
            facts = on_node.read() if on_node is not None else _NO_PODS
            before, entry.before = entry.before, None
            if before is not None:
                made = before.followed_by(entry.node, entry.claim, facts, entry.is_marked, entry.nominated_until_s)
            else:
                made = StateNode(
                    entry.node, entry.claim, facts[0], entry.is_marked, entry.nominated_until_s, facts, entry.serial
                )
            entry.seen = made
            if made.is_marked_for_deletion:
                self._leaving[entry.provider_id] = None
            elif self._leaving:
                self._leaving.pop(entry.provider_id, None)
        return entry.seen


def _standing(entry: _Entry) -> tuple[bool, bool] | None:
    """Whether an instance has come up, and whether it is on its way out; None if it is not there."""
    if entry.node is None and entry.claim is None:
        return None
    node = StateNode(entry.node, entry.claim, (), entry.is_marked)
    return node.is_initialized, node.is_marked_for_deletion
