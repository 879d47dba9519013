"""Seeded randomness: pinned values catch any change of a stream, on any machine."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import subprocess
import sys
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.rng import NAME_ALPHABET, Rng, _log, system_seed

DRAWS = """
from holokube.base.rng import Rng
rng = Rng(7).fork("hollow")
items = list(range(6))
rng.shuffle(items)
print(rng.random(), rng.uniform(1, 2), rng.expovariate(0.5), rng.randrange(10**20), rng.choice("abc"), items,
      rng.uid(), rng.name_suffix())
"""
PINNED = (
    '0.2687936297911765 1.5388522935356304 0.6967303142293605 63791349984949708759 c '
    '[4, 5, 2, 3, 0, 1] ced7fe68-2634-4533-8be6-7801c5545b01 x6mcs\n'
)


def draws(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run([sys.executable, "-c", DRAWS], env=environment, check=True, capture_output=True,
                          text=True).stdout


def test_the_streams_are_pinned_and_ignore_the_hash_seed() -> None:
    assert draws("0") == draws("12345") == PINNED


def test_text_and_number_are_the_same_seed() -> None:
    assert Rng(42).random() == Rng("42").random() != Rng(43).random()


def test_a_fork_depends_on_seed_and_name_but_not_on_draws_made() -> None:
    fresh, used = Rng(1), Rng(1)
    for _ in range(100):
        used.random()
    assert fresh.fork("a").uid() == used.fork("a").uid()
    assert fresh.fork("a").uid() != fresh.fork("b").uid()
    assert fresh.fork("a").uid() != Rng(2).fork("a").uid()


def test_forking_leaves_the_parent_alone_and_paths_do_not_run_together() -> None:
    plain, forked = Rng(1), Rng(1)
    forked.fork("x").random()
    assert plain.random() == forked.random()
    assert Rng(1).fork("a").fork("b").random() != Rng(1).fork("a/b").random() != Rng("1/a/b").random()


def test_a_copied_or_pickled_stream_goes_on_independently() -> None:
    rng = Rng(5)
    rng.random()
    twins = [copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))]
    expected = [rng.random() for _ in range(3)]
    assert [[twin.random() for _ in range(3)] for twin in twins] == [expected, expected]


@given(st.integers(1, 2**70), st.integers())
def test_randrange_stays_in_range(n: int, seed: int) -> None:
    assert 0 <= Rng(seed).randrange(n) < n


def test_randrange_is_even() -> None:
    rng = Rng(3)
    counts = Counter(rng.randrange(6) for _ in range(60_000))
    assert sorted(counts) == list(range(6))
    assert all(9_500 < seen < 10_500 for seen in counts.values())


@pytest.mark.parametrize("n", [0, -3])
def test_randrange_refuses_an_empty_range(n: int) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Rng(1).randrange(n)


@given(st.lists(st.integers()), st.integers())
def test_shuffle_keeps_the_elements(items: list[int], seed: int) -> None:
    shuffled = list(items)
    Rng(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_shuffle_reaches_every_order() -> None:
    rng = Rng(1)
    orders = set()
    for _ in range(500):
        items = [1, 2, 3, 4]
        rng.shuffle(items)
        orders.add(tuple(items))
    assert len(orders) == 24


def test_choice_of_nothing_is_an_error() -> None:
    with pytest.raises(IndexError, match="empty"):
        Rng(1).choice([])


@given(st.floats(min_value=5e-324, max_value=1e308))
def test_the_portable_logarithm_is_the_logarithm(x: float) -> None:
    assert math.isclose(_log(x), math.log(x), rel_tol=1e-15, abs_tol=1e-16)


def test_waits_are_exponential_with_the_given_rate() -> None:
    rng = Rng(11)
    waits = [rng.expovariate(4.0) for _ in range(50_000)]
    assert min(waits) >= 0
    assert math.isclose(sum(waits) / len(waits), 0.25, rel_tol=0.02)
    # A third of the waits is longer than ln(3)/rate.
    assert math.isclose(sum(wait > math.log(3) / 4 for wait in waits) / len(waits), 1 / 3, rel_tol=0.03)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_must_be_positive(rate: float) -> None:
    with pytest.raises(ValueError, match="rate above zero"):
        Rng(1).expovariate(rate)


@given(st.integers())
def test_uids_are_version_four(seed: int) -> None:
    uid = Rng(seed).uid()
    parsed = uuid.UUID(uid)
    assert (str(parsed), parsed.version, parsed.variant) == (uid, 4, uuid.RFC_4122)


def test_name_suffixes_use_kubernetes_alphabet() -> None:
    assert len(NAME_ALPHABET) == 27
    rng = Rng(9)
    suffixes = [rng.name_suffix() for _ in range(2_000)]
    assert all(re.fullmatch(r"[bcdfghjklmnpqrstvwxz2456789]{5}", suffix) for suffix in suffixes)
    assert set("".join(suffixes)) == set(NAME_ALPHABET)
    assert len(rng.name_suffix(10)) == 10


@given(st.integers(0, 20), st.integers(0, 1_000))
def test_a_name_suffix_is_so_many_choices(length: int, seed: int) -> None:
    suffixes, choices = Rng(seed), Rng(seed)
    assert suffixes.name_suffix(length) == "".join(choices.choice(NAME_ALPHABET) for _ in range(length))
    # As many draws were made.
    assert suffixes.random() == choices.random()


def test_system_seeds_differ_and_survive_json() -> None:
    seeds = {system_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert any(system_seed(bits=256) >= 2**200 for _ in range(20))
    with pytest.raises(ValueError, match="at least one bit"):
        system_seed(bits=0)
