"""One pod, one decision: the node to bind it to, or why there is none and what to do about it.

Pure: the state is looked at, and tried on, but left as it was. Upstream stops looking for feasible nodes when it
has found enough of them (above 100 nodes, ``percentageOfNodesToScore``), to save time. Here all nodes are looked at
and scored, which arrays make cheap, so that a pod gets the best node of the whole cluster and not of a sample.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from holokube.base.rng import Rng
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, Diagnosis, PodClass
from holokube.packing.arrays import BoolArray, IntArray, RowArray
from holokube.scheduler import messages
from holokube.scheduler.filtering import NO_RIVALS, Filtering
from holokube.scheduler.hints import ANY_NODE
from holokube.scheduler.nominations import Nominations
from holokube.scheduler.pod_facts import uid_of
from holokube.scheduler.preemption import preempt

NO_NODES: Final = frozenset({ANY_NODE})
Score = Callable[[PodClass, JsonObject, RowArray], IntArray]
"""One total per row, the larger the better."""
_EMPTY: Final[Mapping[str, Any]] = {}
_REFUSALS_KEPT: Final = 256
_CLASSES_KEPT: Final = 256
_LABELS_KEPT: Final = 1024


class Bind(NamedTuple):
    """The pod goes to a node."""

    row: int
    node_name: str
    cls: PodClass
    feasible: int
    """How many nodes could have taken it, as far as it was asked."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The pod fits nowhere now."""

    message: str
    plugins: frozenset[str]
    """The filters that stood against it; a name of none of them if there was no node at all."""
    cls: PodClass
    nominate: str | None = None
    """The node to promise to it, empty to take a promise back, None to leave that as it is."""
    victims: tuple[JsonObject, ...] = ()
    """The pods that must leave the promised node."""


Decision = Bind | Refuse


class Cycle:
    """Decides for the pods of one profile."""

    def __init__(
        self,
        state: ClusterState,
        nominations: Nominations,
        score: Score,
        rng: Rng,
        *,
        disabled_filters: frozenset[str] = frozenset(),
        budgets: Callable[[], Iterable[JsonObject]] = tuple,
        preempts: bool = True,
    ) -> None:
        self._state = state
        self._nominations = nominations
        self._filtering = Filtering(state, nominations, disabled_filters)
        self._score = score
        self._rng = rng
        self._budgets = budgets
        self._preempts = preempts
        self._feasible: OrderedDict[PodClass, tuple[BoolArray, RowArray]] = OrderedDict()
        self._refusals: OrderedDict[Hashable, tuple[int, Refuse]] = OrderedDict()
        self._latest: dict[int, tuple[Mapping[str, str] | None, JsonObject, str | None, PodClass]] = {}
        """By the identity of labels, which are held for that, what the last pod with them was: its class comes last."""

    def decide(self, pod: JsonObject, now: datetime) -> Decision:
        """Where a pod goes."""
        state, filtering, nominations = self._state, self._filtering, self._nominations
        promised, rivals = (pod.get("status") or _EMPTY).get("nominatedNodeName") or "", NO_RIVALS
        if nominations.promised:
            rivals = filtering.rivals(pod)
            promised = promised or nominations.node_for(uid_of(pod))
        cls = filtering.class_of(pod, rivals) if rivals else self._class_of(pod)
        node_names = state.nodes.row_of
        if not node_names:
            return Refuse(messages.NO_NODES, NO_NODES, cls, nominate="")
        kind = None
        if not promised:
            spec = pod["spec"]
            kind = cls, spec.get("priority") or 0, spec.get("preemptionPolicy")
            known = self._refusals.get(kind)
            if known is not None and known[0] == self._stamp():
                return known[1]
        else:
            row = node_names.get(promised)
            if row is not None and filtering.fits(cls, row, rivals.get(row, ())):
                return Bind(row, promised, cls, 1)
        rows = self._rows(cls, filtering.feasible(cls, rivals) if rivals else filtering.mask(cls))
        if len(rows):
            row = self._choose(cls, pod, rows)
            return Bind(row, state.nodes.names[row], cls, len(rows))
        refusal = self._refuse(pod, cls, rivals, now)
        if kind is not None and not refusal.victims:
            self._remember(kind, refusal)
        return refusal

    def _class_of(self, pod: JsonObject) -> PodClass:
        """The class of a pod. Those of one owner mostly have the very same labels and the very same spec."""
        metadata, spec = pod["metadata"], pod["spec"]
        namespace, labels = metadata.get("namespace"), metadata.get("labels")
        known = self._latest.get(id(labels))
        if known is not None and known[0] is labels and known[1] is spec and known[2] == namespace:
            cls = known[3]
            if not cls.is_stale:
                return cls
        cls = self._state.class_of(pod)
        if not (cls.claims and any(use.ephemeral_of for use in cls.claims)):
            if len(self._latest) >= _LABELS_KEPT:
                self._latest.clear()
            self._latest[id(labels)] = labels, spec, namespace, cls
        return cls

    def _rows(self, cls: PodClass, mask: BoolArray) -> RowArray:
        """The rows of a mask. A mask that did not change is the same array, and so are its rows."""
        known = self._feasible.get(cls)
        if known is not None and known[0] is mask:
            return known[1]
        rows: RowArray = mask.nonzero()[0]
        self._feasible[cls] = mask, rows
        if len(self._feasible) > _CLASSES_KEPT:
            self._feasible.popitem(last=False)
        return rows

    def forget_refusals(self) -> None:
        """Something changed that the state does not number."""
        self._refusals.clear()

    def _choose(self, cls: PodClass, pod: JsonObject, rows: RowArray) -> int:
        """The row with the highest score; among several, any with the same chance."""
        if len(rows) == 1:
            return int(rows[0])
        totals = self._score(cls, pod, rows)
        best = (totals == totals[totals.argmax()]).nonzero()[0]
        count = len(best)
        return rows.item(best.item(self._rng.randrange(count) if count > 1 else 0))

    def _refuse(
        self, pod: JsonObject, cls: PodClass, rivals: Mapping[int, Sequence[JsonObject]], now: datetime
    ) -> Refuse:
        state, diagnosis = self._state, self._filtering.diagnose(cls, rivals)
        plugins = frozenset(diagnosis.plugins)
        if diagnosis.refusal or not self._preempts:
            return Refuse(self._message(diagnosis, None), plugins, cls)
        outcome = preempt(self._filtering, pod, cls, diagnosis, rivals, self._budgets(), now, self._rng)
        chosen = outcome.candidate
        if chosen is None:
            nominate = None if outcome.keeps_nomination else ""
            return Refuse(self._message(diagnosis, outcome.message), plugins, cls, nominate)
        message = messages.fit_error(len(state.node_names), diagnosis.reasons)
        return Refuse(message, plugins, cls, state.name_of(chosen.row), chosen.victims)

    def _message(self, diagnosis: Diagnosis, preemption: str | None) -> str:
        after = messages.attempts_to_make_room(diagnosis.refusal, preemption)
        return messages.fit_error(
            len(self._state.node_names), diagnosis.reasons, refusal=diagnosis.refusal, after=after
        )

    def _remember(self, kind: Hashable, refusal: Refuse) -> None:
        """Pods of one class fare alike as long as nothing changes; a deployment that does not fit has many."""
        self._refusals[kind] = (self._stamp(), refusal)
        self._refusals.move_to_end(kind)
        if len(self._refusals) > _REFUSALS_KEPT:
            self._refusals.popitem(last=False)

    def _stamp(self) -> int:
        """Moves with every change that can matter to a refusal: none of these numbers ever becomes smaller."""
        state = self._state
        return (
            state.node_journal.end + state.usage_journal.end + state.renewals + state.volumes.version
            + self._nominations.version
        )  # fmt: skip
