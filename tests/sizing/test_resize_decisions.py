"""What is to be written about a running pod."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holokube.kube.sizing import ENABLED_LABEL, ORIGINAL_ANNOTATION, PREFIX, STATUS_ANNOTATION, sized_pod
from holokube.sizing.resize_decisions import can_be_resized, plan_resize
from tests.kube.sizing.pods import container, daemon, sized_node

JsonObject = dict[str, Any]


def running(node: JsonObject | None = None) -> JsonObject:
    given = daemon(
        container("a", {"cpu": "1"}), container("b", {"cpu": "3"}),
        sidecars=(container("side", {"cpu": "1"}, restartPolicy="Always"),), request_cpu_fraction="0.1",
    )  # fmt: skip
    pod = sized_pod(given, node or sized_node())
    pod["spec"]["nodeName"] = "n"
    pod["status"] = {"phase": "Running"}
    return pod


def test_a_pod_of_the_right_size_is_left_alone() -> None:
    assert plan_resize(running(), sized_node()).is_empty


def test_a_node_that_grew_makes_its_pods_grow() -> None:
    plan = plan_resize(running(), sized_node("20"))
    assert plan.resize == {
        "spec": {
            "initContainers": [{"name": "side", "resources": {"requests": {"cpu": "400m"}}}],
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "400m"}}},
                {"name": "b", "resources": {"requests": {"cpu": "1200m"}}},
            ],
        }
    }
    assert plan.note is None and plan.status is not None
    assert json.loads(plan.status["metadata"]["annotations"][STATUS_ANNOTATION])["requests"] == {"cpu": "2"}


def test_new_annotations_make_a_new_size() -> None:
    pod = running()
    pod["metadata"]["annotations"][PREFIX + "request-cpu-fraction"] = "0.5"
    plan = plan_resize(pod, sized_node())
    assert plan.resize is not None
    assert plan.resize["spec"]["containers"][1]["resources"] == {"requests": {"cpu": "3"}}


def test_only_containers_that_change_are_named() -> None:
    pod = running()
    pod["metadata"]["annotations"][PREFIX + "exclude-containers"] = "side"
    plan = plan_resize(pod, sized_node("20"))
    assert plan.resize is not None and "initContainers" not in plan.resize["spec"]


def test_a_pod_that_was_admitted_without_us_is_noted_first() -> None:
    given = daemon(container("a", {"cpu": "1"}), request_cpu_fraction="0.2")
    given["spec"]["nodeName"] = "n"
    plan = plan_resize(given, sized_node())
    assert plan.note is not None and plan.resize is not None and plan.status is not None
    noted = json.loads(plan.note["metadata"]["annotations"][ORIGINAL_ANNOTATION])
    assert noted == {"containers": {"a": {"requests": {"cpu": "1"}}}}


def test_pod_level_resources_are_resized_too() -> None:
    given = daemon(container("a", {"cpu": "1"}), request_cpu_fraction="0.2")
    given["spec"]["resources"] = {"requests": {"cpu": "1"}}
    plan = plan_resize(given, sized_node())
    assert plan.resize is not None and plan.resize["spec"]["resources"] == {"requests": {"cpu": "2"}}


def test_a_pod_that_asks_for_nothing_is_left_alone() -> None:
    assert plan_resize(daemon(container("a", {"cpu": "1"})), sized_node()).is_empty


@pytest.mark.parametrize("change", [
    {"metadata": {"labels": {}}}, {"metadata": {"labels": {ENABLED_LABEL: "yes"}}},
    {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"spec": {"nodeName": ""}},
    {"status": {"phase": "Succeeded"}}, {"status": {"phase": "Failed"}},
    {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
])  # fmt: skip
def test_pods_that_do_not_stay_or_do_not_opt_in_are_not_resized(change: JsonObject) -> None:
    pod = running()
    assert can_be_resized(pod)
    for part, fields in change.items():
        pod[part].update(fields)
    assert not can_be_resized(pod)
