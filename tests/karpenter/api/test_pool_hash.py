from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from holokube.karpenter.api.pool_hash import pool_hash

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}},
    "spec": {
        "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
        "requirements": [{"key": "k", "operator": "Exists"}],
        "taints": [{"key": "t", "effect": "NoSchedule"}, {"key": "u", "value": "v", "effect": "NoExecute"}],
        "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
        "expireAfter": "1h",
        "terminationGracePeriod": "30m",
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    template = copy.deepcopy(TEMPLATE)
    *parents, last = path.split(".")
    owner = template
    for parent in parents:
        owner = owner[parent]
    if value is None:
        del owner[last]
    else:
        owner[last] = value
    return template


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.requirements", [{"key": "other", "operator": "Exists"}]),
        ("spec.requirements", None),
        ("spec.taints", list(reversed(TEMPLATE["spec"]["taints"]))),
        ("spec.taints", [*TEMPLATE["spec"]["taints"], TEMPLATE["spec"]["taints"][0]]),
        ("spec.expireAfter", "60m"),
        ("spec.terminationGracePeriod", "1800s"),
        ("metadata.labels", {"b": "2", "a": "1"}),
        ("spec.taints", [{"key": "t", "value": "", "effect": "NoSchedule"}, TEMPLATE["spec"]["taints"][1]]),
    ],
)
def test_what_makes_no_other_node_makes_no_other_hash(path: str, value: Any) -> None:
    assert pool_hash(changed(path, value)) == pool_hash(TEMPLATE)


OTHERS = [
    ("metadata.labels", {"a": "1"}),
    ("metadata.labels", {"a": "1", "b": ""}),
    ("metadata.annotations", {"c": "4"}),
    ("metadata.annotations", {"a": "1", "b": "2"}),
    ("spec.taints", TEMPLATE["spec"]["taints"][:1]),
    ("spec.taints", TEMPLATE["spec"]["startupTaints"]),
    ("spec.startupTaints", None),
    ("spec.startupTaints", [{"key": "s", "effect": "NoExecute"}]),
    ("spec.nodeClassRef", {"group": "g", "kind": "K", "name": "m"}),
    ("spec.expireAfter", "2h"),
    ("spec.expireAfter", "Never"),
    ("spec.expireAfter", "0s"),
    ("spec.terminationGracePeriod", "0s"),
    ("spec.terminationGracePeriod", None),
]


def test_what_makes_another_node_makes_another_hash() -> None:
    hashes = {pool_hash(changed(path, value)) for path, value in OTHERS}
    assert len(hashes) == len(OTHERS) and pool_hash(TEMPLATE) not in hashes


def test_absent_and_empty_are_the_same() -> None:
    bare = {"spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}}
    spelled_out = {
        "metadata": {"labels": {}, "annotations": {}},
        "spec": {**bare["spec"], "taints": [], "startupTaints": [], "requirements": [], "expireAfter": "720h"},
    }
    assert pool_hash(bare) == pool_hash(spelled_out)


def test_the_hash_is_a_number_that_stays_the_same_from_run_to_run() -> None:
    assert 0 <= int(pool_hash(TEMPLATE)) < 2**64
    assert pool_hash(json.loads(json.dumps(TEMPLATE))) == pool_hash(TEMPLATE)
