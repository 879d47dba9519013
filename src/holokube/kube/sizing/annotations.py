"""What users write on a pod to have it sized, and what is wrong with it.

The names are those of the webhook that made them known (ManoMano's kube-node-specific-sizing), so that its users
need not change anything.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from holokube.base.errors import HolokubeError
from holokube.kube import quantity
from holokube.kube.quantity import Quantity, QuantityError
from holokube.kube.resources import CPU, MEMORY
from holokube.kube.sizing.amounts import LARGEST, units_of, units_within

PREFIX: Final = "node-specific-sizing.manomano.tech/"
ENABLED_LABEL: Final = f"{PREFIX}enabled"
EXCLUDE_ANNOTATION: Final = f"{PREFIX}exclude-containers"
STATUS_ANNOTATION: Final = f"{PREFIX}status"
"""What was applied; written, never read."""
ORIGINAL_ANNOTATION: Final = f"{PREFIX}original"
"""What the containers asked for before they were sized: the proportions that every later sizing goes by."""

_DECIMAL = re.compile(r"(\d{0,30})(?:\.(\d{0,30}))?", re.ASCII)
_EMPTY: Final[Mapping[str, Any]] = {}

Kind = Literal["request", "limit"]
Reason = Literal[
    "UnknownNode", "NoAllocatable", "NothingToDistribute", "PartialTunable", "BadFraction", "BadClamp",
    "MinimumAboveMaximum", "BudgetNotPositive", "BudgetTooSmall", "UnknownContainer", "BadQuantity",
]  # fmt: skip


class SizingProblem(HolokubeError):
    """A pod cannot be sized. ``hint`` says what to write instead, ``reason`` is one word for metrics."""

    def __init__(self, reason: Reason, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.reason: Reason = reason

    @property
    def text(self) -> str:
        """One line for users."""
        return f"{self.message}; {self.hint}"


class Tunable(NamedTuple):
    """One of the four amounts that can be sized."""

    resource: str
    kind: Kind

    @property
    def field(self) -> str:
        """Where it is in ``resources``."""
        return f"{self.kind}s"

    @property
    def fraction_annotation(self) -> str:
        return f"{PREFIX}{self.kind}-{self.resource}-fraction"

    def clamp_annotations(self, bound: str) -> tuple[str, str]:
        """The annotation for this tunable alone, which wins, and the one for request and limit alike."""
        return f"{PREFIX}{bound}-{self.resource}-{self.kind}", f"{PREFIX}{bound}-{self.resource}"

    def __str__(self) -> str:
        return f"{self.resource} {self.kind}"


TUNABLES: Final = (
    Tunable(CPU, "request"), Tunable(CPU, "limit"), Tunable(MEMORY, "request"), Tunable(MEMORY, "limit"),
)  # fmt: skip
_KNOWN: Final = frozenset({
    EXCLUDE_ANNOTATION, STATUS_ANNOTATION, ORIGINAL_ANNOTATION, ENABLED_LABEL,
    *(tunable.fraction_annotation for tunable in TUNABLES),
    *(name for tunable in TUNABLES for bound in ("minimum", "maximum") for name in tunable.clamp_annotations(bound)),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clamp:
    """A bound in whole units, and the annotation that it comes from."""

    units: int
    annotation: str


@dataclass(frozen=True, slots=True)
class Share:
    """What a pod shall get of one tunable."""

    tunable: Tunable
    numerator: int
    denominator: int
    minimum: Clamp | None
    maximum: Clamp | None

    def of(self, allocatable: int) -> int:
        """The fraction of what a node has, in whole units that do not exceed it."""
        return allocatable * self.numerator // self.denominator

    def clamped(self, budget: int) -> int:
        """Not below the minimum, not above the maximum."""
        if self.minimum is not None:
            budget = max(budget, self.minimum.units)
        if self.maximum is not None:
            budget = min(budget, self.maximum.units)
        return budget


@dataclass(frozen=True, slots=True)
class Rules:
    """All that a pod's annotations say."""

    shares: tuple[Share, ...]
    excluded: tuple[str, ...]
    notes: tuple[str, ...]
    """What is probably not meant, but stands in nobody's way."""


def is_enabled(pod: Mapping[str, Any]) -> bool:
    """Whether the pod opts in; only the string "true" does."""
    labels = (pod.get("metadata") or _EMPTY).get("labels") or _EMPTY
    return bool(labels.get(ENABLED_LABEL) == "true")


def node_name_of(pod: Mapping[str, Any]) -> str:
    """The node that a pod is meant for: by affinity to its name, as DaemonSets do it, else where it is bound.

    Empty if it does not say, or names several.
    """
    spec = pod.get("spec") or _EMPTY
    node_affinity = (spec.get("affinity") or _EMPTY).get("nodeAffinity") or _EMPTY
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or _EMPTY
    names = {
        value
        for term in required.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
        if field.get("key") == "metadata.name" and field.get("operator") == "In"
        for value in field.get("values") or ()
    }
    if names:
        return str(names.pop()) if len(names) == 1 else ""
    return str(spec.get("nodeName") or "")


def rules_of(pod: Mapping[str, Any]) -> Rules:
    """What the annotations of a pod say; :class:`SizingProblem` if they make no sense."""
    annotations = (pod.get("metadata") or _EMPTY).get("annotations") or _EMPTY
    return _rules(tuple(relevant(annotations)))


def relevant(annotations: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The annotations that users write for sizing, in the order of their names."""
    return sorted(
        (name, text)
        for name, text in annotations.items()
        if name.startswith(PREFIX) and name not in (STATUS_ANNOTATION, ORIGINAL_ANNOTATION)
    )


@lru_cache(maxsize=4096)
def _rules(items: tuple[tuple[str, str], ...]) -> Rules:
    annotations = dict(items)
    shares = tuple(
        _share(tunable, annotations) for tunable in TUNABLES if tunable.fraction_annotation in annotations
    )
    excluded = tuple(name.strip() for name in annotations.get(EXCLUDE_ANNOTATION, "").split(",") if name.strip())
    return Rules(shares, excluded, tuple(_notes(annotations, shares)))


def _share(tunable: Tunable, annotations: Mapping[str, str]) -> Share:
    numerator, denominator = _fraction(tunable.fraction_annotation, annotations[tunable.fraction_annotation])
    low, high = (_clamp(tunable, bound, annotations) for bound in ("minimum", "maximum"))
    if low is not None and high is not None and low[1] > high[1]:
        raise SizingProblem(
            "MinimumAboveMaximum",
            f"annotation {low[0].annotation} is {low[1]}, above {high[0].annotation}, which is {high[1]}",
            hint="write a minimum that is not above the maximum",
        )
    return Share(tunable, numerator, denominator, low[0] if low else None, high[0] if high else None)


def _fraction(name: str, text: str) -> tuple[int, int]:
    hint = 'write a decimal above 0 and at most 1, such as "0.1" for a tenth of the node'
    matched = _DECIMAL.fullmatch(text.strip())
    whole, decimals = (matched[1], matched[2] or "") if matched else ("", "")
    if not whole and not decimals:
        raise SizingProblem("BadFraction", f"annotation {name} is {_shown(text)}, no decimal number", hint=hint)
    numerator, denominator = int(whole + decimals), int(10 ** len(decimals))
    if not 0 < numerator <= denominator:
        raise SizingProblem("BadFraction", f"annotation {name} is {_shown(text)}, out of range", hint=hint)
    return numerator, denominator


def _clamp(tunable: Tunable, bound: str, annotations: Mapping[str, str]) -> tuple[Clamp, Quantity] | None:
    """A bound in whole units, rounded to the inside, and as it is written."""
    name = next((name for name in tunable.clamp_annotations(bound) if name in annotations), None)
    if name is None:
        return None
    text = annotations[name]
    example = "500m" if tunable.resource == CPU else "256Mi"
    hint = f'write a quantity of {tunable.resource} for the whole pod, such as "{example}"'
    try:
        written = quantity.parse(text)
    except QuantityError:
        raise SizingProblem("BadClamp", f"annotation {name} is {_shown(text)}, no quantity", hint=hint) from None
    units = units_of(tunable.resource, text)
    if written.sign() < 0 or units > LARGEST:
        raise SizingProblem("BadClamp", f"annotation {name} is {_shown(text)}, out of range", hint=hint)
    if bound == "maximum":
        units = units_within(tunable.resource, written)
    return Clamp(units, name), written


def _notes(annotations: Mapping[str, str], shares: tuple[Share, ...]) -> Iterable[str]:
    for name in annotations:
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            yield f"annotation {name} is unknown and ignored" + (f"; did you mean {near[0]}?" if near else "")
    if not shares:
        yield (
            f'label {ENABLED_LABEL} is "true", but nothing says what to size; '
            f'write an annotation such as {TUNABLES[0].fraction_annotation}: "0.1"'
        )


def _shown(text: str) -> str:
    """A value in quotes, cut to what fits into one warning."""
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'
