"""Candidates of all methods, kept from view to view: only nodes that have changed are judged anew.

A node is a candidate or not by the objects that it is made of, by the rules (pools, types, disruption budgets of pods)
and by three things that pass: a command is being carried out for it, a pending pod is expected on it, or a pod of it is
protected for a while. The first two are looked at when the book is read; nodes with such pods are judged each time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from holokube.karpenter.api.labels import CONSOLIDATABLE, DRIFTED
from holokube.karpenter.api.node_pool import BALANCED, NodePool
from holokube.karpenter.disruption.budgets import BudgetBook, PoolBudget, PoolCount, counted_for
from holokube.karpenter.disruption.candidates import (
    CandidateRules,
    candidate_of,
    has_bounded_drain,
    is_unobstructed,
    obstructions,
)
from holokube.karpenter.disruption.types import (
    UNTOLD,
    Blocker,
    Candidate,
    DisruptionClass,
    Method,
    Notice,
    NoticeKind,
    Obstruction,
    Picky,
    Reason,
)
from holokube.karpenter.scheduling.node_list import differences
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from holokube.pricing.instance_types import InstanceType

PassesOver = Callable[[StateNode, NodePool], bool]
_OF_METHODS: Final = frozenset({CONSOLIDATABLE, DRIFTED})
"""Conditions of claims that methods go by, and that neither stand against a node nor count in budgets."""
_BEFORE_NOMINATION: Final = frozenset({
    Blocker.NOT_MANAGED, Blocker.NO_NODE, Blocker.REBOOTING, Blocker.DELETING, Blocker.NOT_INITIALIZED,
    Blocker.NOT_REGISTERED,
})  # fmt: skip
_NOMINATED: Final = Obstruction(Blocker.NOMINATED, "Node is nominated for a pending pod")
_QUEUED: Final = Obstruction(Blocker.QUEUED, "Candidate is already being disrupted")
_SERIAL: Final = attrgetter("serial")
# Members of an enumeration take several times as long to be found as other names do.
_GRACEFUL: Final = DisruptionClass.GRACEFUL
_IS_QUEUED: Final = Blocker.QUEUED
_IS_NOMINATED: Final = Blocker.NOMINATED
_BLOCKED: Final = NoticeKind.BLOCKED


class _Record:
    """What is known of one node."""

    __slots__ = ("_candidate", "_passed_over", "_rules", "counted", "first", "is_timed", "judges", "node")

    def __init__(self, node: StateNode, rules: CandidateRules, before: _Record | None = None) -> None:
        """``before`` is what was known of the same instance under the same rules, before something changed."""
        self.node = node
        self._rules = rules
        self._candidate: Candidate | None = None
        self.counted: tuple[str, bool] | None
        """The pool that it counts for in budgets, and whether as one that is being disrupted."""
        self._passed_over: dict[PassesOver, bool]
        """By rule: whether methods that go by it have nothing to do with the node."""
        self.judges: list[_Chosen] | None
        """Those that consider it, whatever its pods are, if nothing stands against it; None if nobody was asked."""
        guards, is_clear = node.guards, False
        if before is not None and _stand_alike(before.node, node):
            if before.node.claim_states == node.claim_states:
                self._passed_over = before._passed_over  # noqa: SLF001 - of the same class
                self.judges = before.judges
            else:
                self._passed_over, self.judges = {}, None
            self.counted = before.counted
            # Nothing stood against the node itself, and pods have no say.
            is_clear = before.first is None and not guards and not rules.limits.essence
        else:
            self.counted, self._passed_over, self.judges = counted_for(node), {}, None
        self.first: Obstruction | None = None
        """The first reason against it, nominations aside."""
        if not is_clear and not is_unobstructed(node, rules):
            for one in obstructions(node, rules, _GRACEFUL):
                if one.blocker is not _IS_NOMINATED:
                    self.first = one
                    break
        self.is_timed = any(guard != "true" for guard in guards) if guards else False

    def obstruction(self, disruption_class: DisruptionClass) -> Obstruction | None:
        """The first reason against it that holds for a class of disruption, nominations aside."""
        first = self.first
        if first is None or disruption_class is _GRACEFUL or not first.is_pod_blocker:
            return first
        # Pods come last, so where they have no say nothing else stands against the node.
        assert self.node.node_claim is not None
        return None if has_bounded_drain(self.node.node_claim) else first

    @property
    def candidate(self) -> Candidate:
        """The node as a candidate."""
        if self._candidate is None:
            self._candidate = candidate_of(self.node, self._rules)
        return self._candidate

    def is_passed_over(self, rule: PassesOver) -> bool:
        """Whether methods that go by a rule have nothing to do with it, whatever its pods are."""
        found = self._passed_over.get(rule)
        if found is None:
            labels = self.node.labels
            pool = self._rules.pools[labels[NODEPOOL_LABEL]]
            known = self._rules.types_of_pool[pool.name]
            found = labels.get(INSTANCE_TYPE_LABEL, "") in known and rule(self.node, pool)
            self._passed_over[rule] = found
        return found


def _stand_alike(one: StateNode, other: StateNode) -> bool:
    """Whether two states of a node differ in nothing, pods aside, that obstructions and counts go by.

    Claims are written whenever pods come or go. Once the Node has come up and speaks for both, only conditions and the
    end of a claim matter. Some conditions matter to methods alone.
    """
    if one.node is not other.node or one.is_marked != other.is_marked:
        return False
    if one.node_claim is other.node_claim:
        return True
    if one.node is None or one.node_claim is None or other.node_claim is None:
        return False
    if not one.is_initialized or not one.is_registered:
        return False
    before, after = one.claim_states, other.claim_states
    return (before == after or before ^ after <= _OF_METHODS) and one.is_deleted == other.is_deleted


class _Entry(NamedTuple):
    """A candidate in the order of ranks; numbers keep apart those of the same rank."""

    rank: tuple[float, str]
    number: int
    candidate: Candidate


class _Judgement(NamedTuple):
    """What decides whether a method takes a node. Methods with the same judgement take the same nodes."""

    disruption_class: DisruptionClass
    obstruction: Callable[[Candidate], Obstruction | None]
    rule: PassesOver | None

    @classmethod
    def of(cls, method: Method) -> _Judgement:
        rule = method.passes_over if isinstance(method, Picky) else None
        return cls(method.disruption_class, method.obstruction, rule)


class _Chosen:
    """The nodes that methods of one judgement would take, and those that they have something to say about."""

    def __init__(self, judgement: _Judgement) -> None:
        self._class, self._obstruction, self._rule = judgement
        self.taken: dict[StateNode, _Entry] = {}
        self.ranked: list[_Entry] = []
        """The same, best first."""
        self._numbered = 0
        self.told: dict[StateNode, tuple[Candidate, Obstruction]] = {}
        self.pools: dict[str, int] = {}
        """How many of each pool are taken."""
        self._news: dict[Candidate, bool] = {}

    def news(self) -> dict[Candidate, bool]:
        """Who has come, and who has gone, since this was asked the last time."""
        news, self._news = self._news, {}
        return news

    def considers(self, record: _Record) -> bool:
        """Whether it goes by the pods of a node what they do with it."""
        if record.first is not None and record.obstruction(self._class) is not None:
            return False
        return self._rule is None or not record.is_passed_over(self._rule)

    def add(self, record: _Record) -> None:
        """One more node that they consider."""
        candidate = record.candidate
        obstruction = self._obstruction(candidate)
        if obstruction is None:
            self._numbered += 1
            entry = self.taken[record.node] = _Entry(candidate.rank, self._numbered, candidate)
            insort(self.ranked, entry)
            self.pools[candidate.pool.name] = self.pools.get(candidate.pool.name, 0) + 1
            self._news[candidate] = True
        elif obstruction.blocker not in UNTOLD:
            self.told[record.node] = candidate, obstruction

    def drop(self, node: StateNode) -> None:
        if self.told:
            self.told.pop(node, None)
        entry = self.taken.pop(node, None)
        if entry is not None:
            del self.ranked[bisect_left(self.ranked, entry)]
            candidate = entry.candidate
            self.pools[candidate.pool.name] -= 1
            if self._news.pop(candidate, None) is None:
                # Who came and went in between is no news.
                self._news[candidate] = False


class Roster:
    """The candidates that a method would take, as they come and go."""

    def __init__(self, chosen: _Chosen, excluded: Mapping[StateNode, Obstruction]) -> None:
        self.left_out = excluded
        """Nodes that cannot be taken just now, as candidates or not."""
        self.book: object = chosen
        """Whose news they are."""
        self.news = chosen.news
        """Who has come, and who has gone, since this was asked the last time; whether they are left out or not."""
        self._taken = chosen.taken

    def everyone(self) -> list[Candidate]:
        """All of them, whether they are left out or not."""
        return [entry.candidate for entry in self._taken.values()]


class CandidateBook:
    """What is known of all nodes. Bring it up to date with ``update`` before reading."""

    def __init__(self) -> None:
        self._essence: tuple[Any, ...] = ()
        self._rules: CandidateRules | None = None
        self._nodes: Sequence[StateNode] | None = None
        """Those that were looked at last."""
        self._records: dict[StateNode, _Record] = {}
        self._blocked: dict[StateNode, _Record] = {}
        self._timed: dict[StateNode, None] = {}
        self._nominated: dict[StateNode, None] = {}
        self._by_id: dict[str, StateNode] = {}
        self._counts: dict[str, list[int]] = {}
        self._budgets = BudgetBook()
        self._chosen: dict[_Judgement, _Chosen] = {}
        self._of_method: dict[str, _Chosen] = {}
        self._left: dict[str, int] = {}
        """How many candidates methods have, once it was counted."""
        self._left_of: dict[str, dict[str, int]] = {}
        """The same by pool."""
        self._excluded: dict[StateNode, Obstruction] = {}
        self._named: dict[str, tuple[Sequence[InstanceType], Mapping[str, InstanceType]]] = {}

    def by_name(self, types_of_pool: Mapping[str, Sequence[InstanceType]]) -> dict[str, Mapping[str, InstanceType]]:
        """Types by pool and name; the very same mappings until types change. Pools without types are left out."""
        for pool, types in types_of_pool.items():
            known = self._named.get(pool)
            if known is None or known[0] is not types:
                self._named[pool] = types, {one.name: one for one in types}
        return {pool: self._named[pool][1] for pool, types in types_of_pool.items() if types}

    def update(self, nodes: Sequence[StateNode], rules: CandidateRules) -> None:
        """Takes over how things are now. Nodes are told apart as objects: one that has changed is another."""
        essence = _essence(rules)
        if essence != self._essence:
            self._essence, self._nodes = essence, None
            self._drop(list(self._records))
        self._rules = rules.without_queued() if rules.queued else rules
        records = self._records
        changed, gone = differences(nodes, self._nodes, records)
        self._nodes = nodes
        before = {node.provider_id: records[node] for node in gone}
        self._drop(gone)
        if self._timed:
            again = list(self._timed)
            self._drop(again)
            for node in again:
                self._put(node)
        for node in changed:
            self._put(node, before.get(node.provider_id))
        self._excluded, self._left, self._left_of = {}, {}, {}
        for node in [*self._nominated]:
            if not node.is_nominated(rules.now_s):
                del self._nominated[node]
                continue
            first = records[node].first
            if first is None or first.blocker not in _BEFORE_NOMINATION:
                self._excluded[node] = _NOMINATED
        for one in rules.queued:
            found = self._by_id.get(one)
            if found is not None:
                self._excluded[found] = _QUEUED

    def _put(self, node: StateNode, before: _Record | None = None) -> None:
        assert self._rules is not None
        record = self._records[node] = _Record(node, self._rules, before)
        judges = record.judges
        if record.first is not None:
            self._blocked[node] = record
            judges = [one for one in self._chosen.values() if one.considers(record)]
        elif judges is None:
            judges = record.judges = [one for one in self._chosen.values() if one.considers(record)]
        if record.is_timed:
            self._timed[node] = None
        if node.nominated_until_s:
            self._nominated[node] = None
        self._by_id[node.provider_id] = node
        self._count(record, 1)
        for judge in judges:
            judge.add(record)

    def _drop(self, nodes: Iterable[StateNode]) -> None:
        for node in nodes:
            record = self._records.pop(node)
            if record.first is not None:
                del self._blocked[node]
            if record.is_timed:
                del self._timed[node]
            if self._nominated:
                self._nominated.pop(node, None)
            if self._by_id.get(node.provider_id) is node:
                del self._by_id[node.provider_id]
            self._count(record, -1)
            for judge in self._chosen.values() if record.judges is None else record.judges:
                judge.drop(node)

    def _count(self, record: _Record, sign: int) -> None:
        if record.counted is not None:
            pool, is_disrupting = record.counted
            total = self._counts.setdefault(pool, [0, 0])
            total[0] += sign
            if is_disrupting:
                total[1] += sign

    def counts(self) -> dict[str, PoolCount]:
        """The nodes of pools as budgets count them."""
        return {pool: PoolCount(total, disrupting) for pool, (total, disrupting) in self._counts.items() if total}

    def budgets(self, pools: Mapping[str, NodePool], now_s: float, reason: Reason) -> dict[str, PoolBudget]:
        """What pools allow with their nodes."""
        return self._budgets.budgets(pools, self.counts(), now_s, reason)

    def _of(self, method: Method) -> _Chosen:
        found = self._of_method.get(method.name)
        if found is None:
            judgement = _Judgement.of(method)
            found = self._chosen.get(judgement)
            if found is None:
                found = self._chosen[judgement] = _Chosen(judgement)
                for record in self._records.values():
                    record.judges = None
                    if found.considers(record):
                        found.add(record)
            self._of_method[method.name] = found
        return found

    def candidates(self, method: Method) -> list[Candidate]:
        """The candidates that a method would take, in the order of nodes."""
        return sorted(self.ranked(method), key=_node_serial)

    def ranked(self, method: Method) -> list[Candidate]:
        """The same, best first."""
        excluded = self._excluded
        if not excluded:
            return [one for _, _, one in self._of(method).ranked]
        return [one for _, _, one in self._of(method).ranked if one.node not in excluded]

    def in_rank_order(self, method: Method) -> Iterator[Candidate]:
        """The same one by one, for who does not need them all."""
        excluded = self._excluded
        return (one for _, _, one in self._of(method).ranked if one.node not in excluded)

    def first(self, method: Method, count: int) -> list[Candidate]:
        """So many of them, best first."""
        if not self._excluded:
            return [one for _, _, one in self._of(method).ranked[:count]]
        return list(islice(self.in_rank_order(method), count))

    def named_as(self, method: Method, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those that have the names of these, which were candidates before, in the order of nodes."""
        taken = self._of(method).taken
        found = []
        for one in candidates:
            node = self._by_id.get(one.node.provider_id)
            entry = taken.get(node) if node is not None else None
            if entry is None or entry.candidate.name != one.name:
                # It is none any more; another may have got its name.
                names = {candidate.name for candidate in candidates}
                found = [entry.candidate for node, entry in taken.items() if node.name in names]
                break
            found.append(entry.candidate)
        return sorted((one for one in found if one.node not in self._excluded), key=_node_serial)

    def count_by_pool(self, method: Method) -> dict[str, int]:
        """How many of each pool they are; pools without any are left out."""
        found = self._left_of.get(method.name)
        if found is None:
            chosen = self._of(method)
            counts = dict(chosen.pools)
            for node in self._excluded:
                entry = chosen.taken.get(node)
                if entry is not None:
                    counts[entry.candidate.pool.name] -= 1
            found = self._left_of[method.name] = {pool: count for pool, count in counts.items() if count}
        return found

    def roster(self, method: Method) -> Roster:
        """The same for who goes by what has changed."""
        return Roster(self._of(method), self._excluded)

    def count(self, method: Method) -> int:
        """How many that are."""
        found = self._left.get(method.name)
        if found is None:
            taken = self._of(method).taken
            found = self._left[method.name] = len(taken) - sum(map(taken.__contains__, self._excluded))
        return found

    def ruled_out(self, method: Method) -> list[tuple[Candidate, Obstruction]]:
        """Candidates that a method cannot take, and has something to say about, in the order of nodes."""
        told = self._of(method).told
        if not told:
            return []
        return [told[node] for node in sorted(told, key=_SERIAL) if node not in self._excluded]

    def scanned(
        self, disruption_class: DisruptionClass
    ) -> Iterator[tuple[Candidate | None, StateNode, Obstruction | None]]:
        """Every node: as a candidate, or with the first reason why it is none."""
        for node in sorted(self._records, key=_SERIAL):
            record = self._records[node]
            against = self._excluded.get(node) or record.obstruction(disruption_class)
            yield (record.candidate if against is None else None), node, against

    def blocked_notices(self, disruption_class: DisruptionClass) -> list[Notice]:
        """A word about every managed node that is no candidate; nothing about those being disrupted."""
        found = []
        for node in sorted({**self._blocked, **self._excluded}, key=_SERIAL):
            if node.node_claim is None:
                continue
            against = self._excluded.get(node) or self._records[node].obstruction(disruption_class)
            if against is not None and against.blocker is not _IS_QUEUED:
                found.append(Notice(_BLOCKED, against.message, node, None, against))
        return found


def _node_serial(candidate: Candidate) -> int:
    return candidate.node.serial


def _essence(rules: CandidateRules) -> tuple[Any, ...]:
    """What must be the same for a judgement to stand, besides the node and the time."""
    return (
        [(name, pool.object.get("spec"), _Same(pool) if pool.consolidation_policy == BALANCED else None)
         for name, pool in rules.pools.items()],
        [(name, _Same(types)) for name, types in rules.types_of_pool.items()],
        rules.limits.essence,
        rules.reads_deletion_cost,
    )  # fmt: skip


class _Same:
    """Compares as an object, not by what it holds; scores of Balanced pools are told about the pool as it is."""

    __slots__ = ("thing",)

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    __hash__ = None  # type: ignore[assignment]  # it is never put into a set
