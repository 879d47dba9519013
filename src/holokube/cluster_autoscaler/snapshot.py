"""The cluster to experiment on: nodes, the pods on them, and what would become of more.

A thin layer over the packing engine that adds what upstream's snapshot has: nodes in an order, a place in that order
where the last pod found room, and pods as the objects they were. Everything between ``fork`` and ``rollback`` is
taken back, except for that place, which upstream keeps as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from holokube.base.errors import HolokubeError
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.loaded_pod import LoadedPod, node_of
from holokube.cluster_autoscaler.node_facts import changed_places
from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.owed_pods import OwedPod, OwedPods
from holokube.cluster_autoscaler.pods.book import PodChange
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind, PodKinds
from holokube.cluster_autoscaler.pods.resized import ResizedPods
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PlacedPod, PodClass
from holokube.packing.arrays import BoolArray, RowArray

_EMPTY: Final[Mapping[str, Any]] = {}
_FINISHED: Final = ("Succeeded", "Failed")
_MARKS_KEPT: Final = 16_384


class SnapshotError(HolokubeError):
    """The snapshot was asked for something that is not in it, or given what is."""


class ClusterSnapshot:
    """See the module. One object serves all turns: ``set_cluster_state`` costs what changed since the last."""

    def __init__(self, *, size_daemons: bool = False) -> None:
        self._state = ClusterState(size_daemons=size_daemons)
        self._owed = OwedPods()
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
        self._nodes: Sequence[JsonObject] = ()
        self._set_names: tuple[str, ...] = ()
        self._is_order_as_set = False
        self._loaded: dict[str, LoadedPod] = {}
        self._unplaced: dict[str, PodChange] = {}
        """Pods whose node is not there."""
        self._marks: dict[str, int] = {}
        self._last_mark = 0
        self._marked: list[str] = []
        """The nodes that were given the last marks."""
        self._touched: set[str] = set()
        self._resized = ResizedPods(self.class_of)
        self._storage: dict[tuple[str, str], JsonObject] = {}
        self._set_around: tuple[object, object] = (None, None)
        self._surroundings: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._state.fork()

    @property
    def state(self) -> ClusterState:
        """The engine underneath, for questions about classes and rows. Ask ``class_of`` here for the classes."""
        if self._owed.is_due:
            self._tell()
        return self._state

    def state_of(self, name: str) -> ClusterState:
        """The same for questions about one node and its pods alone."""
        return self.state if self._owed.is_due_on(name) else self._state

    # The cluster as it is

    def set_cluster_state(self, nodes: Iterable[JsonObject], pods: Iterable[JsonObject]) -> None:
        """Begin a turn: forget everything that was tried, and take the cluster as it is now.

        Pods are bound, or nominated, to nodes; those of nodes that are not there are left out.
        """
        changed: dict[str, PodChange | None] = {}
        gone = dict.fromkeys([*self._loaded, *self._unplaced])
        for number, pod in enumerate(pods):
            key = pod_key(pod)
            gone.pop(key, None)
            if not self.has_loaded(key, pod):
                changed[key] = PodChange((False, 0, number), pod)
        self.update(tuple(nodes), {**dict.fromkeys(gone), **changed})

    def update(self, nodes: Sequence[JsonObject], pods: Mapping[str, PodChange | None]) -> None:
        """The same for a caller who knows what has happened to pods since the last turn; see ``TurnPods.changed``.

        All nodes are given, and looked at only if that is another sequence than the last time.
        """
        self._take_turn_back()
        gone: list[str] = []
        wanted: dict[str, JsonObject] | None = None
        renewed: list[JsonObject] = []
        if nodes is not self._nodes:
            places = changed_places(self._nodes, nodes)
            if places is None:
                wanted = dict(zip([node["metadata"]["name"] for node in nodes], nodes, strict=True))
                if not wanted.keys() >= self.state.node_names.keys():
                    gone = [name for name in self.state.node_names if name not in wanted]
            else:
                renewed = [nodes[place] for place in places]
            self._nodes = nodes
        new = self._unload(pods, gone)
        if wanted is not None:
            self._update_nodes(wanted, gone)
        for node in renewed:
            self.state.add_node(node)
            self._mark(node["metadata"]["name"])
        self._load(new)
        if wanted is not None or not self._is_order_as_set:
            self._set_names = self._set_names if wanted is None else tuple(wanted)
            row_of = self.state.node_names
            self._order = dict(zip(self._set_names, map(row_of.__getitem__, self._set_names), strict=True))
            self._order_changed()
            self._is_order_as_set = True
        self.state.fork()

    def mark(self, name: str) -> int | None:
        """Equal marks of a node mean that neither it nor its pods have changed in between.

        None for a node of this turn's own making, or on which this turn has put something.
        """
        return None if name in self._touched else self._marks.get(name)

    def marked_since(self, mark: int) -> Sequence[str] | None:
        """The nodes that were given a new mark after one; None if that is too long ago to tell."""
        begin = len(self._marked) - (self._last_mark - mark)
        return self._marked[begin:] if begin >= 0 else None

    @property
    def last_mark(self) -> int:
        """The newest of all marks."""
        return self._last_mark

    @property
    def touched(self) -> Set[str]:
        """The nodes whose mark is None at present, and maybe some more."""
        return self._touched

    def _mark(self, name: str) -> None:
        self._last_mark += 1
        self._marks[name] = self._last_mark
        self._marked.append(name)
        if len(self._marked) > 2 * _MARKS_KEPT:
            del self._marked[:-_MARKS_KEPT]

    def _take_turn_back(self) -> None:
        while self._saved_orders:
            self.rollback()
        self._owed.clear()
        self._state.rollback()
        for change, arguments in self._surroundings:
            change(*arguments)
        self._surroundings.clear()
        self.kinds.drop_old()
        self._extra_keys.clear()
        self._touched.clear()

    def _update_nodes(self, wanted: Mapping[str, JsonObject], gone: Iterable[str]) -> None:
        state = self.state
        for name in gone:
            state.remove_node(name)
            self._marks.pop(name, None)
        objects, rows = state.nodes.objects, map(state.node_names.get, wanted)
        new = [
            node for node, row in zip(wanted.values(), rows, strict=True) if row is None or objects[row] is not node]
        for node in new:
            state.add_node(node)
            self._mark(node["metadata"]["name"])

    def has_loaded(self, key: str, pod: JsonObject, name: str = "") -> bool:
        """Whether a pod of that key is on a node, or on the named one, in truth and as that very object."""
        loaded = self._loaded.get(key)
        return loaded is not None and loaded.facts.pod is pod and name in (loaded.placed.node_name, "")

    def _unload(self, pods: Mapping[str, PodChange | None], gone: Iterable[str]) -> list[tuple[str, PodChange]]:
        """Take out the pods that are not there any more, or elsewhere; returns those that are new, in order."""
        unplaced, self._unplaced = self._unplaced, {}
        new = {**unplaced, **pods} if unplaced else pods
        row_of = self.state.node_names
        for name in gone:
            for placed in self.state.pods_on(row_of[name]):
                loaded = self._loaded.get(placed.key)
                if loaded is not None:
                    self._take_out(placed.key, loaded)
                    if placed.key not in pods:
                        self._unplaced[placed.key] = PodChange(loaded.place, loaded.facts.pod)
        for key, change in pods.items():
            loaded = self._loaded.get(key)
            if loaded is not None and (change is None or not self._stays(loaded, change)):
                self._take_out(key, loaded)
        there = [(key, change) for key, change in new.items() if change is not None]
        there.sort(key=lambda item: item[1].place)
        return there

    def _take_out(self, key: str, loaded: LoadedPod) -> None:
        self.state.remove_pod(key)
        self.kinds.let_go(loaded.facts)
        self._mark(loaded.placed.node_name)
        del self._loaded[key]

    def _stays(self, loaded: LoadedPod, change: PodChange) -> bool:
        """Whether a pod takes, in its new form, exactly what it took, where it took it."""
        pod = change.pod
        status = pod.get("status") or _EMPTY
        if loaded.is_alone or node_of(pod, status) != loaded.placed.node_name or status.get("phase") in _FINISHED:
            return False
        before = loaded.facts
        facts = self.kinds.keep(pod, before)
        loaded.facts, loaded.place = facts, change.place
        return facts.kind is before.kind and facts.is_going == before.is_going and not self._resized.has(
            pod, facts.kind, status)

    def _load(self, pods: Sequence[tuple[str, PodChange]]) -> None:
        """Put pods where they say they are, many that are alike at once."""
        alike: dict[tuple[PodKind, bool], list[tuple[str, PodChange, PodFacts, int, int]]] = {}
        row_of = self.state.node_names
        for number, (key, change) in enumerate(pods, self.state.reserve_numbers(len(pods))):
            pod = change.pod
            loaded = self._loaded.get(key)
            if loaded is not None:
                # It is there already. As everybody whose state is news, it comes last among the pods of its node.
                loaded.placed.pod, loaded.placed.number = pod, number
                loaded.placed.labels = pod["metadata"].get("labels") or {}
                self._mark(loaded.placed.node_name)
                continue
            status = pod.get("status") or _EMPTY
            node_name = node_of(pod, status)
            row = row_of.get(node_name)
            if row is None:
                self._unplaced[key] = change
                continue
            if status.get("phase") in _FINISHED:
                continue
            facts = self.kinds.keep(pod)
            self._mark(node_name)
            if facts.kind.has_own_claims or self._resized.has(pod, facts.kind, status):
                self._load_alone(key, change, facts, row, number)
            else:
                alike.setdefault((facts.kind, facts.is_going), []).append((key, change, facts, row, number))
        for members in alike.values():
            keys, changes, known, rows, numbers = zip(*members, strict=True)
            objects = [change.pod for change in changes]
            self.state.assume_pods(self.class_of(objects[0]), rows, objects, keys, numbers)
            placed = self.state.pods
            for key, change, facts in zip(keys, changes, known, strict=True):
                self._loaded[key] = LoadedPod(change.place, placed[key], facts)

    def _load_alone(self, key: str, change: PodChange, facts: PodFacts, row: int, number: int) -> None:
        placed = self.state.pods[self.state.assume_pod(change.pod, row)]
        placed.number = number
        self._loaded[key] = LoadedPod(change.place, placed, facts, is_alone=True)

    def set_surroundings(self, namespaces: tuple[JsonObject, ...], storage: tuple[JsonObject, ...]) -> None:
        """Take these as all that is around the nodes; nothing is looked at if they are the same tuples as before."""
        if namespaces is not self._set_around[0]:
            self.set_namespaces(namespaces)
        if storage is not self._set_around[1]:
            self.set_storage(storage)
        self._set_around = namespaces, storage

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
            self._index_of = dict(zip(self._order, range(len(self._order)), strict=True))
        return self._index_of

    def _order_changed(self) -> None:
        self._names = self._rows = self._index_of = None
        self._is_order_as_set = False

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
        return self._state.node(self.row(name))

    def nodes(self) -> list[JsonObject]:
        """All Node objects, in order."""
        return list(map(self._state.nodes.objects.__getitem__, self._order.values()))

    def has_label(self, key: str) -> bool:
        """Whether any node has a label of that name."""
        return self._state.nodes.column(key).is_used

    def pods_on(self, name: str) -> list[JsonObject]:
        """The pods of a node, in the order they came."""
        return [placed.pod for placed in self.state_of(name).pods_on(self.row(name)) if placed.pod is not None]

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
        self._touched.add(name)
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
        self._touched.add(name)
        self._order_changed()

    def replace_node(self, node: JsonObject) -> None:
        """Change a node; it keeps its place and its pods."""
        self.row(node["metadata"]["name"])
        self.state.update_node(node)
        self._touched.add(node["metadata"]["name"])

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
            cls = kind.cls = self._state.class_of({"metadata": pod["metadata"], "spec": spec})
        return cls

    def force_add_pod(self, pod: JsonObject, node_name: str) -> None:
        """Put a pod on a node, whether it fits or not."""
        self._put(pod, self.row(node_name))

    def remove_pod(self, pod: JsonObject, node_name: str = "") -> None:
        """Take a pod away: from the named node, else from where it is bound to, else from wherever it is."""
        found = self._find(pod, node_name)
        self.state.remove_pod(found.key)
        self._touched.add(found.node_name)

    def _put(self, pod: JsonObject, row: int) -> None:
        self.put_alike(self.class_of(pod), (row,), (pod,))

    def put_alike(
        self, cls: PodClass, rows: Sequence[int], pods: Sequence[JsonObject], numbers: Sequence[int] = ()
    ) -> None:
        """Put pods of one kind, which have that class, each on a row, whether they fit or not.

        Either all or none of them are on their way out.
        """
        self.state.assume_pods(cls, rows, pods, [self._new_key(pod) for pod in pods], numbers)
        self._touched.update(map(self.state.name_of, rows))

    def put_later(self, placed: Sequence[tuple[PodFacts, int]]) -> None:
        """Put pods, each at the place of a node in the order, one after the other, whether they fit or not.

        Where that lasts for the whole turn the engine learns of it when somebody looks.
        """
        rows, first = self.rows.tolist(), self._state.reserve_numbers(len(placed))
        pods = [OwedPod(facts, rows[index], first + i) for i, (facts, index) in enumerate(placed)]
        if self._saved_orders:
            self._put_all(pods)
            return
        names = self.node_names
        nodes = {names[index] for _, index in placed}
        self._touched.update(nodes)
        self._owed.add(pods, nodes)

    def _tell(self) -> None:
        self._put_all(self._owed.told(len(self._saved_orders)))

    def _put_all(self, pods: Iterable[OwedPod]) -> None:
        """Put pods, those at once that are alike."""
        alike: dict[tuple[PodKind, bool], list[OwedPod]] = {}
        for one in pods:
            alike.setdefault((one.facts.kind, one.facts.is_going), []).append(one)
        for members in alike.values():
            facts, rows, numbers = zip(*members, strict=True)
            objects = [one.pod for one in facts]
            self.put_alike(self.class_of(objects[0]), rows, objects, numbers)

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
        self._state.fork()
        self._saved_orders.append(None)

    def commit(self) -> None:
        """Keep what happened since the last ``fork``; an outer experiment can still take it back."""
        self._check_forked("commit")
        self._state.commit()
        saved = self._saved_orders.pop()
        self._owed.committed(len(self._saved_orders))
        if self._saved_orders and self._saved_orders[-1] is None:
            self._saved_orders[-1] = saved

    def rollback(self) -> None:
        """Take back what happened since the last ``fork``."""
        self._check_forked("take back")
        self._state.rollback()
        saved = self._saved_orders.pop()
        self._owed.rolled_back(len(self._saved_orders))
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
