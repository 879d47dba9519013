"""Pods as the solver compares them: those that are alike in everything it looks at share one form.

A pod that gives up a wish takes on another form. What is worked out for a form (where it fits, where it never will)
then holds for every pod that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from holokube.karpenter.scheduling.census import uid_of
from holokube.karpenter.scheduling.host_ports import HostPort, host_ports_of
from holokube.karpenter.scheduling.pod_facts import claim_keys
from holokube.karpenter.scheduling.pod_requests import requests_of
from holokube.karpenter.scheduling.relaxation import Demands
from holokube.karpenter.scheduling.topology_specs import GroupSpec, LabelSet, SpecBook
from holokube.karpenter.scheduling.volume_demands import VolumeReader, Volumes
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.resources import ResourceVector, is_resize_infeasible
from holokube.kube.taints import Toleration
from holokube.kube.types import JsonObject

IntArray = npt.NDArray[np.int64]
_EMPTY: Final[Mapping[str, Any]] = {}
_NO_VOLUMES: Final[Volumes] = {}
_MORE_THAN_ANY: Final = 10**19
"""Amounts are numbers of 64 bits."""
_PODS_KEPT: Final = 20_000
_PARTS_KEPT: Final = 4_096
_RESIZING: Final = ("initContainerStatuses", "resources", "allocatedResources")


class PodForm:
    """One form. Get it from :class:`FormBook`; forms are compared by identity."""

    __slots__ = (
        "_amounts", "_book", "_cpu_and_memory", "_is_simple", "_relaxed", "_size", "anti_specs", "demands",
        "has_resource_claims", "hostname", "kinds", "labels", "number", "ports", "requests", "requirements", "specs",
        "strict", "vector", "volume_alternatives", "volumes",
    )  # fmt: skip

    def __init__(self, book: FormBook, number: int, demands: Demands, like: PodForm | None = None) -> None:
        self._book = book
        self._relaxed: PodForm | bool | None = False
        self._size: PodForm | bool | None = False
        self._amounts: list[tuple[int, int]] | None = None
        self._cpu_and_memory: tuple[int, int] | None = None
        self._is_simple: bool | None = None
        self.number = number
        self.kinds = Kind(self, False), Kind(self, True)
        """Its pods that are not moved, and those that are."""
        self.demands = demands
        requirements, strict = demands.requirements(), demands.requirements(strict=True)
        self.hostname: Requirement | None = requirements.get(HOSTNAME_LABEL)
        self.requirements = requirements.without(HOSTNAME_LABEL) if self.hostname is not None else requirements
        self.strict = strict
        self.specs: tuple[GroupSpec, ...] = ()
        """Topology that this form is bound by."""
        self.anti_specs: tuple[GroupSpec, ...] = ()
        """Its required anti-affinity as others feel it."""
        if like is not None:
            self.labels: LabelSet = like.labels
            self.requests: ResourceVector = like.requests
            self.vector: IntArray = like.vector
            self.ports: tuple[HostPort, ...] = like.ports
            self.volumes: Volumes = like.volumes
            self.volume_alternatives: tuple[Requirements, ...] = like.volume_alternatives
            self.has_resource_claims: bool = like.has_resource_claims

    @property
    def relaxed(self) -> PodForm | None:
        """The form with one wish less; None if there is nothing to give up."""
        if self._relaxed is False:
            self._relaxed = self._book.relax(self)
        return self._relaxed  # type: ignore[return-value]  # False was replaced above

    @property
    def is_simple(self) -> bool:
        """Whether its size and its tolerations alone decide where it fits."""
        found = self._is_simple
        if found is None:
            found = self._is_simple = not (
                self.requirements
                or self.hostname is not None
                or self.specs
                or self.anti_specs
                or self.ports
                or self.volumes
                or self.volume_alternatives
                or self.has_resource_claims
                or self.relaxed is not None
            )
        return found

    @property
    def asks_of_labels(self) -> bool:
        """Whether labels of nodes have a say in where it fits."""
        return bool(self.requirements) or self.hostname is not None

    @property
    def size(self) -> PodForm | None:
        """A form of this size that fits wherever this one does, wishes given up or not; alike ones share it.

        None if labels of nodes have a say: another alternative may be open where the first is not.
        """
        if self._size is False:
            self._size = self._book.size(self)
        return self._size  # type: ignore[return-value]  # False was replaced above

    @property
    def amounts(self) -> list[tuple[int, int]]:
        """The columns that it asks for something of, and how much; every pod asks for one of ``pods``."""
        if self._amounts is None:
            vector = self.vector.tolist()
            self._amounts = [(column, milli) for column, milli in enumerate(vector) if milli]
        return self._amounts

    @property
    def cpu_and_memory(self) -> tuple[int, int]:
        """What the queue is ordered by."""
        found = self._cpu_and_memory
        if found is None:
            found = self._cpu_and_memory = self.requests.get("cpu", 0), self.requests.get("memory", 0)
        return found


class Kind(NamedTuple):
    """Pods that are placed alike. Take it from its form."""

    form: PodForm
    is_moving: bool
    """Whether consolidation moves them, so that they keep off nodes that are settling."""


class QueuedPod(NamedTuple):
    """A pod that waits for a place."""

    pod: JsonObject
    form: PodForm
    uid: str
    rank: str
    """Its place in the queue: most cpu first, then most memory, then the oldest, then by uid.

    As one text, since pods are put in order again and again, and texts are compared in a fraction of the time.
    """
    is_moving: bool = False
    """Whether consolidation moves it: it is neither pending nor on a node that is going anyway."""


def rank_of(cpu: int, memory: int, created: str, uid: str) -> str:
    """A text that comes before another if there is more cpu, then more memory, then an earlier time, then uid."""
    # What is between the parts comes before anything that can be in them.
    return f"{_MORE_THAN_ANY - cpu:020d}{_MORE_THAN_ANY - memory:020d}{created}\0{uid}"


class FormBook:
    """All forms of a problem."""

    def __init__(
        self,
        specs: SpecBook,
        volumes: VolumeReader,
        columns: Mapping[str, int],
        *,
        with_wishes: bool,
        tolerate_preferences: bool,
    ) -> None:
        self._specs = specs
        self._volumes = volumes
        self._columns = columns
        self._with_wishes = with_wishes
        self._tolerate_preferences = tolerate_preferences
        self._known: dict[bytes, PodForm] = {}
        self._by_parts: dict[tuple[int, ...], tuple[tuple[object, ...], PodForm]] = {}
        self._by_identity: dict[int, QueuedPod] = {}
        self._sizes: dict[tuple[bytes, tuple[Toleration, ...]], PodForm] = {}
        self.known = self._by_identity.get
        """The queued pod of an object that has been looked at, by its identity; the pod is to be held meanwhile."""
        self.forms: list[PodForm] = []

    def forget_pods(self, needed: int) -> None:
        """Lets go of pods that were looked at, if they are many more than are needed; their forms stay."""
        if len(self._by_identity) > _PODS_KEPT + 4 * needed:
            self._by_identity.clear()

    def form_of(self, pod: JsonObject) -> PodForm:
        """The form of a pod with all its wishes. LookupError if its volumes are not known."""
        return self.queued(pod).form

    def queued(self, pod: JsonObject) -> QueuedPod:
        """A pod with its form, as it would be queued if nobody moves it. LookupError as above."""
        found = self._by_identity.get(id(pod))
        if found is None:
            form, uid = self.form_like(pod), uid_of(pod)
            rank = rank_of(*form.cpu_and_memory, pod["metadata"].get("creationTimestamp") or "", uid)
            # The pod is kept beside its form, so that no other object can get its identity.
            found = self._by_identity[id(pod)] = QueuedPod(pod, form, uid, rank)
        return found

    def form_like(self, pod: JsonObject) -> PodForm:
        """The same, for who keeps it himself."""
        parts = self._parts(pod)
        if parts is None:
            return self._form_by_key(pod)
        alike = tuple(map(id, parts))
        found = self._by_parts.get(alike)
        if found is None:
            if len(self._by_parts) >= _PARTS_KEPT:
                self._by_parts.clear()
            # The parts are kept beside the form, so that no other objects can get their identities.
            found = self._by_parts[alike] = parts, self._form_by_key(pod)
        return found[1]

    def _form_by_key(self, pod: JsonObject) -> PodForm:
        key = self._key(pod)
        form = self._known.get(key)
        if form is None:
            form = self._known[key] = self._compile(pod)
        return form

    def _parts(self, pod: JsonObject) -> tuple[object, ...] | None:
        """All that the form of a usual pod goes by, of which pods of one template share the objects; None of another.

        Labels are told apart by the set that they belong to.
        """
        metadata, spec, status = pod["metadata"], pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY
        part = spec.get
        # Every pod comes this way, so that nothing is called here that need not be.
        if part("volumes") or part("initContainers") or part("overhead") or part("resources") or part("resourceClaims"):
            return None
        statuses, one = status.get("containerStatuses"), _EMPTY
        if statuses:
            if len(statuses) > 1 or any(map(status.get, _RESIZING)):
                return None
            one = statuses[0]
            if one.get("resources") is not None and is_resize_infeasible(pod):
                return None
        return (
            self._specs.label_set(metadata.get("namespace") or "", metadata.get("labels")),
            part("containers"), part("tolerations"), part("nodeSelector"), part("affinity"),
            part("topologySpreadConstraints"), one.get("name"), one.get("resources"), one.get("allocatedResources"),
        )  # fmt: skip

    def _key(self, pod: JsonObject) -> bytes:
        metadata, spec = pod["metadata"], pod.get("spec") or _EMPTY
        labels = self._specs.watched_labels(metadata.get("labels"))
        containers = [(c.get("resources"), c.get("ports")) for c in spec.get("containers") or ()]
        sidecars = spec.get("initContainers")
        if sidecars:
            sidecars = [(c.get("resources"), c.get("restartPolicy")) for c in sidecars]
        claims = list(claim_keys(pod)) if spec.get("volumes") else None
        status = pod.get("status") or _EMPTY
        resize = _resize(pod, status) if _is_resized(status) else None
        return orjson.dumps(
            (
                metadata.get("namespace"), labels, spec.get("nodeSelector"), spec.get("affinity"),
                spec.get("tolerations"), spec.get("topologySpreadConstraints"), containers, sidecars,
                spec.get("overhead"), spec.get("resources"), spec.get("resourceClaims"), claims, resize,
            ),
            option=orjson.OPT_SORT_KEYS,
        )  # fmt: skip

    def _compile(self, pod: JsonObject) -> PodForm:
        metadata, spec = pod["metadata"], pod.get("spec") or _EMPTY
        form = self._new(Demands.of(pod, with_wishes=self._with_wishes))
        form.labels = self._specs.label_set(metadata.get("namespace") or "", metadata.get("labels"))
        form.requests = requests_of(pod)
        vector = np.zeros(len(self._columns), dtype=np.int64)
        for name, milli in form.requests.items():
            vector[self._columns[name]] = milli
        form.vector = vector
        form.ports = host_ports_of(spec)
        has_volumes = bool(spec.get("volumes"))
        form.volumes = self._volumes.attached(pod) if has_volumes else _NO_VOLUMES
        form.volume_alternatives = self._volumes.alternatives(pod) if has_volumes else ()
        form.has_resource_claims = has_resource_claims(spec)
        self._bind(form)
        return form

    def _new(self, demands: Demands, like: PodForm | None = None) -> PodForm:
        form = PodForm(self, len(self.forms), demands, like)
        self.forms.append(form)
        return form

    def _bind(self, form: PodForm) -> None:
        form.specs = self._specs.specs_of(form.labels, form.demands)
        form.anti_specs = self._specs.anti_specs_of(form.labels, form.demands)

    def relax(self, form: PodForm) -> PodForm | None:
        """The form with one wish less."""
        demands = form.demands.relaxed(tolerate_preferences=self._tolerate_preferences)
        if demands is None:
            return None
        relaxed = self._new(demands, form)
        self._bind(relaxed)
        return relaxed


    def size(self, form: PodForm) -> PodForm | None:
        """See :attr:`PodForm.size`."""
        last, looser = form, form.relaxed
        while looser is not None and not last.asks_of_labels:
            last, looser = looser, looser.relaxed
        if last.asks_of_labels:
            return None
        return self._sizes.setdefault((last.vector.tobytes(), last.demands.tolerations), last)


def _resize(pod: JsonObject, status: Mapping[str, Any]) -> tuple[object, ...]:
    """What of the status says how much a pod takes; the rest of it tells running pods apart that are alike."""
    told = [
        (one.get("name"), one.get("resources"), one.get("allocatedResources"))
        for field in ("containerStatuses", "initContainerStatuses")
        for one in status.get(field) or ()
    ]
    return told, status.get("resources"), status.get("allocatedResources"), is_resize_infeasible(pod)


def _is_resized(status: Mapping[str, Any]) -> bool:
    return any(one.get("resources") is not None for one in status.get("containerStatuses") or ())


def has_resource_claims(spec: Mapping[str, Any]) -> bool:
    """Whether a pod uses dynamic resource allocation."""
    if spec.get("resourceClaims"):
        return True
    containers: Iterable[Mapping[str, Any]] = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return any((one.get("resources") or _EMPTY).get("claims") for one in containers)
