"""Which candidates are worth a simulation, and what can be said about the others without one.

Nodes with the same pods at the same price stand and fall together as far as counting goes, so that a pass looks at a
few classes instead of all nodes. A candidate that cannot go for certain needs no look at all, unless it is time to tell
again why it stays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, Protocol

from holokube.base.lazy import lazy
from holokube.karpenter.disruption.balanced import total_price
from holokube.karpenter.disruption.candidate_book import Roster
from holokube.karpenter.disruption.simulating import describe
from holokube.karpenter.disruption.types import Blocker, Candidate, Obstruction
from holokube.karpenter.scheduling.glance import Glance
from holokube.karpenter.scheduling.headroom import Foresight, Headroom, Need, need_of, sizes_of
from holokube.karpenter.scheduling.pod_facts import PodFacts
from holokube.karpenter.scheduling.pod_forms import FormBook, Kind, PodForm
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.karpenter.scheduling.simulation import why_not_counted
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import SPOT

_KEPT_MIN: Final = 1000
_NOTHING: Final = -1
_RANK: Final = attrgetter("rank")
# Members of an enumeration take several times as long to be found as other names do.
_DO_NOT_FIT: Final = Blocker.PODS_DO_NOT_FIT
_SEVERAL: Final = Blocker.SEVERAL_REPLACEMENTS
QuietUntil = Callable[[Sequence[StateNode]], list[float]]
"""Until when nobody has to be told again why nodes stay, one by one."""


def pods_do_not_fit(reasons: Mapping[str, str]) -> Obstruction:
    """Pods would lose their place, for these reasons."""
    return Obstruction(_DO_NOT_FIT, describe(reasons), tuple(reasons))


def several(count: int) -> Obstruction:
    """One node would become several."""
    return Obstruction(Blocker.SEVERAL_REPLACEMENTS, f"Can't remove without creating {count} candidates")


_NOT_CHEAPER: Final = Obstruction(Blocker.NOT_CHEAPER, "Can't replace with a cheaper node")


def not_cheaper() -> Obstruction:
    """Nothing is gained."""
    return _NOT_CHEAPER


class Judge(Protocol):
    """Somebody who counts."""

    def is_hopeless(self, standing: Standing) -> bool:
        """Whether no candidate of a class can go, for certain."""


class Standing:
    """What candidates of a class have in common, and what the last outlook made of it."""

    __slots__ = (
        "due", "fits_on_one_new", "is_hopeless", "judge", "members", "need", "price", "quiet", "quiet_until_s", "sizes",
    )  # fmt: skip

    def __init__(self, need: Need, price: float) -> None:
        self.need = need
        self.sizes = sizes_of(need)
        self.price = price
        self.judge: object = None
        """Who has found out last whether it is hopeless."""
        self.is_hopeless = False
        self.fits_on_one_new: bool | None = None
        """Whether one new node of any price would do for the pods of a member, once somebody has found out."""
        self.members: dict[Candidate, None] = {}
        """Those of a roster."""
        self.due: dict[Candidate, None] = {}
        """Those of them of which may have to be told why they stay."""
        self.quiet: dict[float, list[Candidate]] = {}
        """The others, and some that have gone, by until when nobody has to be told why they stay.

        Many are told of at the same moment.
        """
        self.quiet_until_s: list[float] = []
        """A heap of those times."""

    def is_hopeless_to(self, judge: Judge) -> bool:
        """Whether somebody finds it hopeless; who has found out last is not asked again."""
        if self.judge is not judge:
            self.judge, self.is_hopeless = judge, judge.is_hopeless(self)
        return self.is_hopeless

    def join(self, candidate: Candidate) -> None:
        """One more member."""
        self.members[candidate] = None
        self.due[candidate] = None

    def leave(self, candidate: Candidate) -> None:
        """It is none any more."""
        self.members.pop(candidate, None)
        self.due.pop(candidate, None)

    def worth_telling(
        self, now_s: float, quiet_until_s: QuietUntil, left_out: Collection[StateNode]
    ) -> list[Candidate]:
        """Members of which has to be told why they stay; those that are left out are not asked about."""
        quiet, ends, due, members = self.quiet, self.quiet_until_s, self.due, self.members
        while ends and ends[0] <= now_s:
            for candidate in quiet.pop(heappop(ends)):
                if candidate in members:
                    due[candidate] = None
        asked = [one for one in due if one.node not in left_out] if left_out else [*due]
        found: list[Candidate] = []
        for candidate, until_s in zip(asked, quiet_until_s([one.node for one in asked]), strict=True):
            if until_s <= now_s:
                found.append(candidate)
                continue
            del due[candidate]
            alike = quiet.get(until_s)
            if alike is None:
                quiet[until_s] = [candidate]
                heappush(ends, until_s)
            else:
                alike.append(candidate)
        return found


class _Known:
    __slots__ = ("quiet_until_s", "standing")

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.quiet_until_s = -math.inf


class Prospects:
    """What is remembered of candidates from pass to pass."""

    def __init__(self, now_s: Callable[[], float], quiet_until_s: QuietUntil) -> None:
        self._now_s = now_s
        self._quiet_until_s = quiet_until_s
        self._book: FormBook | None = None
        self._classes: dict[tuple[Need, float], Standing] = {}
        self._known: dict[Candidate, _Known] = {}
        self._roster_book: object = None
        self._has_new = False
        """Whether a class has come since a roster was followed, which may have no members."""
        self.untold: frozenset[Candidate] = frozenset()
        """Those of which was found that somebody has to be told why they stay, in the last look at a roster."""

    def knows(self, book: FormBook) -> bool:
        """Whether forms are those of this book already."""
        return book is self._book

    def begin(self, book: FormBook) -> None:
        """Forms are those of this book from now on."""
        if book is not self._book:
            self._book = book
            self._classes, self._known, self._roster_book = {}, {}, None

    def of(self, candidate: Candidate) -> _Known:
        """What is known of one."""
        found = self._known.get(candidate)
        if found is None:
            assert self._book is not None, "a pass begins with a book"
            key = _need(candidate, self._book), candidate.price
            standing = self._classes.get(key)
            if standing is None:
                standing = self._classes[key] = Standing(*key)
                self._has_new = True
            found = self._known[candidate] = _Known(standing)
        return found

    def worth_a_look_of(self, roster: Roster, judge: Judge) -> list[Candidate]:
        """The same of a roster, best first; of classes that are hopeless only those are looked at that have come."""
        self._follow(roster)
        found: list[Candidate] = []
        hopeless: list[Standing] = []
        left_out = roster.left_out
        for standing in self._classes.values():
            if standing.is_hopeless_to(judge):
                hopeless.append(standing)
            else:
                found += [one for one in standing.members if one.node not in left_out] if left_out else standing.members
        found += self._untold_of(hopeless, roster)
        found.sort(key=_RANK)
        return found

    def hopeless_of(self, roster: Roster, judge: Judge) -> list[Candidate] | None:
        """The same if all classes are hopeless, else None."""
        self._follow(roster)
        for standing in self._classes.values():
            if not standing.is_hopeless_to(judge):
                return None
        found = self._untold_of(self._classes.values(), roster)
        found.sort(key=_RANK)
        return found

    def _untold_of(self, hopeless: Iterable[Standing], roster: Roster) -> list[Candidate]:
        """Members of which has to be told why they stay."""
        now_s, found = self._now_s(), list[Candidate]()
        for standing in hopeless:
            if standing.due or standing.quiet_until_s[0] <= now_s:
                found += standing.worth_telling(now_s, self._quiet_until_s, roster.left_out)
        self.untold = frozenset(found)
        return found

    def _follow(self, roster: Roster) -> None:
        """Takes over who has come and who has gone. Classes without members are given up."""
        news = roster.news()
        if roster.book is not self._roster_book:
            self._classes, self._known, self._roster_book = {}, {}, roster.book
            news = dict.fromkeys(roster.everyone(), True)
        elif not news and not self._has_new:
            return
        for candidate, has_come in news.items():
            if has_come:
                self._join(candidate)
            elif (known := self._known.pop(candidate, None)) is not None:
                known.standing.leave(candidate)
        count = 0
        for standing in list(self._classes.values()):
            count += len(standing.members)
            if not standing.members:
                del self._classes[standing.need, standing.price]
        self._has_new = False
        if len(self._known) > 4 * count + _KEPT_MIN:
            self._known = {one: known for one, known in self._known.items() if one in known.standing.members}

    def _join(self, candidate: Candidate) -> None:
        known = self.of(candidate)
        # Its class may have been given up for want of members.
        key = known.standing.need, known.standing.price
        standing = known.standing = self._classes.setdefault(key, known.standing)
        standing.join(candidate)

    def is_quiet(self, candidate: Candidate) -> bool:
        """Whether it was told a short while ago why a candidate stays."""
        one, now_s = self.of(candidate), self._now_s()
        if one.quiet_until_s <= now_s:
            (one.quiet_until_s,) = self._quiet_until_s((candidate.node,))
        return one.quiet_until_s > now_s

    def most_together(self, candidates: Iterable[Candidate], most_of: Callable[[PodForm], int]) -> int:
        """How many of these can go together at most, from the first on, by how many pods of a size can be moved."""
        counts, number = dict[PodForm, int](), 0
        for candidate in candidates:
            for size, count in self.of(candidate).standing.sizes:
                counts[size] = total = counts.get(size, 0) + count
                if total > most_of(size):
                    return number
            number += 1
        return number

    def need_of_all(self, candidates: Iterable[Candidate]) -> Need:
        """How many pods of each kind have to move if all of these go."""
        kinds = dict[Kind, int]()
        for candidate in candidates:
            for kind, count in self.of(candidate).standing.need:
                kinds[kind] = kinds.get(kind, 0) + count
        return need_of(kinds)

    def worth_a_look(self, candidates: Sequence[Candidate], judge: Judge) -> list[Candidate]:
        """Those that may not be hopeless, or of which has to be told again why they stay."""
        self.untold = frozenset()
        known, now_s, found = self._known, self._now_s(), []
        for candidate in candidates:
            one = known.get(candidate) or self.of(candidate)
            standing = one.standing
            if standing.is_hopeless_to(judge):
                if one.quiet_until_s > now_s:
                    continue
                (one.quiet_until_s,) = self._quiet_until_s((candidate.node,))
                if one.quiet_until_s > now_s:
                    continue
            found.append(candidate)
        if len(known) > 4 * len(candidates) + _KEPT_MIN:
            self._known, self._roster_book = {one: known[one] for one in candidates}, None
            self._classes = {(one.standing.need, one.standing.price): one.standing for one in self._known.values()}
        return found


class Glimpse:
    """What an earlier outlook, and nodes that are others now, tell about candidates: that they stay, if anything."""

    def __init__(self, prospects: Prospects, glance: Glance, has_waiting: Callable[[], bool]) -> None:
        """The prospects have to know the book of the glance; ``has_waiting`` tells whether pods may need a place."""
        self._prospects = prospects
        self._glance = glance
        self._has_waiting = has_waiting

    def is_hopeless(self, standing: Standing) -> bool:
        """Whether no candidate of a class can go, for certain."""
        return self._glance.is_hopeless(standing.need, standing.sizes, standing.price)

    def most_together(self, candidates: Iterable[Candidate]) -> int:
        """How many of these can go together at most, from the first on."""
        return self._prospects.most_together(candidates, self._glance.most)

    def can_go_together(self, candidates: Sequence[Candidate]) -> bool:
        """Whether candidates may go together; False for certain, whatever one new node may cost."""
        return self.most_together(candidates) == len(candidates)

    def cannot_go(self, candidates: Sequence[Candidate]) -> bool:
        """Whether, for certain, candidates cannot go together."""
        need, nodes = self._prospects.need_of_all(candidates), [candidate.node for candidate in candidates]
        return self._glance.is_hopeless(need, sizes_of(need), total_price(candidates), nodes)

    def hopeless_of(self, roster: Roster) -> list[Candidate] | None:
        """What an outlook finds worth a look if nobody of a roster can go; None if that cannot be told."""
        return self._prospects.hopeless_of(roster, self)

    @lazy
    def _is_clear(self) -> bool:
        """Whether nothing but the pods of candidates needs a place, and no node is on its way."""
        return self._glance.are_all_up and not self._has_waiting()

    def against(self, candidate: Candidate) -> Obstruction | None:
        """Why a candidate of a hopeless class cannot go, in the words of a simulation; None if that is to be found out.

        Some of its pods would need a new node, as all of them together would need no more than one. None that is
        cheaper can take them, or its class were not hopeless.
        """
        if not self._is_clear:
            return None
        standing = self._prospects.of(candidate).standing
        if standing.judge is not self or not standing.is_hopeless or candidate.capacity_type == SPOT:
            return None
        if not self._glance.has(candidate.node):
            return None
        if standing.fits_on_one_new is None:
            standing.fits_on_one_new = self._glance.fit_on_one_new(standing.need)
        return not_cheaper() if standing.fits_on_one_new else None


class Outlook:
    """What counting tells about the candidates of one moment."""

    def __init__(self, prospects: Prospects, headroom: Headroom, book: FormBook) -> None:
        self._prospects = prospects
        self._headroom = headroom
        self._book = book
        self._foreseen: dict[tuple[Need, int], Foresight | None] = {}
        """By need, and what is lost with the nodes that go."""
        self._asked: tuple[Candidate, tuple[Blocker | None, Foresight | None]] | None = None
        """The last candidate asked about, and the answer: who asks whether it stays goes on to ask why."""
        self._blockers: dict[tuple[Standing, bool, int], tuple[Blocker | None, Foresight | None]] = {}
        """By class, whether on spot, and what is lost with a node: the answer for all such members."""
        self._together: tuple[Sequence[Candidate], Foresight] | None = None
        """The last candidates of which was asked whether they can go together, if it would be for one new node."""
        prospects.begin(book)

    def worth_a_look(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of which something may come, or has to be told."""
        return self._prospects.worth_a_look(candidates, self)

    def worth_a_look_of(self, roster: Roster) -> list[Candidate]:
        """The same of a roster, best first."""
        return self._prospects.worth_a_look_of(roster, self)

    def is_hopeless(self, standing: Standing) -> bool:
        """Whether no candidate of a class can go, for certain."""
        return self._headroom.is_hopeless(standing.need, standing.sizes, standing.price)

    def stays_as_told(self, candidate: Candidate) -> bool:
        """Whether a candidate cannot go for certain, and nobody has to be told again."""
        if candidate in self._prospects.untold:
            return False
        return self._prospects.is_quiet(candidate) and self._blocker(candidate)[0] is not None

    def against(self, candidate: Candidate) -> Obstruction | None:
        """Why a candidate cannot go, in the words of a simulation; None if that has to be found out."""
        blocker, foresight = self._blocker(candidate)
        if blocker is None or foresight is None:
            return None
        if blocker is _DO_NOT_FIT:
            reasons: dict[str, str] = {}
            for node, stranded in self._headroom.stranded(foresight, _moving(candidate), self._book):
                reasons.update(dict.fromkeys([facts.key for facts in stranded], why_not_counted(node)))
            return pods_do_not_fit(reasons)
        return several(foresight.new_nodes) if blocker is _SEVERAL else not_cheaper()

    def _blocker(self, candidate: Candidate) -> tuple[Blocker | None, Foresight | None]:
        """The reason why a candidate cannot go, and what it is taken from; None if a simulation has to find out."""
        asked = self._asked
        if asked is not None and asked[0] is candidate:
            return asked[1]
        standing = self._prospects.of(candidate).standing
        row = self._headroom.row(candidate.node)
        lost = self._lost_with((row,), standing.need) if row is not None else None
        if lost is None:
            found = self._find_blocker(candidate, standing)
        else:
            key = standing, candidate.capacity_type == SPOT, lost
            is_like_others = self._goes_by(lost, standing.need) or self._comes_first(candidate, standing.need)
            known = self._blockers.get(key) if is_like_others else None
            found = known or self._find_blocker(candidate, standing)
            if known is None and is_like_others:
                self._blockers[key] = found
        self._asked = candidate, found
        return found

    def _lost_with(self, rows: Sequence[int], need: Need) -> int | None:
        """All that matters of nodes that go: nothing, or how many places for pods; None if it matters which they are.

        Pods of one kind, with nobody else in the queue, take one place after the other. How many find one goes by how
        many there are, and so does who would be on nodes that have not come up: those come last, and never go.
        """
        if self._headroom.are_full(rows, need):
            return _NOTHING
        if len(rows) != 1 or len(need) != 1 or self._headroom.has_waiting:
            return None
        return int(self._headroom.open_rows(need[0][0]).capacity[rows[0]])

    def _goes_by(self, lost: int, need: Need) -> bool:
        """Whether the same would be found for all nodes with which as much is lost."""
        return lost != _NOTHING or self._headroom.goes_by_number(need)

    def _comes_first(self, candidate: Candidate, need: Need) -> bool:
        """Whether its pods are queued before all that wait and are of the same size: then it goes by their number."""
        moving = _moving(candidate)
        return bool(moving) and self._headroom.comes_first(need, max([facts.age for facts in moving]))

    def _find_blocker(self, candidate: Candidate, standing: Standing) -> tuple[Blocker | None, Foresight | None]:
        foresight = self._foresee((candidate,), standing.need)
        if foresight is None:
            return None, None
        if foresight.is_stranded:
            return _DO_NOT_FIT, foresight
        if candidate.capacity_type == SPOT:
            return None, foresight
        if foresight.new_nodes > 1:
            return _SEVERAL, foresight
        if foresight.new_nodes == 1 and not self._headroom.cheaper_types(foresight, standing.price):
            return Blocker.NOT_CHEAPER, foresight
        return None, foresight

    def most_together(self, candidates: Iterable[Candidate]) -> int:
        """How many of these can go together at most, from the first on, as far as a sum over all nodes tells."""
        return self._prospects.most_together(candidates, self._headroom.most)

    def cannot_go(self, candidates: Sequence[Candidate]) -> bool:
        """Whether, for certain, candidates cannot go together."""
        price, need = total_price(candidates), self._prospects.need_of_all(candidates)
        self._together = None
        if self._headroom.is_hopeless(need, sizes_of(need), price):
            return True
        foresight = self._foresee(candidates, need)
        if foresight is None:
            return False
        if foresight.is_stranded or foresight.new_nodes > 1:
            return True
        if foresight.new_nodes == 0:
            return False
        self._together = candidates, foresight
        return not self._headroom.cheaper_types(foresight, price)

    def replaced_by(self, candidates: Sequence[Candidate]) -> PlannedClaim | None:
        """The one new node, its pods aside, that candidates of which :meth:`cannot_go` was just asked would go for.

        None if they would go for none, or if a simulation has to find out.
        """
        together = self._together
        return self._headroom.planned(together[1]) if together is not None and together[0] is candidates else None

    def _foresee(self, candidates: Sequence[Candidate], need: Need) -> Foresight | None:
        rows = [self._headroom.row(candidate.node) for candidate in candidates]
        if None in rows:
            return None
        known = [row for row in rows if row is not None]
        lost = self._lost_with(known, need)
        if lost is not None and (need, lost) in self._foreseen:
            return self._foreseen[need, lost]
        found = self._headroom.foresee(need, _pods(candidates), known)
        if lost is not None and self._goes_by(lost, need):
            self._foreseen[need, lost] = found
        return found


def _pods(candidates: Iterable[Candidate]) -> list[JsonObject]:
    return [pod for candidate in candidates for pod in candidate.movable_pods]


def _need(candidate: Candidate, book: FormBook) -> Need:
    """How many pods of each kind have to move."""
    return need_of(Counter([facts.kind(book) for facts in _moving(candidate)]))


def _moving(candidate: Candidate) -> list[PodFacts]:
    """The pods that have to move. A candidate is not being deleted, so those that have started are moved."""
    found = [facts for facts in candidate.node.facts if facts.is_reschedulable]
    if len(candidate.movable_pods) < len(found):
        movable = {id(pod) for pod in candidate.movable_pods}
        return [facts for facts in found if id(facts.pod) in movable]
    return found
