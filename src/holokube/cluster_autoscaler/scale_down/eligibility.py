"""Which candidates are worth a simulation. The first reason against one is the reason that is given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple, TypeVar

from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.objects import annotations_of, name_of, node_is_ready
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from holokube.cluster_autoscaler.scale_down.utilization import UtilizationTable
from holokube.cluster_autoscaler.taints import TO_BE_DELETED, is_to_be_deleted, taint_time_s
from holokube.kube.types import JsonObject

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_T = TypeVar("_T")
DELETION_TIME_MAX_S = 300.0
"""A node that was marked for deletion longer ago was forgotten by whoever marked it."""


def is_scale_down_disabled(node: JsonObject) -> bool:
    """Whether somebody asked to leave the node alone."""
    return annotations_of(node).get(SCALE_DOWN_DISABLED) == "true"


def is_being_deleted(node: JsonObject, now_s: float) -> bool:
    """Whether the node was marked for deletion a short while ago."""
    try:
        marked_s = taint_time_s(node, TO_BE_DELETED)
    except ValueError:
        return False
    return marked_s is not None and now_s - marked_s < DELETION_TIME_MAX_S


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What became of the candidates."""

    eligible: list[str] = field(default_factory=list)
    reasons: dict[str, Unremovable] = field(default_factory=dict)
    """Why the others stay, by name."""
    utilization: dict[str, Utilization] = field(default_factory=dict)
    """Of every candidate that was looked at so closely, in no order."""

    @property
    def ineligible(self) -> list[Unremovable]:
        """The candidates that stay, in their order."""
        return list(self.reasons.values())


def filter_out_unremovable(
    candidates: Sequence[JsonObject], given: ScaleDownInput, options: AutoscalerOptions, known: UnremovableNodes
) -> Eligibility:
    """What ``EligibilityFilter`` answers the first time."""
    return EligibilityFilter(options).split(candidates, [name_of(node) for node in candidates], given, known)


class _Verdict(NamedTuple):
    mark: int | None
    group_id: str
    node: JsonObject
    stays: Unremovable | None
    used: Utilization | None
    lasts: bool
    """Whether it holds as long as the mark is the same, whatever the time."""


class _Split(NamedTuple):
    """The last answer, and what it depends on besides the nodes."""

    names: Sequence[str]
    recent: Mapping[str, Unremovable]
    group_of_node: Mapping[str, str]
    found: Eligibility


class EligibilityFilter:
    """Splits the candidates into those worth a simulation and those that stay.

    Remembers what it thought of nodes, so that a turn costs what has changed on them.
    """

    def __init__(self, options: AutoscalerOptions) -> None:
        self._options = options
        self._verdicts: dict[str, _Verdict] = {}
        self._staying: dict[str, Unremovable] = {}
        """Why candidates stay, in no order."""
        self._used: dict[str, Utilization] = {}
        """How much of candidates is used, in no order."""
        self._recently: dict[str, Unremovable] = {}
        """Those of the candidates that are not looked at yet."""
        self._settings: dict[str, GroupOptions] = {}
        self._seen_mark = 0
        self._loose: set[str] = set()
        """Nodes that have to be looked at again whatever their mark."""
        self._last: _Split | None = None

    def split(
        self, candidates: Sequence[JsonObject], names: Sequence[str], given: ScaleDownInput, known: UnremovableNodes
    ) -> Eligibility:
        """Split the candidates of a turn. ``known`` are the nodes that need not be looked at again yet.

        ``names`` are those of the candidates; the same object means the same names.
        """
        snapshot = given.snapshot
        settings = {id_: group.options for id_, group in given.groups.items()}
        if settings != self._settings:
            self._settings, self._last = settings, None
            for known_of_nodes in (self._verdicts, self._staying, self._used):
                known_of_nodes.clear()
        changed = snapshot.marked_since(self._seen_mark)
        self._seen_mark = snapshot.last_mark
        loose, self._loose = self._loose, set()
        last, recent, found = self._last, known.all_recent(), None
        dirty: Collection[str] = names
        if last is not None and changed is not None:
            regrouped = _regrouped(last.group_of_node, given.observation.group_of_node)
            dirty = loose.union(changed, snapshot.touched, regrouped)
            if last.names is names and last.recent == recent:
                found = self._patched(last, dirty, given)
        if found is None:
            found = self._split_all(candidates, names, recent, given, dirty)
        self._last = _Split(names, recent, given.observation.group_of_node, found)
        return found

    def _patched(self, last: _Split, to_do: Iterable[str], given: ScaleDownInput) -> Eligibility | None:
        """The last answer with the nodes brought up to date that may have changed; None if that is not enough."""
        before = last.found
        reasons, utilization = dict(before.reasons), dict(before.utilization)
        for name in to_do:
            if name in last.recent:
                if not given.snapshot.has_node(name):
                    return None
                if name in reasons:
                    node = given.snapshot.node(name)
                    again = _again(node, last.recent[name], self._recently.get(name))
                    reasons[name] = self._recently[name] = self._staying[name] = again
                continue
            was = self._verdicts.get(name)
            if was is None:
                # No candidate.
                continue
            if self._still_holds(was, name, given):
                continue
            node = given.snapshot.node(name) if given.snapshot.has_node(name) else was.node
            verdict = self._judge(node, given)
            if (verdict.stays is None) != (was.stays is None) or (verdict.used is None) != (was.used is None):
                return None
            if verdict.stays is not None:
                reasons[name] = verdict.stays
            if verdict.used is not None:
                utilization[name] = verdict.used
        return Eligibility(before.eligible, reasons, utilization)

    def _split_all(
        self, candidates: Sequence[JsonObject], names: Sequence[str], recent: Mapping[str, Unremovable],
        given: ScaleDownInput, dirty: Collection[str],
    ) -> Eligibility:  # fmt: skip
        """``dirty`` are the nodes of which verdicts may not hold any more."""
        verdicts, staying, used, snapshot = self._verdicts, self._staying, self._used, given.snapshot
        recently, self._recently = self._recently, {}
        listed = dict(zip(names, candidates, strict=True))
        waiting = [name for name in recent if name in listed and snapshot.has_node(name)]
        for name in [*(verdicts.keys() - listed.keys()), *recently, *waiting]:
            verdicts.pop(name, None)
            staying.pop(name, None)
            used.pop(name, None)
        for name in waiting:
            again = _again(listed[name], recent[name], recently.get(name))
            staying[name] = self._recently[name] = again
        for name in listed.keys() - verdicts.keys() - self._recently.keys():
            self._judge(listed[name], given)
        for name in dirty:
            verdict = verdicts.get(name)
            if verdict is not None and not self._still_holds(verdict, name, given):
                self._judge(listed[name], given)
        # Thousands of nodes in the order of the candidates: no loop is as quick as these.
        stay = list(filter(staying.__contains__, names))
        eligible = list(filterfalse(staying.__contains__, names)) if len(stay) < len(names) else []
        return Eligibility(eligible, dict(zip(stay, map(staying.__getitem__, stay), strict=True)), dict(used))

    def _judge(self, node: JsonObject, given: ScaleDownInput) -> _Verdict:
        name = name_of(node)
        mark, group_id = given.snapshot.mark(name), given.observation.group_of_node.get(name, "")
        verdict = self._verdicts[name] = _judge(node, mark, group_id, given, self._options)
        if mark is None or not verdict.lasts:
            self._loose.add(name)
        _keep(self._staying, name, verdict.stays)
        _keep(self._used, name, verdict.used)
        return verdict

    @staticmethod
    def _still_holds(verdict: _Verdict, name: str, given: ScaleDownInput) -> bool:
        return (
            verdict.lasts and verdict.mark is not None and verdict.mark == given.snapshot.mark(name)
            and verdict.group_id == given.observation.group_of_node.get(name, "")
        )  # fmt: skip


def _keep(by_name: dict[str, _T], name: str, found: _T | None) -> None:
    if found is None:
        by_name.pop(name, None)
    else:
        by_name[name] = found


def _regrouped(before: Mapping[str, str], now: Mapping[str, str]) -> Set[str]:
    """The nodes that are not of the group that they were of."""
    if before is now:
        return frozenset()
    return {name for name, group_id in now.items() if before.get(name) != group_id} | (before.keys() - now.keys())


def _again(node: JsonObject, earlier: Unremovable, known: Unremovable | None) -> Unremovable:
    if known is not None and known.earlier is earlier and known.node is node:
        return known
    return Unremovable(
        node, UnremovableReason.RECENTLY_UNREMOVABLE, earlier=earlier, recheck_at_s=earlier.recheck_at_s)


def _judge(
    listed: JsonObject, mark: int | None, group_id: str, given: ScaleDownInput, options: AutoscalerOptions
) -> _Verdict:
    name = name_of(listed)
    if not given.snapshot.has_node(name):
        detail = "the node is not in the snapshot"
        stays = Unremovable(listed, UnremovableReason.UNEXPECTED_ERROR, detail=detail)
        return _Verdict(mark, group_id, listed, stays, None, False)
    node = given.snapshot.node(name)
    table = UtilizationTable(
        given.snapshot.state_of(name), given.observation.now_s,
        ignore_mirror_pods=options.ignore_mirror_pods_utilization)
    has_terminating = table.has_terminating(given.snapshot.row(name))
    stays_for, used = _why_not(node, given, options, table, has_terminating=has_terminating)
    return _Verdict(mark, group_id, listed, stays_for, used, not (has_terminating or is_to_be_deleted(node)))


def _why_not(
    node: JsonObject, given: ScaleDownInput, options: AutoscalerOptions, table: UtilizationTable, *,
    has_terminating: bool,
) -> tuple[Unremovable | None, Utilization | None]:  # fmt: skip
    """Why a node is not worth a simulation, and how much it is used as far as that was looked at."""
    name = name_of(node)
    if is_being_deleted(node, given.observation.now_s):
        return Unremovable(node, UnremovableReason.CURRENTLY_BEING_DELETED), None
    if is_scale_down_disabled(node):
        return Unremovable(node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION), None
    group = given.group_of(name)
    if group is None:
        return Unremovable(node, UnremovableReason.NOT_AUTOSCALED), None
    gpu = given.gpu_config(node)
    used = table.of(
        name, ignore_daemon_sets=group.options.ignore_daemon_sets_utilization, gpu=gpu, has_terminating=has_terminating)
    if used is None:
        detail = "the node has no allocatable cpu or memory"
        return Unremovable(node, UnremovableReason.UNEXPECTED_ERROR, detail=detail), None
    if not options.scale_down_unready_enabled and not node_is_ready(node):
        return Unremovable(node, UnremovableReason.SCALE_DOWN_UNREADY_DISABLED), None
    threshold = (
        group.options.scale_down_gpu_utilization_threshold
        if gpu is not None
        else group.options.scale_down_utilization_threshold
    )
    # Exactly the threshold is still little enough.
    if used.value > threshold:
        return Unremovable(node, UnremovableReason.NOT_UNDERUTILIZED, utilization=used, threshold=threshold), used
    return None, used
