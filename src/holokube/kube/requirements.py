"""Karpenter's requirement algebra: sets of label values that can be intersected.

A :class:`Requirement` is the set of values one label key may take: listed values, or all but the listed ones
(``complement``), within inclusive integer bounds. :class:`Requirements` holds one per key. Both are
immutable and hashable, so that results can be shared and cached. What looks odd is upstream's, and
programs depend on it:

- Bounds live only in complements; a concrete set is filtered once and forgets them.
- Two requirements without positive operators (NotIn, DoesNotExist) never clash: a missing label satisfies
  both.
- Two complements always count as intersecting unless their bounds cross, even if no value is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from holokube.kube.selectors import parse_int64

NODEPOOL_LABEL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"
WINDOWS_BUILD_LABEL: Final = "node.kubernetes.io/windows-build"

WELL_KNOWN_LABELS: Final = frozenset({
    NODEPOOL_LABEL, ZONE_LABEL, REGION_LABEL, INSTANCE_TYPE_LABEL, ARCH_LABEL, OS_LABEL, CAPACITY_TYPE_LABEL,
    WINDOWS_BUILD_LABEL,
})  # fmt: skip
"""Keys a node pool may leave undefined. A provider adds its own: pass the union as ``allow_undefined``."""

RESTRICTED_LABELS: Final = frozenset({HOSTNAME_LABEL})
"""Keys users may not set, and messages do not show."""

NORMALIZED_LABELS: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    "beta.kubernetes.io/arch": ARCH_LABEL,
    "beta.kubernetes.io/os": OS_LABEL,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
}
"""Old keys and the stable ones they are read as."""

_MAX_INT: Final = 2**63 - 1
_EMPTY: Final[frozenset[str]] = frozenset()
_NON_POSITIVE: Final = ("NotIn", "DoesNotExist")


class RandomSource(Protocol):
    """The one draw that :meth:`Requirement.any` needs."""

    def randrange(self, n: int, /) -> int:
        """A number from 0 to ``n - 1``."""


class Requirement:
    """The values that one label key may take. Make it with :meth:`new`."""

    __slots__ = ("_hash", "complement", "gte", "key", "lte", "min_values", "operator", "values")

    key: str
    complement: bool
    """Whether ``values`` are the forbidden ones."""
    values: frozenset[str]
    gte: int | None
    """Inclusive lower bound; complements only."""
    lte: int | None
    """Inclusive upper bound; complements only."""
    min_values: int | None
    """How many different values must stay possible, if a pool asks for flexibility."""
    operator: str
    """In, NotIn, Exists or DoesNotExist; one with bounds counts as Exists or NotIn."""

    def __init__(
        self,
        key: str,
        complement: bool,
        values: frozenset[str],
        gte: int | None = None,
        lte: int | None = None,
        min_values: int | None = None,
    ) -> None:
        self.key = key
        self.complement = complement
        self.values = values
        self.gte = gte
        self.lte = lte
        self.min_values = min_values
        if complement:
            self.operator = "NotIn" if values else "Exists"
        else:
            self.operator = "In" if values else "DoesNotExist"
        self._hash = hash((key, complement, values, gte, lte, min_values))

    @staticmethod
    def new(
        key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None
    ) -> Requirement:
        """From an operator of the API; old keys are renamed. ValueError if operator or bound is nonsense."""
        key = NORMALIZED_LABELS.get(key, key)
        if operator == "In":
            return Requirement(key, False, frozenset(values), None, None, min_values)
        if operator == "NotIn":
            return Requirement(key, True, frozenset(values), None, None, min_values)
        if operator == "Exists":
            return Requirement(key, True, _EMPTY, None, None, min_values)
        if operator == "DoesNotExist":
            return Requirement(key, False, _EMPTY, None, None, min_values)
        if operator not in ("Gt", "Lt", "Gte", "Lte"):
            raise ValueError(
                f"requirement on {key}: {operator!r} is no operator;"
                " use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte"
            )
        bound = _bound(key, operator, tuple(values))
        if operator == "Gt":
            if bound == _MAX_INT:
                return Requirement(key, False, _EMPTY)
            return Requirement(key, True, _EMPTY, bound + 1, None, min_values)
        if operator == "Gte":
            return Requirement(key, True, _EMPTY, bound, None, min_values)
        return Requirement(key, True, _EMPTY, None, bound - 1 if operator == "Lt" else bound, min_values)

    @staticmethod
    def from_json(requirement: Mapping[str, Any]) -> Requirement:
        """From an element of ``spec.requirements`` or of ``matchExpressions``."""
        return Requirement.new(
            requirement.get("key", ""),
            requirement.get("operator", ""),
            requirement.get("values") or (),
            requirement.get("minValues"),
        )

    def has(self, value: str) -> bool:
        """Whether the label may have this value."""
        return (value in self.values) is not self.complement and _within(value, self.gte, self.lte)

    def intersection(self, other: Requirement) -> Requirement:
        """The values that both allow. Both must be about the same key."""
        if self is other:
            return self
        assert self.key == other.key, f"requirements on {self.key} and {other.key} have no intersection"
        gte, lte = _larger(self.gte, other.gte), _smaller(self.lte, other.lte)
        min_values = _larger(self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(self.key, False, _EMPTY, None, None, min_values)
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _within(value, gte, lte))
            if not complement:
                gte = lte = None
        return Requirement(self.key, complement, values, gte, lte, min_values)

    def intersects(self, other: Requirement) -> bool:
        """Whether both can be satisfied, without building the intersection."""
        gte, lte = self.gte, self.lte
        if other.gte is not None or other.lte is not None or gte is not None or lte is not None:
            gte, lte = _larger(gte, other.gte), _smaller(lte, other.lte)
            if gte is not None and lte is not None and gte > lte:
                return False
            if self.complement and other.complement:
                return True
            concrete, rest = (other, self) if self.complement else (self, other)
            return any(
                (value in rest.values) is not rest.complement and _within(value, gte, lte)
                for value in concrete.values
            )
        if self.complement:
            return other.complement or not other.values <= self.values
        if other.complement:
            return not self.values <= other.values
        return not self.values.isdisjoint(other.values)

    @property
    def is_positive(self) -> bool:
        """Whether the label must be there: In and Exists, as opposed to NotIn and DoesNotExist."""
        return self.operator not in _NON_POSITIVE

    def any(self, rng: RandomSource) -> str:
        """A value to put on a node: the first listed, or a random number within the bounds, or nothing."""
        if self.operator == "In":
            return min(self.values)
        if self.operator == "DoesNotExist":
            return ""
        lowest = 0 if self.gte is None else self.gte
        beyond = _MAX_INT if self.lte is None else self.lte + 1
        return str(lowest + rng.randrange(max(beyond - lowest, 1)))

    def to_json(self) -> list[dict[str, Any]]:
        """Elements of ``spec.requirements``: one, or two when both bounds are set.

        A requirement with bounds is written without its forbidden values, as upstream does.
        """
        parts: list[tuple[str, list[str] | None]] = []
        if self.gte is not None:
            parts.append(("Gte", [str(self.gte)]))
        if self.lte is not None:
            parts.append(("Lte", [str(self.lte)]))
        if not parts:
            parts.append((self.operator, sorted(self.values) if self.values else None))
        written = []
        for operator, values in parts:
            entry: dict[str, Any] = {"key": self.key, "operator": operator}
            if values is not None:
                entry["values"] = values
            if self.min_values is not None:
                entry["minValues"] = self.min_values
            written.append(entry)
        return written

    def __str__(self) -> str:
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = sorted(self.values)
            if len(shown) > 5:
                shown = [*shown[:5], f"and {len(shown) - 5} others"]
            text += f" [{' '.join(shown)}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        if self.min_values is not None:
            text += f" minValues {self.min_values}"
        return text

    def __repr__(self) -> str:
        return f"<Requirement {self}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Requirement):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.key == other.key
            and self.complement == other.complement
            and self.values == other.values
            and self.gte == other.gte
            and self.lte == other.lte
            and self.min_values == other.min_values
        )

    def __hash__(self) -> int:
        return self._hash


def _bound(key: str, operator: str, values: tuple[str, ...]) -> int:
    bound = parse_int64(values[0]) if len(values) == 1 else None
    if bound is None:
        raise ValueError(
            f"requirement on {key}: {operator} needs exactly one integer,"
            f" not {', '.join(values) or 'nothing'}"
        )
    return bound


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    number = parse_int64(value)
    if number is None:
        return False
    return (gte is None or number >= gte) and (lte is None or number <= lte)


def _larger(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return a if b is None else b
    return max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return a if b is None else b
    return min(a, b)


@lru_cache(maxsize=16_384)
def _label_requirement(key: str, value: str) -> Requirement:
    return Requirement.new(key, "In", (value,))


class Requirements(Mapping[str, Requirement]):
    """One requirement per key; a key that is not there may have any value, or none."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for requirement in requirements:
            known = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if known is None else requirement.intersection(known)
        self._by_key = by_key
        self._hash: int | None = None

    @classmethod
    def _of(cls, by_key: dict[str, Requirement]) -> Requirements:
        made = cls()
        made._by_key = by_key
        return made

    @staticmethod
    def from_json(requirements: Iterable[Mapping[str, Any]] | None) -> Requirements:
        """From ``spec.requirements`` or ``matchExpressions``; several on one key are intersected."""
        return Requirements(map(Requirement.from_json, requirements or ()))

    @staticmethod
    def from_labels(labels: Mapping[str, str] | None) -> Requirements:
        """Each label with exactly its value."""
        return Requirements(_label_requirement(key, value) for key, value in (labels or {}).items())

    @staticmethod
    def of_pod(pod: Mapping[str, Any], *, include_preferred: bool = True) -> Requirements:
        """What a pod asks of its node: node selector AND first required term AND heaviest preferred term.

        The other terms come into play when a solver relaxes the pod. Without ``include_preferred`` these are
        the strict requirements. Only ``matchExpressions`` count.
        """
        spec = pod.get("spec") or {}
        found = Requirements.from_labels(spec.get("nodeSelector"))
        affinity = (spec.get("affinity") or {}).get("nodeAffinity")
        if not affinity:
            return found
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
        if include_preferred and preferred:
            heaviest = max(preferred, key=lambda wish: wish.get("weight", 0))
            expressions = (heaviest.get("preference") or {}).get("matchExpressions")
            found = found.merged(Requirements.from_json(expressions))
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = required.get("nodeSelectorTerms")
        if terms:
            found = found.merged(Requirements.from_json(terms[0].get("matchExpressions")))
        return found

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def of(self, key: str) -> Requirement:
        """The requirement on ``key``; Exists if there is none."""
        found = self._by_key.get(key)
        return found if found is not None else _exists(key)

    def adding(self, *requirements: Requirement) -> Requirements:
        """These requirements narrowed by more."""
        by_key = dict(self._by_key)
        for requirement in requirements:
            known = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if known is None else requirement.intersection(known)
        return Requirements._of(by_key)

    def merged(self, other: Requirements) -> Requirements:
        """What satisfies both; the very same object when one of them is empty."""
        if not other._by_key or other is self:
            return self
        if not self._by_key:
            return other
        return self.adding(*other._by_key.values())

    def without(self, *keys: str) -> Requirements:
        """The same without some keys."""
        return Requirements._of({key: r for key, r in self._by_key.items() if key not in keys})

    def intersects(self, other: Requirements) -> bool:
        """Whether every key that both have can be satisfied."""
        mine, theirs = self._by_key, other._by_key
        if len(mine) > len(theirs):
            mine, theirs = theirs, mine
        for key, one in mine.items():
            another = theirs.get(key)
            if another is None or one is another:
                continue
            if not one.intersects(another) and (one.is_positive or another.is_positive):
                return False
        return True

    def is_compatible(self, other: Requirements, *, allow_undefined: Collection[str] = _EMPTY) -> bool:
        """Whether something with these requirements (a node to be) can serve ``other`` (a pod).

        A key that only ``other`` has is denied, unless it is in ``allow_undefined`` or asked for negatively.
        """
        mine = self._by_key
        for key, wanted in other._by_key.items():
            if key not in mine and wanted.is_positive and key not in allow_undefined:
                return False
        return self.intersects(other)

    def why_incompatible(self, other: Requirements, *, allow_undefined: Collection[str] = _EMPTY) -> str:
        """Upstream's words for why :meth:`is_compatible` says no; empty if it says yes."""
        for key, wanted in sorted(other._by_key.items()):
            if key not in self._by_key and wanted.is_positive and key not in allow_undefined:
                return f'label "{key}" does not have known values{self._hint(key, allow_undefined)}'
        return self.why_disjoint(other)

    def why_disjoint(self, other: Requirements) -> str:
        """Upstream's words for why :meth:`intersects` says no; empty if it says yes."""
        reasons = []
        for key in sorted(self._by_key.keys() & other._by_key.keys()):
            existing, incoming = self._by_key[key], other._by_key[key]
            if existing.intersects(incoming) or not (existing.is_positive or incoming.is_positive):
                continue
            reasons.append(f"key {key}, {incoming} not in {existing}")
        return "; ".join(reasons)

    def _hint(self, key: str, allow_undefined: Collection[str]) -> str:
        suffix = key.partition("/")[2] if "/" in key else key
        for known in (*sorted(allow_undefined), *sorted(self._by_key)):
            if key in known or known.endswith(suffix):
                return f' (typo of "{known}"?)'
        return ""

    @property
    def has_min_values(self) -> bool:
        """Whether any requirement asks for flexibility."""
        return any(requirement.min_values is not None for requirement in self._by_key.values())

    def to_json(self) -> list[dict[str, Any]]:
        """``spec.requirements``, ordered by key."""
        return [entry for _, requirement in sorted(self._by_key.items()) for entry in requirement.to_json()]

    def __str__(self) -> str:
        return ", ".join(sorted(str(r) for key, r in self._by_key.items() if key not in RESTRICTED_LABELS))

    def __repr__(self) -> str:
        return f"<Requirements {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirements):
            return NotImplemented
        return self is other or self._by_key == other._by_key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash


@lru_cache(maxsize=4096)
def _exists(key: str) -> Requirement:
    return Requirement.new(key, "Exists")
