"""Profiles: what a file may say, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.errors import UsageError
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.profile import FAST, KUBELET, Spread, load_profile, named_profile, parse_profile, seconds


def test_an_empty_file_is_the_fast_profile() -> None:
    profile = parse_profile("{}")
    assert profile.pods == FAST and not profile.pods.events


def test_a_file_changes_what_it_names_and_keeps_the_rest_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("base: kubelet\npods: {start: 250ms, pull: {min_s: 1, max_s: 2}}\nnodes: {capacity: {cpu: '8'}}\n")
    profile = load_profile(path)
    assert profile.pods.start == "250ms" and profile.pods.pull == Spread(min_s=1, max_s=2)
    assert profile.pods.sandbox == KUBELET.sandbox and profile.pods.events
    assert profile.nodes.capacity == {"cpu": "8"}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("pods: {strat: 1}", "strat"), ("podz: {}", "podz"), ("base: slow", "slow"), ("pods: {start: -1}", "start"),
     ("pods: {start: soon}", "start"), ("pods: {start: {min_s: 3, max_s: 1}}", "max_s"),
     ("pods: {crash_rate: 2}", "crash_rate"), ("pods: {start: {}}", "max_s"), ("pods: [", ""),
     ("nodes: {report_every_s: 0}", "report_every_s"), ("pods: {backoff_base_s: 0}", "backoff_base_s")],
)  # fmt: skip
def test_mistakes_are_named(text: str, wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_profile(text, source="p.yaml")
    assert wrong in str(caught.value) and str(caught.value).startswith("p.yaml: ") and caught.value.hint


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the profile"):
        load_profile(tmp_path / "none.yaml")


def test_the_named_profiles_are_what_they_say() -> None:
    assert named_profile("fast").pods is FAST
    assert named_profile("kubelet").pods is KUBELET and named_profile("kubelet").nodes.events


@given(st.floats(min_value=0, max_value=1, exclude_max=True))
def test_distributions_keep_within_their_bounds(u: float) -> None:
    assert 1 <= Spread(min_s=1, max_s=3).at(u) <= 3
    assert 1 <= Spread(min_s=1, mean_s=2, max_s=4).at(u) <= 4


def test_an_exponential_has_its_mean() -> None:
    draw, spread = KeyedDraws(1), Spread(min_s=1, mean_s=3)
    values = [spread.at(draw(str(number))) for number in range(5000)]
    assert 2.9 < sum(values) / len(values) < 3.1


def test_durations_are_numbers_texts_or_draws() -> None:
    draw = KeyedDraws(1)
    assert seconds(1.5, draw, "k") == 1.5
    assert seconds("1m30s", draw, "k") == 90
    spread = Spread(max_s=10)
    assert seconds(spread, draw, "k") == seconds(spread, KeyedDraws(1), "k") != seconds(spread, KeyedDraws(2), "k")
