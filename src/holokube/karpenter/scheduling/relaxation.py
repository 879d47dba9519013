"""What a pod wishes, and in which order it gives wishes up.

A pod is first tried with everything it would like as if it insisted on it. When it finds no place, one thing is given
up at a time: the first of several required node affinity terms (they are alternatives), then preferred pod affinity,
preferred pod anti-affinity, preferred node affinity, each the heaviest first, then spread constraints that may be
broken, and at last the aversion to nodes with PreferNoSchedule taints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holokube.base.go_sort import sort_as_go
from holokube.kube.requirements import Requirements
from holokube.kube.taints import PREFER_NO_SCHEDULE, Toleration, tolerations_of
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
TOLERATE_PREFERENCE: Final = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """The parts of a pod's spec that relaxation may change; the JSON in them is never changed."""

    node_selector: Mapping[str, str]
    node_terms: tuple[JsonObject, ...] | None
    """Required alternatives; None if there are none at all."""
    node_wishes: tuple[JsonObject, ...]
    affinity: tuple[JsonObject, ...]
    affinity_wishes: tuple[JsonObject, ...]
    anti_affinity: tuple[JsonObject, ...]
    anti_affinity_wishes: tuple[JsonObject, ...]
    spread: tuple[JsonObject, ...]
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, pod: Mapping[str, Any], *, with_wishes: bool = True) -> Demands:
        """Of a Pod object; without wishes if preferences are to be ignored."""
        spec = pod.get("spec") or _EMPTY
        affinity = spec.get("affinity") or _EMPTY
        nodes = affinity.get("nodeAffinity") or _EMPTY
        near, apart = affinity.get("podAffinity") or _EMPTY, affinity.get("podAntiAffinity") or _EMPTY
        required = nodes.get(_REQUIRED)
        spread = tuple(spec.get("topologySpreadConstraints") or ())
        if not with_wishes:
            spread = tuple(one for one in spread if one.get("whenUnsatisfiable") == "DoNotSchedule")
        wishes = (nodes, near, apart) if with_wishes else (_EMPTY, _EMPTY, _EMPTY)
        return cls(
            node_selector=spec.get("nodeSelector") or _EMPTY,
            node_terms=None if required is None else tuple(required.get("nodeSelectorTerms") or ()),
            node_wishes=tuple(sort_as_go(wishes[0].get(_PREFERRED) or (), _minus_weight)),
            affinity=tuple(near.get(_REQUIRED) or ()),
            affinity_wishes=tuple(sorted(wishes[1].get(_PREFERRED) or (), key=_minus_weight)),
            anti_affinity=tuple(apart.get(_REQUIRED) or ()),
            anti_affinity_wishes=tuple(sorted(wishes[2].get(_PREFERRED) or (), key=_minus_weight)),
            spread=spread,
            tolerations=tolerations_of(pod),
        )

    def relaxed(self, *, tolerate_preferences: bool) -> Demands | None:
        """With one thing less; None if there is nothing to give up."""
        if self.node_terms is not None and len(self.node_terms) > 1:
            return replace(self, node_terms=self.node_terms[1:])
        if self.affinity_wishes:
            return replace(self, affinity_wishes=self.affinity_wishes[1:])
        if self.anti_affinity_wishes:
            return replace(self, anti_affinity_wishes=self.anti_affinity_wishes[1:])
        if self.node_wishes:
            return replace(self, node_wishes=self.node_wishes[1:])
        for place, constraint in enumerate(self.spread):
            if constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
                return replace(self, spread=_without(self.spread, place))
        if tolerate_preferences and not any(map(_bears_preferences, self.tolerations)):
            return replace(self, tolerations=(*self.tolerations, TOLERATE_PREFERENCE))
        return None

    def tolerating(self, toleration: Toleration) -> Demands:
        """With one toleration more, unless it is there."""
        return self if toleration in self.tolerations else replace(self, tolerations=(*self.tolerations, toleration))

    @property
    def affinity_terms(self) -> list[JsonObject]:
        """Pod affinity terms, those wished for included."""
        return [*self.affinity, *(wish.get("podAffinityTerm") or {} for wish in self.affinity_wishes)]

    @property
    def anti_affinity_terms(self) -> list[JsonObject]:
        """Pod anti-affinity terms, those wished for included."""
        return [*self.anti_affinity, *(wish.get("podAffinityTerm") or {} for wish in self.anti_affinity_wishes)]

    def requirements(self, *, strict: bool = False) -> Requirements:
        """What is asked of the node; ``strict`` leaves the heaviest wish out."""
        found = Requirements.from_labels(self.node_selector)
        if self.node_wishes and not strict:
            expressions = (self.node_wishes[0].get("preference") or _EMPTY).get("matchExpressions")
            found = found.merged(Requirements.from_json(expressions))
        if self.node_terms:
            found = found.merged(Requirements.from_json(self.node_terms[0].get("matchExpressions")))
        return found


def _minus_weight(wish: Mapping[str, Any]) -> int:
    return -int(wish.get("weight") or 0)


def _without(spread: Sequence[JsonObject], place: int) -> tuple[JsonObject, ...]:
    """The last constraint takes the place of the one that goes."""
    rest = list(spread)
    rest[place] = rest[-1]
    return tuple(rest[:-1])


def _bears_preferences(toleration: Toleration) -> bool:
    same = (toleration.key, toleration.operator, toleration.value, toleration.effect)
    return same == ("", "Exists", "", PREFER_NO_SCHEDULE)
