"""Addresses of hollow nodes and pods: bounded pools that never hand out one address twice."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from holokube.hollow.draws import stable_int

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOSTS_MAX = 1 << 24
"""An IPv6 range has more addresses than anybody counts; so many of each are used."""


class AddressPool:
    """The addresses of one range, lowest free first; without the range's own and, for IPv4, its broadcast address."""

    __slots__ = ("_base", "_freed", "_given", "_low", "_next", "_prefix", "_size", "_taken", "_version", "cidr")

    def __init__(self, cidr: str) -> None:
        self.cidr, self._version, self._base, addresses = _plain_range(cidr) or _any_range(cidr)
        reserved = 2 if self._version == 4 else 1
        self._size = min(_HOSTS_MAX, max(0, addresses - reserved))
        self._low = self._base & 255
        self._prefix = ""
        """What all of them begin with, if they differ in the last number of IPv4 alone."""
        if self._version == 4 and self._low + self._size <= 255:
            self._prefix = self._text(0).rpartition(".")[0] + "."
        self._taken: set[int] = set()
        self._given: dict[str, int] = {}
        """The places of addresses that were handed out here, so that they need not be read when they come back."""
        self._freed: list[int] = []
        self._next = 1

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def size(self) -> int:
        return self._size

    def take(self, preferred: int | None = None) -> str | None:
        """A free address, None when all are taken; ``preferred`` is the place at which to start looking."""
        taken, place = self._taken, self._next
        if preferred is None and place <= self._size and place not in taken:
            # The next that nobody has had yet, as nearly always.
            self._next = place + 1
        elif len(taken) >= self._size:
            return None
        elif preferred is not None:
            place = preferred % self._size + 1
            while place in taken:
                place = place % self._size + 1
        else:
            place = self._lowest_free()
        taken.add(place)
        address = f"{self._prefix}{self._low + place}" if self._prefix else self._text(place)
        self._given[address] = place
        return address

    def claim(self, address: str) -> bool:
        """Takes a given address; False if it is not of this range. One that is taken already stays so."""
        place = self._place(address)
        if place is None:
            return False
        self._taken.add(place)
        return True

    def release(self, address: str) -> None:
        """Gives an address back; others are ignored."""
        place = self._given.pop(address, None)
        if place is None:
            place = self._place(address)
        if place is not None and place in self._taken:
            self._taken.discard(place)
            self._freed.append(place)

    def _lowest_free(self) -> int:
        # An address given back goes to the end of the queue first: one that a service still points at should not
        # become another pod's the next moment.
        while self._next <= self._size:
            place = self._next
            self._next += 1
            if place not in self._taken:
                return place
        while self._freed:
            place = self._freed.pop(0)
            if place not in self._taken:
                return place
        return next(place for place in range(1, self._size + 1) if place not in self._taken)

    def _place(self, address: str) -> int | None:
        place = self._place_of_ours(address)
        if place is not None:
            return place
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return None
        place = int(parsed) - self._base
        return place if parsed.version == self._version and 1 <= place <= self._size else None

    def _place_of_ours(self, address: str) -> int | None:
        """The place of an IPv4 address that is written as we write it; this is quicker than to parse any address."""
        parts = address.split(".") if self._version == 4 else ()
        if len(parts) != 4 or not all(part.isdecimal() for part in parts):
            return None
        a, b, c, d = map(int, parts)
        place = (a << 24 | b << 16 | c << 8 | d) - self._base
        return place if 1 <= place <= self._size and self._text(place) == address else None

    def _text(self, place: int) -> str:
        number = self._base + place
        if self._version == 4:
            return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return str(ipaddress.IPv6Address(number))


def _plain_range(cidr: str) -> tuple[str, int, int, int] | None:
    """An IPv4 range that is written as BlockPool writes it, every node has one; quicker than to parse any range."""
    address, _, bits = cidr.partition("/")
    parts = address.split(".")
    if len(parts) != 4 or not bits.isdecimal() or not "".join(parts).isdecimal() or "" in parts:
        return None
    a, b, c, d = map(int, parts)
    base, prefix = a << 24 | b << 16 | c << 8 | d, int(bits)
    if prefix > 32 or max(a, b, c, d) > 255 or f"{a}.{b}.{c}.{d}/{prefix}" != cidr:
        return None
    addresses = 1 << (32 - prefix)
    return None if base % addresses else (cidr, 4, base, addresses)


def _any_range(cidr: str) -> tuple[str, int, int, int]:
    network = ipaddress.ip_network(cidr, strict=False)
    return str(network), network.version, int(network.network_address), network.num_addresses


class BlockPool:
    """Splits a range into blocks, one per node; a node gets the same block again where possible."""

    __slots__ = ("_bits", "_network", "_owners", "_taken")

    def __init__(self, cidr: str, block_bits: int) -> None:
        self._network = ipaddress.ip_network(cidr, strict=False)
        if not self._network.prefixlen <= block_bits <= self._network.max_prefixlen:
            raise ValueError(f"{cidr} cannot be split into blocks of /{block_bits}")
        self._bits = block_bits
        self._taken: dict[int, str] = {}
        self._owners: dict[str, int] = {}

    @property
    def size(self) -> int:
        return 1 << min(24, self._bits - self._network.prefixlen)

    def block_of(self, owner: str) -> str | None:
        """The owner's block, None when there are more owners than blocks."""
        index = self._owners.get(owner)
        if index is None:
            if len(self._taken) >= self.size:
                return None
            index = stable_int(owner, self.size)
            while index in self._taken:
                index = (index + 1) % self.size
            self._owners[owner], self._taken[index] = index, owner
        step = 1 << (self._network.max_prefixlen - self._bits)
        base = self._network.network_address + index * step
        return f"{base}/{self._bits}"

    def release(self, owner: str) -> None:
        index = self._owners.pop(owner, None)
        if index is not None:
            del self._taken[index]


class PodAddresses:
    """The pod addresses of one node: one pool per range, so two families give two addresses.

    Most nodes of a large fleet are empty for most of the time, so pools are made when the first pod comes.
    """

    __slots__ = ("_cidrs", "_made")

    def __init__(self, cidrs: Iterable[str]) -> None:
        self._cidrs = tuple(cidrs)
        self._made: list[AddressPool] | None = None

    @property
    def _pools(self) -> list[AddressPool]:
        if self._made is None:
            self._made = [AddressPool(cidr) for cidr in self._cidrs]
        return self._made

    def take(self) -> tuple[str, ...] | None:
        """One address of each range; None, and nothing taken, when one of them is full."""
        pools = self._made if self._made is not None else self._pools
        if len(pools) == 1:
            only = pools[0].take()
            return (only,) if only is not None else None
        taken: list[str] = []
        for pool in pools:
            address = pool.take()
            if address is None:
                self.release(taken)
                return None
            taken.append(address)
        return tuple(taken) or None

    def claim(self, addresses: Iterable[str]) -> None:
        """Marks addresses that pods already have."""
        for address in addresses:
            any(pool.claim(address) for pool in self._pools)

    def release(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            for pool in self._made or ():
                pool.release(address)
