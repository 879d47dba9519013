from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from holokube.kube.quantity import Format, Quantity, QuantityError, canonical, milli_of, parse
from tests.kube.recordings import recorded

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@st.composite
def texts(draw: st.DrawFn) -> str:
    whole = draw(st.integers(0, 10**9))
    decimals = draw(st.sampled_from(["", "", ".5", ".25", ".125", ".001", ".000000001"]))
    return f"{draw(st.sampled_from(['', '-']))}{whole}{decimals}{draw(st.sampled_from(SUFFIXES))}"


def exact(text: str) -> Fraction:
    return Fraction(parse_quantity(text))


def test_parsing_and_printing_agree_with_upstream_on_recorded_texts() -> None:
    for case in recorded("quantities"):
        if "error" in case:
            with pytest.raises(QuantityError) as caught:
                parse(case["text"])
            assert (case["text"], str(caught.value)) == (case["text"], case["error"])
            continue
        quantity = parse(case["text"])
        assert (case["text"], str(quantity)) == (case["text"], case["canonical"])
        assert (case["text"], quantity.format.value) == (case["text"], case["format"])
        if "value" in case:
            assert (case["text"], quantity.value()) == (case["text"], case["value"])
        if "milli" in case:
            assert (case["text"], quantity.milli()) == (case["text"], case["milli"])


def test_sums_and_comparisons_agree_with_upstream_on_recorded_pairs() -> None:
    for case in recorded("quantity_sums"):
        left, right = parse(case["left"]), parse(case["right"])
        result = left + right if case["operation"] == "+" else left - right
        assert (case, str(result)) == (case, case["result"])
        assert (case, (left > right) - (left < right)) == (case, case["compare"])


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1500m", "1500m"), ("1.5", "1500m"), ("0.5", "500m"), (".5", "500m"), ("1.5Gi", "1536Mi"),
        ("1000", "1k"), ("1024", "1024"), ("1024Ki", "1Mi"), ("1e3", "1e3"), ("1000m", "1"), ("0.1n", "1n"),
        ("1e-20", "1e-9"), ("-1.5Gi", "-1536Mi"), ("0.5Gi", "512Mi"), ("0.1Ki", "102400m"), ("0Gi", "0"),
        ("16Ei", "9223372036854775807"), ("1000E", "1000E"),
    ],
)  # fmt: skip
def test_a_text_prints_in_canonical_form(text: str, printed: str) -> None:
    assert canonical(text) == printed


def test_a_text_in_a_canonical_scale_is_kept_letter_by_letter() -> None:
    kept = ["1.234", "+1", "5.", "1.Gi", "01"]
    assert [canonical(text) for text in kept] == kept


def test_json_numbers_are_quantities_too() -> None:
    assert canonical(2) == "2"
    assert canonical(0.5) == "500m"
    assert canonical(3.0) == "3"
    assert canonical(1e22) == "10000E"
    assert milli_of(2) == 2000


@pytest.mark.parametrize("given_value", [True, None, [], float("nan"), float("inf")])
def test_other_json_values_are_not_quantities(given_value: object) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        parse(given_value)  # type: ignore[arg-type] # the point of the test


def test_spaces_around_a_quantity_are_ignored_but_not_inside() -> None:
    assert parse(" 1Gi\n") == parse("1Gi")
    with pytest.raises(QuantityError) as caught:
        parse("1 Gi")
    assert caught.value.text == "1 Gi"


def test_rounding_goes_away_from_zero() -> None:
    assert parse("1.1").value() == 2
    assert parse("-1.1").value() == -2
    assert parse("1u").milli() == 1
    assert parse("-1u").milli() == -1


def test_huge_exponents_cost_neither_time_nor_memory() -> None:
    huge, tiny = parse("1e2000000000"), parse("1e-2000000000")
    assert str(huge) == "100e1999999998"
    assert huge > parse("9e1999999999") > tiny
    assert huge.value() == 10**100
    assert tiny == parse("1n")
    with pytest.raises(OverflowError):
        huge + tiny


def test_zero_takes_the_format_of_what_is_added() -> None:
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("1000") + parse("1Ki")) == "2024"
    assert (parse("0") - parse("1Gi")).format is Format.BINARY_SI


def test_rounding_up_to_milli_keeps_what_is_coarse_enough() -> None:
    assert str(parse("1.500").rounded_up_to_milli()) == "1.500"
    assert str(parse("1500u").rounded_up_to_milli()) == "2m"
    assert str(parse("100n").rounded_up_to_milli()) == "1m"


@given(texts())
def test_the_number_is_that_of_an_independent_reader(text: str) -> None:
    quantity = parse(text)
    nanos = exact(text) * 10**9
    rounded = -(-nanos // 1) if nanos > 0 else nanos // 1
    if abs(rounded) <= 10**9 * (2**63 - 1):
        assert Fraction(quantity.milli()) == _away_from_zero(Fraction(rounded, 10**6))
        assert Fraction(quantity.value()) == _away_from_zero(Fraction(rounded, 10**9))


def _away_from_zero(number: Fraction) -> int:
    return -(-number // 1) if number > 0 else number // 1


@given(texts())
def test_printing_and_reading_again_changes_nothing(text: str) -> None:
    quantity = parse(text)
    again = parse(str(quantity))
    assert again == quantity
    assert hash(again) == hash(quantity)
    assert canonical(str(quantity)) == str(quantity)


@given(texts(), texts(), texts())
def test_addition_is_exact(a: str, b: str, c: str) -> None:
    x, y, z = parse(a), parse(b), parse(c)
    assert (x + y) + z == x + (y + z)
    assert x + y == y + x
    assert x + y - y == x
    assert x - x == Quantity(0)
    assert x * 3 == x + x + x


@given(st.lists(texts(), min_size=2, max_size=8))
def test_the_order_is_that_of_the_numbers(several: list[str]) -> None:
    quantities = [parse(text) for text in several]
    in_order = sorted(quantities)
    numbers = [Decimal(q._mantissa).scaleb(q._exponent) for q in in_order]
    assert numbers == sorted(numbers)


@given(st.integers(-(10**20), 10**20), st.sampled_from(list(Format)))
def test_millis_survive_every_format(milli: int, family: Format) -> None:
    assert parse(str(Quantity.from_milli(milli, family))).milli() == milli
