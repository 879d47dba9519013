"""Verdicts per class, remembered and brought up to date by what changed since.

Filters that look at one node at a time are asked again only about rows that changed. Filters that look at the
whole cluster are asked again when their stamp moves, and then about all rows at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.taints import Toleration
from holokube.packing.arrays import ALL, BoolArray, RowArray, Rows, true_for
from holokube.packing.counters import AffinityMatcher, Counter, PodMatcher, SpreadMatcher, Tally
from holokube.packing.filters.node_affinity import OUTSIDE, outside_named_nodes
from holokube.packing.filters.node_resources_fit import NodeResourcesFit
from holokube.packing.filters.protocol import Filter, Scope
from holokube.packing.podclass import PodClass
from holokube.packing.volumes import VolumePlan

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState

# Selectors of services come and go while a class lives; what nobody asks for any more must not pile up.
_MOST_TALLIES: Final = 256
_NO_ROWS: Final[list[int]] = []
_NODE, _USAGE, _CLUSTER = Scope.NODE, Scope.USAGE, Scope.CLUSTER
_FEW_ROWS: Final = 12
"""Up to here rows are looked at one by one."""


@dataclass(slots=True)
class Plan:
    """The tallies that a class's own constraints read, in the order of the constraints."""

    spread: list[Tally]
    affinity: list[Tally]
    anti_affinity: list[Tally]


@dataclass(slots=True)
class Diagnosis:
    """Why a class cannot go where it cannot go."""

    refusal: str
    """Why no node was even looked at; shown to users without a count. Empty if nodes were."""
    reasons: dict[str, int]
    """How many nodes each reason holds for; one node may have several."""
    plugins: set[str]
    """The filters that refused."""
    resolvable: BoolArray
    """Rows that could take a pod of the class if pods left them: candidates for preemption."""


class Verdict:
    """What is remembered about one class."""

    __slots__ = (
        "against", "against_at", "amounts", "answer", "base", "counters", "is_by_row", "node_at", "node_ok", "plan",
        "rules", "rules_at", "stamp", "tallies", "usage_at", "volume_plan", "volumes_at",
    )  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rules: dict[Scope, list[Filter]] = {}
        self.amounts: list[tuple[int, int]] | None = None
        """The columns and amounts that decide about the room on a node, if nothing but requests does."""
        self.is_by_row = False
        """Whether nothing but the one-node-at-a-time part decides."""
        self.node_at = self.usage_at = self.against_at = self.volumes_at = self.rules_at = -1
        self.node_ok: BoolArray = np.zeros(0, dtype=np.bool_)
        self.base: BoolArray = self.node_ok
        self.answer: BoolArray = self.node_ok
        self.stamp: Hashable = None
        self.tallies: OrderedDict[Hashable, Tally] = OrderedDict()
        self.counters: OrderedDict[PodMatcher, Counter] = OrderedDict()
        """What was asked for besides the plan, for scores; what was not for the longest time comes first."""
        self.against: list[Tally] = []
        self.volume_plan = VolumePlan()


class Feasibility:
    """The verdicts of a state; the least recently used are forgotten."""

    def __init__(self, state: ClusterState, filters: tuple[Filter, ...], remember: int) -> None:
        self._state = state
        self._filters = filters
        self._remember = remember
        self._verdicts: OrderedDict[PodClass, Verdict] = OrderedDict()
        self._by_scope = {scope: [f for f in filters if f.scope is scope] for scope in Scope}

    def verdict(self, cls: PodClass) -> Verdict:
        """What is remembered about a class, not brought up to date."""
        verdict = self._verdicts.get(cls)
        if verdict is None:
            verdict = self._verdicts[cls] = Verdict(self._make_plan(cls))
            if len(self._verdicts) > self._remember:
                _, oldest = self._verdicts.popitem(last=False)
                plan, counters = oldest.plan, self._state.counters
                counters.release((*plan.spread, *plan.affinity, *plan.anti_affinity, *oldest.tallies.values()))
                counters.release_counters(oldest.counters.values())
        else:
            self._verdicts.move_to_end(cls)
        return verdict

    def _make_plan(self, cls: PodClass) -> Plan:
        acquire = self._state.counters.acquire
        keys = frozenset(constraint.topology_key for constraint in cls.spread)
        return Plan(
            spread=[
                acquire(
                    SpreadMatcher(cls.namespace, constraint.selector),
                    constraint.topology_key,
                    keys=keys,
                    affinity=cls.node_affinity if constraint.honor_affinity else None,
                    tolerations=cls.tolerations if constraint.honor_taints else None,
                )
                for constraint in cls.spread
            ],
            affinity=[acquire(AffinityMatcher(cls.affinity), term.topology_key) for term in cls.affinity],
            anti_affinity=[acquire(AffinityMatcher((term,)), term.topology_key) for term in cls.anti_affinity],
        )

    def tally(
        self,
        cls: PodClass,
        matcher: PodMatcher,
        key: str,
        *,
        keys: frozenset[str] = frozenset(),
        affinity: RequiredNodeAffinity | None = None,
        tolerations: tuple[Toleration, ...] | None = None,
    ) -> Tally:
        """A tally that lives as long as the class is remembered."""
        tallies, counters = self.verdict(cls).tallies, self._state.counters
        question = (matcher, key, keys, affinity, tolerations)
        found = tallies.get(question)
        if found is None:
            if len(tallies) >= _MOST_TALLIES:
                counters.release((tallies.popitem(last=False)[1],))
            found = tallies[question] = counters.acquire(
                matcher, key, keys=keys, affinity=affinity, tolerations=tolerations
            )
        else:
            tallies.move_to_end(question)
        return found

    def counter(self, cls: PodClass, matcher: PodMatcher) -> Counter:
        """A counter that lives as long as the class is remembered."""
        kept, counters = self.verdict(cls).counters, self._state.counters
        found = kept.get(matcher)
        if found is None:
            if len(kept) >= _MOST_TALLIES:
                counters.release_counters((kept.popitem(last=False)[1],))
            found = kept[matcher] = counters.acquire_counter(matcher)
        else:
            kept.move_to_end(matcher)
        return found

    def against(self, cls: PodClass) -> list[Tally]:
        """The tallies of the anti-affinity of present pods against a class."""
        verdict, counters = self.verdict(cls), self._state.counters
        if verdict.against_at != counters.holders_epoch:
            verdict.against_at = counters.holders_epoch
            verdict.against = counters.holders_against(cls)
        return verdict.against

    def volume_plan(self, cls: PodClass) -> VolumePlan:
        """What the claims of a class demand at present."""
        verdict, volumes = self.verdict(cls), self._state.volumes
        if verdict.volumes_at != volumes.version:
            verdict.volumes_at = volumes.version
            verdict.volume_plan = volumes.plan(cls)
        return verdict.volume_plan

    def mask(self, cls: PodClass) -> BoolArray:
        """Where a pod of the class may go: a read-only array over all rows."""
        state, verdict = self._state, self._verdicts.get(cls)
        if verdict is None:
            verdict = self.verdict(cls)
        else:
            self._verdicts.move_to_end(cls)
        has_other_rules = verdict.rules_at != state.counters.holders_epoch
        if has_other_rules:
            self._choose_rules(verdict, cls)
        is_late = verdict.usage_at != state.usage_journal.end or verdict.node_at != state.node_journal.end
        changed = is_late and self._refresh_rows(verdict, cls)
        if verdict.is_by_row:
            if changed or has_other_rules:
                verdict.answer = verdict.base.view()
                verdict.answer.flags.writeable = False
            return verdict.answer
        concerned = verdict.rules[_CLUSTER]
        stamp = tuple((f.name, f.stamp(self._state, cls)) for f in concerned)
        refused = bool(self.refusal(cls)[1])
        whole = (stamp, refused)
        if not changed and whole == verdict.stamp:
            return verdict.answer
        verdict.stamp = whole
        if refused:
            mask = np.zeros_like(verdict.base)
        elif concerned:
            mask = verdict.base.copy()
            for rule in concerned:
                mask &= rule.mask(self._state, cls, ALL)
        else:
            mask = verdict.base
        verdict.answer = mask.view()
        verdict.answer.flags.writeable = False
        return verdict.answer

    def _choose_rules(self, verdict: Verdict, cls: PodClass) -> None:
        state = self._state
        verdict.rules_at = state.counters.holders_epoch
        for scope, rules in self._by_scope.items():
            verdict.rules[scope] = [rule for rule in rules if rule.concerns(state, cls)]
        verdict.amounts = self._amounts(verdict, cls)
        verdict.is_by_row = not (verdict.rules[_CLUSTER] or _may_be_refused(cls))
        verdict.stamp = None

    def _refresh_rows(self, verdict: Verdict, cls: PodClass) -> bool:
        """Bring the one-node-at-a-time part up to date; whether anything had to be looked at."""
        state = self._state
        if verdict.amounts is not None and len(verdict.base) == state.nodes.capacity:
            nodes_end, usage = state.node_journal.end, state.usage_journal
            are_nodes_same = nodes_end == verdict.node_at
            if are_nodes_same and usage.end - verdict.usage_at == 1:
                # One pod came or went: mostly the one before, if there are several to be placed.
                verdict.usage_at = usage.end
                return self._refresh_few(verdict, verdict.amounts, (usage.latest,))
            few_nodes = _NO_ROWS if are_nodes_same else state.node_journal.few_since(verdict.node_at, _FEW_ROWS)
            few = usage.few_since(verdict.usage_at, _FEW_ROWS)
            if few_nodes is not None and few is not None:
                verdict.node_at, verdict.usage_at = nodes_end, state.usage_journal.end
                if few_nodes:
                    changed = np.array(few_nodes, dtype=np.intp)
                    allowed = self._all_of(verdict.rules[_NODE], cls, changed) & state.nodes.present[changed]
                    verdict.node_ok[changed] = allowed
                    few = sorted({*few_nodes, *few})
                return bool(few) and self._refresh_few(verdict, verdict.amounts, few)
        node_rows = state.node_journal.since(verdict.node_at) if verdict.node_at >= 0 else None
        usage_rows = state.usage_journal.since(verdict.usage_at) if verdict.usage_at >= 0 else None
        verdict.node_at, verdict.usage_at = state.node_journal.end, state.usage_journal.end
        if node_rows is None or usage_rows is None or len(verdict.base) != state.nodes.capacity:
            verdict.node_ok = self._all_of(verdict.rules[_NODE], cls, ALL) & state.nodes.present
            verdict.base = verdict.node_ok & self._all_of(verdict.rules[_USAGE], cls, ALL)
            return True
        if len(node_rows):
            present = state.nodes.present[node_rows]
            verdict.node_ok[node_rows] = self._all_of(verdict.rules[_NODE], cls, node_rows) & present
            usage_rows = np.union1d(node_rows, usage_rows)
        if len(usage_rows):
            after = verdict.node_ok[usage_rows] & self._all_of(verdict.rules[_USAGE], cls, usage_rows)
            if (verdict.base[usage_rows] == after).all():
                return False
            # An array that was handed out keeps saying what it said.
            verdict.base = verdict.base.copy()
            verdict.base[usage_rows] = after
            return True
        return False

    def _amounts(self, verdict: Verdict, cls: PodClass) -> list[tuple[int, int]] | None:
        rules = verdict.rules[_USAGE]
        if cls.sizes is not None or len(rules) != 1 or not isinstance(rules[0], NodeResourcesFit):
            return None
        columns, amounts = self._state.request_arrays(cls)
        return list(zip(columns.tolist(), amounts.tolist(), strict=True))

    def _refresh_few(self, verdict: Verdict, amounts: list[tuple[int, int]], rows: Sequence[int]) -> bool:
        """The same for the room on a few rows: one by one, which is quicker than by arrays."""
        nodes, was, base = self._state.nodes, verdict.base, verdict.base
        offered, used = nodes.allocatable.item, nodes.used.item
        for row in rows:
            # As plain values: numpy's own take their time to be compared.
            may_go = verdict.node_ok.item(row)
            if may_go:
                for column, amount in amounts:
                    if offered(row, column) - used(row, column) < amount:
                        may_go = False
                        break
            if may_go is not was.item(row):
                if base is was:
                    # An array that was handed out keeps saying what it said.
                    base = verdict.base = was.copy()
                base[row] = may_go
        return base is not was

    def _all_of(self, rules: list[Filter], cls: PodClass, rows: Rows) -> BoolArray:
        mask = true_for(rows, self._state.nodes.capacity)
        for rule in rules:
            mask &= rule.mask(self._state, cls, rows)
        return mask

    def recompute(self, cls: PodClass) -> BoolArray:
        """The same as :meth:`mask` without using anything remembered about rows."""
        mask = self._state.nodes.present.copy()
        if self.refusal(cls)[1]:
            mask[:] = False
        for rule in self._filters:
            if rule.concerns(self._state, cls):
                mask &= rule.mask(self._state, cls, ALL)
        return mask

    def refusal(self, cls: PodClass) -> tuple[str, str]:
        """The filter that refuses the class as a whole, and why; empty texts if none does."""
        if cls.error:
            return "InterPodAffinity", cls.error
        if _may_be_refused(cls):
            for rule in self._filters:
                reason = rule.refusal(self._state, cls)
                if reason:
                    return rule.name, reason
        return "", ""

    def why(self, cls: PodClass, row: int) -> tuple[str, ...]:
        """The reasons of the first filter that refuses one row."""
        refusal = self.refusal(cls)[1]
        if refusal:
            return (refusal,)
        outside = outside_named_nodes(self._state, cls)
        if outside is not None and outside[row]:
            return (OUTSIDE,)
        for rule in self._filters:
            if rule.concerns(self._state, cls):
                found = rule.findings(self._state, cls, np.array([row]))
                reasons = tuple(finding.reason for finding in found if finding.hit[0])
                if reasons:
                    return reasons
        return ()

    def diagnose(self, cls: PodClass) -> Diagnosis:
        """Why the class cannot go to each node that it cannot go to."""
        nodes = self._state.nodes
        left = nodes.present.copy()
        resolvable = np.zeros(len(left), dtype=np.bool_)
        plugin, refusal = self.refusal(cls)
        if refusal:
            return Diagnosis(refusal, {refusal: int(left.sum())} if left.any() else {}, {plugin}, resolvable)
        reasons: dict[str, int] = {}
        plugins: set[str] = set()
        outside = outside_named_nodes(self._state, cls)
        if outside is not None and any(rule.name == "NodeAffinity" for rule in self._filters):
            if outside.any():
                reasons[OUTSIDE] = int(outside.sum())
                plugins.add("NodeAffinity")
            left &= ~outside
        self.mask(cls)
        # Nodes that as such do not stand against the class need not be asked as such: mostly all of them.
        doubtful: RowArray = (nodes.present > self.verdict(cls).node_ok).nonzero()[0]
        for rule in self._filters:
            is_of_node = rule.scope is _NODE
            if (is_of_node and not len(doubtful)) or not rule.concerns(self._state, cls):
                continue
            rows: RowArray = doubtful[left[doubtful]] if is_of_node else left.nonzero()[0]
            refused, helped = self._count(rule, cls, rows, reasons)
            if np.count_nonzero(refused):
                plugins.add(rule.name)
                left[rows[refused]] = False
                resolvable[rows[helped]] = True
        return Diagnosis("", reasons, plugins, resolvable)

    def _count(
        self, rule: Filter, cls: PodClass, rows: RowArray, reasons: dict[str, int]
    ) -> tuple[BoolArray, BoolArray]:
        refused = np.zeros(len(rows), dtype=np.bool_)
        hopeless = refused.copy()
        for finding in rule.findings(self._state, cls, rows):
            hits = int(np.count_nonzero(finding.hit))
            if hits:
                reasons[finding.reason] = reasons.get(finding.reason, 0) + hits
                refused |= finding.hit
                hopeless |= finding.hit & finding.unresolvable
        return refused, refused & ~hopeless


def _may_be_refused(cls: PodClass) -> bool:
    """Whether a filter could refuse the class as a whole."""
    return bool(cls.error or cls.claims or cls.node_affinity.affinity is not None)
