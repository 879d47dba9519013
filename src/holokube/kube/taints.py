"""Taints, tolerations and who tolerates what, by upstream's rules.

``Lt`` and ``Gt`` tolerations are behind a feature gate that is off in Kubernetes 1.35 and 1.36; with the gate
off they tolerate nothing. Karpenter has them always on. Callers say which by ``comparison_operators``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from holokube.kube.names import is_decimal_integer
from holokube.kube.selectors import parse_int64

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
DO_NOT_SCHEDULE_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep a new pod away; PreferNoSchedule only costs it points."""
ALL_EFFECTS: Final = frozenset({NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE})

NODE_NOT_READY: Final = "node.kubernetes.io/not-ready"
NODE_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
NODE_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NODE_MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
NODE_DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
NODE_PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
NODE_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"
NODE_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
CLOUD_PROVIDER_UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"


class Taint(NamedTuple):
    """A taint without the time it was added."""

    key: str
    value: str = ""
    effect: str = ""

    @classmethod
    def from_json(cls, taint: Mapping[str, Any]) -> Taint:
        """The taint in an element of ``spec.taints``."""
        return cls(taint.get("key", ""), taint.get("value") or "", taint.get("effect") or "")

    def to_json(self) -> dict[str, str]:
        """An element of ``spec.taints``."""
        taint = {"key": self.key, "effect": self.effect}
        if self.value:
            taint["value"] = self.value
        return taint

    def is_same(self, other: Taint) -> bool:
        """Whether both stand for the same taint: a node has one per key and effect."""
        return self.key == other.key and self.effect == other.effect

    def __str__(self) -> str:
        text = f"{self.key}={self.value}" if self.value else self.key
        if self.effect:
            return f"{text}:{self.effect}"
        return f"{text}:" if self.value else text


class Toleration(NamedTuple):
    """A toleration. Empty operator is Equal, empty effect is any effect, empty key is any key."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
    """How long a NoExecute taint is borne; None is forever, zero and less is not at all."""

    @classmethod
    def from_json(cls, toleration: Mapping[str, Any]) -> Toleration:
        """The toleration in an element of ``spec.tolerations``."""
        return cls(
            toleration.get("key") or "",
            toleration.get("operator") or "",
            toleration.get("value") or "",
            toleration.get("effect") or "",
            toleration.get("tolerationSeconds"),
        )

    def to_json(self) -> dict[str, Any]:
        """An element of ``spec.tolerations``."""
        names = ("key", "operator", "value", "effect")
        toleration: dict[str, Any] = {name: text for name, text in zip(names, self, strict=False) if text}
        if self.toleration_seconds is not None:
            toleration["tolerationSeconds"] = self.toleration_seconds
        return toleration

    def tolerates(self, taint: Taint, *, comparison_operators: bool = False) -> bool:
        """Whether this toleration bears ``taint``."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        operator = self.operator
        if operator == "Exists":
            return True
        if operator in ("", "Equal"):
            return self.value == taint.value
        if operator in ("Lt", "Gt") and comparison_operators:
            mine, theirs = _strict_int64(self.value), _strict_int64(taint.value)
            if mine is None or theirs is None:
                return False
            return theirs < mine if operator == "Lt" else theirs > mine
        return False


def _strict_int64(text: str) -> int | None:
    return None if is_decimal_integer(text) else parse_int64(text)


def taints_of(node: Mapping[str, Any]) -> tuple[Taint, ...]:
    """The taints of a Node object."""
    return tuple(Taint.from_json(taint) for taint in (node.get("spec") or {}).get("taints") or ())


def tolerations_of(pod: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """The tolerations of a Pod object, or of anything with a pod's ``spec``."""
    return tuple(Toleration.from_json(t) for t in (pod.get("spec") or {}).get("tolerations") or ())


def is_tolerated(
    taint: Taint, tolerations: Iterable[Toleration], *, comparison_operators: bool = False
) -> bool:
    """Whether any of ``tolerations`` bears ``taint``."""
    return any(t.tolerates(taint, comparison_operators=comparison_operators) for t in tolerations)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    *,
    effects: Collection[str] = DO_NOT_SCHEDULE_EFFECTS,
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint with one of ``effects`` that nothing tolerates; None if the pod may come.

    The default effects are the scheduler's; Karpenter also minds PreferNoSchedule (``ALL_EFFECTS``).
    """
    for taint in taints:
        if taint.effect in effects and not is_tolerated(
            taint, tolerations, comparison_operators=comparison_operators
        ):
            return taint
    return None


def count_untolerated_preferences(
    taints: Iterable[Taint], tolerations: Collection[Toleration], *, comparison_operators: bool = False
) -> int:
    """How many PreferNoSchedule taints are not tolerated: the scheduler's raw score, fewer is better."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not is_tolerated(taint, tolerations, comparison_operators=comparison_operators)
        for taint in taints
    )


def eviction_delay_s(
    taints: Iterable[Taint], tolerations: Collection[Toleration], *, comparison_operators: bool = False
) -> int | None:
    """Seconds until the NoExecute taints evict a running pod: 0 is now, None is never.

    For each taint the first toleration that bears it counts, even if a later one is more patient.
    """
    delay_s: int | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        bearing = next(
            (t for t in tolerations if t.tolerates(taint, comparison_operators=comparison_operators)), None
        )
        if bearing is None:
            return 0
        if bearing.toleration_seconds is not None:
            patience_s = max(bearing.toleration_seconds, 0)
            delay_s = patience_s if delay_s is None else min(delay_s, patience_s)
    return delay_s


def merge_taints(taints: Iterable[Taint], more: Iterable[Taint]) -> tuple[Taint, ...]:
    """``taints``, then those of ``more`` whose key and effect are not there yet."""
    merged = list(taints)
    for taint in more:
        if not any(taint.is_same(known) for known in merged):
            merged.append(taint)
    return tuple(merged)
