from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.requirements import (
    ARCH_LABEL,
    HOSTNAME_LABEL,
    WELL_KNOWN_LABELS,
    ZONE_LABEL,
    Requirement,
    Requirements,
)

MAX_INT = 2**63 - 1


def req(operator: str, *values: str, key: str = "k", min_values: int | None = None) -> Requirement:
    return Requirement.new(key, operator, values, min_values)


class Fixed:
    """Draws the largest number it may."""

    def randrange(self, n: int, /) -> int:
        return n - 1


@pytest.mark.parametrize(
    ("requirement", "operator", "inside", "outside"),
    [
        (req("In", "a", "b"), "In", ["a", "b"], ["c", ""]),
        (req("In"), "DoesNotExist", [], ["a", ""]),
        (req("NotIn", "a"), "NotIn", ["b", "", "5"], ["a"]),
        (req("NotIn"), "Exists", ["a"], []),
        (req("Exists"), "Exists", ["a", ""], []),
        (req("DoesNotExist"), "DoesNotExist", [], ["a"]),
        (req("Gt", "5"), "Exists", ["6", "07"], ["5", "x", ""]),
        (req("Lt", "5"), "Exists", ["4", "-1"], ["5", "x"]),
        (req("Gte", "5"), "Exists", ["5", "6"], ["4", "5.5"]),
        (req("Lte", "5"), "Exists", ["5"], ["6"]),
        (req("Gt", str(MAX_INT)), "DoesNotExist", [], [str(MAX_INT)]),
    ],
)
def test_each_operator_is_a_set_of_values(
    requirement: Requirement, operator: str, inside: list[str], outside: list[str]
) -> None:
    assert requirement.operator == operator
    assert all(requirement.has(value) for value in inside)
    assert not any(requirement.has(value) for value in outside)


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (req("In", "a", "b"), req("In", "b", "c"), req("In", "b")),
        (req("In", "a"), req("In", "b"), req("DoesNotExist")),
        (req("In", "a", "b"), req("NotIn", "b"), req("In", "a")),
        (req("NotIn", "a"), req("NotIn", "b"), req("NotIn", "a", "b")),
        (req("Exists"), req("NotIn", "a"), req("NotIn", "a")),
        (req("Exists"), req("DoesNotExist"), req("DoesNotExist")),
        (req("In", "1", "5", "9", "x"), req("Gt", "4"), req("In", "5", "9")),
        (req("Gt", "5"), req("Lt", "5"), req("DoesNotExist")),
        (req("Gt", "4"), req("Lt", "6"), Requirement("k", True, frozenset(), 5, 5)),
        (req("NotIn", "1", "7", "x"), req("Gte", "5"), Requirement("k", True, frozenset({"7"}), 5, None)),
    ],
)
def test_intersections(left: Requirement, right: Requirement, both: Requirement) -> None:
    assert left.intersection(right) == both
    assert right.intersection(left) == both


def test_a_concrete_set_forgets_its_bounds() -> None:
    both = req("In", "5", "9").intersection(req("Lt", "8"))
    assert both == req("In", "5")
    assert (both.gte, both.lte) == (None, None)


def test_the_larger_minimum_of_values_wins_even_when_bounds_cross() -> None:
    assert req("Exists", min_values=2).intersection(req("In", "a", min_values=3)).min_values == 3
    crossing = req("Gt", "9", min_values=2).intersection(req("Lt", "1"))
    assert (crossing.operator, crossing.min_values) == ("DoesNotExist", 2)


def test_old_keys_are_read_as_the_stable_ones() -> None:
    assert req("Exists", key="failure-domain.beta.kubernetes.io/zone").key == ZONE_LABEL
    assert Requirements.from_labels({"beta.kubernetes.io/arch": "arm64"})[ARCH_LABEL].has("arm64")


@pytest.mark.parametrize(
    ("operator", "values"), [("Near", ()), ("Gt", ()), ("Lt", ("a",)), ("Gte", ("1", "2"))]
)
def test_nonsense_is_refused_with_the_key_in_the_message(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="requirement on zone"):
        Requirement.new("zone", operator, values)


def test_a_missing_key_reads_as_exists() -> None:
    assert Requirements().of("k") == req("Exists")
    assert "k" not in Requirements()


def test_several_requirements_on_one_key_are_intersected() -> None:
    requirements = Requirements([req("In", "a", "b"), req("NotIn", "a")])
    assert requirements["k"] == req("In", "b")
    assert requirements.adding(req("In", "c"))["k"].operator == "DoesNotExist"
    assert requirements["k"] == req("In", "b")


def test_merging_with_nothing_gives_the_same_object() -> None:
    some = Requirements([req("In", "a")])
    assert some.merged(Requirements()) is some
    assert Requirements().merged(some) is some
    assert some.without("k") == Requirements()


@pytest.mark.parametrize(
    ("offered", "wanted", "compatible"),
    [
        ([], [req("In", "a")], False),
        ([], [req("Exists")], False),
        ([], [req("Gt", "1")], False),
        ([], [req("NotIn", "a")], True),
        ([], [req("DoesNotExist")], True),
        ([req("In", "a")], [], True),
        ([req("In", "a")], [req("In", "a", "b")], True),
        ([req("In", "a")], [req("In", "b")], False),
        ([req("In", "a")], [req("NotIn", "a")], False),
        ([req("In", "a")], [req("DoesNotExist")], False),
        ([req("Exists")], [req("DoesNotExist")], False),
        ([req("NotIn", "a")], [req("DoesNotExist")], True),
        ([req("DoesNotExist")], [req("NotIn", "a")], True),
        ([req("DoesNotExist")], [req("DoesNotExist")], True),
        ([req("DoesNotExist")], [req("Exists")], False),
        ([req("DoesNotExist")], [req("In", "a")], False),
        ([req("Gt", "5")], [req("Lt", "3")], False),
        ([req("In", "1", "9")], [req("Gt", "5")], True),
    ],
)
def test_compatibility(offered: list[Requirement], wanted: list[Requirement], compatible: bool) -> None:
    node, pod = Requirements(offered), Requirements(wanted)
    assert node.is_compatible(pod) is compatible
    assert (node.why_incompatible(pod) == "") is compatible


def test_well_known_keys_may_be_left_undefined() -> None:
    pod = Requirements([req("In", "eu-1", key=ZONE_LABEL)])
    assert not Requirements().is_compatible(pod)
    assert Requirements().is_compatible(pod, allow_undefined=WELL_KNOWN_LABELS)
    other = Requirements([req("In", "us-1", key=ZONE_LABEL)])
    assert not other.is_compatible(pod, allow_undefined=WELL_KNOWN_LABELS)


def test_reasons_are_worded_like_upstream() -> None:
    node = Requirements([req("In", "a")])
    assert node.why_disjoint(Requirements([req("In", "b")])) == "key k, k In [b] not in k In [a]"
    typo = Requirements([req("In", "x", key="zone")])
    assert Requirements().why_incompatible(typo) == 'label "zone" does not have known values'
    assert (
        Requirements().why_incompatible(typo, allow_undefined=WELL_KNOWN_LABELS)
        == f'label "zone" does not have known values (typo of "{ZONE_LABEL}"?)'
    )


def test_requirements_print_briefly() -> None:
    assert str(req("In", *"gfedcba")) == "k In [a b c d e and 2 others]"
    assert str(req("Gt", "4").intersection(req("Lt", "9"))) == "k Exists >=5 <=8"
    assert str(req("Exists", min_values=3)) == "k Exists minValues 3"
    shown = Requirements([req("Exists", key="z"), req("In", "h", key=HOSTNAME_LABEL), req("Exists", key="a")])
    assert str(shown) == "a Exists, z Exists"


def test_a_value_is_picked_within_the_requirement() -> None:
    assert req("In", "b", "a").any(Fixed()) == "a"
    assert req("DoesNotExist").any(Fixed()) == ""
    assert req("Gt", "4").intersection(req("Lt", "9")).any(Fixed()) == "8"
    assert req("Exists").any(Fixed()) == str(MAX_INT - 1)


def test_json_goes_in_and_comes_out() -> None:
    entries = [
        {"key": "a", "operator": "In", "values": ["x", "y"], "minValues": 2},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "Gt", "values": ["4"]},
        {"key": "c", "operator": "Lt", "values": ["9"]},
    ]
    requirements = Requirements.from_json(entries)
    assert requirements.has_min_values
    assert requirements.to_json() == [
        *entries[:2],
        {"key": "c", "operator": "Gte", "values": ["5"]},
        {"key": "c", "operator": "Lte", "values": ["8"]},
    ]
    assert Requirements.from_json(requirements.to_json()) == requirements


def test_a_pod_asks_for_selector_heaviest_wish_and_first_term() -> None:
    def term(value: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": value, "operator": "Exists"}]}

    affinity = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": term("light")},
            {"weight": 9, "preference": term("heavy")},
            {"weight": 9, "preference": term("late")},
        ],
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term("first"), term("second")]
        },
    }
    pod = {"spec": {"nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": affinity}}}
    assert set(Requirements.of_pod(pod)) == {"disk", "heavy", "first"}
    assert set(Requirements.of_pod(pod, include_preferred=False)) == {"disk", "first"}
    assert Requirements.of_pod({"spec": {}}) == Requirements()


words = st.sampled_from(["1", "2", "3", "4", "a", "b", ""])
numbers = st.sampled_from(["0", "1", "2", "3", "4"])
single = st.one_of(
    st.builds(lambda o, v, m: req(o, *v, min_values=m), st.sampled_from(["In", "NotIn"]), st.sets(words),
              st.one_of(st.none(), st.integers(1, 3))),
    st.builds(req, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(req, st.sampled_from(["Gt", "Lt", "Gte", "Lte"]), numbers),
)  # fmt: skip
anything = st.lists(single, min_size=1, max_size=3).map(lambda several: Requirements(several)["k"])
collections = st.lists(
    st.builds(
        lambda key, r: Requirement(key, r.complement, r.values, r.gte, r.lte),
        st.sampled_from("xyz"),
        anything,
    ),
    max_size=3,
).map(Requirements)


@given(anything, anything, anything)
def test_intersection_is_commutative_associative_and_idempotent(
    a: Requirement, b: Requirement, c: Requirement
) -> None:
    assert a.intersection(b) == b.intersection(a)
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))
    copy = Requirement(a.key, a.complement, a.values, a.gte, a.lte, a.min_values)
    assert a.intersection(copy) == a
    assert hash(copy) == hash(a)


@given(anything, anything, words)
def test_a_value_is_in_the_intersection_if_it_is_in_both(a: Requirement, b: Requirement, value: str) -> None:
    assert a.intersection(b).has(value) == (a.has(value) and b.has(value))


@given(anything, anything)
def test_the_quick_answer_is_that_of_the_intersection(a: Requirement, b: Requirement) -> None:
    assert a.intersects(b) == b.intersects(a)
    assert a.intersects(b) == (a.intersection(b).operator != "DoesNotExist")


@given(anything, words)
def test_a_common_value_proves_an_intersection(a: Requirement, value: str) -> None:
    if a.has(value):
        assert a.intersects(req("In", value))


@given(collections, collections)
def test_what_is_compatible_intersects_and_defines_what_is_asked(a: Requirements, b: Requirements) -> None:
    expected = all(key in a or not b[key].is_positive for key in b) and all(
        a[key].intersects(b[key]) or not (a[key].is_positive or b[key].is_positive) for key in a if key in b
    )
    assert a.is_compatible(b) == expected
    assert (a.why_incompatible(b) == "") == expected
    assert a.is_compatible(b, allow_undefined="xyz") == a.intersects(b)


@given(collections, collections)
def test_merging_does_not_depend_on_the_order(a: Requirements, b: Requirements) -> None:
    assert a.merged(b) == b.merged(a)
    assert hash(a.merged(b)) == hash(b.merged(a))
    assert a.merged(b).merged(b) == a.merged(b)
