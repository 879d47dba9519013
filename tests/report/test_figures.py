from __future__ import annotations

import pytest

from holokube.lab.results import MEASURE_BY_NAME
from holokube.report.figures import (
    MINUS,
    NO_BREAK,
    count,
    difference_text,
    seconds,
    share,
    start_epoch_s,
    start_text,
    usd,
    value_text,
)


def plain(shown: str) -> str:
    return shown.replace(NO_BREAK, " ").replace(MINUS, "-")


@pytest.mark.parametrize(("amount", "shown"), [
    (0, "$0"), (0.0123, "$0.0123"), (4.5, "$4.50"), (1234.567, "$1,234.57"), (45678.9, "$45,679"), (-3, "-$3.00"),
])
def test_money(amount: float, shown: str) -> None:
    assert plain(usd(amount)) == shown


@pytest.mark.parametrize(("span_s", "shown"), [
    (0, "0 s"), (0.44, "0.4 s"), (46.4, "46 s"), (59.4, "59 s"), (69, "1 min 09 s"), (119, "1 min 59 s"), (3600, "1 h"),
    (200, "3 min 20 s"), (240, "4 min"),
    (7500, "2 h 05 min"), (86400, "24 h"), (200_000, "2 d 07 h"), (-5, "-5 s"),
])
def test_spans_of_time(span_s: float, shown: str) -> None:
    assert plain(seconds(span_s)) == shown


def test_shares_and_counts() -> None:
    assert plain(share(0.1234)) == "12.3 %"
    assert (count(12), count(12.34), count(123456), plain(count(-2))) == ("12", "12.3", "123,456", "-2")


def test_a_value_has_its_unit_and_nothing_measured_is_a_dash() -> None:
    assert plain(value_text(MEASURE_BY_NAME["cost_usd_per_hour"], 2)) == "$2.00/h"
    assert plain(value_text(MEASURE_BY_NAME["node_hours"], 2)) == "2 h"
    assert value_text(MEASURE_BY_NAME["cost_usd"], None) == "\u2013"


@pytest.mark.parametrize(("name", "value", "first", "shown", "verdict"), [
    ("cost_usd", 80, 100, "-20.0 %", "better"),
    ("cost_usd", 120, 100, "+20.0 %", "worse"),
    ("cpu_allocated_share", 0.8, 0.7, "+10.0 pp", "better"),
    ("cpu_allocated_share", 0.6, 0.7, "-10.0 pp", "worse"),
    ("evictions", 5, 0, "+5", "worse"),
    ("pending_p99_s", 60, 2, "\u00d7 30", "worse"),
    ("cost_usd", 100.01, 100, "same", "same"),
    ("evictions", 0, 0, "same", "same"),
    ("pods_created", 80, 100, "-20.0 %", ""),
    ("cost_usd", None, 100, "", ""),
    ("cost_usd", 100, None, "", ""),
])
def test_differences(name: str, value: float | None, first: float | None, shown: str, verdict: str) -> None:
    said, judged = difference_text(MEASURE_BY_NAME[name], value, first)
    assert (plain(said), judged) == (shown, verdict)


def test_the_beginning_of_a_run() -> None:
    assert start_epoch_s("1970-01-02T00:00:00Z") == 86400
    assert start_epoch_s("1970-01-02T01:00:00+01:00") == 86400
    assert start_epoch_s("1970-01-02T00:00:00") == 86400
    assert start_epoch_s("once upon a time") == 0
    assert start_text("2026-01-05T01:30:00+01:00") == "Mon 5 Jan 2026, 00:30 UTC"
    assert start_text("once upon a time") == "once upon a time"
