from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.taints import (
    ALL_EFFECTS,
    Taint,
    Toleration,
    count_untolerated_preferences,
    eviction_delay_s,
    find_untolerated,
    is_tolerated,
    merge_taints,
    taints_of,
    tolerations_of,
)

GPU = Taint("gpu", "true", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("gpu", "Equal", "true", "NoSchedule"), True),
        (Toleration("gpu", "", "true", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "false", "NoSchedule"), False),
        (Toleration("gpu", "Equal", "", "NoSchedule"), False),
        (Toleration("gpu", "Exists", "", "NoSchedule"), True),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("", "Equal", "true"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Exists", "", "PreferNoSchedule"), False),
        (Toleration("gpu", "Sometimes", "true"), False),
        (Toleration(), False),
    ],
)
def test_a_toleration_matches_key_value_and_effect(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(GPU) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "value", "tolerated"),
    [
        ("Lt", "10", "9", True), ("Lt", "10", "10", False), ("Gt", "10", "11", True),
        ("Gt", "10", "10", False), ("Gt", "-5", "-4", True), ("Lt", "010", "9", False),
        ("Lt", "10", "x", False), ("Gt", "+1", "2", False),
        ("Lt", "99999999999999999999", "1", False),
    ],
)  # fmt: skip
def test_numeric_tolerations_need_their_gate(operator: str, bound: str, value: str, tolerated: bool) -> None:
    toleration = Toleration("cost", operator, bound)
    taint = Taint("cost", value, "NoSchedule")
    assert toleration.tolerates(taint, comparison_operators=True) is tolerated
    assert not toleration.tolerates(taint)


def test_the_first_untolerated_taint_is_found_and_preferences_are_passed_over() -> None:
    preference = Taint("slow", "", "PreferNoSchedule")
    gone = Taint("gone", "", "NoExecute")
    taints = (preference, GPU, gone)
    assert find_untolerated(taints, ()) == GPU
    assert find_untolerated(taints, (Toleration("gpu", "Exists"),)) == gone
    assert find_untolerated(taints, (Toleration("", "Exists"),)) is None
    assert find_untolerated((preference,), ()) is None
    assert find_untolerated(taints, (), effects=ALL_EFFECTS) == preference


def test_only_untolerated_preferences_are_counted() -> None:
    taints = (Taint("a", "", "PreferNoSchedule"), Taint("b", "", "PreferNoSchedule"), GPU)
    assert count_untolerated_preferences(taints, ()) == 2
    assert count_untolerated_preferences(taints, (Toleration("a", "Exists"),)) == 1
    assert count_untolerated_preferences(taints, (Toleration("a", "Exists", "", "NoSchedule"),)) == 2


def test_the_shortest_patience_decides_when_a_pod_is_evicted() -> None:
    down, lost = Taint("down", "", "NoExecute"), Taint("lost", "", "NoExecute")
    patient, brief = Toleration("down", "Exists", "", "", 300), Toleration("lost", "Exists", "", "", 30)
    assert eviction_delay_s((down, lost), (patient, brief)) == 30
    assert eviction_delay_s((down, lost), (patient,)) == 0
    assert eviction_delay_s((down,), (Toleration("down", "Exists"),)) is None
    assert eviction_delay_s((down, lost), (Toleration("down", "Exists"), brief)) == 30
    assert eviction_delay_s((down,), (Toleration("down", "Exists", "", "", -5),)) == 0
    assert eviction_delay_s((GPU,), ()) is None


def test_the_first_matching_toleration_counts_even_if_a_later_one_is_more_patient() -> None:
    down = Taint("down", "", "NoExecute")
    tolerations = (Toleration("down", "Exists", "", "", 5), Toleration("", "Exists"))
    assert eviction_delay_s((down,), tolerations) == 5


def test_objects_are_read_and_written() -> None:
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]}}
    assert taints_of(node) == (Taint("a", "", "NoSchedule"),)
    assert taints_of({}) == ()
    toleration = {
        "key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 0
    }  # fmt: skip
    assert tolerations_of({"spec": {"tolerations": [toleration]}})[0].to_json() == toleration
    assert GPU.to_json() == {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def test_taints_print_as_kubectl_prints_them() -> None:
    assert str(GPU) == "gpu=true:NoSchedule"
    assert str(Taint("a", "", "NoExecute")) == "a:NoExecute"
    assert str(Taint("a", "b")) == "a=b:"
    assert str(Taint("a")) == "a"


def test_merging_keeps_one_taint_per_key_and_effect() -> None:
    other = Taint("gpu", "false", "NoSchedule")
    execute = Taint("gpu", "true", "NoExecute")
    assert merge_taints((GPU,), (other, execute, execute)) == (GPU, execute)


texts = st.sampled_from(["", "a", "b"])
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
tolerations = st.builds(
    Toleration, texts, st.sampled_from(["", "Equal", "Exists"]), texts, st.one_of(st.just(""), effects)
)


@given(st.lists(st.builds(Taint, texts, texts, effects)), st.lists(tolerations), tolerations)
def test_one_more_toleration_never_hurts(
    taints: list[Taint], some: list[Toleration], more: Toleration
) -> None:
    if find_untolerated(taints, some) is None:
        assert find_untolerated(taints, [*some, more]) is None
    for taint in taints:
        assert is_tolerated(taint, [*some, more]) == (is_tolerated(taint, some) or more.tolerates(taint))
