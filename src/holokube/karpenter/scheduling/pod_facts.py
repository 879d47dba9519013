"""What decisions go by about one pod object, worked out once however often its node is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from holokube.karpenter.api.labels import DO_NOT_DISRUPT
from holokube.karpenter.disruption.costs import ORDINARY_COST, eviction_cost
from holokube.karpenter.disruption.pods import TERMINAL_PHASES, is_daemon, is_reschedulable
from holokube.karpenter.scheduling.pod_requests import requests_of
from holokube.karpenter.scheduling.topology_specs import spread_keys
from holokube.kube.resources import ResourceVector
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.karpenter.scheduling.pod_forms import FormBook, Kind

_EMPTY: Final[Mapping[str, Any]] = {}
_NO_LABELS: Final[frozenset[str]] = frozenset()
Age = tuple[str, str]
_AMONG_PODS: Final = ("podAffinity", "podAntiAffinity")


class PodFacts:
    """Facts about one object. An object never changes, so neither do they."""

    __slots__ = (
        "_age", "_key", "_kind", "cost", "guard", "has_started", "has_volumes", "is_plain", "is_reschedulable",
        "is_running", "is_spread", "pod", "requests", "watched",
    )  # fmt: skip

    def __init__(self, pod: JsonObject) -> None:
        spec: Mapping[str, Any] = pod.get("spec") or _EMPTY
        self.pod = pod
        self.requests: ResourceVector = requests_of(pod)
        """Shared by pods that ask for the same; never changed."""
        phase = (pod.get("status") or _EMPTY).get("phase")
        self.is_running = phase not in TERMINAL_PHASES
        self.has_started = phase != "Pending"
        self.is_reschedulable = is_reschedulable(pod)
        annotations = pod["metadata"].get("annotations")
        # Most pods say nothing that changes what follows, and are not asked by a call each.
        self.cost = eviction_cost(pod) if annotations or spec.get("priority") else ORDINARY_COST
        """What its eviction costs, if its deletion cost counts."""
        self.guard: str | None = annotations.get(DO_NOT_DISRUPT) if annotations else None
        """What it says about being disrupted, if anything."""
        self.has_volumes = bool(spec.get("volumes"))
        self.is_plain = not (self.has_volumes or spec.get("affinity")) or is_plain(pod)
        spread = spec.get("topologySpreadConstraints")
        self.is_spread = bool(spread)
        self.watched: frozenset[str] = spread_keys(spread) if spread else _NO_LABELS
        """Labels of other pods that it goes by when it is spread."""
        self._kind: tuple[FormBook, Kind] | None = None
        self._age: Age | None = None
        self._key: str | None = None

    @property
    def is_ordinary(self) -> bool:
        """Whether it says nothing about being disrupted, and other pods and volumes have no say in where it goes."""
        return self.guard is None and self.is_plain and not self.is_spread

    @property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet owns it; asked for where there are any."""
        return is_daemon(self.pod)

    def kind(self, book: FormBook) -> Kind:
        """Its kind in a book if its node goes; the book has to know that it is plain."""
        known = self._kind
        if known is None or known[0] is not book:
            known = self._kind = book, book.form_like(self.pod).kinds[self.has_started]
        return known[1]

    @property
    def age(self) -> Age:
        """What pods of one size are queued by."""
        found = self._age
        if found is None:
            found = self._age = age_of(self.pod)
        return found

    @property
    def key(self) -> str:
        """``namespace/name``, by which people are told of it again and again."""
        found = self._key
        if found is None:
            metadata = self.pod["metadata"]
            found = self._key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
        return found


def age_of(pod: JsonObject) -> Age:
    """When a pod was made, and what tells it apart from others of the same second."""
    metadata = pod["metadata"]
    uid = metadata.get("uid") or f"{metadata.get('namespace') or ''}/{metadata['name']}"
    return metadata.get("creationTimestamp") or "", uid


def is_plain(pod: JsonObject) -> bool:
    """Whether it keeps neither near to other pods nor apart from them, and no volume has a say in where it goes."""
    spec: Mapping[str, Any] = pod.get("spec") or _EMPTY
    affinity = spec.get("affinity")
    if affinity and any(affinity.get(kind) for kind in _AMONG_PODS):
        return False
    return not spec.get("volumes") or next(claim_keys(pod), None) is None


def claim_keys(pod: Mapping[str, Any]) -> Iterator[str]:
    """The PersistentVolumeClaims of a pod as ``namespace/name``; those made for it alone included."""
    metadata = pod.get("metadata") or _EMPTY
    namespace = metadata.get("namespace") or ""
    for volume in (pod.get("spec") or _EMPTY).get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield f"{namespace}/{volume['persistentVolumeClaim'].get('claimName', '')}"
        elif volume.get("ephemeral") is not None:
            yield f"{namespace}/{metadata.get('name', '')}-{volume.get('name', '')}"


def held_by(facts: Iterable[PodFacts]) -> ResourceVector:
    """The sum of what pods ask for; pods that ask for the same are counted first."""
    counts: dict[int, list[Any]] = {}
    for one in facts:
        requests = one.requests
        known = counts.get(id(requests))
        if known is None:
            counts[id(requests)] = [requests, 1]
        else:
            known[1] += 1
    total: ResourceVector = {}
    for requests, count in counts.values():
        for name, milli in requests.items():
            total[name] = total.get(name, 0) + milli * count
    return total
