"""Objects in scenarios are looked at by their types, if these are known."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.types import JsonObject
from holokube.lab.scenario.object_types import type_problems


def told(obj: JsonObject) -> list[tuple[str, str]]:
    return [(one.field, one.what) for one in type_problems(obj)]


def made(api_version: str, kind: str, **parts: Any) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **parts}


@pytest.mark.parametrize("obj", [
    made("v1", "ConfigMap", data={"any key": "any text"}),
    made("apps/v1", "Deployment", spec={"template": {"spec": {"nodeSelector": {"strange": "label"}}}}),
    made("example.com/v1", "Thing", spec={"anything": 1}),
    # The first word of its group is that of a built-in one.
    made("apps.example.com/v1", "Deployment", spec={"anything": 1}),
    made("v1", "Zz", spec={"anything": 1}),
    # What is there for each copy is a number in the end.
    made("v1", "Pod", spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "$(copy)00m"}}}]}),
    made("karpenter.sh/v1", "NodePool", spec={"limits": {"cpu": 5}, "template": {"metadata": {"labels": {"a": "b"}}}}),
    made("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass"),
])  # fmt: skip
def test_what_is_right_or_not_known_is_left_alone(obj: JsonObject) -> None:
    assert told(obj) == []


def test_all_fields_that_a_type_does_not_have_are_told() -> None:
    obj = made("v1", "Pod", spec={"containers": [{"name": "c"}, {"name": "d", "imag": "x", "": 1}]}, spce={})
    assert told(obj) == [
        ("spec.containers[1].imag", "there is no such field"),
        ("spec.containers[1].", "there is no such field"),
        ("spce", "there is no such field"),
    ]


def test_the_value_that_cannot_be_read_is_found() -> None:
    containers = [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1GB"}}}]
    [(field, what)] = told(made("v1", "Pod", spec={"containers": containers}))
    assert field == "spec.containers[0].resources.limits.memory"
    assert "quantities" in what
