"""The counts of one topology group while pods are being placed, and which domains it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec
from holokube.kube.requirements import Requirement

CountArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


@lru_cache(maxsize=65_536)
def in_domains(key: str, domains: frozenset[str]) -> Requirement:
    """Exactly these values."""
    return Requirement(key, False, domains)


def placeholder(claim: int) -> str:
    """What stands for the hostname of an open claim until its node has one."""
    return f"hostname-placeholder-{claim + 1:04d}"


class DomainGroup:
    """A group over a key such as the zone. ``version`` changes with the counts."""

    __slots__ = ("_memo", "_occupied", "counts", "spec", "version")

    def __init__(self, spec: GroupSpec, counts: dict[str, int]) -> None:
        self.spec = spec
        self.counts = counts
        """Pods by domain; a domain that is not here is not known."""
        self.version = 0
        self._occupied = sum(1 for pods in counts.values() if pods > 0)
        self._memo: dict[tuple[bool, Requirement | None, Requirement | None], Requirement | None] = {}

    def record(self, domains: Iterable[str]) -> None:
        """Count one pod more in each of these domains."""
        for domain in domains:
            pods = self.counts.get(domain, 0)
            self._occupied += pods == 0
            self.counts[domain] = pods + 1
            self.version += 1
        self._memo.clear()

    def choose(self, selects: bool, of_pod: Requirement | None, of_node: Requirement | None) -> Requirement | None:
        """The domains that remain for a pod on a node; None if there are none.

        ``selects`` says whether the group counts the pod itself. Requirements are those on the group's key; None allows
        everything. Where upstream takes any of several domains, the first in the alphabet is taken.
        """
        key = selects, of_pod, of_node
        if key in self._memo:
            return self._memo[key]
        kind = self.spec.kind
        if kind is GroupKind.SPREAD:
            found = self._spread(selects, of_pod, of_node)
        elif kind is GroupKind.AFFINITY:
            found = self._near(selects, of_pod, of_node)
        else:
            found = frozenset(
                domain for domain in self._within(of_node) if not self.counts[domain] and _has(of_pod, domain)
            )
        chosen = in_domains(self.spec.key, found) if found else None
        self._memo[key] = chosen
        return chosen

    def _within(self, of_node: Requirement | None) -> Iterable[str]:
        if of_node is None:
            return self.counts
        if not of_node.complement:
            return [domain for domain in of_node.values if domain in self.counts]
        return [domain for domain in self.counts if of_node.has(domain)]

    def _spread(self, selects: bool, of_pod: Requirement | None, of_node: Requirement | None) -> frozenset[str]:
        counts, spec = self.counts, self.spec
        supported = [pods for domain, pods in counts.items() if _has(of_pod, domain)]
        least = min(supported, default=2**31 - 1)
        if spec.min_domains is not None and len(supported) < spec.min_domains:
            least = 0
        own = 1 if selects else 0
        best = min(
            ((counts[domain], domain) for domain in self._within(of_node)
             if counts[domain] + own - least <= spec.max_skew),
            default=None,
        )  # fmt: skip
        return frozenset({best[1]}) if best is not None else frozenset()

    def _near(self, selects: bool, of_pod: Requirement | None, of_node: Requirement | None) -> frozenset[str]:
        counts = self.counts
        found = frozenset(domain for domain in self._within(of_node) if counts[domain] > 0 and _has(of_pod, domain))
        if found or not selects:
            return found
        if self._occupied and any(pods > 0 and _has(of_pod, domain) for domain, pods in counts.items()):
            return found
        # The first of its kind may go anywhere: where the node can be, and (as upstream has it) one domain more.
        usable = sorted(domain for domain in counts if _has(of_pod, domain))
        here = [domain for domain in usable if _has(of_node, domain)]
        return frozenset((*here[:1], *usable[:1]))


def _has(requirement: Requirement | None, value: str) -> bool:
    return requirement is None or requirement.has(value)


class HostBase:
    """Counts by hostname before anything is placed, in a form that is quick to copy."""

    __slots__ = ("elsewhere", "hosts", "nodes", "occupied")

    def __init__(self, counts: Mapping[str, int], hosts: Mapping[str, int]) -> None:
        self.hosts = hosts
        self.nodes: CountArray = np.zeros(len(hosts), dtype=np.int32)
        self.elsewhere: dict[str, int] = {}
        for hostname, pods in counts.items():
            host = hosts.get(hostname)
            if host is None:
                self.elsewhere[hostname] = pods
            else:
                self.nodes[host] = pods
        self.occupied = sum(1 for pods in counts.values() if pods > 0)


class HostGroup:
    """A group over hostnames: a node is its own domain, and a new one can always be made."""

    __slots__ = ("_elsewhere", "_hosts", "_occupied", "claims", "nodes", "spec", "version")

    def __init__(self, spec: GroupSpec, base: HostBase, leaving: Mapping[str, int]) -> None:
        self.spec = spec
        self.version = 0
        self._hosts = base.hosts
        self.nodes: CountArray = base.nodes.copy()
        """Pods by host of a node that is there."""
        self.claims: CountArray = np.zeros(64, dtype=np.int32)
        """Pods by open claim."""
        self._elsewhere = base.elsewhere
        self._occupied = base.occupied
        for hostname, pods in leaving.items():
            host = base.hosts.get(hostname)
            if host is None:
                left = self._elsewhere.get(hostname, 0) - pods
                self._elsewhere = {**self._elsewhere, hostname: left}
            else:
                self.nodes[host] -= pods
                left = int(self.nodes[host])
            self._occupied -= left == 0

    def record_node(self, host: int) -> None:
        """Count one pod more on a node."""
        self._occupied += not self.nodes[host]
        self.nodes[host] += 1
        self.version += 1

    def record_claim(self, claim: int) -> None:
        """Count one pod more on an open claim."""
        self.make_room(claim + 1)
        self._occupied += not self.claims[claim]
        self.claims[claim] += 1
        self.version += 1

    def make_room(self, claims: int) -> None:
        """For so many open claims."""
        if claims > len(self.claims):
            grown = np.zeros(max(claims, 2 * len(self.claims)), dtype=np.int32)
            grown[: len(self.claims)] = self.claims
            self.claims = grown

    def open_claims(self, selects: bool, on_host: Requirement | None, claims: int) -> BoolArray | None:
        """Which open claims a pod may join; None if any."""
        self.make_room(claims)
        return self._open(self.claims[:claims], selects, on_host)

    def open_nodes(self, selects: bool, on_host: Requirement | None, hosts: npt.NDArray[np.intp]) -> BoolArray | None:
        """Which nodes, given by their hosts, a pod may join; None if any."""
        return self._open(self.nodes[hosts], selects, on_host)

    def _open(self, counts: CountArray, selects: bool, on_host: Requirement | None) -> BoolArray | None:
        kind = self.spec.kind
        if kind is GroupKind.SPREAD:
            return np.less_equal(counts, self.spec.max_skew - int(selects))
        if kind is GroupKind.ANTI_AFFINITY:
            return np.equal(counts, 0)
        return None if self._may_begin(selects, on_host) else np.greater(counts, 0)

    def opens_new(self, selects: bool, on_host: Requirement | None) -> bool:
        """Whether a pod may have a new node."""
        kind = self.spec.kind
        if kind is GroupKind.SPREAD:
            return int(selects) <= self.spec.max_skew
        return kind is GroupKind.ANTI_AFFINITY or self._may_begin(selects, on_host)

    def _may_begin(self, selects: bool, on_host: Requirement | None) -> bool:
        if not selects:
            return False
        if not self._occupied or on_host is None:
            return not self._occupied
        return not any(on_host.has(hostname) for hostname in self._occupied_hosts())

    def _occupied_hosts(self) -> Iterable[str]:
        yield from (hostname for hostname, pods in self._elsewhere.items() if pods > 0)
        for hostname, host in self._hosts.items():
            if self.nodes[host]:
                yield hostname
        for claim in np.flatnonzero(self.claims).tolist():
            yield placeholder(claim)
