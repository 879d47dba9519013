"""What the fleet keeps of one node; to the pods on it, it is their host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.client.cache import object_key
from holokube.hollow.addresses import PodAddresses
from holokube.hollow.admission import Offer, Share, Shares, check_admission, check_resources, lacking_resources
from holokube.hollow.images import ImageStore
from holokube.hollow.node_life import Fault
from holokube.hollow.pod_state import Rejection
from holokube.hollow.wheel import Timer
from holokube.kube.types import JsonObject


@dataclass(slots=True)
class _Load:
    """The pods on one node."""

    pods: dict[str, None] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)
    """Of those that were admitted."""
    used: dict[str, int] = field(default_factory=dict)


_NOTHING: Final = _Load()
"""What empty nodes have in common; never changed."""
_shares: Final = Shares()


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
    load: _Load | None = None
    """None while no pod is here, which is most of the time for most nodes of a large fleet."""
    timer: Timer[Callable[[], None]] | None = None
    reported_s: float | None = None
    """When this process last reported the status, in Unix seconds."""
    report_every_s: float = 0.0
    busy: bool = False
    dirty: bool = False
    failures: int = 0
    settled: tuple[Mapping[str, Any], Sequence[str], str] | None = None
    """A status of the node of which there was nothing to report, with the addresses and the boot id that it had then;
    only of a node without faults."""
    offer: Offer | None = None
    """What the node has for pods, as far as the state of the object says of which that is known."""
    may_write: Callable[[], bool] | None = None
    """Asks whether this process may write for the node; made for the first of its pods that has something to write."""
    images: ImageStore | None = None
    """Only where somebody wants to know."""

    def known(self) -> JsonObject:
        """The Node object, as far as it is known."""
        return self.node

    @property
    def all_faults(self) -> frozenset[Fault]:
        return self.faults | self.commanded

    @property
    def is_silent(self) -> bool:
        if not self.faults and not self.commanded:
            # Asked before each write, and nearly always so.
            return self.rebooting
        return self.rebooting or Fault.SILENT in self.faults or Fault.SILENT in self.commanded

    @property
    def slow_factor(self) -> float:
        if not self.faults and not self.commanded:
            return 1.0
        return self.slow_by if Fault.SLOW in self.all_faults else 1.0

    @property
    def pods(self) -> list[str]:
        """The keys of the pods here, admitted or not."""
        return [*self.load.pods] if self.load is not None else []

    @property
    def admitted(self) -> list[str]:
        """The keys of the pods that take of the node."""
        return [*self.load.shares] if self.load is not None else []

    def meet(self, key: str) -> None:
        """A pod is here from now on."""
        if self.load is None:
            self.load = _Load()
        self.load.pods[key] = None

    def part(self, key: str) -> None:
        """A pod is gone."""
        self.uncount(key)
        if self.load is not None:
            self.load.pods.pop(key, None)
            if not self.load.pods and not self.load.shares:
                self.load = None

    def admit(self, pod: Mapping[str, Any]) -> Rejection | None:
        load, offer, share = self.load or _NOTHING, self.offer, _shares.of(pod)
        if offer is None or offer.node is not self.node:
            offer = self._offer()
        if offer.plainly_admits(pod, share, load.used, len(load.shares)):
            return None
        ports: Iterable[tuple[str, str, int]] = ()
        if share.ports:
            ports = [port for other in load.shares.values() for port in other.ports]
        return check_admission(
            pod,
            self.node,
            allocatable=offer.allocatable,
            used=load.used,
            pods=len(load.shares),
            host_ports=ports,
        )

    def lacking(self, pod: Mapping[str, Any]) -> dict[str, int]:
        """By how much the node falls short for the pod."""
        load = self.load or _NOTHING
        return lacking_resources(pod, allocatable=self._offer().allocatable, used=load.used, pods=len(load.shares))

    def _offer(self) -> Offer:
        if self.offer is None or self.offer.node is not self.node:
            self.offer = Offer.of(self.node, self.default_allocatable)
        return self.offer

    def resize(self, pod: Mapping[str, Any]) -> Rejection | None:
        """Counts a pod that runs here with what it asks for now, if that fits beside the others."""
        key = object_key(pod)
        load = self.load or _NOTHING
        own = load.shares.get(key)
        used = dict(load.used)
        for name, amount in own.requests.items() if own is not None else ():
            used[name] -= amount
        others = len(load.shares) - (own is not None)
        refused = check_resources(pod, allocatable=self._offer().allocatable, used=used, pods=others)
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
        if self.load is None:
            self.load = _Load()
        load = self.load
        if key in load.shares:
            return
        if self.images is not None:
            for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
                self.images.add(container.get("image", ""))
        share = _shares.of(pod)
        load.shares[key] = share
        for name, amount in share.requests.items():
            load.used[name] = load.used.get(name, 0) + amount

    def uncount(self, key: str) -> None:
        """Takes it away again."""
        load = self.load
        share = load.shares.pop(key, None) if load is not None else None
        if load is not None and share is not None:
            for name, amount in share.requests.items():
                load.used[name] -= amount
