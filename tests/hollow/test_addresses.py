"""Address pools: bounded, and never the same address twice."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.addresses import AddressPool, BlockPool, PodAddresses


def test_a_pool_ends_with_its_range() -> None:
    pool = AddressPool("10.0.0.0/29")
    assert [pool.take() for _ in range(7)] == [*(f"10.0.0.{n}" for n in range(1, 7)), None]
    pool.release("10.0.0.3")
    pool.release("10.9.9.9")
    assert pool.take() == "10.0.0.3"


@given(st.lists(st.sampled_from(["take", "release", "claim"])), st.integers(min_value=0, max_value=20))
def test_no_address_is_ever_handed_out_twice(actions: list[str], place: int) -> None:
    pool = AddressPool("192.0.2.0/28")
    taken: set[str] = set()
    for number, action in enumerate(actions):
        if action == "take":
            address = pool.take(place if number % 2 else None)
            assert (address is None) == (len(taken) == 14)
            if address is not None:
                assert address not in taken
                assert ipaddress.ip_address(address) in ipaddress.ip_network("192.0.2.0/28")
                taken.add(address)
        elif action == "release" and taken:
            address = sorted(taken)[number % len(taken)]
            taken.discard(address)
            pool.release(address)
        elif action == "claim":
            claimed = f"192.0.2.{1 + number % 14}"
            assert pool.claim(claimed)
            taken.add(claimed)
        assert len(pool) == len(taken)


@given(
    st.integers(0, 2**32 - 1), st.integers(20, 32), st.lists(st.one_of(st.none(), st.integers(0, 5000)), max_size=40)
)
def test_addresses_are_written_as_others_write_them(base: int, bits: int, preferred: list[int | None]) -> None:
    network = ipaddress.ip_network((base >> (32 - bits) << (32 - bits), bits))
    pool = AddressPool(str(network))
    for place in preferred:
        address = pool.take(place)
        if address is None:
            assert len(pool) == pool.size
            continue
        parsed = ipaddress.ip_address(address)
        assert str(parsed) == address
        assert parsed in network
        assert parsed not in (network.network_address, network.broadcast_address)


def test_ipv6_ranges_work_too() -> None:
    assert AddressPool("fd00::/64").take() == "fd00::1"
    assert not AddressPool("fd00::/64").claim("10.0.0.1")


def test_every_node_gets_a_block_of_its_own() -> None:
    pool = BlockPool("10.0.0.0/22", 24)
    blocks = [pool.block_of(name) for name in "abcd"]
    assert len(set(blocks)) == 4 and pool.block_of("a") == blocks[0]
    assert pool.block_of("e") is None
    pool.release("b")
    pool.release("unknown")
    assert pool.block_of("e") == blocks[1]


def test_a_range_too_small_for_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        BlockPool("10.0.0.0/24", 20)


def test_two_families_give_two_addresses_or_none() -> None:
    pool = PodAddresses(["10.0.0.0/30", "fd00::/64"])
    assert pool.take() == ("10.0.0.1", "fd00::1")
    pool.claim(["10.0.0.2"])
    assert pool.take() is None
    pool.release(["10.0.0.2"])
    assert pool.take() == ("10.0.0.2", "fd00::2")
    assert PodAddresses([]).take() is None


@pytest.mark.parametrize(
    "written",
    ["10.0.0.01", "010.0.0.1", "10.0.0", "10.0.0.1.", "10.0.0.256", "10.0.-1.1", "10.0.0.x", "", "fd00::1", "10.0.0.٣",
     "9.256.0.1", "10.0.1.0"],
)  # fmt: skip
def test_what_is_not_an_address_of_the_range_is_neither_claimed_nor_released(written: str) -> None:
    pool = AddressPool("10.0.0.0/24")
    assert pool.take() == "10.0.0.1"
    assert not pool.claim(written)
    pool.release(written)
    assert len(pool) == 1


CIDRS = st.sampled_from(["10.0.0.0/24", "10.1.2.128/25", "255.255.255.0/24"])


@given(CIDRS, st.ip_addresses(v=4) | st.integers(0, 300))
def test_addresses_are_known_by_their_place_however_they_are_looked_up(cidr: str, given_address: object) -> None:
    network = ipaddress.ip_network(cidr)
    address = network[given_address % network.num_addresses] if isinstance(given_address, int) else given_address
    inside = address in network and address not in (network.network_address, network.broadcast_address)
    assert AddressPool(cidr).claim(str(address)) == inside


@given(st.lists(st.tuples(st.sampled_from(["take", "release", "claim"]), st.integers(0, 5)), max_size=40))
def test_what_is_handed_out_comes_back_as_if_it_were_read_anew(actions: list[tuple[str, int]]) -> None:
    pool, reader = AddressPool("192.0.2.0/29"), AddressPool("192.0.2.0/29")
    for action, number in actions:
        address = f"192.0.2.{number + 1}"
        if action == "take":
            assert pool.take() == reader.take()
        elif action == "claim":
            assert pool.claim(address) == reader.claim(address)
        else:
            reader._given.clear()
            pool.release(address)
            reader.release(address)
        assert len(pool) == len(reader)


@given(
    st.one_of(
        st.builds(lambda address, bits: f"{address}/{bits}", st.ip_addresses(v=4), st.integers(0, 33)),
        st.builds(lambda a, b, c: f"{a}.{b}.{c}.0/24", *(st.sampled_from([0, 1, 9, 10, 255, 256]) for _ in range(3))),
        st.sampled_from([
            "", "/", "1.2.3/24", "01.2.3.0/24", "1.2.3.0/024", "1.2.3.0", "1.2.3.0/", "1..3.0/24", "1.2.3.0/a", "x/24",
            "1.2.3.0.0/24", "1.2.3.0/24/1", "\u0661.2.3.0/24", "fd00::/120", "1.2.3.0/255.255.255.0", "-1.2.3.0/24",
            "1.2.3.0/\u0662", "1.2.3.0/-1", " 1.2.3.0/24",
        ]),
    )
)  # fmt: skip
def test_ranges_are_read_as_the_standard_library_reads_them(cidr: str) -> None:
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        with pytest.raises(ValueError, match="does not appear to be"):
            AddressPool(cidr)
        return
    pool = AddressPool(cidr)
    assert pool.cidr == str(network)
    assert pool.size == min(1 << 24, max(0, network.num_addresses - (2 if network.version == 4 else 1)))
    first = pool.take()
    assert first == (str(network.network_address + 1) if pool.size else None)
