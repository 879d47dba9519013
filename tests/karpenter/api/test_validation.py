from __future__ import annotations

import pytest

from holokube.karpenter.api.validation import problems, requirement_problems, unknown_values
from holokube.kube.types import JsonObject
from tests.karpenter.api.pools import ACCEPTED, WITH_EVERYTHING, labelled, node_pool, requirement, yaml_of

CAPACITY_TYPE = "karpenter.sh/capacity-type"
TAINT = {"key": "a", "effect": "NoSchedule"}


def test_a_pool_with_everything_has_no_problems() -> None:
    assert problems(yaml_of(WITH_EVERYTHING)) == []


@pytest.mark.parametrize("pool", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_what_a_server_takes_without_good_reason_to_refuse_is_fine(pool: JsonObject) -> None:
    assert problems(pool) == []


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        (labelled({"karpenter.sh/nodepool": "x"}), "labels: key karpenter.sh/nodepool is restricted"),
        (labelled({"a b": "x"}), "labels: key 'a b'"),
        (labelled({"a": "-x-"}), "labels: value '-x-' of a"),
        (labelled({"karpenter.sh/initialized": "true"}), "labels: label karpenter.sh/initialized is not allowed"),
        (node_pool(taints=[{"key": "", "effect": "NoSchedule"}]), "taints: key ''"),
        (node_pool(taints=[{"key": "a", "value": "b c", "effect": "NoSchedule"}]), "taints: value 'b c'"),
        (node_pool(startupTaints=[{"key": "a", "effect": "Soon"}]), "startupTaints: effect 'Soon'"),
        (
            node_pool(taints=[TAINT], startupTaints=[TAINT]),
            "startupTaints: key a with effect NoSchedule is there twice",
        ),
        (node_pool(requirements=[requirement("karpenter.sh/nodepool", "Exists")]), "sh/nodepool is restricted"),
        (node_pool(requirements=[requirement("kubernetes.io/hostname", "Exists")]), "hostname is not allowed"),
        (node_pool(requirements=[requirement("a", "Like", "b")]), "operator 'Like' is none of"),
        (node_pool(requirements=[requirement("a", "In")]), "key a: operator In must have a value"),
        (node_pool(requirements=[requirement("a", "In", "b c")]), "key a: value 'b c'"),
        (node_pool(requirements=[requirement("a", "In", "b", minValues=2)]), "minValues is 2, but there are only 1"),
        (node_pool(requirements=[requirement("a", "Gt", "1", "2")]), "Gt must have a single integer"),
        (node_pool(requirements=[requirement("a", "Lte", "-1")]), "Lte must have a single integer"),
        (node_pool(requirements=[requirement("a", "Lt", "x")]), "Lt must have a single integer"),
        (node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "cheap")]), "none of the values cheap is one of"),
        (
            node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot", "cheap", minValues=2)]),
            "minValues is 2, but only spot can be used",
        ),
    ],
)
def test_each_problem_is_told_with_its_field(pool: JsonObject, problem: str) -> None:
    found = problems(pool)
    assert any(problem in one for one in found), found


def test_the_same_key_may_have_two_effects() -> None:
    assert problems(node_pool(taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}])) == []


def test_old_label_keys_are_read_as_the_new_ones() -> None:
    assert requirement_problems(requirement("failure-domain.beta.kubernetes.io/zone", "In", "a")) == []


def test_values_that_mean_nothing_beside_others_are_only_worth_a_word() -> None:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot", "cheap")])
    assert problems(pool) == []
    assert unknown_values(pool) == {CAPACITY_TYPE: ["cheap"]}
    assert unknown_values(yaml_of(WITH_EVERYTHING)) == {}
