from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.field_selectors import escape_value, unescape_value
from holokube.kube.selectors import (
    FieldRequirement,
    FieldSelector,
    LabelRequirement,
    LabelSelector,
    Operator,
    SelectorError,
    parse_int64,
    validate_label_selector,
)
from tests.kube.recordings import recorded


def test_label_selector_texts_mean_what_upstream_says() -> None:
    for case in recorded("label_selectors"):
        if "error" in case:
            with pytest.raises(SelectorError) as caught:
                LabelSelector.parse(case["text"])
            assert (case["text"], str(caught.value)) == (case["text"], case["error"])
        else:
            selector = LabelSelector.parse(case["text"])
            assert (case["text"], str(selector)) == (case["text"], case["canonical"])
            assert (case, selector.matches(case["labels"])) == (case, case["matches"])


def test_json_selectors_mean_what_upstream_says() -> None:
    for case in recorded("json_selectors"):
        causes = validate_label_selector(case["selector"], "f")
        assert [f"{cause.field}: {cause.message}" for cause in causes] == case["causes"]
        if "error" in case:
            with pytest.raises(SelectorError) as caught:
                LabelSelector.from_json(case["selector"])
            assert str(caught.value) == case["error"]
        else:
            selector = LabelSelector.from_json(case["selector"])
            assert str(selector) == case["canonical"]
            assert (case, selector.matches(case["labels"])) == (case, case["matches"])


def test_field_selector_texts_mean_what_upstream_says() -> None:
    for case in recorded("field_selectors"):
        if "error" in case:
            with pytest.raises(SelectorError) as caught:
                FieldSelector.parse(case["text"])
            assert str(caught.value) == case["error"]
        else:
            selector = FieldSelector.parse(case["text"])
            assert (case["text"], str(selector)) == (case["text"], case["canonical"])
            assert (case, selector.matches(case["fields"].get)) == (case, case["matches"])


def test_an_empty_selector_matches_everything_and_an_absent_one_nothing() -> None:
    for labels in ({}, {"a": "b"}, None):
        assert LabelSelector.parse("").matches(labels)
        assert LabelSelector.from_json({}).matches(labels)
        assert LabelSelector.everything().matches(labels)
        assert not LabelSelector.from_json(None).matches(labels)
    assert LabelSelector.from_json({}).is_empty
    assert not LabelSelector.nothing().is_empty
    assert LabelSelector.nothing() != LabelSelector.everything()


def test_an_empty_value_is_not_a_missing_label() -> None:
    assert LabelSelector.parse("a=").matches({"a": ""})
    assert not LabelSelector.parse("a=").matches({})
    assert LabelSelector.parse("a").matches({"a": ""})
    assert not LabelSelector.parse("!a").matches({"a": ""})


def test_several_conditions_on_one_key_must_all_hold() -> None:
    selector = LabelSelector.parse("n>3,n<10,n!=5")
    assert [n for n in range(12) if selector.matches({"n": str(n)})] == [4, 6, 7, 8, 9]


def test_comparisons_ignore_labels_that_are_no_integers() -> None:
    selector = LabelSelector.parse("n>3")
    assert not selector.matches({"n": "five"})
    assert not selector.matches({"n": "4.5"})
    assert selector.matches({"n": "+04"})
    assert parse_int64(str(2**63)) is None
    assert parse_int64(str(-(2**63))) == -(2**63)


def test_adding_requirements_narrows_a_selector_but_never_revives_nothing() -> None:
    extra = LabelRequirement.checked("b", Operator.IN, ["x"])
    assert str(LabelSelector.parse("c=d").with_requirements([extra])) == "b in (x),c=d"
    assert LabelSelector.nothing().with_requirements([extra]) is LabelSelector.nothing()


def test_an_exact_value_is_offered_for_indexes() -> None:
    selector = LabelSelector.parse("a=b,c in (d),e in (f,g),h!=i")
    assert [selector.required_value(key) for key in "aceh"] == ["b", "d", None, None]
    fields = FieldSelector.parse("spec.nodeName=n1,status.phase!=Running")
    assert fields.required_value("spec.nodeName") == "n1"
    assert fields.required_value("status.phase") is None


def test_equal_selectors_are_one_key() -> None:
    assert len({LabelSelector.parse("a=b,c"), LabelSelector.parse("c , a = b")}) == 1


def test_field_requirements_are_listed() -> None:
    assert FieldSelector.parse("metadata.name==x,spec.nodeName!=y").requirements == (
        FieldRequirement("metadata.name", "=", "x"),
        FieldRequirement("spec.nodeName", "!=", "y"),
    )


def test_field_selectors_can_be_renamed() -> None:
    selector = FieldSelector.parse("host=a,name!=b,gone=x")
    renamed = selector.transformed(lambda name, value: ("", "") if name == "gone" else (name.upper(), value))
    assert str(renamed) == "HOST=a,NAME!=b"


keys = st.sampled_from(["a", "b", "x.io/c"])
values = st.sampled_from(["", "1", "2", "v"])
requirements = st.one_of(
    st.builds(lambda k, o, v: LabelRequirement(k, o, tuple(sorted(v))), keys,
              st.sampled_from([Operator.IN, Operator.NOT_IN]), st.sets(values, min_size=1)),
    st.builds(lambda k, o, v: LabelRequirement(k, o, (v,)), keys,
              st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]), values),
    st.builds(LabelRequirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(lambda k, o, v: LabelRequirement(k, o, (v,)), keys,
              st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]), st.sampled_from(["1", "2"])),
)  # fmt: skip


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, values))
def test_a_selector_is_the_conjunction_of_its_requirements(
    listed: list[LabelRequirement], labels: dict[str, str]
) -> None:
    selector = LabelSelector(listed)
    assert selector.matches(labels) == all(requirement.matches(labels) for requirement in listed)
    assert LabelSelector.parse(str(selector)) == selector


@given(keys, st.sets(values, min_size=1), st.dictionaries(keys, values))
def test_in_and_notin_are_opposites(key: str, several: set[str], labels: dict[str, str]) -> None:
    listed = tuple(several)
    inside = LabelRequirement(key, Operator.IN, listed).matches(labels)
    assert inside is not LabelRequirement(key, Operator.NOT_IN, listed).matches(labels)


@given(st.text(alphabet="ab\\,=! é"))
def test_any_field_value_survives_escaping(value: str) -> None:
    assert unescape_value(escape_value(value)) == value
    selector = FieldSelector((FieldRequirement("metadata.name", "=", value),))
    assert FieldSelector.parse(str(selector)) == selector


def test_a_json_selector_asked_for_again_is_the_same_and_a_bad_one_is_refused_again() -> None:
    source = {"matchLabels": {"app": "web", "tier": "front"}}
    selector = LabelSelector.from_json(source)
    assert LabelSelector.from_json({"matchLabels": dict(source["matchLabels"])}) is selector
    assert selector.matches({"app": "web", "tier": "front", "more": "x"}) and not selector.matches({"app": "web"})
    assert LabelSelector.from_json({"matchLabels": {"app": "front", "tier": "web"}}) != selector
    for _ in range(2):
        with pytest.raises(SelectorError):
            LabelSelector.from_json({"matchLabels": {"app": "not a value"}})
