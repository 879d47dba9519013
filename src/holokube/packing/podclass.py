"""Pods grouped into classes: members of one class are alike to every filter.

A class holds the compiled view of everything that filters look at: requests, node selector and affinity,
tolerations, host ports, spread constraints, pod (anti-)affinity, volumes, namespace, and the labels that some
selector asks for. Preferences are part of it as well, because pods that are there pull on the scores of others
by them. Priority and images are left to those who score.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holokube.kube import resources
from holokube.kube.affinity import (
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeAffinity,
    RequiredNodeAffinity,
    apply_label_keys,
)
from holokube.kube.resources import NONZERO_REQUESTS, ResourceVector, pod_requests
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.taints import Toleration, tolerations_of
from holokube.kube.types import JsonObject
from holokube.packing.nodes import scheduled_amounts

if TYPE_CHECKING:
    from holokube.packing.daemon_sizes import DaemonSizes

WILDCARD_IP: Final = "0.0.0.0"  # noqa: S104 - the API's word for "every address of the node", nothing is bound here
_EMPTY: Final[Mapping[str, Any]] = {}


class HostPort(NamedTuple):
    """A port of the node that a pod takes for itself."""

    ip: str
    protocol: str
    port: int


class SpreadConstraint(NamedTuple):
    """A ``topologySpreadConstraints`` entry."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector
    honor_affinity: bool
    honor_taints: bool
    label_keys: tuple[str, ...] = ()
    """``matchLabelKeys``; the pod's own values are in the selector."""


class Wishes(NamedTuple):
    """What a class would like without insisting on it. Filters do not look at these, scores do."""

    nodes: PreferredNodeAffinity = PreferredNodeAffinity()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()


_NO_WISHES: Final = Wishes()


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim that a pod mounts."""

    name: str
    ephemeral_of: str = ""
    """For a claim made for this one pod: the pod's name and uid, which must own it."""


class Disk(NamedTuple):
    """A volume written straight into the pod whose kind cannot be mounted twice at will."""

    kind: str
    identity: tuple[str, ...]
    monitors: frozenset[str] = frozenset()
    read_only: bool = False

    def conflicts_with(self, other: Disk) -> bool:
        """Whether both are the same disk and may not be mounted on one node together."""
        if self.kind != other.kind or self.identity != other.identity:
            return False
        if self.kind == "awsElasticBlockStore":
            return True
        if self.kind == "rbd" and not self.monitors & other.monitors:
            return False
        return not (self.read_only and other.read_only)


@dataclass(slots=True, eq=False, weakref_slot=True)
class PodClass:
    """One kind of pod. Classes are compared by identity; get them from ``ClusterState.class_of``."""

    namespace: str
    labels: Mapping[str, str]
    """All labels of the first member; members agree on those that selectors ask for."""
    requests: ResourceVector
    """Milli-units by name, without zeros, and with one of ``pods``."""
    requests_nonzero: tuple[int, int]
    """Cpu and memory with the scheduler's assumptions for containers that request none."""
    node_name: str
    node_affinity: RequiredNodeAffinity
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    spread: tuple[SpreadConstraint, ...]
    affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]
    claims: tuple[ClaimUse, ...]
    disks: tuple[Disk, ...]
    requests_scored: tuple[int, int] = (0, 0)
    """The same while the pod is not placed: what NodeResourcesFit scores it by."""
    wishes: Wishes = _NO_WISHES
    sizes: DaemonSizes | None = None
    """For pods whose requests go by the node; ``requests`` are then those of the template."""
    error: str = ""
    """Why no node will do whatever it is like; set if a selector of the pod is malformed."""
    ignored_keys: set[str] = field(default_factory=set)
    """Labels of members that no selector had asked for when they were noted."""
    noted_keys: set[str] = field(default_factory=set)
    """These, and those of them that one had: what a member with no other labels adds nothing to."""
    is_stale: bool = False
    pulls: tuple[tuple[PodAffinityTerm, int], ...] = field(init=False)
    """Terms by which its pods draw others near (1) or push them away (-1) once they are there."""
    takes_only_room: bool = field(init=False)
    """Whether its pods take nothing of a node but what they request, the same everywhere."""

    def __post_init__(self) -> None:
        near, far = (*self.affinity, *self.wishes.affinity), self.wishes.anti_affinity
        self.pulls = (*((term, 1) for term in near), *((term, -1) for term in far))
        self.takes_only_room = not (self.claims or self.disks or self.ports or self.sizes is not None)

    @property
    def selects_pods(self) -> bool:
        """Whether other pods matter to it beyond the room they take."""
        return bool(self.spread or self.affinity or self.anti_affinity)

    def watched_keys(self) -> set[str]:
        """The labels that its selectors ask other pods for, or take over from the pod itself."""
        wishes = self.wishes
        terms = (*self.affinity, *self.anti_affinity, *wishes.affinity, *wishes.anti_affinity)
        constraints = (*self.spread, *wishes.spread)
        selectors = [constraint.selector for constraint in constraints] + [term.selector for term in terms]
        keys = {requirement.key for selector in selectors for requirement in selector.requirements}
        for constraint in constraints:
            keys.update(constraint.label_keys)
        for term in terms:
            keys.update(term.match_label_keys, term.mismatch_label_keys)
        return keys

    def identity(self, watched: set[str]) -> Hashable:
        """What members have in common."""
        return (
            self.namespace, frozenset(self.requests.items()), self.requests_nonzero, self.node_name,
            self.node_affinity, self.tolerations, self.ports, self.spread, self.affinity, self.anti_affinity,
            self.claims, self.disks, self.requests_scored, self.wishes, self.error,
            self.sizes.key if self.sizes is not None else None,
            frozenset((key, value) for key, value in self.labels.items() if key in watched),
        )  # fmt: skip


def compile_class(
    pod: Mapping[str, Any], *, merge_label_keys: bool = False, sizes: DaemonSizes | None = None
) -> PodClass:
    """The class of a Pod object as if it were the only one; ``merge_label_keys`` if no API server has seen it."""
    metadata, spec = pod.get("metadata") or _EMPTY, pod.get("spec") or _EMPTY
    labels = metadata.get("labels") or {}
    spread: tuple[SpreadConstraint, ...] = ()
    soft_spread: tuple[SpreadConstraint, ...] = ()
    affinity = PodAffinity()
    error = ""
    try:
        spread = tuple(_spread_constraints(spec, labels, "DoNotSchedule"))
        soft_spread = tuple(_spread_constraints(spec, labels, "ScheduleAnyway"))
        affinity = PodAffinity.of_pod(pod, merge_label_keys=merge_label_keys)
    except SelectorError as malformed:
        error = f"parsing pod: {malformed}"
    return PodClass(
        namespace=metadata.get("namespace") or "",
        labels=labels,
        requests=requests_of(pod),
        requests_nonzero=requests_nonzero_of(pod),
        node_name=spec.get("nodeName") or "",
        node_affinity=RequiredNodeAffinity.of_pod(pod),
        tolerations=_tolerations(pod),
        ports=tuple(sorted(set(host_ports(spec)))),
        spread=spread,
        affinity=affinity.required,
        anti_affinity=affinity.anti_required,
        claims=tuple(_claims(metadata, spec)),
        disks=tuple(sorted(_disks(spec), key=repr)),
        requests_scored=requests_scored_of(pod),
        wishes=Wishes(
            PreferredNodeAffinity.of_pod(pod), affinity.preferred, affinity.anti_preferred, soft_spread
        ),
        sizes=sizes,
        error=error,
    )


def requests_of(pod: Mapping[str, Any], *, use_status: bool = False) -> ResourceVector:
    """What a pod takes of a node, with one of ``pods``."""
    amounts = scheduled_amounts(pod_requests(pod, use_status=use_status))
    requests = {name: milli for name, milli in amounts.items() if milli}
    requests[resources.PODS] = 1000
    return requests


def requests_nonzero_of(pod: Mapping[str, Any], *, use_status: bool = False) -> tuple[int, int]:
    """Cpu and memory as the scheduler's scores see them once the pod is there."""
    assumed = NONZERO_REQUESTS
    of_pod = ((pod.get("spec") or _EMPTY).get("resources") or _EMPTY).get("requests") or _EMPTY
    if any(name in (resources.CPU, resources.MEMORY) or name.startswith(resources.HUGEPAGES_PREFIX) for name in of_pod):
        # With requests for the pod as a whole, containers that request nothing are no riddle any more.
        known = pod_requests(pod, use_status=use_status)
        assumed = {name: milli for name, milli in NONZERO_REQUESTS.items() if name not in known}
    amounts = scheduled_amounts(pod_requests(pod, use_status=use_status, assume_missing=assumed))
    return amounts.get(resources.CPU, 0), amounts.get(resources.MEMORY, 0)


def requests_scored_of(pod: Mapping[str, Any]) -> tuple[int, int]:
    """Cpu and memory as the scheduler's scores see them before: requests of the pod as a whole do not count."""
    amounts = scheduled_amounts(pod_requests(pod, skip_pod_level=True, assume_missing=NONZERO_REQUESTS))
    return amounts.get(resources.CPU, 0), amounts.get(resources.MEMORY, 0)


def host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    """The node's ports that a pod needs: those of containers and sidecars."""
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*sidecars, *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if (port.get("hostPort") or 0) > 0:
                yield HostPort(port.get("hostIP") or WILDCARD_IP, port.get("protocol") or "TCP", port["hostPort"])


def _tolerations(pod: Mapping[str, Any]) -> tuple[Toleration, ...]:
    # For how long a taint is borne does not matter to who may come, nor does the order of tolerations.
    return tuple(sorted({t._replace(toleration_seconds=None) for t in tolerations_of(pod)}))


def _spread_constraints(
    spec: Mapping[str, Any], labels: Mapping[str, str], when_unsatisfiable: str
) -> Iterator[SpreadConstraint]:
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") != when_unsatisfiable:
            continue
        yield SpreadConstraint(
            topology_key=constraint.get("topologyKey", ""),
            max_skew=constraint.get("maxSkew", 0),
            min_domains=_or(constraint.get("minDomains"), 1),
            selector=LabelSelector.from_json(apply_label_keys(constraint, labels)),
            honor_affinity=_or(constraint.get("nodeAffinityPolicy"), "Honor") == "Honor",
            honor_taints=_or(constraint.get("nodeTaintsPolicy"), "Ignore") == "Honor",
            label_keys=tuple(constraint.get("matchLabelKeys") or ()),
        )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def relevant_volumes(spec: Mapping[str, Any]) -> list[JsonObject]:
    """The volumes that a filter looks at: claims, and disks written straight into the pod."""
    kinds = ("persistentVolumeClaim", "ephemeral", *_DISK_IDENTITIES)
    return [volume for volume in spec.get("volumes") or () if any(volume.get(kind) is not None for kind in kinds)]


def _claims(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[ClaimUse]:
    for volume in spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield ClaimUse(volume["persistentVolumeClaim"].get("claimName", ""))
        elif volume.get("ephemeral") is not None:
            pod_name = metadata.get("name", "")
            owner = f"{pod_name}/{metadata.get('uid', '')}"
            yield ClaimUse(f"{pod_name}-{volume.get('name', '')}", ephemeral_of=owner)


_DISK_IDENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
}


def _disks(spec: Mapping[str, Any]) -> Iterable[Disk]:
    found = set()
    for volume in spec.get("volumes") or ():
        for kind, fields in _DISK_IDENTITIES.items():
            source = volume.get(kind)
            if source is not None:
                identity = tuple(source.get(name, "") for name in fields)
                monitors = frozenset(source.get("monitors") or ())
                found.add(Disk(kind, identity, monitors, bool(source.get("readOnly"))))
    return found
