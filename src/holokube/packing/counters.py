"""How many pods of a kind are where: per node, and per domain of a topology.

A :class:`Counter` counts pods on nodes, either those that some selector means, or those that carry some
anti-affinity term. A :class:`Tally` sums a counter over the domains of one label. Both are kept up to date as
pods and nodes come and go, each change costing as much as it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np

from holokube.kube.affinity import PodAffinityTerm, RequiredNodeAffinity
from holokube.kube.selectors import LabelSelector
from holokube.kube.taints import Toleration
from holokube.packing.arrays import ALL, BoolArray, IntArray, Rows, grown
from holokube.packing.labels import LabelColumn
from holokube.packing.nodes import NodeTable
from holokube.packing.podclass import PodClass

NamespaceLabels = Mapping[str, Mapping[str, str]]

_K = TypeVar("_K", bound=Hashable)
_LabelKey = tuple[str, tuple[str | None, ...]]
"""A namespace, and the values of the labels that somebody asks for."""
_REMEMBERED_PULLS: Final = 4096


class PodMatcher(Protocol):
    """Which pods a counter counts. Equal matchers share a counter, so they are hashable."""

    @property
    def counts_terminating(self) -> bool:
        """Whether pods on their way out count as well."""

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The labels of pods that it looks at: those that agree in them are alike to it."""

    def matches(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """Whether a pod of that namespace with these labels is meant."""


@dataclass(frozen=True, slots=True)
class SpreadMatcher:
    """The pods that a spread constraint evens out: of one namespace, and not on their way out."""

    namespace: str
    selector: LabelSelector
    counts_terminating: bool = False

    @property
    def label_keys(self) -> tuple[str, ...]:
        """See :class:`PodMatcher`."""
        return tuple([requirement.key for requirement in self.selector.requirements])

    def matches(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """See :class:`PodMatcher`. An empty selector counts nobody: upstream treats it so."""
        del namespaces
        return namespace == self.namespace and not self.selector.is_empty and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class AffinityMatcher:
    """The pods that all of some affinity terms mean."""

    terms: tuple[PodAffinityTerm, ...]
    counts_terminating: bool = True

    @property
    def label_keys(self) -> tuple[str, ...]:
        """See :class:`PodMatcher`."""
        return tuple([requirement.key for term in self.terms for requirement in term.selector.requirements])

    def matches(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """See :class:`PodMatcher`."""
        return all(term_means(term, namespace, labels, namespaces) for term in self.terms)


def term_means(
    term: PodAffinityTerm, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels
) -> bool:
    """Whether a term of a new pod means a pod that is there.

    Upstream turns the namespace selector into a list of the namespaces it knows, and then, because it changes
    a copy of the term, asks the selector once more about a namespace without labels: one that only excludes
    (``NotIn``, ``DoesNotExist``) picks every namespace. Placements follow from this, so it is kept.
    """
    known = namespaces.get(namespace)
    if known is not None and term.matches(namespace, labels, known):
        return True
    return term.matches(namespace, labels, None)


class Eligibility:
    """Which nodes a spread constraint looks at; shared by constraints that look at the same ones."""

    __slots__ = ("affinity", "keys", "mask", "tolerations")

    def __init__(
        self,
        nodes: NodeTable,
        keys: frozenset[str],
        affinity: RequiredNodeAffinity | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> None:
        self.keys, self.affinity, self.tolerations = keys, affinity, tolerations
        self.mask: BoolArray = self._of(nodes, ALL)

    def refresh(self, nodes: NodeTable, row: int) -> None:
        """Look at one node again."""
        if len(self.mask) < nodes.capacity:
            self.mask = grown(self.mask, nodes.capacity)
        self.mask[row] = self._of(nodes, np.array([row]))[0]

    def _of(self, nodes: NodeTable, rows: Rows) -> BoolArray:
        mask = nodes.present[rows].copy()
        for key in self.keys:
            mask &= nodes.has_label(key, rows)
        if self.affinity is not None:
            mask &= nodes.wanted(self.affinity, rows)
        if self.tolerations is not None:
            mask &= nodes.tolerated(self.tolerations, rows)
        return mask


class Ground:
    """The domains of a label over all nodes or the eligible ones: what tallies over the same ones have in common."""

    __slots__ = ("column", "eligibility", "nodes", "tallies", "version")

    def __init__(self, column: LabelColumn, eligibility: Eligibility | None) -> None:
        self.column, self.eligibility = column, eligibility
        self.version = 0
        self.tallies: set[Tally] = set()
        ids = column.ids if eligibility is None else column.ids[eligibility.mask]
        self.nodes: IntArray = np.bincount(ids, minlength=len(column)).astype(np.int64)
        """How many nodes that count are in each domain. Domain 0, of nodes without the label, stays empty."""
        self.nodes[0] = 0

    def standing(self, row: int) -> tuple[int, bool]:
        """The domain of a node, and whether the node counts there."""
        eligibility = self.eligibility
        # A row that is new is not known to be eligible yet.
        counts = eligibility is None or (row < len(eligibility.mask) and bool(eligibility.mask[row]))
        return int(self.column.ids[row]), counts

    def move(self, row: int, old: tuple[int, bool], new: tuple[int, bool]) -> None:
        """A node changed from one standing to another."""
        self.version += 1
        size, is_longer = len(self.column), len(self.nodes) < len(self.column)
        if is_longer:
            self.nodes = grown(self.nodes, size)
        before, after = (domain if counts else 0 for domain, counts in (old, new))
        if before:
            self.nodes[before] -= 1
        if after:
            self.nodes[after] += 1
        for tally in self.tallies:
            if is_longer:
                tally.counts = grown(tally.counts, size)
            pods = tally.counter.rows.get(row)
            if pods:
                tally.move(pods, before, after)


class Tally:
    """A counter summed over the domains of a label."""

    __slots__ = ("_changes", "column", "counter", "counts", "ground", "users")

    def __init__(self, counter: Counter, ground: Ground) -> None:
        self.counter, self.ground, self.column = counter, ground, ground.column
        self.counts: IntArray = np.zeros(len(ground.column), dtype=np.int64)
        """Pods by domain number. Domain 0, of nodes without the label, stays empty."""
        self._changes = 0
        self.users = 0
        for row, pods in counter.rows.items():
            self.shift(row, pods)

    @property
    def version(self) -> int:
        """Moves with the pods that are counted, and with the nodes."""
        return self._changes + self.ground.version

    @property
    def nodes(self) -> IntArray:
        """How many nodes that count are in each domain."""
        return self.ground.nodes

    def shift(self, row: int, pods: int) -> None:
        """Some pods came to a node, or left it."""
        eligibility = self.ground.eligibility
        if eligibility is None or eligibility.mask[row]:
            domain = self.column.ids.item(row)
            if domain:
                # As plain values: numpy's own take their time to be added.
                self.counts[domain] = self.counts.item(domain) + pods
                self._changes += 1

    def move(self, pods: int, old: int, new: int) -> None:
        """A node with so many pods left a domain for another; domain 0 stands for none that counts."""
        if old:
            self.counts[old] -= pods
        if new:
            self.counts[new] += pods


class Counter:
    """How many pods of a kind each node has."""

    __slots__ = ("_by_row", "matcher", "rows", "tallies", "term", "total", "users")

    def __init__(self, matcher: PodMatcher | None, term: PodAffinityTerm | None = None) -> None:
        self.matcher = matcher
        self.term = term
        """The anti-affinity term that the counted pods carry, if that is what is counted."""
        self.rows: dict[int, int] = {}
        self._by_row: IntArray | None = None
        """The same as an array, once somebody has asked for it."""
        self.total = 0
        self.tallies: dict[Hashable, Tally] = {}
        self.users = 0

    def add(self, row: int, pods: int) -> None:
        """Some pods came to a node, or left it."""
        left = self.rows.get(row, 0) + pods
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        if self._by_row is not None:
            if row < len(self._by_row):
                self._by_row[row] = left
            else:
                self._by_row = None
        self.total += pods
        for tally in self.tallies.values():
            tally.shift(row, pods)

    def by_row(self, capacity: int) -> IntArray:
        """The pods of each of so many rows. Read-only, and changed by later changes."""
        by_row = self._by_row
        if by_row is None or len(by_row) != capacity:
            by_row = self._by_row = np.zeros(capacity, dtype=np.int64)
            for row, pods in self.rows.items():
                by_row[row] = pods
        return by_row


class LabelSet:
    """The pods of a namespace whose labels are the same as far as anybody asks for them, and which counters count them.

    Most labels nobody asks for: those that a Job gives to its pods alone, or those that a pod gets from its node.
    """

    __slots__ = (
        "counters", "counters_at", "key", "labels", "namespace", "of_terminating", "rows", "terminating_rows",
    )  # fmt: skip

    def __init__(self, key: _LabelKey, labels: Mapping[str, str]) -> None:
        self.key, self.namespace, self.labels = key, key[0], labels
        self.rows: dict[int, int] = {}
        self.terminating_rows: dict[int, int] = {}
        self.counters: list[Counter] = []
        self.of_terminating: list[Counter] = []
        """Those that count pods on their way out as well."""
        self.counters_at = -1

    def add(self, row: int, pods: int, terminating: bool) -> bool:
        """Some pods came to a node, or left it; whether none is left anywhere."""
        rows = self.terminating_rows if terminating else self.rows
        left = rows.get(row, 0) + pods
        if left:
            rows[row] = left
            return False
        del rows[row]
        return not (self.rows or self.terminating_rows)


class CounterTable:
    """All counters and tallies in use."""

    def __init__(self, nodes: NodeTable, count_labels_again: Callable[[], None]) -> None:
        """``count_labels_again`` is called when the pods of all label sets have to be told once more."""
        self._nodes = nodes
        self._count_labels_again = count_labels_again
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._counters: dict[PodMatcher, Counter] = {}
        self._counters_by_label: dict[tuple[str, str] | None, dict[PodMatcher, Counter]] = {}
        """The same by a label that the counted pods have in any case, or None."""
        self._holders: dict[PodAffinityTerm, Counter] = {}
        self._pulls: dict[tuple[PodAffinityTerm, int], Counter] = {}
        self._pulls_on: dict[Hashable, list[tuple[PodAffinityTerm, int, Tally]]] = {}
        self._eligibilities: dict[Hashable, tuple[Eligibility, set[Tally]]] = {}
        self._tallies: dict[tuple[str, Hashable], Ground] = {}
        self._label_sets: dict[_LabelKey, LabelSet] = {}
        """Those that have pods on nodes."""
        self._asked: tuple[str, ...] = ()
        """The labels that any matcher so far has looked at."""
        self._epoch = 0
        self.holders_epoch = 0
        """Moves when an anti-affinity term is carried by its first pod, or by none any more."""

    # Pods

    def label_set(self, namespace: str, labels: Mapping[str, str]) -> LabelSet:
        """The pods with such labels. It is the one to tell of them for as long as it has any on a node, and nobody asks
        for another label."""
        key = namespace, tuple(map(labels.get, self._asked))
        label_set = self._label_sets.get(key)
        if label_set is None:
            label_set = self._label_sets[key] = LabelSet(key, labels)
        return label_set

    def change_pods(
        self, cls: PodClass, label_set: LabelSet, terminating: bool, pods_on_rows: Iterable[tuple[int, int]]
    ) -> None:
        """Pods that are alike came to nodes, or (fewer than none) left them; how many is given by row."""
        for row, pods in pods_on_rows:
            self.change_pods_on(row, cls, label_set, terminating, pods)

    def change_pods_on(self, row: int, cls: PodClass, label_set: LabelSet, terminating: bool, pods: int) -> None:
        """The same on one node."""
        if label_set.counters_at != self._epoch:
            self._find_counters(label_set)
        for counter in label_set.of_terminating if terminating else label_set.counters:
            counter.add(row, pods)
        if label_set.add(row, pods, terminating):
            del self._label_sets[label_set.key]
        if cls.anti_affinity or cls.pulls:
            self._change_holders(cls, row, pods)

    def _change_holders(self, cls: PodClass, row: int, pods: int) -> None:
        for term in cls.anti_affinity:
            if self._change_holder(self._holders, term, term, row, pods):
                self.holders_epoch += 1
        for pull in cls.pulls:
            if self._change_holder(self._pulls, pull, pull[0], row, pods):
                self._pulls_on.clear()

    def relabel_pods(
        self, before: LabelSet, was_terminating: bool, after: LabelSet, is_terminating: bool, row: int, pods: int
    ) -> None:
        """Pods that stay on their node have other labels, or are on their way out now.

        Most labels that a pod gets when it is bound are asked for by nobody: then no counter has anything to do.
        """
        losing, winning = self._counters_of(before, was_terminating), self._counters_of(after, is_terminating)
        if losing != winning:
            for counter in losing:
                counter.add(row, -pods)
            for counter in winning:
                counter.add(row, pods)
        # In this order, lest one whose pods are merely on their way out is dropped in between.
        after.add(row, pods, is_terminating)
        if before.add(row, -pods, was_terminating):
            del self._label_sets[before.key]

    def _counters_of(self, label_set: LabelSet, terminating: bool) -> list[Counter]:
        if label_set.counters_at != self._epoch:
            self._find_counters(label_set)
        return label_set.of_terminating if terminating else label_set.counters

    def _find_counters(self, label_set: LabelSet) -> None:
        by_label = self._counters_by_label
        label_set.counters_at = self._epoch
        label_set.counters = [
            counter
            for label in (None, *label_set.labels.items())
            if label in by_label
            for matcher, counter in by_label[label].items()
            if matcher.matches(label_set.namespace, label_set.labels, self.namespaces)
        ]
        label_set.of_terminating = [
            counter for counter in label_set.counters
            if counter.matcher is not None and counter.matcher.counts_terminating
        ]  # fmt: skip

    def _change_holder(
        self, holders: dict[_K, Counter], key: _K, term: PodAffinityTerm, row: int, pods: int
    ) -> bool:
        """Pods that carry a term came or left; whether they are the first, or were the last."""
        holder = holders.get(key)
        is_first = holder is None
        if holder is None:
            holder = holders[key] = Counter(None, term)
            self._new_tally(holder, term.topology_key, None)
        holder.add(row, pods)
        if not holder.total:
            for tally in holder.tallies.values():
                self._drop_from_ground(tally)
            del holders[key]
            return True
        return is_first

    @property
    def has_pulls(self) -> bool:
        """Whether any pod that is there draws others near or pushes them away."""
        return bool(self._pulls)

    def pulls_on(self, namespace: str, labels: Mapping[str, str]) -> list[tuple[PodAffinityTerm, int, Tally]]:
        """The terms of pods that are there which draw a pod near (1) or push it away (-1), and who has them.

        A required term has weight 0: how much it pulls is up to who asks.
        """
        key = namespace, frozenset(labels.items())
        found = self._pulls_on.get(key)
        if found is None:
            if len(self._pulls_on) > _REMEMBERED_PULLS:
                self._pulls_on.clear()
            of_namespace = self.namespaces.get(namespace, {})
            found = self._pulls_on[key] = [
                (term, sign, tally)
                for (term, sign), holder in self._pulls.items()
                if term.matches(namespace, labels, of_namespace)
                for tally in holder.tallies.values()
            ]
        return found

    def holders_against(self, cls: PodClass) -> list[Tally]:
        """The tallies of the anti-affinity terms, carried by pods that are there, that mean this class."""
        labels = self.namespaces.get(cls.namespace, {})
        return [
            tally
            for term, holder in self._holders.items()
            if term.matches(cls.namespace, cls.labels, labels)
            for tally in holder.tallies.values()
        ]

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Note the labels of a namespace, or that it is gone; counters that select by them count again."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        self._epoch += 1
        self.holders_epoch += 1
        self._pulls_on.clear()
        for matcher, counter in self._counters.items():
            if isinstance(matcher, AffinityMatcher) and any(
                not term.namespace_selector.matches_nothing for term in matcher.terms
            ):
                for row, pods in list(counter.rows.items()):
                    counter.add(row, -pods)
                self._count_all(matcher, counter)

    def _count_all(self, matcher: PodMatcher, counter: Counter) -> None:
        for label_set in self._label_sets.values():
            if matcher.matches(label_set.namespace, label_set.labels, self.namespaces):
                for row, pods in label_set.rows.items():
                    counter.add(row, pods)
                if matcher.counts_terminating:
                    for row, pods in label_set.terminating_rows.items():
                        counter.add(row, pods)

    # Nodes

    def standing(self, row: int) -> list[tuple[Ground, tuple[int, bool]]]:
        """How a node stands before it is added, changed or removed, for ``after_node_change``."""
        return [(ground, ground.standing(row)) for ground in self._tallies.values()]

    def after_node_change(self, row: int, before: list[tuple[Ground, tuple[int, bool]]]) -> None:
        """A node was added, changed or removed. Most changes, of taints say, move it to no other domain."""
        for eligibility, _ in self._eligibilities.values():
            eligibility.refresh(self._nodes, row)
        for ground, old in before:
            new = ground.standing(row)
            if old != new:
                ground.move(row, old, new)

    # Tallies are made when a class needs them, and dropped when no class does.

    def acquire(
        self,
        matcher: PodMatcher,
        key: str,
        *,
        keys: frozenset[str] = frozenset(),
        affinity: RequiredNodeAffinity | None = None,
        tolerations: tuple[Toleration, ...] | None = None,
    ) -> Tally:
        """The tally of a matcher over a topology key; ``keys`` and the rest limit which nodes count."""
        counter = self._counter(matcher)
        is_limited = bool(keys) or affinity is not None or tolerations is not None
        limits = (keys, affinity, tolerations) if is_limited else None
        tally = counter.tallies.get((key, limits))
        if tally is None:
            eligibility = None
            if limits is not None:
                entry = self._eligibilities.get(limits)
                if entry is None:
                    entry = Eligibility(self._nodes, keys, affinity, tolerations), set()
                    self._eligibilities[limits] = entry
                eligibility = entry[0]
            tally = self._new_tally(counter, key, eligibility, limits)
            if limits is not None:
                self._eligibilities[limits][1].add(tally)
        tally.users += 1
        return tally

    def acquire_counter(self, matcher: PodMatcher) -> Counter:
        """How many pods that a matcher means each node has; cheaper than a tally over host names."""
        counter = self._counter(matcher)
        counter.users += 1
        return counter

    def release_counters(self, counters: Iterable[Counter]) -> None:
        """A class that acquired these does not need them any more."""
        for counter in counters:
            counter.users -= 1
            self._drop_if_unused(counter)

    def _counter(self, matcher: PodMatcher) -> Counter:
        counter = self._counters.get(matcher)
        if counter is None:
            self._ask_for(matcher.label_keys)
            counter = self._counters[matcher] = Counter(matcher)
            self._counters_by_label.setdefault(_needed_label(matcher), {})[matcher] = counter
            self._count_all(matcher, counter)
            self._epoch += 1
        return counter

    def _ask_for(self, keys: tuple[str, ...]) -> None:
        """From now on pods that differ in these labels are counted apart."""
        asked = tuple(dict.fromkeys((*self._asked, *keys)))
        if len(asked) > len(self._asked):
            self._asked = asked
            self._label_sets.clear()
            self._count_labels_again()

    def _drop_if_unused(self, counter: Counter) -> None:
        if not counter.tallies and not counter.users:
            assert counter.matcher is not None, "holders are never acquired"
            del self._counters[counter.matcher]
            label = _needed_label(counter.matcher)
            del self._counters_by_label[label][counter.matcher]
            if not self._counters_by_label[label]:
                del self._counters_by_label[label]
            self._epoch += 1

    def release(self, tallies: Iterable[Tally]) -> None:
        """A class that acquired these does not need them any more."""
        for tally in tallies:
            tally.users -= 1
            if tally.users:
                continue
            counter, limits = tally.counter, _limits_of(tally)
            self._drop_from_ground(tally)
            del counter.tallies[(tally.column.key, limits)]
            if limits is not None:
                users = self._eligibilities[limits][1]
                users.discard(tally)
                if not users:
                    del self._eligibilities[limits]
            self._drop_if_unused(counter)

    def _new_tally(
        self, counter: Counter, key: str, eligibility: Eligibility | None, limits: Hashable = None
    ) -> Tally:
        ground = self._tallies.get((key, limits))
        if ground is None:
            ground = self._tallies[key, limits] = Ground(self._nodes.column(key), eligibility)
        tally = counter.tallies[(key, limits)] = Tally(counter, ground)
        ground.tallies.add(tally)
        return tally

    def _drop_from_ground(self, tally: Tally) -> None:
        key = tally.column.key, _limits_of(tally)
        ground = self._tallies[key]
        ground.tallies.discard(tally)
        if not ground.tallies:
            del self._tallies[key]


def _needed_label(matcher: PodMatcher) -> tuple[str, str] | None:
    """A label that all pods which a matcher means have; None if no single one is known."""
    selectors: list[LabelSelector] = []
    if isinstance(matcher, SpreadMatcher):
        selectors = [matcher.selector]
    elif isinstance(matcher, AffinityMatcher):
        selectors = [term.selector for term in matcher.terms]
    for selector in selectors:
        for requirement in selector.requirements:
            value = selector.required_value(requirement.key)
            if value is not None:
                return requirement.key, value
    return None


def _limits_of(tally: Tally) -> Hashable:
    eligibility = tally.ground.eligibility
    return None if eligibility is None else (eligibility.keys, eligibility.affinity, eligibility.tolerations)
