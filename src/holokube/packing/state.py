"""The cluster as the packing engine sees it: nodes, the pods on them, and which pods could go where.

Everybody who places pods shares this state: the scheduler, the autoscalers, the planner. It offers masks,
counts and cheap experiments (``fork``, ``rollback``), and no opinion about which node to take.

    state = ClusterState()
    state.add_node(node)
    state.add_pod(running_pod)
    cls = state.class_of(pending_pod)
    rows = np.flatnonzero(state.feasible(cls))
    with state.trial():                     # everything inside is undone
        state.place(cls, rows[0])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np

from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.resources import CPU, MEMORY, ResourceVector
from holokube.kube.taints import Toleration
from holokube.kube.types import JsonObject
from holokube.packing.amounts import Amounts, times_in
from holokube.packing.arrays import ALL, BoolArray, IntArray, RowArray, Rows
from holokube.packing.classes import ClassTable
from holokube.packing.counters import Counter as PodCounter
from holokube.packing.counters import CounterTable, LabelSet, PodMatcher, Tally
from holokube.packing.daemon_sizes import DaemonSize, DaemonSizes
from holokube.packing.errors import PackingError, StaleClassError
from holokube.packing.experiments import Experiments
from holokube.packing.feasibility import Diagnosis, Feasibility, Plan
from holokube.packing.filters import DEFAULT_FILTERS, Filter
from holokube.packing.journal import Journal
from holokube.packing.nodes import NodeTable, is_same_to_pods
from holokube.packing.placed import PlacedPod, Priorities
from holokube.packing.podclass import PodClass, requests_nonzero_of, requests_of
from holokube.packing.ports import PortUsage
from holokube.packing.volumes import VolumeCatalog, VolumePlan, VolumeUsage, storage_key

_EMPTY: Final[Mapping[str, Any]] = {}
_NO_PODS: Final[Mapping[str, PlacedPod]] = {}
_NUMBER: Final = attrgetter("number")
_FINISHED: Final = ("Succeeded", "Failed")
_FEW_ROWS: Final = 2


class ClusterState(Experiments):
    """See the module. Arrays that it hands out are read, never written, by callers."""

    def __init__(
        self, *, filters: tuple[Filter, ...] = DEFAULT_FILTERS, remember: int = 1024, size_daemons: bool = False
    ) -> None:
        """``remember`` is how many classes keep their verdicts; each costs a few bytes per node.

        With ``size_daemons``, pods of DaemonSets that are given as templates and ask for node-specific sizing take of
        each node what they will be given there (``holokube.kube.sizing``).
        """
        super().__init__()
        self.nodes = NodeTable()
        self.counters = CounterTable(self.nodes, self._count_labels_again)
        self.ports = PortUsage()
        self.volumes = VolumeCatalog()
        self.volume_usage = VolumeUsage()
        self.node_journal = Journal()
        self.usage_journal = Journal()
        self._classes = ClassTable(size_daemons=size_daemons)
        self._feasibility = Feasibility(self, filters, remember)
        self._pods: dict[str, PlacedPod] = {}
        self.priorities = Priorities()
        self._pods_on: dict[str, dict[str, PlacedPod]] = {}
        self._amounts = Amounts(self.nodes)
        self._placements = 0
        self._last_number = 0
        self.renewals = 0
        """Moves when a pod that stays on its node means something else to others, and takes the room it took."""

    # Nodes

    @property
    def node_names(self) -> Mapping[str, int]:
        """The row of every node."""
        return self.nodes.row_of

    def name_of(self, row: int) -> str:
        """The node in a row."""
        return self.nodes.names[row]

    def node(self, row: int) -> JsonObject:
        """The Node object in a row."""
        return self.nodes.objects[row]

    def add_node(self, node: JsonObject) -> int:
        """Add a Node, or bring one up to date; returns its row. Pods that were waiting for it take their places."""
        name = node["metadata"]["name"]
        if name in self.nodes.row_of:
            return self.update_node(node)
        row = self.nodes.insert(name)
        before = self.counters.standing(row)
        self.nodes.write(row, node)
        self.counters.after_node_change(row, before)
        self.node_journal.append(row)
        for placed in self._pods_on.get(name, {}).values():
            self._occupy(placed, row, 1)
        self._note(self._erase_node, name)
        return row

    def update_node(self, node: JsonObject) -> int:
        """Bring a Node up to date; returns its row. What no filter looks at costs next to nothing."""
        row = self.nodes.row(node["metadata"]["name"])
        old = self.nodes.objects[row]
        if is_same_to_pods(old, node):
            self.nodes.replace(row, node)
        else:
            before = self.counters.standing(row)
            self.nodes.write(row, node)
            self.counters.after_node_change(row, before)
            self.node_journal.append(row)
        self._note(self.update_node, old)
        return row

    def remove_node(self, name: str) -> None:
        """Take a node out. Its pods stay known and come back with it, as in upstream's cache."""
        old = self.nodes.objects[self.nodes.row(name)]
        self._erase_node(name)
        self._note(self.add_node, old)

    def _erase_node(self, name: str) -> None:
        row = self.nodes.row(name)
        for placed in self._pods_on.get(name, {}).values():
            self._occupy(placed, row, -1)
        before = self.counters.standing(row)
        self.nodes.erase(row)
        self.counters.after_node_change(row, before)
        self.node_journal.append(row)

    # Pods

    def class_of(self, pod: Mapping[str, Any], *, from_template: bool = False) -> PodClass:
        """The class of a pod; ``from_template`` if no API server has seen it.

        A pod made of a DaemonSet's template is known as such by its owner reference.
        """
        return self._classes.class_of(pod, merge_label_keys=from_template)

    def classify(self, pods: Iterable[Mapping[str, Any]], *, from_template: bool = False) -> list[PodClass]:
        """The classes of many pods, all valid at the same time."""
        return self._classes.classify(pods, merge_label_keys=from_template)

    def add_pod(self, pod: JsonObject) -> bool:
        """Note a pod that has a node, or its new state; a finished pod takes no room and is dropped.

        Returns whether it takes room now. The node may come later.
        """
        metadata, spec, status = pod["metadata"], pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        known = self._pods.get(key)
        if known is not None:
            if self.renew_pod(known, pod):
                return True
            self._delete(known)
        if status.get("phase") in _FINISHED:
            return False
        node_name = spec.get("nodeName")
        if not node_name:
            raise PackingError(f'pod "{key}" has no node', hint="Use place() to put a pending pod on a row.")
        self._insert(self._as_placed(key, pod, node_name, known))
        return True

    def assume_pod(self, pod: JsonObject, row: int, cls: PodClass | None = None, key: str = "") -> str:
        """Put a pending pod on a row as if it were bound already; returns its key, ``namespace/name``.

        ``cls`` and ``key`` are the pod's own, if known.
        """
        if not key:
            metadata = pod["metadata"]
            key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        if key in self._pods:
            raise PackingError(f'pod "{key}" is already on node "{self._pods[key].node_name}"',
                               hint="Remove it first.")  # fmt: skip
        node_name, status = self._checked_name(row), pod.get("status")
        if cls is None or cls.is_stale or (status and (status.get("containerStatuses") or status.get("resources"))):
            self._insert(self._as_placed(key, pod, node_name))
            return key
        metadata = pod["metadata"]
        self._insert(PlacedPod(
            key, cls, node_name, metadata.get("namespace") or "", metadata.get("labels") or {}, cls.requests,
            cls.requests_nonzero, bool(metadata.get("deletionTimestamp")), pod, 0, pod["spec"].get("priority") or 0,
        ))  # fmt: skip
        return key

    def place(self, cls: PodClass, row: int, key: str = "") -> str:
        """Put a pod of a class on a row, whether it fits or not; returns the key to remove it by."""
        return self._place(cls, row, key, 1)

    def _place(self, cls: PodClass, row: int, key: str, count: int) -> str:
        self._check(cls)
        if not key:
            self._placements += 1
            key = f"placement-{self._placements}"
        if key in self._pods:
            raise PackingError(f'"{key}" is already placed', hint="Leave the key out to have one made up.")
        node_name = self._checked_name(row)
        requests, requests_nonzero = cls.requests, cls.requests_nonzero
        if cls.sizes is not None:
            requests, requests_nonzero = self._size_on(cls.sizes, row)
        self._insert(PlacedPod(
            key, cls, node_name, cls.namespace, cls.labels, requests, requests_nonzero, False, None, count=count
        ))  # fmt: skip
        return key

    def place_many(self, cls: PodClass, row: int, count: int, key: str = "") -> str:
        """Put several pods of a class on a row at the cost of one; returns the key to remove all of them by."""
        if count < 1:
            raise PackingError(f"cannot place {count} pods", hint="Place at least one.")
        return self._place(cls, row, key, count)

    def assume_pods(
        self,
        cls: PodClass,
        rows: Sequence[int],
        pods: Sequence[JsonObject],
        keys: Sequence[str],
        numbers: Sequence[int] = (),
    ) -> None:
        """Put pending pods of one class each on a row of its own, under keys of the caller's choice.

        Many at once cost little more than one. Their objects are kept. All of them have the same labels, and all or
        none are on their way out. ``numbers`` are for those who reserved some: they tell who came before whom.
        """
        self._check(cls)
        names = [self._checked_name(row) for row in rows]
        if len(set(keys)) < len(keys) or any(key in self._pods for key in keys):
            raise PackingError("two pods of the same key", hint="Give every pod a key of its own.")
        if not numbers:
            first = self.reserve_numbers(len(pods))
            numbers = range(first, first + len(pods))
        metadata = pods[0]["metadata"]
        labels, is_terminating = metadata.get("labels") or {}, bool(metadata.get("deletionTimestamp"))
        alike = [
            PlacedPod(
                key, cls, name, cls.namespace, labels, cls.requests, cls.requests_nonzero, is_terminating, pod, number,
                (pod.get("spec") or _EMPTY).get("priority") or 0,
            )
            for key, name, pod, number in zip(keys, names, pods, numbers, strict=True)
        ]
        if cls.sizes is None:
            self._insert_all(alike)
            return
        for placed, row in zip(alike, rows, strict=True):
            placed.requests, placed.requests_nonzero = self._size_on(cls.sizes, row)
            self._insert(placed)

    def reserve_numbers(self, count: int) -> int:
        """The first of so many numbers for pods that are noted later than they came."""
        first = self._last_number + 1
        self._last_number += count
        return first

    def remove_pod(self, key: str) -> None:
        """Take a pod away, by ``namespace/name`` or what ``place`` or ``place_many`` returned."""
        placed = self._pods.get(key)
        if placed is None:
            raise PackingError(f'there is no pod "{key}" in the state', hint="Only pods with a node are known.")
        self._delete(placed)

    def pod(self, key: str) -> PlacedPod | None:
        """A pod by its key."""
        return self._pods.get(key)

    @property
    def pods(self) -> Mapping[str, PlacedPod]:
        """All pods that have a node, known or not, in no order: their numbers tell who came before whom."""
        return self._pods

    def pods_on(self, row: int) -> list[PlacedPod]:
        """The pods of a node, in the order they came."""
        return sorted(self._pods_on.get(self.nodes.names[row], _NO_PODS).values(), key=_NUMBER)

    def _checked_name(self, row: int) -> str:
        names = self.nodes.names
        # A row without a node has no name.
        name = names[row] if 0 <= row < len(names) else ""
        if not name:
            raise PackingError(f"row {row} has no node", hint="Take rows from node_names or feasible().")
        return name

    def _as_placed(self, key: str, pod: JsonObject, node_name: str, known: PlacedPod | None = None) -> PlacedPod:
        """``known`` is what it was so far: a pod that is asked to end takes what it took."""
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or _EMPTY
        is_as_before, cls = False, None
        if known is not None and known.takes_as_before(pod):
            is_as_before, cls = True, known.cls
        if cls is None or cls.is_stale:
            # Where a pod is bound to does not make it another kind of pod.
            plain = {name: value for name, value in spec.items() if name != "nodeName"}
            cls = self.class_of({"metadata": metadata, "spec": plain})
        requests, requests_nonzero = cls.requests, cls.requests_nonzero
        if is_as_before and known is not None:
            requests, requests_nonzero = known.requests, known.requests_nonzero
        elif status.get("containerStatuses") or status.get("resources"):
            # A container in the middle of a resize takes the larger of what it has and what it wants.
            requests, requests_nonzero = requests_of(pod, use_status=True), requests_nonzero_of(pod, use_status=True)
        return PlacedPod(
            key, cls, node_name, metadata.get("namespace") or "", metadata.get("labels") or {},
            requests, requests_nonzero, bool(metadata.get("deletionTimestamp")), pod, 0, spec.get("priority") or 0,
        )  # fmt: skip

    def _insert(self, placed: PlacedPod) -> None:
        if not placed.number:
            self._last_number += 1
            placed.number = self._last_number
        key, node_name = placed.key, placed.node_name
        self._pods[key] = placed
        neighbours = self._pods_on.get(node_name)
        if neighbours is None:
            self._pods_on[node_name] = {key: placed}
        else:
            neighbours[key] = placed
        self.priorities.count(placed.priority, 1)
        row = self.nodes.row_of.get(node_name)
        if row is not None:
            label_set = placed.label_set = self.counters.label_set(placed.namespace, placed.labels)
            self._take(placed, label_set, row, placed.count)
        if self._forks:
            self._note(self._delete, placed)

    def _delete(self, placed: PlacedPod) -> None:
        key, node_name = placed.key, placed.node_name
        del self._pods[key]
        neighbours = self._pods_on[node_name]
        del neighbours[key]
        if not neighbours:
            del self._pods_on[node_name]
        self.priorities.count(placed.priority, -1)
        row = self.nodes.row_of.get(node_name)
        if row is not None:
            label_set = placed.label_set or self.counters.label_set(placed.namespace, placed.labels)
            placed.label_set = None
            self._take(placed, label_set, row, -placed.count)
        if self._forks:
            self._note(self._insert, placed)

    def renew_pod(self, placed: PlacedPod, pod: JsonObject) -> bool:
        """Note the new state of a pod that is here and plainly takes the room it took: it has other labels, as one gets
        when it is bound, or is asked to end. As ``add_pod``, at a fraction of the cost.

        It counts as one that just came. False, and nothing done, if there is more to it.
        """
        return not self._forks and placed.takes_the_same_room(pod) and self._renew(placed, pod)

    def end_pod(self, placed: PlacedPod, pod: JsonObject) -> bool:
        """The same for a pod that is asked to end, or is not any more, of which it is known that its spec and what it
        requests are as they were: its status may be another, as one gets when it is evicted."""
        if self._forks or not placed.cls.takes_only_room or placed.pod is None:
            return False
        if placed.pod["metadata"].get("uid") != pod["metadata"].get("uid"):
            return False
        return self._renew(placed, pod)

    def _renew(self, placed: PlacedPod, pod: JsonObject) -> bool:
        metadata, was, ended = pod["metadata"], placed.labels, placed.is_terminating
        labels, ends = metadata.get("labels") or {}, bool(metadata.get("deletionTimestamp"))
        if not self._classes.keeps_class(placed.cls, was, labels):
            return False
        self._last_number += 1
        self.renewals += 1
        placed.number, placed.labels, placed.pod, placed.is_terminating = self._last_number, labels, pod, ends
        row = self.nodes.row_of.get(placed.node_name)
        if row is not None:
            counters = self.counters
            before = placed.label_set or counters.label_set(placed.namespace, was)
            # One that is asked to end mostly has the very labels it had.
            after = before if labels is was else counters.label_set(placed.namespace, labels)
            placed.label_set = after
            if before is not after or ended != ends:
                counters.relabel_pods(before, ended, after, ends, row, placed.count)
        return True

    def _insert_all(self, alike: list[PlacedPod]) -> None:
        """Take in pods that differ in nothing but their keys and nodes."""
        pods, pods_on = self._pods, self._pods_on
        for placed in alike:
            pods[placed.key] = placed
            pods_on.setdefault(placed.node_name, {})[placed.key] = placed
            self.priorities.count(placed.priority, 1)
        self._occupy_all(alike, 1)
        self._note(self._delete_all, alike)

    def _delete_all(self, alike: list[PlacedPod]) -> None:
        pods, pods_on = self._pods, self._pods_on
        for placed in alike:
            del pods[placed.key]
            neighbours = pods_on[placed.node_name]
            del neighbours[placed.key]
            if not neighbours:
                del pods_on[placed.node_name]
            self.priorities.count(placed.priority, -1)
        self._occupy_all(alike, -1)
        self._note(self._insert_all, alike)

    def _occupy_all(self, alike: list[PlacedPod], sign: int) -> None:
        counts: dict[int, int] = {}
        for placed in alike:
            row = self.nodes.row_of.get(placed.node_name)
            if row is not None:
                counts[row] = counts.get(row, 0) + sign
        if len(counts) > _FEW_ROWS:
            self._occupy_rows(alike[0], counts)
            return
        label_set = self.counters.label_set(alike[0].namespace, alike[0].labels)
        for row, pods in counts.items():
            self._take(alike[0], label_set, row, pods)

    def _occupy(self, placed: PlacedPod, row: int, times: int) -> None:
        """A pod takes its room on a node (1), or gives it back (-1)."""
        label_set = placed.label_set or self.counters.label_set(placed.namespace, placed.labels)
        self._take(placed, label_set, row, times * placed.count)
        placed.label_set = label_set if times > 0 else None

    def _take(self, placed: PlacedPod, label_set: LabelSet, row: int, pods: int) -> None:
        cls = placed.cls
        self._amounts.take(placed.requests, placed.requests_nonzero, row, pods)
        if not cls.takes_only_room:
            self.ports.add(row, cls.ports, pods)
            self.volume_usage.add(cls, row, pods)
        self.counters.change_pods_on(row, cls, label_set, placed.is_terminating, pods)
        self.usage_journal.append(row)

    def _occupy_rows(self, placed: PlacedPod, pods_on_rows: Mapping[int, int]) -> None:
        """The same for pods that are alike on several nodes at once; the pods of each are given by its row."""
        cls = placed.cls
        self._amounts.take_on_rows(placed.requests, placed.requests_nonzero, pods_on_rows)
        if cls.ports or cls.claims or cls.disks:
            for row, pods in pods_on_rows.items():
                self.ports.add(row, cls.ports, pods)
                self.volume_usage.add(cls, row, pods)
        self.usage_journal.extend(pods_on_rows)
        label_set = self.counters.label_set(placed.namespace, placed.labels)
        self.counters.change_pods(cls, label_set, placed.is_terminating, pods_on_rows.items())

    def _count_labels_again(self) -> None:
        """Tell of all pods by their labels, which are looked at in another way from now on."""
        counters, row_of = self.counters, self.nodes.row_of
        for placed in self._pods.values():
            row = row_of.get(placed.node_name)
            if row is not None:
                label_set = counters.label_set(placed.namespace, placed.labels)
                label_set.add(row, placed.count, placed.is_terminating)
                if placed.label_set is not None:
                    placed.label_set = label_set

    # Other objects

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Note the labels of a namespace, which affinity terms may select by; None when it is gone."""
        old = self.counters.namespaces.get(name)
        if old != labels:
            self.counters.set_namespace(name, labels)
            self._note(self.set_namespace, name, old)

    def put_storage(self, obj: JsonObject) -> None:
        """Note a PersistentVolume(Claim), StorageClass, CSINode, CSIDriver, CSIStorageCapacity or VolumeAttachment."""
        kind, key = storage_key(obj)
        self._put_storage(kind, key, obj)

    def remove_storage(self, obj: JsonObject) -> None:
        """Forget one of those."""
        kind, key = storage_key(obj)
        self._put_storage(kind, key, None)

    def _put_storage(self, kind: str, key: str, obj: JsonObject | None) -> None:
        old = self.volumes.put(kind, key, obj)
        self._note(self._put_storage, kind, key, old)

    # Questions

    def feasible(self, cls: PodClass) -> BoolArray:
        """Which rows may take a pod of the class now. Read-only, and not changed by later changes of the state."""
        if cls.is_stale:
            self._check(cls)
        return self._feasibility.mask(cls)

    def recompute(self, cls: PodClass) -> BoolArray:
        """The same as ``feasible`` with every filter asked about every row."""
        self._check(cls)
        return self._feasibility.recompute(cls)

    def fits(self, cls: PodClass, row: int) -> bool:
        """Whether one row may take a pod of the class now."""
        return bool(self.feasible(cls)[row])

    def diagnose(self, cls: PodClass) -> Diagnosis:
        """Why the class cannot go where it cannot go, in upstream's words."""
        self._check(cls)
        return self._feasibility.diagnose(cls)

    def explain(self, cls: PodClass) -> dict[str, int]:
        """For how many nodes each reason holds: what "0/3 nodes are available" is followed by."""
        return self.diagnose(cls).reasons

    def why(self, cls: PodClass, row: int) -> tuple[str, ...]:
        """The reasons for which one node refuses the class; none if it does not."""
        self._check(cls)
        return self._feasibility.why(cls, row)

    def free(self, row: int) -> ResourceVector:
        """What is left on a node, in milli-units; negative where pods take more than there is."""
        left = (self.nodes.allocatable[row] - self.nodes.used[row]).tolist()
        return dict(zip(self.nodes.resource_columns, left, strict=True))

    @property
    def rows(self) -> RowArray:
        """The rows that have a node."""
        return np.flatnonzero(self.nodes.present)

    def allocatable(self, resource: str) -> IntArray:
        """What each row offers of a resource, in milli-units."""
        # Asking for a resource that no node has makes its column, in another array.
        column = self.nodes.resource_column(resource)
        return self.nodes.allocatable[:, column]

    def used(self, resource: str) -> IntArray:
        """What pods take of a resource on each row, in milli-units."""
        column = self.nodes.resource_column(resource)
        return self.nodes.used[:, column]

    def room(self, cls: PodClass) -> IntArray:
        """How many pods of a class each row has resources for, whatever else may stand against them."""
        columns, amounts = self.request_arrays(cls) if cls.sizes is None else self.request_table(cls, ALL)
        left = self.nodes.allocatable[:, columns] - self.nodes.used[:, columns]
        times = left // amounts if cls.sizes is None else times_in(left, amounts)
        counts: IntArray = np.maximum(np.min(times, axis=1), 0)
        return counts

    def requests_on(self, cls: PodClass, row: int) -> ResourceVector:
        """What a pod of a class takes of a row, in milli-units."""
        return cls.requests if cls.sizes is None else self._size_on(cls.sizes, row).requests

    # What filters ask for

    def request_arrays(self, cls: PodClass) -> tuple[RowArray, IntArray]:
        """The columns of what a class requests, and the amounts."""
        return self._amounts.columns(cls.requests)

    def request_table(self, cls: PodClass, rows: Rows) -> tuple[RowArray, IntArray]:
        """The columns of what a class requests, and the amounts on each of the rows, for pods sized by their node."""
        assert cls.sizes is not None, "other classes request the same everywhere: see request_arrays"
        nodes = self.nodes
        both = nodes.resource_columns_of((CPU, MEMORY))
        node_sizes, which = np.unique(nodes.allocatable[rows][:, both], axis=0, return_inverse=True)
        vectors = [cls.sizes.on(cpu_milli, memory_milli).requests for cpu_milli, memory_milli in node_sizes.tolist()]
        names = list(dict.fromkeys([*cls.requests, *(name for vector in vectors for name in vector)]))
        table = np.array([[vector.get(name, 0) for name in names] for vector in vectors], dtype=np.int64)
        return nodes.resource_columns_of(names), table.reshape(len(vectors), len(names))[which.reshape(-1)]

    def _size_on(self, sizes: DaemonSizes, row: int) -> DaemonSize:
        cpu_milli, memory_milli = self.nodes.allocatable[row, self.nodes.resource_columns_of((CPU, MEMORY))].tolist()
        return sizes.on(cpu_milli, memory_milli)

    def plan(self, cls: PodClass) -> Plan:
        """The tallies behind a class's constraints."""
        return self._feasibility.verdict(cls).plan

    def against(self, cls: PodClass) -> list[Tally]:
        """The tallies of the anti-affinity that pods which are there have against a class."""
        return self._feasibility.against(cls)

    def tally(
        self, cls: PodClass, matcher: PodMatcher, key: str, *, keys: frozenset[str] = frozenset(),
        affinity: RequiredNodeAffinity | None = None, tolerations: tuple[Toleration, ...] | None = None,
    ) -> Tally:  # fmt: skip
        """How many pods that ``matcher`` means are in each domain of a label, kept up to date for a class."""
        return self._feasibility.tally(cls, matcher, key, keys=keys, affinity=affinity, tolerations=tolerations)

    def pods_per_row(self, cls: PodClass, matcher: PodMatcher) -> IntArray:
        """How many pods that ``matcher`` means are on each row. Read-only; later changes of the state change it."""
        return self.counter(cls, matcher).by_row(self.nodes.capacity)

    def counter(self, cls: PodClass, matcher: PodMatcher) -> PodCounter:
        """The same as something that is kept up to date for a class."""
        return self._feasibility.counter(cls, matcher)

    def volume_plan(self, cls: PodClass) -> VolumePlan:
        """What the claims of a class demand."""
        return self._feasibility.volume_plan(cls)

    @staticmethod
    def _check(cls: PodClass) -> None:
        if cls.is_stale:
            raise StaleClassError(
                "a selector now tells the pods of this class apart",
                hint="Ask class_of() again; to group many pods use classify().",
            )
