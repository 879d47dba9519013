"""Curves of usage: their text form, their values, and integrals that are exact."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.hollow.usage_curves import Constant, Curve, integral
from holokube.hollow.usage_syntax import CurveError, check_curve, parse_curve

START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def curve(text: str, request: float = 1.0) -> Curve:
    return parse_curve(text, request=request, phases=lambda: (0.1, 0.5, 0.8))


def by_hand(found: Curve, begin_s: float, end_s: float, start_s: float, slices: int = 20_000) -> float:
    """The midpoint rule: slow, and right to a few parts in a thousand."""
    width_s = (end_s - begin_s) / slices
    return sum(found.value(begin_s + (n + 0.5) * width_s, start_s) for n in range(slices)) * width_s


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("250m", {0: 0.25, 1e6: 0.25}),
        ("60%", {0: 1.2}),
        ("1Ki", {5: 1024}),
        ("steps(0s=100m, 5m=800m, 15m=100m)", {0: 0.1, 299: 0.1, 300: 0.8, 899: 0.8, 900: 0.1, 9e6: 0.1}),
        ("steps(1m=1, 2m=2)", {0: 1, 60: 1, 119: 1, 120: 2}),
        ("steps(0s=1, 1m=3, every=2m)", {0: 1, 60: 3, 119: 3, 120: 1, 180: 3, 120_060: 3}),
        ("steps(0s=1, 1h=3, from=2026-01-01T01:00:00Z)", {0: 1, 3599: 1, 7199: 1, 7200: 3}),
        ("ramp(0s=0, 10m=1)", {0: 0, 300: 0.5, 600: 1, 6000: 1}),
        ("ramp(0s=0, 10m=50%, every=20m)", {300: 0.5, 900: 1, 1500: 0.5}),
        ("diurnal(1, 3, peak=12h)", {0: 1, 6 * 3600: 2, 12 * 3600: 3, 18 * 3600: 2, 86_400: 1}),
        ("diurnal(1, 3, period=1h, peak=0s)", {0: 3, 1800: 1, 3600: 3}),
        ("noise(2, 0%)", {0: 2, 77: 2}),
    ],
)
def test_a_curve_has_the_value_that_its_text_says(text: str, values: dict[float, float]) -> None:
    found = curve(text, request=2.0)
    for at_s, value in values.items():
        assert found.value(at_s, START_S) == pytest.approx(value, rel=1e-6), at_s


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("lots", "neither a quantity such as 250m"),
        ("-1", "negative"),
        ("1e30", "more than any machine"),
        ("-5%", "not a share"),
        ("steps()", "empty argument"),
        ("steps(every=1m)", "at least one point"),
        ("steps(100m)", "has no time; write it as 5m=800m"),
        ("steps(5m=1, 1m=2)", "must rise"),
        ("steps(0s=1, 5m=2, every=5m)", "at or after the end of its period"),
        ("steps(0s=1, every=0s)", "above zero"),
        ("steps(soon=1)", "'soon' is not a duration"),
        ("steps(0s=1, from=yesterday)", "neither start nor a time"),
        ("ramp(0s=1", "no closing bracket"),
        ("diurnal(1)", "two amounts"),
        ("diurnal(3, 1)", "the lowest amount comes first"),
        ("diurnal(1, 3, phase=2h)", "no option 'phase'; it knows peak and period"),
        ("diurnal(1, 3, peak=1h, peak=2h)", "given twice"),
        ("noise(1)", "a curve and a share"),
        ("noise(1, 150%)", "more than 100%"),
        ("noise(1, 0.2)", "not a share"),
        ("noise(noise(1, 10%), 10%)", "cannot be put into noise"),
        ("sawtooth(1)", "no curve 'sawtooth'; use an amount, or one of steps, ramp, diurnal, noise"),
        ("noise(ramp(0s=1)), 5%)", "bracket too many"),
    ],
)
def test_a_text_that_is_no_curve_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(CurveError) as caught:
        curve(text)
    assert complaint in str(caught.value)
    assert check_curve(text) == str(caught.value)


TEXTS = [
    "250m",
    "steps(0s=100m, 5m=800m, 15m=100m)",
    "steps(0s=0, 1m=3, every=2m)",
    "ramp(0s=0, 10m=1, 12m=200m)",
    "ramp(10s=1, 50s=0, every=1m)",
    "diurnal(100m, 900m, period=30m)",
    "noise(1, 100%)",
    "noise(steps(0s=100m, 5m=800m, every=7m), 30%, every=45s)",
    "noise(ramp(0s=0, 3m=1, every=4m), 100%)",
    "noise(diurnal(0, 1, period=20m), 50%, every=1m)",
    "ramp(0s=0, 10m=1, every=20m, from=2025-12-31T23:55:00Z)",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("begin_s", "end_s"), [(0, 1), (0, 600), (130, 1777), (595, 605)])
def test_the_integral_is_that_of_the_curve(text: str, begin_s: float, end_s: float) -> None:
    found = curve(text)
    assert integral(found, begin_s, end_s, START_S) == pytest.approx(
        by_hand(found, begin_s, end_s, START_S), rel=3e-3, abs=3e-3
    )


@settings(deadline=None, max_examples=60)
@given(
    text=st.sampled_from(TEXTS),
    times=st.lists(st.integers(0, 3_000_000), min_size=2, max_size=12, unique=True),
    offset_s=st.floats(0, 1e6),
)
def test_counters_never_go_back_and_pieces_add_up(text: str, times: list[int], offset_s: float) -> None:
    found, start_s = curve(text), START_S + offset_s
    times = sorted({*times, *(t + 1 for t in times)})
    counters = [int(integral(found, 0.0, t, start_s) * 1e9) for t in times]
    assert counters == sorted(counters)
    whole = integral(found, times[0], times[-1], start_s)
    pieces = sum(integral(found, a, b, start_s) for a, b in pairwise(times))
    assert pieces == pytest.approx(whole, rel=1e-9, abs=1e-5)


@settings(deadline=None, max_examples=50)
@given(text=st.sampled_from(TEXTS), at_s=st.floats(0, 1e8))
def test_usage_is_never_negative(text: str, at_s: float) -> None:
    assert curve(text).value(at_s, START_S) >= 0


def test_noise_swings_around_its_curve_and_is_the_same_for_the_same_seed() -> None:
    found = curve("noise(1, 20%)")
    values = [found.value(t, START_S) for t in range(0, 20_000, 7)]
    assert max(values) <= 1.2 and min(values) >= 0.8
    assert max(values) > 1.1 and min(values) < 0.9
    assert math.fsum(values) / len(values) == pytest.approx(1, abs=0.01)
    assert values == [curve("noise(1, 20%)").value(t, START_S) for t in range(0, 20_000, 7)]
    other = parse_curve("noise(1, 20%)", request=1, phases=lambda: (0.3, 0.2, 0.9))
    assert values[0] != other.value(0, START_S)


@given(st.floats(0, 1e9), st.floats(0, 1e6), st.floats(-10, 1e6))
def test_what_is_constant_is_integrated_as_all_curves_are_to_the_last_bit(
    amount: float, begin_s: float, length_s: float
) -> None:
    found = Constant(amount)
    exact = max(0.0, found.transform(begin_s, begin_s + length_s, START_S, 0.0).real)
    expected = exact if begin_s + length_s > begin_s else 0.0
    assert integral(found, begin_s, begin_s + length_s, START_S) == expected
