"""Where a pod may go, with the nodes that were promised to other pods taken into account.

A pod that matters at least as much as the one to be placed, and waits for a node, is both counted on that node and
not counted: the new pod must fit either way, since nobody knows yet whether the other will really come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, Diagnosis, PodClass
from holokube.packing.arrays import BoolArray
from holokube.packing.feasibility import Feasibility
from holokube.packing.filters import DEFAULT_FILTERS
from holokube.scheduler.nominations import Nominations
from holokube.scheduler.pod_facts import key_of

_REMEMBERED_CLASSES: Final = 1024
NO_RIVALS: Final[Mapping[int, Sequence[JsonObject]]] = {}


class Filtering:
    """The filters of a profile on a state."""

    def __init__(
        self, state: ClusterState, nominations: Nominations, disabled: frozenset[str] = frozenset()
    ) -> None:
        self.state = state
        self._nominations = nominations
        self._own: Feasibility | None = None
        self.mask: Callable[[PodClass], BoolArray] = state.feasible
        """Where a pod of a class may go, whoever was promised what."""
        if disabled:
            filters = tuple(rule for rule in DEFAULT_FILTERS if rule.name not in disabled)
            self._own = Feasibility(state, filters, _REMEMBERED_CLASSES)
            self.mask = self._own.mask

    def _diagnose(self, cls: PodClass) -> Diagnosis:
        return self.state.diagnose(cls) if self._own is None else self._own.diagnose(cls)

    def _why(self, cls: PodClass, row: int) -> tuple[str, ...]:
        return self.state.why(cls, row) if self._own is None else self._own.why(cls, row)

    def rivals(self, pod: JsonObject) -> Mapping[int, Sequence[JsonObject]]:
        """By row, the pods that a pod must leave room for."""
        if not self._nominations.promised:
            return NO_RIVALS
        rows = self.state.node_names
        return {rows[name]: pods for name, pods in self._nominations.rivals(pod).items() if name in rows}

    def class_of(self, pod: JsonObject, rivals: Mapping[int, Sequence[JsonObject]]) -> PodClass:
        """The class of a pod, which stays valid while its rivals are placed for a trial."""
        if not rivals:
            return self.state.class_of(pod)
        return self.state.classify([pod, *(rival for pods in rivals.values() for rival in pods)])[0]

    def feasible(self, cls: PodClass, rivals: Mapping[int, Sequence[JsonObject]]) -> BoolArray:
        """Where a pod of a class may go with and without its rivals."""
        mask = self.mask(cls)
        if not rivals:
            return mask
        contested = {row: pods for row, pods in rivals.items() if mask[row]}
        if not contested:
            return mask
        mask = mask.copy()
        if self._is_local(cls, contested):
            with self.state.trial():
                self._place(contested)
                mask &= self.mask(cls)
            return mask
        for row, pods in contested.items():
            with self.state.trial():
                self._place({row: pods})
                mask[row] = bool(self.mask(cls)[row])
        return mask

    def fits(self, cls: PodClass, row: int, rivals: Sequence[JsonObject]) -> bool:
        """Whether one row may take a pod of a class with and without its rivals there."""
        if not self.mask(cls)[row]:
            return False
        if not rivals:
            return True
        with self.state.trial():
            self._place({row: rivals})
            return bool(self.mask(cls)[row])

    def reasons(self, cls: PodClass, row: int, rivals: Sequence[JsonObject]) -> tuple[str, ...]:
        """Why one row refuses a pod: with its rivals there, or else without."""
        if rivals:
            with self.state.trial():
                self._place({row: rivals})
                found = self._why(cls, row)
            if found:
                return found
        return self._why(cls, row)

    def diagnose(self, cls: PodClass, rivals: Mapping[int, Sequence[JsonObject]]) -> Diagnosis:
        """Why a pod of a class cannot go where it cannot go; a node is asked with the rivals on it first."""
        plain = self._diagnose(cls)
        if not rivals or plain.refusal:
            return plain
        reasons, plugins, resolvable = dict(plain.reasons), set(plain.plugins), plain.resolvable.copy()
        for row, pods in rivals.items():
            with self.state.trial():
                self._place({row: pods})
                if self.mask(cls)[row]:
                    continue
                contested, refused_for = self._diagnose(cls), self._why(cls, row)
            for reason in self._why(cls, row):
                reasons[reason] -= 1
            for reason in refused_for:
                reasons[reason] = reasons.get(reason, 0) + 1
            plugins |= contested.plugins
            resolvable[row] = contested.resolvable[row]
        return Diagnosis("", {reason: count for reason, count in reasons.items() if count}, plugins, resolvable)

    def _place(self, rivals: Mapping[int, Sequence[JsonObject]]) -> None:
        for row, pods in rivals.items():
            for pod in pods:
                if self.state.pod(key_of(pod)) is None:
                    self.state.assume_pod(pod, row)

    def _is_local(self, cls: PodClass, rivals: Mapping[int, Sequence[JsonObject]]) -> bool:
        """Whether rivals on one node cannot matter to another, so that all can be tried at once."""
        if cls.selects_pods or cls.claims:
            return False
        others = (self.state.class_of(pod) for pods in rivals.values() for pod in pods)
        return not any(other.anti_affinity or other.claims for other in others)

