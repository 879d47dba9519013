from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.lab.scenario.curves import (
    Constant,
    Cron,
    CronArrivals,
    Curve,
    Diurnal,
    Due,
    Poisson,
    Step,
    Steps,
    Trace,
    TraceArrivals,
)
from holokube.lab.scenario.file_values import Row

MONDAY_S = 1_767_571_200.0
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def changes(curve: Curve, duration_s: float = DAY_S, seed: int = 1) -> list[tuple[float, int]]:
    return list(curve.changes(Rng(seed), MONDAY_S, duration_s))


steps = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 50)), min_size=1, max_size=8, unique_by=lambda p: p[0])
curves = st.one_of(
    st.builds(Constant, st.integers(0, 1000)),
    st.builds(
        lambda points, extra: Steps(
            tuple(Step(float(at), count) for at, count in sorted(points)),
            float(max(points)[0] + extra) if extra else None,
        ),
        steps,
        st.integers(0, 3000),
    ),
    st.builds(
        lambda low, more, peak_s, noise, every_s: Diurnal(low, low + more, peak_s, noise, every_s),
        st.integers(0, 100),
        st.integers(0, 300),
        st.floats(0, DAY_S - 1),
        st.floats(0, 1),
        st.floats(60, 7200),
    ),
    st.builds(
        lambda initial, rules: Cron(initial, tuple(Due(schedule, count) for schedule, count in rules)),
        st.integers(0, 9),
        st.lists(
            st.tuples(st.sampled_from(["0 8 * * *", "*/20 * * * *", "@hourly", "@every 7m", "30 12 * * 1-5"]),
                      st.integers(0, 9)),
            min_size=1, max_size=3,
        ),
    ),
    st.builds(
        lambda points, scale: Trace(tuple(Row(float(at), count) for at, count in sorted(points)), scale),
        steps,
        st.floats(0.1, 10),
    ),
)  # fmt: skip


@given(curves, st.floats(60, 2 * DAY_S), st.integers())
def test_every_curve_begins_at_zero_and_changes_to_whole_numbers_at_rising_times(
    curve: Curve, duration_s: float, seed: int
) -> None:
    found = changes(curve, duration_s, seed)
    assert found[0][0] == 0.0
    assert all(isinstance(count, int) and count >= 0 for _, count in found)
    assert all(earlier[0] < later[0] for earlier, later in pairwise(found))
    assert all(earlier[1] != later[1] for earlier, later in pairwise(found))
    assert all(at_s < duration_s for at_s, _ in found)


@given(curves, st.integers())
def test_the_same_seed_gives_the_same_curve(curve: Curve, seed: int) -> None:
    assert changes(curve, seed=seed) == changes(curve, seed=seed)


@given(curves, st.floats(60, DAY_S))
def test_a_longer_run_begins_like_a_shorter_one(curve: Curve, duration_s: float) -> None:
    longer = [point for point in changes(curve, 2 * duration_s) if point[0] < duration_s]
    assert changes(curve, duration_s) == longer


def test_a_curve_of_a_year_is_not_drawn_before_it_is_asked_for() -> None:
    years = Diurnal(1, 100, every_s=1.0).changes(Rng(1), MONDAY_S, 1e12)
    assert len(list(islice(years, 3))) == 3


def test_a_constant_never_changes() -> None:
    assert changes(Constant(5)) == [(0.0, 5)]


def test_the_first_step_holds_from_the_beginning() -> None:
    curve = Steps((Step(60.0, 3), Step(120.0, 5)))
    assert changes(curve) == [(0.0, 3), (120.0, 5)]


def test_steps_begin_anew_after_their_period() -> None:
    curve = Steps((Step(0.0, 1), Step(600.0, 9)), every_s=HOUR_S)
    assert changes(curve, 2 * HOUR_S) == [(0.0, 1), (600.0, 9), (3600.0, 1), (4200.0, 9)]


def test_a_day_is_highest_at_its_peak_and_lowest_half_a_day_later() -> None:
    found = dict(changes(Diurnal(10, 50, peak_s=14 * HOUR_S, every_s=HOUR_S)))
    assert max(found, key=lambda at_s: found[at_s]) == 14 * HOUR_S
    assert min(found, key=lambda at_s: found[at_s]) == 2 * HOUR_S
    assert (max(found.values()), min(found.values())) == (50, 10)


def test_a_day_follows_the_clock_and_not_the_start_of_the_run() -> None:
    curve = Diurnal(0, 40, peak_s=14 * HOUR_S, every_s=HOUR_S)
    at_noon = dict(curve.changes(Rng(1), MONDAY_S + 12 * HOUR_S, DAY_S))
    assert at_noon[2 * HOUR_S] == 40


@given(st.integers(0, 100), st.integers(0, 300), st.floats(0, 1), st.integers())
def test_noise_stays_within_its_share_of_the_wave(low: int, more: int, noise: float, seed: int) -> None:
    high = low + more
    counts = [count for _, count in changes(Diurnal(low, high, noise=noise), seed=seed)]
    assert low * (1 - noise) - 1 <= min(counts)
    assert max(counts) <= high * (1 + noise) + 1


def test_noise_differs_from_seed_to_seed() -> None:
    curve = Diurnal(50, 100, noise=0.2)
    assert changes(curve, seed=1) != changes(curve, seed=2)


def test_cron_sets_numbers_when_they_are_due() -> None:
    curve = Cron(2, (Due("0 8 * * 1-5", 20), Due("0 18 * * *", 4)))
    assert changes(curve, 2 * DAY_S) == [
        (0.0, 2), (8 * HOUR_S, 20), (18 * HOUR_S, 4), (32 * HOUR_S, 20), (42 * HOUR_S, 4),
    ]  # fmt: skip


def test_cron_at_the_very_beginning_wins_over_the_initial_number() -> None:
    assert changes(Cron(2, (Due("0 0 * * *", 7),))) == [(0.0, 7)]


def test_of_two_schedules_due_at_once_the_later_in_the_list_counts() -> None:
    assert changes(Cron(1, (Due("0 8 * * *", 5), Due("0 8 * * *", 6)))) == [(0.0, 1), (8 * HOUR_S, 6)]


def test_cron_knows_time_zones() -> None:
    assert changes(Cron(0, (Due("TZ=Europe/Berlin 0 8 * * *", 3),))) == [(0.0, 0), (7 * HOUR_S, 3)]


def test_an_interval_counts_from_the_start_of_the_run() -> None:
    assert changes(Cron(0, (Due("@every 10m", 3),)), HOUR_S) == [(0.0, 0), (600.0, 3)]


def test_a_trace_is_scaled() -> None:
    assert changes(Trace((Row(0.0, 10), Row(60.0, 25)), scale=0.5)) == [(0.0, 5), (60.0, 12)]


@given(st.floats(0.5, 500), st.integers())
def test_poisson_arrivals_rise_and_stay_within_their_window(per_hour: float, seed: int) -> None:
    times = list(Poisson(per_hour, from_s=600.0, until_s=2 * HOUR_S).arrivals(Rng(seed), MONDAY_S, DAY_S))
    assert all(600.0 <= at_s < 2 * HOUR_S for at_s in times)
    assert times == sorted(times)


def test_poisson_arrivals_have_the_mean_that_was_asked_for() -> None:
    times = list(Poisson(60).arrivals(Rng(7), MONDAY_S, 100 * DAY_S))
    # 144,000 are expected; five standard deviations are 1,900.
    assert 142_100 < len(times) < 145_900


def test_poisson_arrivals_end_with_the_run() -> None:
    assert all(at_s < 60 for at_s in Poisson(10_000).arrivals(Rng(1), MONDAY_S, 60.0))


def test_cron_arrivals_come_in_numbers() -> None:
    times = CronArrivals("0 */6 * * *", count=2).arrivals(Rng(1), MONDAY_S, DAY_S)
    assert list(times) == [0.0, 0.0, 21600.0, 21600.0, 43200.0, 43200.0, 64800.0, 64800.0]


def test_the_arrivals_of_a_trace_after_the_end_of_the_run_do_not_come() -> None:
    times: Iterator[float] = TraceArrivals((Row(1.0, 2), Row(99.0, 1))).arrivals(Rng(1), MONDAY_S, 60.0)
    assert list(times) == [1.0, 1.0]


@pytest.mark.parametrize("start_s", [MONDAY_S, MONDAY_S + 0.5])
def test_a_schedule_is_never_due_before_the_start(start_s: float) -> None:
    assert all(at_s >= 0 for at_s in CronArrivals("* * * * *").arrivals(Rng(1), start_s, HOUR_S))
