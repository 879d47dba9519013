"""The cluster to experiment on: nodes, the pods on them, and what would become of more.

A thin layer over the packing engine that adds what upstream's snapshot has: nodes in an order, a place in that order
where the last pod found room, and pods as the objects they were. Everything between ``fork`` and ``rollback`` is
taken back, except for that place, which upstream keeps as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import orjson

from holokube.base.errors import HolokubeError
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.pods.kinds import PodKind, PodKinds
from holokube.kube.resources import is_resize_infeasible
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PlacedPod, PodClass
from holokube.packing.arrays import BoolArray, RowArray
from holokube.packing.podclass import requests_of

_EMPTY: Final[Mapping[str, Any]] = {}
_FINISHED: Final = ("Succeeded", "Failed")
_MOST_SIZES: Final = 16_384


class SnapshotError(HolokubeError):
    """The snapshot was asked for something that is not in it, or given what is."""


class ClusterSnapshot:
    """See the module. One object serves all turns: ``set_cluster_state`` costs what changed since the last."""

    def __init__(self, *, size_daemons: bool = False) -> None:
        self.state = ClusterState(size_daemons=size_daemons)
        """The engine underneath, for questions about classes and rows. Ask ``class_of`` here for the classes."""
        self.kinds = PodKinds()
        self.last_index = 0
        """Where in the order of nodes a pod found room last; the search for the next begins behind it."""
        self._order: dict[str, int] = {}
        self._names: tuple[str, ...] | None = None
        self._rows: RowArray | None = None
        self._index_of: dict[str, int] | None = None
        self._saved_orders: list[dict[str, int] | None] = []
        self._extra_keys: dict[str, list[str]] = {}
        self._extra_count = 0
        self._loaded: dict[int, PlacedPod] = {}
        self._resized: dict[tuple[PodKind, bytes], bool] = {}
        self._storage: dict[tuple[str, str], JsonObject] = {}
        self._surroundings: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.state.fork()

    # The cluster as it is

    def set_cluster_state(self, nodes: Iterable[JsonObject], pods: Iterable[JsonObject]) -> None:
        """Begin a turn: forget everything that was tried, and take the cluster as it is now.

        Pods are bound, or nominated, to nodes; those of nodes that are not there are left out.
        """
        while self._saved_orders:
            self.rollback()
        state = self.state
        state.rollback()
        for change, arguments in self._surroundings:
            change(*arguments)
        self._surroundings.clear()
        self.kinds.drop_old()
        self._extra_keys.clear()
        wanted = {node["metadata"]["name"]: node for node in nodes}
        gone = [name for name in state.node_names if name not in wanted]
        new = self._unload(pods, frozenset(gone))
        for name in gone:
            state.remove_node(name)
        for name, node in wanted.items():
            row = state.node_names.get(name)
            if row is None or state.node(row) is not node:
                state.add_node(node)
        self._load(new)
        self._order = {name: state.node_names[name] for name in wanted}
        self._order_changed()
        state.fork()

    def _unload(self, pods: Iterable[JsonObject], gone: frozenset[str]) -> list[JsonObject]:
        """Take out the pods that are not there any more, in this form; returns those that are new."""
        old, kept = self._loaded, {}
        new = []
        for pod in pods:
            loaded = old.pop(id(pod), None)
            if loaded is None:
                new.append(pod)
            else:
                kept[id(pod)] = loaded
        self._loaded = kept
        if gone:
            lost = {number: loaded for number, loaded in kept.items() if loaded.node_name in gone}
            new.extend(loaded.pod for loaded in lost.values() if loaded.pod is not None)
            for number in lost:
                del kept[number]
            old.update(lost)
        for loaded in old.values():
            self.state.remove_pod(loaded.key)
        return new

    def _load(self, pods: Sequence[JsonObject]) -> None:
        """Put pods where they say they are, many that are alike at once."""
        alike: dict[tuple[PodKind, bool], list[tuple[JsonObject, int, int]]] = {}
        row_of = self.state.node_names
        for number, pod in enumerate(pods, self.state.reserve_numbers(len(pods))):
            status = pod.get("status") or _EMPTY
            row = row_of.get(pod["spec"].get("nodeName") or status.get("nominatedNodeName") or "")
            if row is None or status.get("phase") in _FINISHED:
                continue
            facts = self.kinds.facts_of(pod)
            if facts.kind.has_own_claims or self._is_resized(pod, facts.kind, status):
                self._load_alone(pod, row, number)
            else:
                alike.setdefault((facts.kind, facts.is_going), []).append((pod, row, number))
        for members in alike.values():
            objects, rows, numbers = zip(*members, strict=True)
            keys = [pod_key(pod) for pod in objects]
            self.state.assume_pods(self.class_of(objects[0]), rows, objects, keys, numbers)
            placed = self.state.pods
            self._loaded.update((id(pod), placed[key]) for pod, key in zip(objects, keys, strict=True))

    def _load_alone(self, pod: JsonObject, row: int, number: int) -> None:
        placed = self._loaded[id(pod)] = self.state.pods[self.state.assume_pod(pod, row)]
        placed.number = number

    def _is_resized(self, pod: JsonObject, kind: PodKind, status: Mapping[str, Any]) -> bool:
        """Whether a pod takes something else than its spec says, because it is in the middle of a resize."""
        sizes = [
            (container.get("name"), container.get("resources"), container.get("allocatedResources"))
            for field in ("containerStatuses", "initContainerStatuses")
            for container in status.get(field) or ()
            if container.get("resources") is not None
        ]
        whole = status.get("resources")
        if not sizes and whole is None:
            return False
        key = kind, orjson.dumps((sizes, whole, is_resize_infeasible(pod)))
        found = self._resized.get(key)
        if found is None:
            if len(self._resized) > _MOST_SIZES:
                self._resized.clear()
            found = self._resized[key] = requests_of(pod, use_status=True) != self.class_of(pod).requests
        return found

    def set_storage(self, objects: Iterable[JsonObject]) -> None:
        """Take these as all the objects that volume filters look at; only what changed costs anything."""
        wanted = {(obj["kind"], _name_in_cluster(obj)): obj for obj in objects}
        for key in [key for key in self._storage if key not in wanted]:
            self.remove_storage(self._storage[key])
        for obj in wanted.values():
            self.put_storage(obj)

    def put_storage(self, obj: JsonObject) -> None:
        """Note an object that volume filters look at."""
        key = obj["kind"], _name_in_cluster(obj)
        if self._saved_orders:
            self.state.put_storage(obj)
        elif self._storage.get(key) is not obj:
            self._storage[key] = obj
            self._change_surroundings(self.state.put_storage, obj)

    def remove_storage(self, obj: JsonObject) -> None:
        """Forget one."""
        self._change_surroundings(self.state.remove_storage, obj)
        if not self._saved_orders:
            self._storage.pop((obj["kind"], _name_in_cluster(obj)), None)

    def set_namespaces(self, namespaces: Iterable[JsonObject]) -> None:
        """Take these as all the namespaces there are."""
        wanted = {obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in namespaces}
        for name in [name for name in self.state.counters.namespaces if name not in wanted]:
            self.set_namespace(name, None)
        for name, labels in wanted.items():
            if self.state.counters.namespaces.get(name) != labels:
                self.set_namespace(name, labels)

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Note the labels of a namespace, which affinity terms may select by; None when it is gone."""
        self._change_surroundings(self.state.set_namespace, name, labels)

    def _change_surroundings(self, change: Callable[..., None], *arguments: Any) -> None:
        """What happens to things around the nodes outlives the turn, unless it is part of an experiment."""
        if not self._saved_orders:
            self._surroundings.append((change, arguments))
        change(*arguments)

    # Nodes

    @property
    def node_names(self) -> Sequence[str]:
        """All nodes: in the order the API lists them, then those that were added."""
        if self._names is None:
            self._names = tuple(self._order)
        return self._names

    @property
    def rows(self) -> RowArray:
        """The engine's rows of the nodes, in the same order."""
        if self._rows is None:
            self._rows = np.fromiter(self._order.values(), dtype=np.intp, count=len(self._order))
        return self._rows

    @property
    def index_of(self) -> Mapping[str, int]:
        """The place of each node in the order."""
        if self._index_of is None:
            self._index_of = {name: index for index, name in enumerate(self._order)}
        return self._index_of

    def _order_changed(self) -> None:
        self._names = self._rows = self._index_of = None

    def __len__(self) -> int:
        return len(self._order)

    def has_node(self, name: str) -> bool:
        """Whether there is such a node."""
        return name in self._order

    def row(self, name: str) -> int:
        """The engine's row of a node."""
        row = self._order.get(name)
        if row is None:
            raise SnapshotError(f'there is no node "{name}" in the snapshot', hint="Add it first, or ask has_node.")
        return row

    def node(self, name: str) -> JsonObject:
        """The Node object."""
        return self.state.node(self.row(name))

    def nodes(self) -> list[JsonObject]:
        """All Node objects, in order."""
        return [self.state.node(row) for row in self._order.values()]

    def pods_on(self, name: str) -> list[JsonObject]:
        """The pods of a node, in the order they came."""
        return [placed.pod for placed in self.state.pods_on(self.row(name)) if placed.pod is not None]

    def node_info(self, name: str) -> NodeInfo:
        """A node with its pods."""
        return NodeInfo(self.node(name), tuple(self.pods_on(name)))

    def add_node(self, info: NodeInfo) -> None:
        """Add a node and its pods, whether they fit or not."""
        name = info.node["metadata"]["name"]
        if name in self._order:
            raise SnapshotError(f'node "{name}" is already in the snapshot', hint="Use replace_node to change it.")
        self._save_order()
        row = self._order[name] = self.state.add_node(info.node)
        self._order_changed()
        for pod in info.pods:
            self._put(pod, row)

    def remove_node(self, name: str) -> None:
        """Take a node away together with its pods."""
        row = self.row(name)
        self._save_order()
        for placed in self.state.pods_on(row):
            self.state.remove_pod(placed.key)
        self.state.remove_node(name)
        del self._order[name]
        self._order_changed()

    def replace_node(self, node: JsonObject) -> None:
        """Change a node; it keeps its place and its pods."""
        self.row(node["metadata"]["name"])
        self.state.update_node(node)

    def _save_order(self) -> None:
        if self._saved_orders and self._saved_orders[-1] is None:
            self._saved_orders[-1] = dict(self._order)

    # Pods

    def class_of(self, pod: JsonObject) -> PodClass:
        """What the engine takes a pod for. The node that a pod is bound to at present is no matter."""
        kind = self.kinds.kind_of(pod)
        cls = kind.cls
        if cls is None or cls.is_stale or kind.has_own_claims:
            spec = pod.get("spec") or {}
            if "nodeName" in spec:
                spec = {name: value for name, value in spec.items() if name != "nodeName"}
            cls = kind.cls = self.state.class_of({"metadata": pod["metadata"], "spec": spec})
        return cls

    def force_add_pod(self, pod: JsonObject, node_name: str) -> None:
        """Put a pod on a node, whether it fits or not."""
        self._put(pod, self.row(node_name))

    def remove_pod(self, pod: JsonObject, node_name: str = "") -> None:
        """Take a pod away: from the named node, else from where it is bound to, else from wherever it is."""
        self.state.remove_pod(self._find(pod, node_name).key)

    def _put(self, pod: JsonObject, row: int) -> None:
        self.put_alike(self.class_of(pod), (row,), (pod,))

    def put_alike(
        self, cls: PodClass, rows: Sequence[int], pods: Sequence[JsonObject], numbers: Sequence[int] = ()
    ) -> None:
        """Put pods of one kind, which have that class, each on a row, whether they fit or not.

        Either all or none of them are on their way out.
        """
        self.state.assume_pods(cls, rows, pods, [self._new_key(pod) for pod in pods], numbers)

    def _new_key(self, pod: JsonObject) -> str:
        """The pod's key, or a made up one: a pod of a node that is being drained is there twice."""
        key = pod_key(pod)
        if self.state.pod(key) is None:
            return key
        self._extra_count += 1
        extra = f"{key}#{self._extra_count}"
        self._extra_keys.setdefault(key, []).append(extra)
        return extra

    def _find(self, pod: JsonObject, node_name: str) -> PlacedPod:
        key = pod_key(pod)
        found = [p for k in (key, *self._extra_keys.get(key, ())) if (p := self.state.pod(k)) is not None]
        wanted = node_name or (pod.get("spec") or _EMPTY).get("nodeName") or ""
        there = [placed for placed in found if placed.node_name == wanted]
        if there or (found and not node_name):
            return (there or found)[0]
        where = f' on node "{node_name}"' if node_name else ""
        raise SnapshotError(f'there is no pod "{key}"{where} in the snapshot', hint="Only pods on nodes are in it.")

    # Questions and placements

    def try_pod(self, pod: JsonObject, node_name: str) -> tuple[str, ...]:
        """What stands against a pod on a node, in the scheduler's words; nothing if it fits."""
        return self.state.why(self.class_of(pod), self.row(node_name))

    def schedule_pod(self, pod: JsonObject, node_name: str) -> bool:
        """Put a pod on a node if it fits there; whether it did."""
        row, cls = self.row(node_name), self.class_of(pod)
        if not self.state.fits(cls, row):
            return False
        self.put_alike(cls, (row,), (pod,))
        return True

    def schedule_pod_on_any_node(
        self, pod: JsonObject, *, allowed: Callable[[str], bool] | None = None
    ) -> str | None:
        """Put a pod on the first node that will do, looking behind where the last pod was put; its name, or None."""
        cls = self.class_of(pod)
        index = self._next_index(self.acceptable(cls), allowed)
        if index is None:
            return None
        self.last_index = index
        row = int(self.rows[index])
        self.put_alike(cls, (row,), (pod,))
        return self.state.name_of(row)

    def acceptable(self, cls: PodClass) -> BoolArray:
        """Which nodes, by their place in the order, a pod of a class could be put on by a search.

        Such a search passes over cordoned nodes, even for a pod that tolerates that.
        """
        rows = self.rows
        mask: BoolArray = self.state.feasible(cls)[rows] & ~self.state.nodes.unschedulable[rows]
        return mask

    def _next_index(self, acceptable: BoolArray, allowed: Callable[[str], bool] | None) -> int | None:
        found = np.flatnonzero(acceptable)
        if not len(found):
            return None
        first = int(np.searchsorted(found, (self.last_index + 1) % len(acceptable)))
        if allowed is None:
            return int(found[first % len(found)])
        rows, name_of = self.rows, self.state.name_of
        for index in np.roll(found, -first).tolist():
            if allowed(name_of(int(rows[index]))):
                return int(index)
        return None

    # Experiments

    def fork(self) -> None:
        """Begin an experiment. Experiments nest."""
        self.state.fork()
        self._saved_orders.append(None)

    def commit(self) -> None:
        """Keep what happened since the last ``fork``; an outer experiment can still take it back."""
        self._check_forked("commit")
        self.state.commit()
        saved = self._saved_orders.pop()
        if self._saved_orders and self._saved_orders[-1] is None:
            self._saved_orders[-1] = saved

    def rollback(self) -> None:
        """Take back what happened since the last ``fork``."""
        self._check_forked("take back")
        self.state.rollback()
        saved = self._saved_orders.pop()
        if saved is not None:
            self._order = saved
            self._order_changed()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """An experiment that is always taken back."""
        self.fork()
        try:
            yield
        finally:
            self.rollback()

    def _check_forked(self, verb: str) -> None:
        if not self._saved_orders:
            raise SnapshotError(f"nothing to {verb}", hint="Call fork() first.")


def _name_in_cluster(obj: JsonObject) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"
