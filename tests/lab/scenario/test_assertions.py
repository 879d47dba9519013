from __future__ import annotations

import pytest

from holokube.lab.results import MEASURES
from holokube.lab.scenario.assertions import Assertion, parse_assertion
from holokube.lab.scenario.errors import Wrong


@pytest.mark.parametrize(
    ("text", "measure", "op", "value"),
    [
        ("pending_p99_s < 60", "pending_p99_s", "<", 60.0),
        ("pending_p99_s<=2m", "pending_p99_s", "<=", 120.0),
        ("cpu_allocated_share > 50%", "cpu_allocated_share", ">", 0.5),
        ("cpu_allocated_share >= 0.5", "cpu_allocated_share", ">=", 0.5),
        ("evictions == 0", "evictions", "==", 0.0),
        (" cost_usd != 1e3 ", "cost_usd", "!=", 1000.0),
    ],
)
def test_an_assertion_is_a_measure_a_comparison_and_a_number(text: str, measure: str, op: str, value: float) -> None:
    found = parse_assertion(text)
    assert (found.measure, found.op, found.value, found.text) == (measure, op, value, text)


@pytest.mark.parametrize("measure", [measure.name for measure in MEASURES])
def test_every_measure_may_be_asserted(measure: str) -> None:
    assert parse_assertion(f"{measure} >= 0").holds(0.0)


@pytest.mark.parametrize("text", ["cost_usd < 50%", "evictions < 2m", "cost_usd", "< 3", "cost_usd < ", "cost_usd ~ 3"])
def test_units_that_do_not_belong_to_a_measure_are_refused(text: str) -> None:
    with pytest.raises(Wrong):
        parse_assertion(text)


@pytest.mark.parametrize(
    ("op", "holds_below", "holds_at", "holds_above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
        ("==", False, True, False),
        ("!=", True, False, True),
    ],
)
def test_comparisons_mean_what_they_say(op: str, holds_below: bool, holds_at: bool, holds_above: bool) -> None:
    found = parse_assertion(f"evictions {op} 5")
    assert [found.holds(4.0), found.holds(5.0), found.holds(6.0)] == [holds_below, holds_at, holds_above]


def test_nothing_measured_is_not_as_it_should_be() -> None:
    assert not Assertion("evictions", "<", 5.0, "").holds(None)
