"""Which nodes are considered for removal, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.node_facts import changed_places
from holokube.cluster_autoscaler.objects import name_of, pod_key
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.priority_order import sort_as_go
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.cluster_autoscaler.scale_down.drain import Emptiness, witnessed_emptiness_of
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, DrainRule, Judge
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.kube.types import JsonObject

_PLUS_ONE: Final = bytes((value + 1) % 256 for value in range(256))
_NOT_OURS: Final = (UnremovableReason.NOT_AUTOSCALED, "")
_ORDERS_MAX: Final = 16
_NOT_EMPTY: Final = 4
_Refusal = tuple[UnremovableReason, str]


class Candidates(NamedTuple):
    """The nodes in the order in which they are simulated, and those that are not."""

    nodes: list[JsonObject]
    others: list[Unremovable]
    names: list[str]
    """Of ``nodes``; the same object as long as they are the same, in the same order."""


def find_candidates(
    given: ScaleDownInput,
    options: AutoscalerOptions,
    rules: tuple[DrainRule, ...],
    previous: Collection[str],
    delays: LocalDelays,
) -> Candidates:
    """What ``CandidateFinder`` finds the first time."""
    return CandidateFinder(options, rules, delays).find(given, previous)


class _Listed(NamedTuple):
    """The nodes that are candidates, in list order, and what that depends on."""

    all_nodes: Sequence[JsonObject]
    group_of_node: Mapping[str, str]
    refusals: Mapping[str, _Refusal | None]
    nodes: list[JsonObject]
    names: list[str]
    index_of: dict[str, int]
    others: list[Unremovable]


def _renewed(known: _Listed, nodes: Sequence[JsonObject]) -> _Listed | None:
    """What was listed with nodes in their new form; None if there are others, or one that is no candidate."""
    if known.all_nodes is nodes:
        return known
    places = changed_places(known.all_nodes, nodes)
    if places is None:
        return None
    renewed = list(known.nodes)
    for place in places:
        index = known.index_of.get(name_of(nodes[place]))
        if index is None:
            return None
        renewed[index] = nodes[place]
    return known._replace(all_nodes=nodes, nodes=renewed)


class CandidateFinder:
    """Finds the nodes of groups above their minimum size, best candidates first.

    Empty nodes cost nobody anything, so they come first; among equals those that were unneeded in the turn before,
    since they are nearer to their removal; then the order of the list, as far as Go's sort keeps it. What was found
    is remembered: a turn costs what has changed on nodes, and is given the same lists where nothing has.
    """

    def __init__(self, options: AutoscalerOptions, rules: tuple[DrainRule, ...], delays: LocalDelays) -> None:
        self._options = options
        self._judge = Judge(rules)
        self._delays = delays
        self._listed: _Listed | None = None
        self._known: dict[str, tuple[int, int]] = {}
        """The mark and the rank of nodes, as far as time does not change it."""
        self._witnesses: dict[str, tuple[str, JsonObject]] = {}
        """Pods, by key and as objects, for each of which its node is not empty whatever else becomes of it."""
        self._ranked: dict[str, int] = {}
        """The ranks of all nodes of the list."""
        self._ranks = bytearray()
        """The same in the order of the list."""
        self._seen_mark = 0
        self._loose: set[str] = set()
        """Nodes that have to be looked at again whatever their mark."""
        self._orders: dict[bytes, list[int]] = {}
        self._sorted: tuple[_Listed, bytes, Candidates, list[int]] | None = None

    def find(self, given: ScaleDownInput, previous: Collection[str]) -> Candidates:
        """The candidates of a turn; ``previous`` are the nodes that were unneeded in the turn before."""
        listed = self._list(given)
        self._rank(given, listed)
        ranks = self._ranks.translate(_PLUS_ONE)
        for name in previous:
            index = listed.index_of.get(name)
            if index is not None:
                ranks[index] -= 1
        names, nodes, known = listed.names, listed.nodes, self._sorted
        if known is not None and known[0].names is names and known[1] == ranks:
            if known[0] is listed:
                return known[2]
            in_order = known[2].names
            order = known[3]
        else:
            order = self._order(bytes(ranks))
            in_order = [names[i] for i in order]
        found = Candidates([nodes[i] for i in order], listed.others, in_order)
        self._sorted = listed, bytes(ranks), found, order
        return found

    def _list(self, given: ScaleDownInput) -> _Listed:
        observation = given.observation
        refusals = {id_: self._refusal(group, observation.now_s) for id_, group in given.groups.items()}
        known = self._listed
        if (
            known is not None and known.group_of_node is observation.group_of_node and known.refusals == refusals
            and (renewed := _renewed(known, observation.nodes)) is not None
        ):  # fmt: skip
            self._listed = renewed
            return renewed
        nodes: list[JsonObject] = list(observation.nodes)
        names: list[str] = [node["metadata"]["name"] for node in nodes]
        others: list[Unremovable] = []
        found = [refusals.get(group_id or "", _NOT_OURS) for group_id in map(observation.group_of_node.get, names)]
        if found.count(None) < len(found):
            others = [
                Unremovable(node, refusal[0], detail=refusal[1])
                for node, refusal in zip(nodes, found, strict=True) if refusal is not None
            ]
            nodes = [node for node, refusal in zip(nodes, found, strict=True) if refusal is None]
            names = [name for name, refusal in zip(names, found, strict=True) if refusal is None]
        index_of = dict(zip(names, range(len(names)), strict=True))
        self._listed = None
        return _Listed(observation.nodes, observation.group_of_node, refusals, nodes, names, index_of, others)

    def _refusal(self, group: GroupView, now_s: float) -> _Refusal | None:
        """Why no node of a group is a candidate; None if they are."""
        if group.target_size is None:
            return UnremovableReason.UNEXPECTED_ERROR, f"the size of group {group.id} is unknown"
        if group.target_size <= group.min_size:
            detail = f"group {group.id} has {group.target_size} nodes, at least {group.min_size} have to stay"
            return UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail
        if self._options.scale_down_delay_type_local:
            waits = self._delays.reason(group.id, self._options, now_s)
            if waits is not None:
                return UnremovableReason.NOT_UNNEEDED_OTHER_REASON, waits
        return None

    def _rank(self, given: ScaleDownInput, listed: _Listed) -> None:
        """Bring the ranks up to date: those of nodes that have changed, or all if it is another list."""
        snapshot, ranked = given.snapshot, self._ranked
        changed = snapshot.marked_since(self._seen_mark)
        self._seen_mark = snapshot.last_mark
        is_new = listed is not self._listed
        if changed is None:
            ranked.clear()
            self._witnesses.clear()
        to_do = self._loose.union(changed or (), snapshot.touched)
        self._loose = set()
        if is_new or changed is None:
            for name in ranked.keys() - listed.index_of.keys():
                del ranked[name]
                self._known.pop(name, None)
                self._witnesses.pop(name, None)
            to_do |= listed.index_of.keys() - ranked.keys()
        # Budgets and controllers are not asked here: a node is empty or it is not.
        context = DrainContext(given.observation.now_s, self._options)
        for name in to_do:
            index = listed.index_of.get(name)
            if index is not None:
                ranked[name] = rank = self._rank_of(name, given, context)
                if not is_new:
                    self._ranks[index] = rank
        if is_new:
            self._listed, self._ranks = listed, bytearray(map(ranked.__getitem__, listed.names))

    def _rank_of(self, name: str, given: ScaleDownInput, context: DrainContext) -> int:
        snapshot = given.snapshot
        mark = snapshot.mark(name)
        known = self._known.get(name)
        if known is not None and known[0] == mark:
            return known[1]
        emptiness, lasts, witness = Emptiness(False), False, None
        if snapshot.has_node(name):
            seen = self._witnesses.get(name)
            if seen is not None and snapshot.has_loaded(*seen, name):
                # That pod is there in truth, so whatever this turn has put beside it makes no difference.
                if mark is not None:
                    self._known[name] = mark, _NOT_EMPTY
                return _NOT_EMPTY
            emptiness, lasts, witness = witnessed_emptiness_of(snapshot.pods_on(name), self._judge, context)
        if mark is not None and witness is not None:
            self._witnesses[name] = pod_key(witness), witness
        rank = _NOT_EMPTY * (not emptiness.is_empty) + 2 * emptiness.has_on_completion_pods
        if mark is not None and lasts:
            self._known[name] = mark, rank
        else:
            self._loose.add(name)
        return rank

    def _order(self, ranks: bytes) -> list[int]:
        """Where in the list the nodes stand that come first, second and so on."""
        found = self._orders.get(ranks)
        if found is None:
            if len(self._orders) >= _ORDERS_MAX:
                del self._orders[next(iter(self._orders))]
            found = self._orders[ranks] = sort_as_go(range(len(ranks)), ranks.__getitem__)
        return found
