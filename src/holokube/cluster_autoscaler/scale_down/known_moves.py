"""What becomes of the pods of nodes that are tried turn after turn, worked out once as long as they are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from holokube.cluster_autoscaler.hinting import by_known_priority
from holokube.cluster_autoscaler.objects import controller_of
from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind
from holokube.cluster_autoscaler.scale_down.drain import PodMoves, pods_to_move
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, Judge, depends_on_time
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject


class NodePods(NamedTuple):
    """The pods of a node, and what becomes of them."""

    moves: PodMoves
    groups: list[list[PodFacts]]
    """Those that move, by priority."""
    kinds: Mapping[PodKind, JsonObject]
    """The kinds of all of them, each with one of its pods."""


class _Known(NamedTuple):
    mark: int
    controllers: Mapping[ControllerKey, JsonObject | None]
    pods: NodePods


def pods_of(pods: Sequence[JsonObject], moves: PodMoves, snapshot: ClusterSnapshot) -> NodePods:
    """The pods of a node of which it is known what becomes of them."""
    facts_of = snapshot.kinds.facts_of
    kinds = {facts_of(pod).kind: pod for pod in pods}
    return NodePods(moves, by_known_priority(list(map(facts_of, moves.pods))), kinds)


class KnownMoves:
    """Remembers nodes by their marks.

    The drain rules look at a pod, at its controller, at budgets and at the time. So what they said holds for as long as
    the pods are the same, their controllers are there and want as many replicas, and there is no budget for any of
    them; pods about which the time alone may change something are not remembered, nor are nodes that stay.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._snapshot: ClusterSnapshot | None = None
        self._around: tuple[object, object] = (None, None)
        self._known: dict[str, _Known] = {}
        self._tried: dict[str, _Known] = {}
        self._is_complete = True

    @property
    def controllers(self) -> Set[ControllerKey] | None:
        """The controllers that mattered to the last round; None if there was a node that is not remembered."""
        if not self._is_complete:
            return None
        return {key for known in self._known.values() for key in known.controllers}

    def of(self, name: str, snapshot: ClusterSnapshot, context: DrainContext) -> NodePods:
        """The pods of a node of the snapshot."""
        around = context.options, context.pdbs.given
        if snapshot is not self._snapshot or around[0] is not self._around[0] or around[1] is not self._around[1]:
            self._snapshot, self._around = snapshot, around
            self._known, self._tried = {}, {}
        mark = snapshot.mark(name)
        known = self._tried.get(name) or self._known.get(name)
        if known is not None and known.mark == mark and _are_as_before(known.controllers, context.controllers):
            self._tried[name] = known
            return known.pods
        pods = snapshot.pods_on(name)
        found = pods_of(pods, pods_to_move(pods, self._judge, context), snapshot)
        controllers = context.controllers
        if (
            mark is not None and controllers is not None and found.moves.blocking_pod is None
            and not any(depends_on_time(pod) or context.pdbs.matching(pod) for pod in pods)
        ):  # fmt: skip
            self._tried[name] = _Known(mark, {key: controllers.get(key) for key in map(_controller_key, pods)}, found)
        else:
            self._is_complete = False
        return found

    def begin(self) -> None:
        """A round begins."""
        self._is_complete = True

    def drop_old(self) -> None:
        """Forget the nodes that were not asked about since this was last called."""
        self._known, self._tried = self._tried, {}


def _controller_key(pod: JsonObject) -> ControllerKey:
    owner = controller_of(pod) or {}
    return owner.get("kind", ""), pod["metadata"].get("namespace") or "", owner.get("name", "")


def _are_as_before(
    before: Mapping[ControllerKey, JsonObject | None], now: Mapping[ControllerKey, JsonObject] | None
) -> bool:
    """Whether controllers are there that were, and want as many replicas."""
    if now is None:
        return False
    for key, was in before.items():
        found = now.get(key)
        if found is not was:
            if found is None or was is None:
                return False
            old, new = was.get("spec") or {}, found.get("spec") or {}
            if old is not new and old.get("replicas") != new.get("replicas"):
                return False
    return True
