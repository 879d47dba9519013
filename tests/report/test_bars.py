from __future__ import annotations

import re

from holokube.report.bars import ROWS_MAX, bars
from holokube.report.figures import count


def names(drawn: str) -> list[str]:
    return re.findall(r'<div class="bar-name">(.*?)</div>', drawn)


def test_the_largest_comes_first_and_fills_the_width() -> None:
    drawn = bars([{"small": 5.0, "large": 20.0}, {"small": 10.0}], ["a", "b"], count, nothing="none")
    assert names(drawn) == ["large", "small"]
    assert re.findall(r'<rect width="([0-9.]+)%"', drawn) == ["100.00", "0.00", "25.00", "50.00"]
    assert re.findall(r'<span class="num">(.*?)</span>', drawn) == ["20", "\u2013", "5", "10"]


def test_what_does_not_fit_is_added_up() -> None:
    amounts = {f"type-{number:02d}": 100.0 - number for number in range(ROWS_MAX + 3)}
    drawn = bars([amounts], ["a"], count, nothing="none")
    assert names(drawn)[-1] == "3 others"
    assert len(names(drawn)) == ROWS_MAX + 1
    assert f'<span class="num">{count(sum(sorted(amounts.values())[:3]))}</span>' in drawn


def test_a_single_one_more_is_shown_itself() -> None:
    drawn = bars([{f"t{number}": 1.0 for number in range(ROWS_MAX + 1)}], ["a"], count, nothing="")
    assert len(names(drawn)) == ROWS_MAX + 1
    assert "others" not in drawn


def test_no_bars_leave_a_word_instead() -> None:
    assert "no node at all" in bars([{}, {"x": 0.0}], ["a", "b"], count, nothing="no node at all")


def test_bars_of_several_runs_say_whose_they_are() -> None:
    keys = '<p class="bar-keys" aria-hidden="true">'
    drawn = bars([{"t": 1.0}, {"t": 2.0}], ["<a>", "b"], count, nothing="")
    assert drawn.startswith(keys) and "&lt;a&gt;</span>" in drawn
    assert keys not in bars([{"t": 1.0}], ["a"], count, nothing="")
