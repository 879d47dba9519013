"""What the checker looks at: places with their pods, kinds of machine, pools. Plain data, made by the inputs.

Nothing here comes from the solver: label values have their own little algebra, which knows one question only,
whether every value that a node may get is one that a pod accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

Pod = Mapping[str, Any]
Vector = Mapping[str, int]
LabelSet = frozenset[tuple[str, "Values"]]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
NODE_POOL = "karpenter.sh/nodepool"

_BETA_KEYS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}


@dataclass(frozen=True)
class Values:
    """The values that a label of a node may turn out to have: the listed ones, or any but the listed ones."""

    listed: frozenset[str]
    is_open: bool = False
    low: int | None = None
    high: int | None = None

    @staticmethod
    def of(*values: str) -> Values:
        return Values(frozenset(values))

    @property
    def known(self) -> frozenset[str] | None:
        """All possible values, if they can be told."""
        return None if self.is_open else self.listed

    @property
    def single(self) -> str | None:
        """The one value, if there is but one."""
        return next(iter(self.listed)) if not self.is_open and len(self.listed) == 1 else None

    def has(self, value: str) -> bool:
        if (value in self.listed) is self.is_open:
            return False
        if self.low is None and self.high is None:
            return True
        number = _integer(value)
        return number is not None and (self.low is None or number >= self.low) and (
            self.high is None or number <= self.high)

    def meet(self, other: Values) -> Values:
        """What both allow."""
        if self.is_open and other.is_open:
            lows = [low for low in (self.low, other.low) if low is not None]
            highs = [high for high in (self.high, other.high) if high is not None]
            return Values(
                self.listed | other.listed, True, max(lows) if lows else None, min(highs) if highs else None)
        one, another = (other, self) if self.is_open else (self, other)
        return Values(frozenset(value for value in one.listed if another.has(value)))

    def is_empty(self) -> bool:
        if self.is_open:
            return self.low is not None and self.high is not None and self.low > self.high
        return not self.listed


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def stable_key(key: str) -> str:
    """The present name of a label key."""
    return _BETA_KEYS.get(key, key)


def values_of(expression: Mapping[str, Any]) -> Values:
    """The values that a requirement of a pool or claim leaves open."""
    operator, listed = expression["operator"], frozenset(expression.get("values") or ())
    if operator in ("In", "DoesNotExist"):
        return Values(listed)
    if operator in ("NotIn", "Exists"):
        return Values(listed, True)
    bound = int(next(iter(listed)))
    return {
        "Gt": Values(frozenset(), True, bound + 1, None),
        "Gte": Values(frozenset(), True, bound, None),
        "Lt": Values(frozenset(), True, None, bound - 1),
        "Lte": Values(frozenset(), True, None, bound),
    }[operator]


def values_by_key(expressions: Iterable[Mapping[str, Any]]) -> dict[str, Values]:
    """Several requirements, by key; those on one key together."""
    found: dict[str, Values] = {}
    for expression in expressions:
        key = stable_key(expression["key"])
        values = values_of(expression)
        found[key] = found[key].meet(values) if key in found else values
    return found


def accepts(expression: Mapping[str, Any], label: Values | None) -> bool:
    """Whether a pod's expression holds for whatever value the label gets; None: the node has no such label."""
    operator, listed = expression["operator"], frozenset(expression.get("values") or ())
    absent = label is None or (not label.is_open and not label.listed)
    if operator == "DoesNotExist":
        return absent
    if operator == "NotIn":
        if absent:
            return True
        assert label is not None
        return all(not label.has(value) for value in listed)
    if absent:
        return False
    assert label is not None
    if operator == "Exists":
        return True
    if operator == "In":
        return not label.is_open and label.listed <= listed
    bounds = values_of(expression)
    if not label.is_open:
        return all(bounds.has(value) for value in label.listed)
    return (bounds.low is None or (label.low is not None and label.low >= bounds.low)) and (
        bounds.high is None or (label.high is not None and label.high <= bounds.high))


@dataclass(frozen=True, eq=False)
class Deal:
    """A place and price at which a kind of machine is offered."""

    labels: Mapping[str, Values]
    price: float
    allocatable: Vector
    available: bool = True
    launchable: bool = True
    reservation: str = ""
    reservation_capacity: int = 0


@dataclass(frozen=True, eq=False)
class Kind:
    """An instance type."""

    name: str
    labels: Mapping[str, Values]
    capacity: Vector
    deals: tuple[Deal, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """What all claims of a pool have in common."""

    name: str
    labels: Mapping[str, Values]
    """Template labels and requirements together."""
    taints: tuple[Mapping[str, Any], ...] = ()
    limits: Vector | None = None
    kinds: tuple[Kind, ...] = ()
    min_values: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """The machine that would be bought, as an answer tells it."""

    kind: str
    zone: str
    capacity_type: str
    price: float


@dataclass(frozen=True, eq=False)
class Place:
    """A node, or a claim that will become one."""

    name: str
    pool: str
    is_new: bool
    labels: Mapping[str, Values]
    taints: tuple[Mapping[str, Any], ...]
    before: tuple[Pod, ...] = ()
    """Pods that are there already and stay."""
    placed: tuple[Pod, ...] = ()
    """Pods that the plan puts there."""
    allocatable: Vector = field(default_factory=dict)
    """Of a node that exists."""
    capacity: Vector = field(default_factory=dict)
    options: tuple[Kind, ...] = ()
    """Of a claim: what it may become."""
    has_all_options: bool = True
    choice: Choice | None = None
    attach_limits: Mapping[str, int] = field(default_factory=dict)
    """CSI driver -> volumes that it can attach here."""
    startup_taints: tuple[Mapping[str, Any], ...] = ()
    is_initialized: bool = True
    is_leaving: bool = False
    """Whether it is being deleted: it takes no more pods."""

    @cached_property
    def label_set(self) -> LabelSet:
        """The labels in a form that things can be remembered by."""
        return frozenset(self.labels.items())

    def deals(self, kind: Kind) -> tuple[Deal, ...]:
        """Where a claim may be launched as a machine of this kind."""
        return _deals(self.label_set, kind)


@lru_cache(maxsize=500_000)
def _deals(labels: LabelSet, kind: Kind) -> tuple[Deal, ...]:
    known = dict(labels)
    return tuple(
        deal for deal in kind.deals
        if deal.available
        and all(key not in known or not known[key].meet(values).is_empty() for key, values in deal.labels.items())
    )  # fmt: skip


@lru_cache(maxsize=500_000)
def impossible_labels(claim: LabelSet, pool: Pool, kind: Kind) -> tuple[str, ...]:
    """Keys for which claim, pool and machine leave no value together."""
    found = []
    known = dict(claim)
    for key in sorted(known.keys() | pool.labels.keys() | kind.labels.keys()):
        parts = [labels[key] for labels in (known, pool.labels, kind.labels) if key in labels]
        together = parts[0]
        for part in parts[1:]:
            together = together.meet(part)
        if all(part.is_open or part.listed for part in parts) and together.is_empty():
            found.append(key)
    return tuple(found)


@dataclass(frozen=True)
class Storage:
    """What pods' volumes refer to, by name (claims by namespace and name)."""

    claims: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """A plan and everything it must be judged by."""

    places: tuple[Place, ...]
    pools: Mapping[str, Pool]
    pending: tuple[Pod, ...]
    daemons: tuple[Pod, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)
    errors: frozenset[str] = frozenset()
    minimums_are_strict: bool = True


@dataclass(frozen=True)
class Violation:
    """A rule that a plan breaks."""

    rule: str
    """resources, taints, node-affinity, ports, volumes, spread, affinity, anti-affinity, offering, price, limits,
    min-values, reservation, pods."""
    place: str
    pod: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.pod or 'all pods'} on {self.place or 'all nodes'}: {self.detail}"


def key_of(pod: Pod) -> str:
    """Namespace and name, as answers print them."""
    meta = pod["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def label_of(place: Place, kind: Kind | None, key: str) -> Values | None:
    """What the label of a machine of this kind may be; None: it has no such label."""
    wanted = place.labels.get(key)
    given = kind.labels.get(key) if kind is not None else None
    if wanted is None or given is None:
        return wanted if given is None else given
    return wanted.meet(given)
