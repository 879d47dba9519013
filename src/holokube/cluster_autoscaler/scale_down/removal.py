"""Trying out the removal of a node: would all its pods find another place?"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

from holokube.cluster_autoscaler.hinting import HintingSimulator
from holokube.cluster_autoscaler.objects import pod_identity, priority_of
from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.cluster_autoscaler.pods.filters import without_tpu_requests
from holokube.cluster_autoscaler.scale_down.drain import pods_to_move
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, DrainRule, Judge
from holokube.cluster_autoscaler.scale_down.known_moves import KnownMoves, NodePods, pods_of
from holokube.cluster_autoscaler.scale_down.light_removal import LightRemovals
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import HomelessPod, NodeToRemove, Unremovable
from holokube.cluster_autoscaler.scale_down.standing_moves import StandingMoves, Stood
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.taints import to_be_deleted, with_taint
from holokube.kube.types import JsonObject

NO_DESTINATION = "node(s) were no destination, being removed or not there yet"


class RemovalSimulator:
    """Remembers where pods went, so that the next turn looks there first."""

    def __init__(self, rules: tuple[DrainRule, ...]) -> None:
        self._judge = Judge(rules)
        self._moves = KnownMoves(self._judge)
        self._placing = HintingSimulator()
        self._light: LightRemovals | None = None
        self._saw_guests = False
        self._standing: StandingMoves | None = None
        """What is known of the last round, as long as this one tries nothing else."""
        self._tried: dict[str, tuple[NodeToRemove, NodePods]] = {}
        """What was found in this round, as far as everything was counted."""
        self._snapshot: ClusterSnapshot | None = None
        """That of the last round: classes of pods are those of one snapshot."""
        self._has_begun = self._may_stand = False

    def settled_on(self) -> Set[ControllerKey] | None:
        """The controllers of all pods that were moved, if each of them went where it had gone the time before.

        Then more room makes no difference to the next time, nor does anything that happens to other controllers. None
        if a pod had to look for a place, or if it cannot be told.
        """
        return self._moves.controllers if self._is_settled() else None

    def room_left(self) -> dict[str, list[int]]:
        """What the nodes that pods were moved to have left after that: millicores, milli-bytes, thousandths of pods.

        To be asked where it is settled where pods go, and before the snapshot is another one.
        """
        # What stands was known without counting anything.
        if self._standing is not None and self._snapshot is not None:
            return self._standing.room_left(self._snapshot)
        return self._light.room_left() if self._light is not None else {}

    def _is_settled(self) -> bool:
        """Whether each pod that was moved in this round went where it had gone the time before."""
        return self._light is not None and not self._light.has_searched and not self._saw_guests

    def begin(self, snapshot: ClusterSnapshot, destinations: Collection[str], names: Sequence[str] = ()) -> None:
        """Nodes are tried one after the other from here on, and those that could go leave the destinations.

        ``names`` are those that will be tried, as far as there is time. The snapshot is told of what becomes of them
        when it has to know, or never, so it must be taken back afterwards.
        """
        self._standing = self._still_standing(snapshot, destinations, names) if self._may_stand else None
        self._snapshot, self._light = snapshot, LightRemovals(snapshot, destinations)
        self._moves.begin()
        self._saw_guests = False
        self._tried, self._has_begun = {}, True

    def simulate(
        self, name: str, snapshot: ClusterSnapshot, destinations: Collection[str], context: DrainContext
    ) -> NodeToRemove | Unremovable:
        """Move the pods of a node elsewhere and take the node out; if that fails, nothing has changed.

        What succeeded stays in the snapshot, so that the next node is tried on a cluster without this one.
        """
        if not snapshot.has_node(name):
            return Unremovable({"metadata": {"name": name}}, UnremovableReason.NO_NODE_INFO)
        node = snapshot.node(name)
        light = self._light
        if self._standing is not None:
            again = self._again(name, node, snapshot, context)
            if again is not None:
                return again
        if light is None or not light.has_guests(name):
            found = self._moves.of(name, snapshot, context)
        else:
            self._saw_guests = True
            pods = light.pods_on(name)
            found = pods_of(pods, pods_to_move(pods, self._judge, context), snapshot)
        moves = found.moves
        if moves.blocking_pod is not None:
            return Unremovable(node, UnremovableReason.BLOCKED_BY_POD, blocking_pod=moves.blocking_pod)
        if light is not None:
            if light.are_plain(found.kinds) and light.remove(name, found.groups, self._placing.hints):
                result = NodeToRemove(node, moves.pods, moves.daemon_set_pods, moves.on_completion_pods)
                self._tried[name] = result, found
                return result
            light.catch_up()
            self._light = None
        if moves.pods:
            snapshot.fork()
            homeless = self._move(node, moves.pods, snapshot, destinations, context.now_s)
            if homeless is not None:
                snapshot.rollback()
                return Unremovable(node, UnremovableReason.NO_PLACE_TO_MOVE_PODS, homeless_pod=homeless)
            snapshot.commit()
        snapshot.remove_node(name)
        return NodeToRemove(node, moves.pods, moves.daemon_set_pods, moves.on_completion_pods)

    def drop_old_hints(self) -> None:
        """Forget where pods went that were not tried since this was last called."""
        self._placing.drop_old_hints()
        self._moves.drop_old()
        self._may_stand, self._has_begun = self._has_begun and self._is_settled(), False

    def _still_standing(
        self, snapshot: ClusterSnapshot, destinations: Collection[str], names: Sequence[str]
    ) -> StandingMoves | None:
        """What was found in the last round, if it holds, and if it is all that this one needs."""
        if snapshot is not self._snapshot or not names or not all(name in self._tried for name in names):
            return None
        if self._standing is not None:
            standing = self._standing.of(names, snapshot)
        else:
            assert self._light is not None, "that round was counted"
            wanted = frozenset(names)
            standing = StandingMoves({
                name: Stood(*self._tried[name], placed, {facts.identity: went_to for facts, went_to in placed})
                for name, placed in self._light.removed() if name in wanted
            }, snapshot)
        return standing if standing.hold(snapshot, destinations) else None

    def _again(
        self, name: str, node: JsonObject, snapshot: ClusterSnapshot, context: DrainContext
    ) -> NodeToRemove | None:
        """What was found about a node that stands; None if it does not, and then nobody stands any more."""
        standing = self._standing
        assert standing is not None, "somebody stands"
        stood = standing.again(name, node, self._moves.of(name, snapshot, context))
        if stood is not None:
            self._placing.hints.update(stood.went)
            self._tried[name] = stood.result, stood.pods
            return stood.result
        # From here on it is counted what becomes of pods, first of those that are known to go where they went.
        self._standing = None
        light, hints = self._light, self._placing.hints
        assert light is not None, "nothing but counting has happened so far"
        for tried, (_, pods) in self._tried.items():
            if not (light.are_plain(pods.kinds) and light.remove(tried, pods.groups, hints)):
                raise AssertionError(f"the pods of {tried} do not go where they went")
        return None

    def _move(
        self,
        node: JsonObject,
        pods: Sequence[JsonObject],
        snapshot: ClusterSnapshot,
        destinations: Collection[str],
        now_s: float,
    ) -> HomelessPod | None:
        """Find places for pods; the one that found none, if any."""
        name = node["metadata"]["name"]
        for pod in snapshot.pods_on(name):
            snapshot.remove_pod(pod, name)
        # The node stays as a ghost that takes no pods: while it is drained it is still a domain that topology spread
        # counts, and a simulation without it would be too hopeful.
        snapshot.replace_node(with_taint(node, to_be_deleted(now_s)))

        pods = without_tpu_requests(pods)

        def allowed(destination: str) -> bool:
            return destination != name and destination in destinations

        placed, _ = self._placing.schedule(snapshot, pods, allowed=allowed, break_on_failure=True)
        if len(placed) == len(pods):
            return None
        moved = {pod_identity(status.pod) for status in placed}
        # Pods were tried in the order of their priority until one found no place.
        in_order = sorted(pods, key=lambda pod: -(priority_of(pod) or 0))
        homeless = next(pod for pod in in_order if pod_identity(pod) not in moved)
        return HomelessPod(homeless, _refusals(homeless, name, snapshot, destinations))


def _refusals(
    pod: JsonObject, ghost: str, snapshot: ClusterSnapshot, destinations: Collection[str]
) -> dict[str, int]:
    """How many nodes besides the one that goes refuse a pod, by reason."""
    state, cls = snapshot.state, snapshot.class_of(pod)
    reasons = dict(state.explain(cls))
    for reason in state.why(cls, snapshot.row(ghost)):
        reasons[reason] -= 1
    could = {state.name_of(row) for row in state.feasible(cls).nonzero()[0].tolist()} - {ghost}
    elsewhere = sum(name not in destinations for name in could)
    if elsewhere:
        reasons[NO_DESTINATION] = elsewhere
    return {reason: count for reason, count in reasons.items() if count > 0}
