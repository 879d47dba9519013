"""Removals that were found possible in the last turn, and still are: known by one sum instead of pod by pod.

Where every pod of some nodes went where it had gone the time before, it is sent there first again. That succeeds for
all of them, in whatever order, if there is room for all of them together and no node refuses them for another reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from holokube.cluster_autoscaler.placing import ROOM_COLUMNS
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind
from holokube.cluster_autoscaler.scale_down.known_moves import NodePods
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject
from holokube.packing import PodClass
from holokube.packing.arrays import BoolArray, IntArray, RowArray


class Stood(NamedTuple):
    """A node that could go, with all its pods sent where they had gone before."""

    result: NodeToRemove
    pods: NodePods
    placed: tuple[tuple[PodFacts, str], ...]
    """The pods that moved, and the nodes they went to. None of these nodes could go."""
    went: Mapping[str, str]
    """The same as hints know it."""


class _Demand(NamedTuple):
    """What some nodes' pods ask of the nodes they would go to."""

    destinations: tuple[str, ...]
    amounts: IntArray
    """One row per destination, in columns of the engine's tables."""
    is_asked: BoolArray
    """What is asked for at all, be it nothing: a node that has given away more than it has refuses that too."""
    at: Mapping[PodClass, RowArray]
    """Which of the destinations pods of a class go to, by their places."""


class StandingMoves:
    """The nodes of one round. They stand as long as the next round tries none but them."""

    def __init__(self, stood: dict[str, Stood], snapshot: ClusterSnapshot) -> None:
        self._stood = stood
        self._classes: dict[PodKind, PodClass] = {}
        for one in stood.values():
            for kind, pod in one.pods.kinds.items():
                if kind not in self._classes:
                    self._classes[kind] = snapshot.class_of(pod)
        self._demand = self._sum_up(snapshot)

    def again(self, name: str, node: JsonObject, pods: NodePods) -> Stood | None:
        """What is found out about a node, which has these pods now; None if that is not known."""
        stood = self._stood.get(name)
        if stood is None:
            return None
        if pods is not stood.pods:
            if not self._is_alike(pods, stood.pods):
                return None
            moves = pods.moves
            result = NodeToRemove(node, moves.pods, moves.daemon_set_pods, moves.on_completion_pods)
            stood = self._stood[name] = stood._replace(result=result, pods=pods)
        elif stood.result.node is not node:
            stood = self._stood[name] = stood._replace(result=replace(stood.result, node=node))
        return stood

    def of(self, names: Iterable[str], snapshot: ClusterSnapshot) -> StandingMoves:
        """The same for those of the nodes that are still of interest."""
        kept = {name: self._stood[name] for name in names if name in self._stood}
        return self if len(kept) == len(self._stood) else StandingMoves(kept, snapshot)

    def hold(self, snapshot: ClusterSnapshot, destinations: Collection[str]) -> bool:
        """Whether all of the nodes, or any of them, could go again, with all pods sent where they went."""
        demand, state = self._demand, snapshot.state
        if any(cls.is_stale or kind.cls is not cls for kind, cls in self._classes.items()):
            return False
        row_of = state.node_names
        if not all(name in destinations and name in row_of for name in demand.destinations):
            return False
        rows = np.array([row_of[name] for name in demand.destinations], dtype=np.intp)
        columns = demand.amounts.shape[1]
        room = state.nodes.allocatable[rows, :columns] - state.nodes.used[rows, :columns]
        if not bool(((room >= demand.amounts) | ~demand.is_asked).all()):
            return False
        return all(bool(state.feasible(cls)[rows[at]].all()) for cls, at in demand.at.items())

    def room_left(self, snapshot: ClusterSnapshot) -> dict[str, list[int]]:
        """What the nodes that pods are sent to have left then: millicores, milli-bytes and thousandths of pods."""
        demand, state = self._demand, snapshot.state
        rows = np.array([state.node_names[name] for name in demand.destinations], dtype=np.intp)
        columns = demand.amounts.shape[1]
        left = state.nodes.allocatable[rows, :columns] - state.nodes.used[rows, :columns] - demand.amounts
        return dict(zip(demand.destinations, left[:, list(ROOM_COLUMNS)].tolist(), strict=True))

    def _sum_up(self, snapshot: ClusterSnapshot) -> _Demand:
        state = snapshot.state
        counts: dict[tuple[PodClass, str], int] = {}
        for one in self._stood.values():
            for facts, destination in one.placed:
                key = self._classes[facts.kind], destination
                counts[key] = counts.get(key, 0) + 1
        places = {name: place for place, name in enumerate(dict.fromkeys([name for _, name in counts]))}
        of_class: dict[PodClass, tuple[list[int], list[int]]] = {}
        for (cls, destination), count in counts.items():
            at, pods = of_class.setdefault(cls, ([], []))
            at.append(places[destination])
            pods.append(count)
        amounts = np.zeros((len(places), state.nodes.allocatable.shape[1]), dtype=np.int64)
        is_asked = np.zeros(amounts.shape, dtype=np.bool_)
        found: dict[PodClass, RowArray] = {}
        for cls, (at, pods) in of_class.items():
            columns, of_one = state.request_arrays(cls)
            rows = found[cls] = np.array(at, dtype=np.intp)
            amounts[rows[:, np.newaxis], columns] += np.array(pods, dtype=np.int64)[:, np.newaxis] * of_one
            is_asked[rows[:, np.newaxis], columns] = True
        return _Demand(tuple(places), amounts, is_asked, found)

    def _is_alike(self, these: NodePods, those: NodePods) -> bool:
        """Whether pods of a node are those it had, but for their state, with none of a kind that nobody looked at."""
        if these.moves.blocking_pod is not None or not these.kinds.keys() <= self._classes.keys():
            return False
        return len(these.groups) == len(those.groups) and all(
            len(group) == len(other) and all(
                a is b or (a.kind is b.kind and a.identity == b.identity) for a, b in zip(group, other, strict=True))
            for group, other in zip(these.groups, those.groups, strict=True)
        )  # fmt: skip
