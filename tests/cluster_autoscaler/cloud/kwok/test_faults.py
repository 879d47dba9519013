"""How much of an increase a cloud does, and what becomes of its machines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import CloudError, OutOfResourcesError
from holokube.cluster_autoscaler.cloud.kwok.faults import BOOT_FAILED, Boot, Faults, Grant, Window, parse_windows


def grant(faults: Faults, delta: int, *, existing: int = 0, now_s: float = 0.0, atomic: bool = False) -> Grant:
    return faults.grant("g", delta, existing=existing, now_s=now_s, started_s=0.0, atomic=atomic)


def test_without_faults_everything_is_granted_and_comes_at_once() -> None:
    assert grant(Faults(), 5) == Grant(5)
    assert Faults().boot(Rng(0)) == Boot(0.0) and Boot(0.0).is_immediate


def test_an_empty_stock_shows_as_machines_that_fail() -> None:
    assert grant(Faults(stock=3), 5, existing=1) == Grant(2, refused=3)
    assert grant(Faults(stock=3), 2, existing=1) == Grant(2)
    assert grant(Faults(stock=3), 2, existing=9) == Grant(0, refused=2)


def test_an_empty_stock_can_fail_the_call_instead() -> None:
    found = grant(Faults(stock=3, stock_out_mode="call"), 5)
    assert (found.machines, found.refused) == (3, 0)
    assert isinstance(found.error, OutOfResourcesError)
    assert "3 of 5" in found.error.message


def test_during_a_stock_out_there_are_no_machines() -> None:
    faults = Faults(stock_out=parse_windows("10m..20m"))
    assert grant(faults, 2, now_s=599.0) == Grant(2)
    assert grant(faults, 2, now_s=600.0) == Grant(0, refused=2)
    assert grant(faults, 2, now_s=1199.0) == Grant(0, refused=2)
    assert grant(faults, 2, now_s=1200.0) == Grant(2)


def test_a_window_of_instants_does_not_move_with_the_start() -> None:
    assert Window(100.0, 200.0, is_absolute=True).covers(150.0, started_s=140.0)
    assert not Window(100.0, 200.0, is_absolute=False).covers(150.0, started_s=140.0)


def test_a_limited_call_gives_some_and_fails() -> None:
    found = grant(Faults(increase_limit=2), 5)
    assert (found.machines, found.refused) == (2, 0)
    assert isinstance(found.error, CloudError) and not isinstance(found.error, OutOfResourcesError)
    assert grant(Faults(increase_limit=2), 2) == Grant(2)


def test_a_limit_and_an_empty_stock_add_up() -> None:
    found = grant(Faults(increase_limit=4, stock=3), 5)
    assert (found.machines, found.refused) == (3, 1)
    assert found.error is not None and "4 of 5" in found.error.message


@given(
    delta=st.integers(1, 20),
    existing=st.integers(0, 20),
    stock=st.none() | st.integers(0, 20),
    limit=st.none() | st.integers(0, 20),
    mode=st.sampled_from(("instance", "call")),
)
def test_all_or_nothing_is_all_or_nothing(
    delta: int, existing: int, stock: int | None, limit: int | None, mode: str
) -> None:
    faults = Faults(stock=stock, increase_limit=limit, stock_out_mode=mode)
    one = grant(faults, delta, existing=existing, atomic=True)
    assert one in (Grant(delta), Grant(0, error=one.error)) and (one.machines == delta) is (one.error is None)
    plain = grant(faults, delta, existing=existing)
    assert (plain == Grant(delta)) is (one.error is None)
    assert 0 <= plain.machines + plain.refused <= delta
    assert plain.machines + plain.refused == delta or plain.error is not None
    assert stock is None or plain.machines + existing <= max(stock, existing)


def test_boots_differ_within_their_range_and_repeat_with_their_seed() -> None:
    faults = Faults(boot_delay_s=(30.0, 90.0), boot_failure_probability=0.3)
    rng = Rng(7)
    drawn = [faults.boot(rng) for _ in range(500)]
    assert all(30.0 <= boot.delay_s <= 90.0 for boot in drawn)
    assert len({boot.delay_s for boot in drawn}) > 400
    failed = sum(boot.error is BOOT_FAILED for boot in drawn)
    assert 100 < failed < 200
    again = Rng(7)
    assert [faults.boot(again) for _ in range(500)] == drawn


def test_certain_failure_always_fails_and_never_never() -> None:
    rng = Rng(1)
    silent = Faults(boot_failure_probability=1.0, boot_failure_mode="silent")
    assert all(silent.boot(rng).is_silent and not silent.boot(rng).is_immediate for _ in range(50))
    assert all(Faults().boot(rng).is_immediate for _ in range(50))
