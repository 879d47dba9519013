"""How pods of nodes that would go could be placed, by counting: a glance where a simulation takes a long look.

Pods of one form are interchangeable, so that a run of them fills the first nodes that have room, and then new ones. All
of this holds on standing ground only, where no pod is to be near others or apart from them, and for simple forms, which
go by size and tolerations. Of pods that are spread over domains no more can be told than how many have a place at most.
Whatever cannot be told for certain by counting is left to a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

import numpy as np

from holokube.karpenter.scheduling.existing_nodes import fitting
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.pod_facts import Age, PodFacts, age_of
from holokube.karpenter.scheduling.pod_forms import FormBook, Kind, PodForm
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.templates import Template
from holokube.karpenter.scheduling.type_table import BoolArray, IntArray, RowArray
from holokube.kube.types import JsonObject

Need = tuple[tuple[Kind, int], ...]
"""How many pods of which kinds need a place."""
Sizes = tuple[tuple[PodForm, int], ...]
"""How many pods of a size, or of one that is larger in everything, have to be moved."""
_Rank = tuple[int, int]
_AGE: Final = attrgetter("age")
_RANK: Final = itemgetter(0)
_ROW: Final = itemgetter(0)


class _Stretch(NamedTuple):
    """Pods that stand beside each other in the queue, on the nodes that took them."""

    kind: Kind
    first: int
    """How many of the kind came before."""
    rows: RowArray
    taken: IntArray


class Foresight(NamedTuple):
    """What a simulation would come to."""

    new_nodes: int
    used: IntArray | None = None
    """What the pods on the one new node ask for."""
    template: Template | None = None
    moved: tuple[_Stretch, ...] = ()
    """Where pods of the nodes that go would be, if some of that does not count because a node has not come up."""

    @property
    def is_stranded(self) -> bool:
        """Whether some pod would be counted on a node that has not come up."""
        return bool(self.moved)


class _OpenRows(NamedTuple):
    """Nodes with room for pods of a kind."""

    rows: RowArray
    taken: IntArray
    """For how many."""
    sums: IntArray
    """For how many together, from the first on."""
    capacity: IntArray
    """By row of the table: for how many."""


class Headroom:
    """Counts on the ground of one moment."""

    def __init__(self, ground: Groundwork, now_s: float, deleting: frozenset[str]) -> None:
        """``deleting`` are names of nodes that are going anyway."""
        self._ground = ground
        self._table = ground.nodes
        self._deleting = deleting
        self._settled = ground.nodes.settled(now_s)
        self._up = ground.nodes.up
        self._counts: IntArray = self._settled.astype(np.int64)
        """By row: one if pods that are moved may count on it, else nothing."""
        self._counts[self._up :] = 0
        self._open: dict[Kind, _OpenRows] = {}
        self._moved_sums: dict[PodForm, int] = {}
        self._sums: dict[PodForm, int] = {}
        self._most: dict[PodForm, int] = {}
        self._in_question: dict[Need, list[IntArray]] = {}
        """By need: the room of nodes for pods of it, and for those that wait."""
        self._waiting: dict[_Rank, list[tuple[Age, Kind]]] = {}
        self._waiting_of: dict[PodForm, int] = {}
        self._late: dict[int, tuple[Foresight, list[tuple[StateNode, Kind, int, int]]]] = {}
        """By identity of what is foreseen: which pods would be on nodes that have not come up."""
        self._is_exact = self._find_waiting(ground.pods)

    def _find_waiting(self, pods: Iterable[JsonObject]) -> bool:
        """Pods that look for a place anyway; whether all can be counted, and so can new nodes."""
        is_exact = self._ground.has_plain_offers
        form_of, waiting, waiting_of = self._ground.forms.form_of, self._waiting, self._waiting_of
        for pod in pods:
            form = form_of(pod)
            if not form.is_simple:
                is_exact = False
                continue
            waiting.setdefault(form.cpu_and_memory, []).append((age_of(pod), self._kind(form, pod)))
            waiting_of[form] = waiting_of.get(form, 0) + 1
        for ages in waiting.values():
            ages.sort(key=_by_age)
        return is_exact

    def _kind(self, form: PodForm, pod: JsonObject) -> Kind:
        has_started = (pod.get("status") or {}).get("phase") != "Pending"
        return form.kinds[has_started and (pod.get("spec") or {}).get("nodeName", "") not in self._deleting]

    def row(self, node: StateNode) -> int | None:
        """The row of a node that stays."""
        return self._table.row(node)

    def capacity(self, form: PodForm) -> IntArray:
        """By row: how many pods of a form would fit."""
        return self._table.capacity(form)

    def open_rows(self, kind: Kind) -> _OpenRows:
        """Nodes with room for pods of a kind before anything is placed."""
        found = self._open.get(kind)
        if found is None:
            capacity = self.capacity(kind.form)
            if kind.is_moving:
                capacity = np.where(self._settled, capacity, 0)
            rows = np.flatnonzero(capacity)
            taken = capacity[rows]
            found = self._open[kind] = _OpenRows(rows, taken, np.cumsum(taken), capacity)
        return found

    def _moved_sum(self, form: PodForm) -> int:
        """How many pods of a form would fit that are moved for good."""
        found = self._moved_sums.get(form)
        if found is None:
            found = self._moved_sums[form] = int(self.capacity(form).dot(self._counts))
        return found

    def _sum(self, form: PodForm) -> int:
        """How many pods of a form would fit in all."""
        found = self._sums.get(form)
        if found is None:
            found = self._sums[form] = int(np.add.reduce(self.capacity(form)))
        return found

    def is_hopeless(self, need: Need, sizes: Sizes, price: float) -> bool:
        """Whether, for certain, the pods can neither be placed on other nodes, nor with one cheaper new one."""
        for size, count in sizes:
            if count > self._moved_sum(size) + self._ground.new_capacity(size, price):
                return True
        if not self._is_exact:
            return False
        for (form, _), count in need:
            if form.is_simple and count + self._waiting_of.get(form, 0) > self._free(form, price):
                # Pods that wait are never left without a place, so they take theirs of what there is.
                return True
        return False

    def _free(self, form: PodForm, price: float) -> float:
        """How many pods of a form there is a place for, one new node included; any number if none can be had."""
        return self._sum(form) + self._ground.new_capacity(form, price) if self.opening(form) else math.inf

    def most(self, size: PodForm) -> int:
        """More pods of a size or larger cannot be moved together, for certain, whatever one new node may cost."""
        found = self._most.get(size)
        if found is None:
            found = self._most[size] = self._moved_sum(size) + self._ground.new_capacity(size, math.inf)
        return found

    def foresee(self, need: Need, pods: Sequence[JsonObject], rows: Sequence[int]) -> Foresight | None:
        """What a simulation without some rows would come to, their pods being in need; None if it has to be made."""
        if not self._is_exact or not all(kind.form.is_simple for kind, _ in need):
            return None
        counting = _Counting(self, rows)
        for run in self._queue(need, pods):
            if not counting.place(*run):
                return None
        return counting.result()

    def stranded(
        self, foresight: Foresight, pods: Iterable[PodFacts], book: FormBook
    ) -> list[tuple[StateNode, list[PodFacts]]]:
        """The pods of nodes that go that would be on nodes which have not come up, as a simulation lists them."""
        places = self._late_places(foresight)
        # Other kinds have their place on nodes that are up.
        of_kind: dict[Kind, list[PodFacts]] = {kind: [] for _, kind, _, _ in places}
        for facts in pods:
            alike = of_kind.get(facts.kind(book))
            if alike is not None:
                alike.append(facts)
        for alike in of_kind.values():
            alike.sort(key=_AGE)
        return [(node, of_kind[kind][first:end]) for node, kind, first, end in places]

    def _late_places(self, foresight: Foresight) -> list[tuple[StateNode, Kind, int, int]]:
        """The nodes that have not come up and would take pods, and which of a kind; the same for nodes alike."""
        known = self._late.get(id(foresight))
        if known is None:
            found: list[tuple[int, Kind, int, int]] = []
            for kind, first, rows, taken in foresight.moved:
                for row, count in zip(rows.tolist(), taken.tolist(), strict=True):
                    if row >= self._up:
                        found.append((row, kind, first, first + count))
                    first += count
            found.sort(key=_ROW)
            # The foresight is kept beside it, so that no other can get its identity.
            nodes = self._table.nodes
            places = [(nodes[row], kind, first, end) for row, kind, first, end in found]
            known = self._late[id(foresight)] = foresight, places
        return known[1]

    def _queue(self, need: Need, pods: Sequence[JsonObject]) -> list[tuple[Kind, int, bool]]:
        """Kinds and numbers of pods in the solver's order, and whether those that move are among them."""
        by_rank: dict[_Rank, list[tuple[Kind, int]]] = {}
        for kind, count in need:
            by_rank.setdefault(kind.form.cpu_and_memory, []).append((kind, count))
        found: list[tuple[Kind, int, bool]] = []
        for rank in sorted({*by_rank, *self._waiting}, reverse=True):
            waiting, moving = self._waiting.get(rank, ()), by_rank.get(rank, ())
            if not waiting and len(moving) == 1:
                found.append((*moving[0], True))
            else:
                mixed = [(age, kind, False) for age, kind in waiting]
                if moving:
                    mixed += self._mixed(rank, pods)
                    mixed.sort(key=lambda one: one[0])
                found += _runs(mixed)
        return found

    def _mixed(self, rank: _Rank, pods: Sequence[JsonObject]) -> list[tuple[Age, Kind, bool]]:
        form_of = self._ground.forms.form_of
        found = []
        for pod in pods:
            form = form_of(pod)
            if form.cpu_and_memory == rank:
                found.append((age_of(pod), self._kind(form, pod), True))
        return found

    @property
    def has_waiting(self) -> bool:
        """Whether pods look for a place anyway."""
        return bool(self._waiting)

    def goes_by_number(self, need: Need) -> bool:
        """Whether it does not matter which pods of these kinds they are, besides how many."""
        ranks = [kind.form.cpu_and_memory for kind, _ in need]
        return len(set(ranks)) == len(ranks) and not any(rank in self._waiting for rank in ranks)

    def comes_first(self, need: Need, youngest: Age) -> bool:
        """Whether pods of these kinds, none of which is younger, are queued before others of their size that wait."""
        ranks = [kind.form.cpu_and_memory for kind, _ in need]
        if len(set(ranks)) < len(ranks):
            return False
        return all(youngest < self._waiting[rank][0][0] for rank in ranks if rank in self._waiting)

    def are_full(self, rows: Sequence[int], need: Need) -> bool:
        """Whether nodes have no room for any pod in question, so that it does not matter whether they are there."""
        found = self._in_question.get(need)
        if found is None:
            forms = {kind.form for kind, _ in need} | self._waiting_of.keys()
            found = self._in_question[need] = [self.capacity(form) for form in forms if form.is_simple]
        for row in rows:
            for capacity in found:
                if capacity.item(row):
                    return False
        return True

    @property
    def room(self) -> IntArray:
        """What is left on nodes before anything is placed."""
        return self._table.room

    def is_up(self, row: int) -> bool:
        """Whether the node of a row has come up, and so have those of all rows before it."""
        return row < self._up

    def opening(self, form: PodForm) -> Template | None:
        """The first pool that a new node for a form can be of."""
        return self._ground.opening(form)

    def alone_on_new(self, form: PodForm) -> int:
        """How many pods of a form a new node can take that has no others; one can be had for it."""
        found = self._ground.alone_on_new.get(form)
        if found is None:
            template = self.opening(form)
            assert template is not None
            found = self._ground.alone_on_new[form] = _Open(template, len(form.vector)).capacity(form)
        return found

    def cheaper_types(self, foresight: Foresight, price: float) -> bool:
        """Whether a type that can hold the pods of the one new node may cost less than a price."""
        template, fits = self._fits_of(foresight)
        prices = template.table.lowest_prices(template.state)
        return any(prices[place] < price for place in template.table.row_types[fits].tolist())

    def planned(self, foresight: Foresight) -> PlannedClaim:
        """The one new node as a simulation would plan it, its pods aside."""
        template, fits = self._fits_of(foresight)
        problem = self._ground.problem
        return PlannedClaim(
            pool=template.pool,
            requirements=template.state.requirements,
            candidate_types=template.table.types_of(np.flatnonzero(fits)),
            pods=(),
            requests={},
            well_known=problem.well_known,
            max_instance_types=problem.options.max_instance_types,
        )

    @staticmethod
    def _fits_of(foresight: Foresight) -> tuple[Template, BoolArray]:
        """What the one new node is made from, and rows of its types that can hold its pods."""
        template, used = foresight.template, foresight.used
        assert template is not None
        assert used is not None
        fits: BoolArray = np.logical_and.reduce(template.table.room >= used[:, None], axis=0)
        return template, fits & template.table.rows(template.state)


class _Open:
    """A new node while pods are counted onto it."""

    __slots__ = ("template", "used")

    def __init__(self, template: Template, columns: int) -> None:
        self.template = template
        self.used: IntArray = np.zeros(columns, dtype=np.int64)

    def capacity(self, form: PodForm) -> int:
        table = self.template.table
        if not self.template.is_tolerated(form.demands.tolerations):
            return 0
        left = table.room - self.used[:, None]
        possible = table.rows(self.template.state) & (left >= 0).all(axis=0)
        return int(fitting(left, form)[possible].max(initial=0))


class _Counting:
    """One count. Runs of pods are placed in the solver's order."""

    def __init__(self, head: Headroom, gone: Sequence[int]) -> None:
        self._head = head
        self._gone = list(gone)
        self._room: IntArray | None = None
        self._touched: list[RowArray] = []
        self._pending: list[tuple[PodForm, RowArray, IntArray]] = []
        """What was placed and has not been taken off the room: after the last run nobody asks for that."""
        self._open: list[_Open] = []
        self._is_undecided = False
        self._is_stranded = False
        self._moved: list[_Stretch] = []
        self._seen: dict[Kind, int] = {}

    def place(self, kind: Kind, count: int, is_watched: bool) -> bool:
        """Places pods of a kind; False if it cannot be told where. Watched ones must not be on nodes to come."""
        if self._is_undecided:
            return False
        left = self._on_nodes(kind, count, is_watched)
        if is_watched:
            self._seen[kind] = self._seen.get(kind, 0) + count
        return left == 0 or self._on_new(kind.form, left)

    def _on_nodes(self, kind: Kind, count: int, is_watched: bool) -> int:
        rows, open_for, sums = self._open_rows(kind)
        if not len(rows):
            return count
        last = int(sums.searchsorted(count))
        taken = open_for[: last + 1].copy()
        rows = rows[: last + 1]
        placed = min(int(sums[-1]), count)
        over = int(sums[min(last, len(sums) - 1)]) - placed
        if over > 0:
            taken[-1] -= over
        if is_watched:
            self._moved.append(_Stretch(kind, self._seen.get(kind, 0), rows, taken))
            self._is_stranded = self._is_stranded or not self._head.is_up(int(rows[-1]))
        self._pending.append((kind.form, rows, taken))
        return count - placed

    def _room_now(self) -> IntArray:
        """What is left on nodes."""
        room = self._room
        if room is None:
            room = self._room = self._head.room.copy()
        for form, rows, taken in self._pending:
            room[:, rows] -= form.vector[:, None] * taken
            self._touched.append(rows)
        self._pending.clear()
        return room

    def _open_rows(self, kind: Kind) -> tuple[RowArray, IntArray, IntArray]:
        """Nodes with room for pods of a kind now, for how many, and for how many together from the first on."""
        known = self._head.open_rows(kind)
        is_first = not self._touched and not self._pending
        if is_first and not known.capacity[self._gone].any():
            return known.rows, known.taken, known.sums
        capacity = known.capacity.copy()
        if not is_first:
            room = self._room_now()
            rows = np.concatenate(self._touched)
            capacity[rows] = np.where(capacity[rows] > 0, fitting(room[:, rows], kind.form), 0)
        capacity[self._gone] = 0
        rows = np.flatnonzero(capacity)
        taken = capacity[rows]
        return rows, taken, np.cumsum(taken)

    def _on_new(self, form: PodForm, count: int) -> bool:
        capacities = [one.capacity(form) for one in self._open]
        total = sum(capacities)
        if total and count < total and sum(map(bool, capacities)) > 1:
            # It goes by the number of pods which of them take these; that only matters if more are to come.
            self._is_undecided = True
            return True
        for one, capacity in zip(self._open, capacities, strict=True):
            taken = min(capacity, count)
            one.used = one.used + form.vector * taken
            count -= taken
        while count:
            template = self._head.opening(form)
            if template is None:
                return False
            one = _Open(template, len(form.vector))
            taken = min(self._head.alone_on_new(form), count)
            one.used = one.used + form.vector * taken
            self._open.append(one)
            count -= taken
        return True

    def result(self) -> Foresight:
        """What the count comes to."""
        if self._is_stranded:
            return Foresight(len(self._open), moved=tuple(self._moved))
        if len(self._open) == 1:
            return Foresight(1, self._open[0].used, self._open[0].template)
        return Foresight(len(self._open))


def _runs(mixed: Iterable[tuple[Age, Kind, bool]]) -> list[tuple[Kind, int, bool]]:
    """Pods of one kind that stand beside each other, counted."""
    found: list[tuple[Kind, int, bool]] = []
    for _, kind, is_watched in mixed:
        if found and found[-1][0] == kind and found[-1][2] == is_watched:
            found[-1] = kind, found[-1][1] + 1, is_watched
        else:
            found.append((kind, 1, is_watched))
    return found


def _by_age(waiting: tuple[Age, Kind]) -> Age:
    return waiting[0]


def fit_on_one_new(need: Need, ground: Groundwork) -> bool:
    """Whether pods, and any part of them, would be counted onto one new node if no node that is there has room."""
    forms = sorted([(kind.form.cpu_and_memory, kind.form, count) for kind, count in need], key=_RANK, reverse=True)
    templates = [ground.opening(form) for _, form, _ in forms if form.is_simple]
    if len(templates) < len(forms) or len({rank for rank, _, _ in forms}) < len(forms):
        # They may be told apart by more than their size, or it goes by their age who comes first.
        return False
    if not templates or templates[0] is None or any(one is not templates[0] for one in templates):
        return False
    new = _Open(templates[0], len(forms[0][1].vector))
    for _, form, count in forms:
        if new.capacity(form) < count:
            return False
        new.used = new.used + form.vector * count
    return True


def need_of(kinds: Mapping[Kind, int]) -> Need:
    """Counts as something that can be compared, in an order of its own."""
    return tuple(sorted(kinds.items(), key=lambda one: (one[0].form.number, one[0].is_moving)))


def count_sizes(need: Need) -> dict[PodForm, int]:
    """How many pods of each size have to be moved."""
    counts: dict[PodForm, int] = {}
    for (form, is_moving), count in need:
        size = form.size if is_moving else None
        if size is not None:
            counts[size] = counts.get(size, 0) + count
    return counts


def sizes_of(need: Need) -> Sizes:
    """The same, where larger ones take at least the place of smaller ones."""
    counts = count_sizes(need)
    if len(counts) < 2:
        return tuple(counts.items())
    return tuple((size, sum(count for one, count in counts.items() if _is_as_large(one, size))) for size in counts)


def _is_as_large(one: PodForm, other: PodForm) -> bool:
    """Whether a node that takes one pod could take the other in its place."""
    return one is other or (
        one.demands.tolerations == other.demands.tolerations and bool((one.vector >= other.vector).all())
    )
