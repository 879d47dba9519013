"""What the fleet keeps of one node; to the pods on it, it is their host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holokube.client.cache import object_key
from holokube.hollow.addresses import PodAddresses
from holokube.hollow.admission import check_admission, check_resources, host_ports_of, lacking_resources, requests_of
from holokube.hollow.images import ImageStore
from holokube.hollow.node_life import Fault
from holokube.hollow.pod_state import Rejection
from holokube.hollow.wheel import Timer
from holokube.kube.resources import parse_resources
from holokube.kube.types import JsonObject


@dataclass(slots=True)
class _Share:
    """What one pod takes of its node."""

    requests: dict[str, int]
    ports: list[tuple[str, str, int]]


@dataclass(slots=True)
class NodeRecord:
    """A managed node."""

    name: str
    uid: str
    node: JsonObject
    host_ips: Sequence[str]
    own_address: str
    """Taken from the fleet's pool, empty when the Node object had one."""
    addresses: PodAddresses
    slow_by: float
    default_allocatable: Mapping[str, str]
    """Of a node that has not reported its status yet."""
    speaks: bool = False
    """Whether this process speaks for the node, as far as leases go."""
    faults: frozenset[Fault] = frozenset()
    commanded: frozenset[Fault] = frozenset()
    """Faults set by command rather than by the Node object."""
    boot: str = ""
    reboots: int = 0
    rebooting: bool = False
    pods: dict[str, None] = field(default_factory=dict)
    shares: dict[str, _Share] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    timer: Timer[Callable[[], None]] | None = None
    reported_s: float | None = None
    """When this process last reported the status, in Unix seconds."""
    report_every_s: float = 0.0
    busy: bool = False
    dirty: bool = False
    failures: int = 0
    images: ImageStore | None = None
    """Only where somebody wants to know."""

    @property
    def all_faults(self) -> frozenset[Fault]:
        return self.faults | self.commanded

    @property
    def is_silent(self) -> bool:
        return self.rebooting or Fault.SILENT in self.faults or Fault.SILENT in self.commanded

    @property
    def slow_factor(self) -> float:
        return self.slow_by if Fault.SLOW in self.all_faults else 1.0

    def admit(self, pod: Mapping[str, Any]) -> Rejection | None:
        ports: Iterable[tuple[str, str, int]] = ()
        if host_ports_of(pod):
            ports = [port for share in self.shares.values() for port in share.ports]
        return check_admission(
            pod,
            self.node,
            allocatable=self._allocatable(),
            used=self.used,
            pods=len(self.shares),
            host_ports=ports,
        )

    def lacking(self, pod: Mapping[str, Any]) -> dict[str, int]:
        """By how much the node falls short for the pod."""
        return lacking_resources(pod, allocatable=self._allocatable(), used=self.used, pods=len(self.shares))

    def _allocatable(self) -> dict[str, int]:
        status = self.node.get("status") or {}
        return parse_resources(status.get("allocatable") or status.get("capacity") or self.default_allocatable)

    def resize(self, pod: Mapping[str, Any]) -> Rejection | None:
        """Counts a pod that runs here with what it asks for now, if that fits beside the others."""
        key = object_key(pod)
        own = self.shares.get(key)
        used = dict(self.used)
        for name, amount in own.requests.items() if own is not None else ():
            used[name] -= amount
        others = len(self.shares) - (own is not None)
        refused = check_resources(pod, allocatable=self._allocatable(), used=used, pods=others)
        if refused is None:
            self.uncount(key)
            self.count(key, pod)
        return refused

    def take_addresses(self) -> tuple[str, ...] | None:
        return self.addresses.take()

    def claim_addresses(self, addresses: Iterable[str]) -> None:
        self.addresses.claim(addresses)

    def release_addresses(self, addresses: Iterable[str]) -> None:
        self.addresses.release(addresses)

    def count(self, key: str, pod: Mapping[str, Any]) -> None:
        """Adds what a pod takes; once per pod."""
        if key in self.shares:
            return
        if self.images is not None:
            for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
                self.images.add(container.get("image", ""))
        share = _Share(requests_of(pod), host_ports_of(pod))
        self.shares[key] = share
        for name, amount in share.requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def uncount(self, key: str) -> None:
        """Takes it away again."""
        share = self.shares.pop(key, None)
        if share is not None:
            for name, amount in share.requests.items():
                self.used[name] -= amount
