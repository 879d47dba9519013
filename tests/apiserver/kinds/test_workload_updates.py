"""What may change in workloads. Reasons and fields are those of kube-apiserver 1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import changed, created, job, template, update, workload

SETS = ("deployments", "replicasets", "statefulsets", "daemonsets")


@pytest.mark.parametrize("plural", SETS)
def test_the_selector_is_fixed_at_creation(plural: str) -> None:
    old = created(plural, workload())
    new = changed(old, "spec.selector", {"matchLabels": {"other": "x"}})
    new = changed(new, "spec.template.metadata.labels", {"other": "x"})
    cause = ("Forbidden", "spec") if plural == "statefulsets" else ("Invalid", "spec.selector")
    assert update(plural, old, new).fields == [cause]


@pytest.mark.parametrize("plural", SETS)
def test_the_template_may_change_and_moves_the_generation(plural: str) -> None:
    old = created(plural, workload())
    outcome = update(plural, old, changed(old, "spec.template.spec.containers.0.image", "nginx:2"))
    assert outcome.causes == []
    assert outcome.obj["metadata"]["generation"] == 2


@pytest.mark.parametrize("plural", SETS)
def test_only_deployments_move_their_generation_for_an_annotation(plural: str) -> None:
    old = created(plural, workload())
    annotations = {**old["metadata"].get("annotations", {}), "a": "b"}
    outcome = update(plural, old, changed(old, "metadata.annotations", annotations))
    assert outcome.obj["metadata"]["generation"] == (2 if plural == "deployments" else 1)


@pytest.mark.parametrize("plural", SETS)
def test_a_selector_must_find_the_templates_pods(plural: str) -> None:
    old = created(plural, workload())
    new = changed(old, "spec.template.metadata.labels", {"app": "other"})
    assert ("Invalid", "spec.template.metadata.labels") in update(plural, old, new).fields


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("spec.replicas", 5, True),
        ("spec.updateStrategy", {"type": "OnDelete"}, True),
        ("spec.minReadySeconds", 5, True),
        ("spec.revisionHistoryLimit", 3, True),
        ("spec.ordinals", {"start": 1}, True),
        ("spec.persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Delete"}, True),
        ("spec.serviceName", "other", False),
        ("spec.podManagementPolicy", "Parallel", False),
    ],
)
def test_a_stateful_set_may_change_in_few_fields(path: str, value: Any, allowed: bool) -> None:
    old = created("statefulsets", workload({"serviceName": "s"}))
    fields = update("statefulsets", old, changed(old, path, value)).fields
    assert fields == ([] if allowed else [("Forbidden", "spec")])


def test_a_daemon_set_counts_the_changes_of_its_template_in_an_annotation() -> None:
    key = "deprecated.daemonset.template.generation"
    old = created("daemonsets", workload())
    assert old["metadata"]["annotations"][key] == "1"
    same = update("daemonsets", old, changed(old, "metadata.annotations", {key: "9"})).obj
    assert same["metadata"]["annotations"][key] == "1"
    moved = update("daemonsets", old, changed(old, "spec.template.spec.hostname", "h")).obj
    assert moved["metadata"]["annotations"][key] == "2"


def test_the_status_of_a_deployment_does_not_carry_labels() -> None:
    old = created("deployments", workload())
    new = changed(changed(old, "metadata.labels", {"a": "b"}), "status", {"replicas": 2, "readyReplicas": 0})
    outcome = update("deployments", old, new, status=True)
    assert "labels" not in outcome.obj["metadata"]
    assert outcome.obj["status"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("plural", "status", "fields"),
    [
        ("deployments", {"replicas": 1, "readyReplicas": 2}, [("Invalid", "status.readyReplicas")]),
        ("replicasets", {"replicas": 1, "availableReplicas": 1}, [("Invalid", "status.availableReplicas")]),
        ("statefulsets", {"replicas": 1, "currentReplicas": 2}, [("Invalid", "status.currentReplicas")]),
        ("daemonsets", {"numberReady": -1}, [("Invalid", "status.numberReady")]),
    ],
)  # fmt: skip
def test_the_numbers_of_a_status_must_fit_together(
    plural: str, status: JsonObject, fields: list[tuple[str, str]]
) -> None:
    old = created(plural, workload())
    assert update(plural, old, changed(old, "status", status), status=True).fields == fields


def test_collisions_are_not_forgotten() -> None:
    old = created("deployments", workload())
    old["status"] = {"collisionCount": 2}
    new = changed(old, "status", {"collisionCount": 1})
    assert update("deployments", old, new, status=True).fields == [("Invalid", "status.collisionCount")]


JOB_CHANGES: list[tuple[str, Any, list[tuple[str, str]]]] = [
    ("spec.parallelism", 3, []),
    ("spec.suspend", True, []),
    ("spec.backoffLimit", 2, []),
    ("spec.ttlSecondsAfterFinished", 60, []),
    ("spec.completions", 3, [("Invalid", "spec.completions")]),
    ("spec.completionMode", "Indexed", [("Invalid", "spec.completionMode")]),
    ("spec.managedBy", "example.com/x", [("Invalid", "spec.managedBy")]),
    ("spec.template.spec.nodeSelector", {"a": "b"}, [("Invalid", "spec.template")]),
    ("spec.template.spec.containers.0.image", "x", [("Invalid", "spec.template")]),
]


@pytest.mark.parametrize(("path", "value", "fields"), JOB_CHANGES)
def test_a_running_job_may_change_in_few_fields(path: str, value: Any, fields: list[tuple[str, str]]) -> None:
    old = created("jobs", job())
    assert update("jobs", old, changed(old, path, value)).fields == fields


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("spec.template.spec.nodeSelector", {"a": "b"}, True),
        ("spec.template.spec.tolerations", [{"operator": "Exists"}], True),
        ("spec.template.spec.schedulingGates", [{"name": "a"}], True),
        ("spec.template.metadata.annotations", {"a": "b"}, True),
        ("spec.template.spec.containers.0.resources", {"requests": {"cpu": "2"}}, True),
        ("spec.template.spec.containers.0.image", "x", False),
        ("spec.template.spec.terminationGracePeriodSeconds", 1, False),
    ],
)
def test_a_suspended_job_may_still_be_placed_and_sized(path: str, value: Any, allowed: bool) -> None:
    old = created("jobs", job({"suspend": True}))
    fields = update("jobs", old, changed(old, path, value)).fields
    assert fields == ([] if allowed else [("Invalid", "spec.template.spec")])


def test_an_indexed_job_is_scaled_by_both_numbers_together() -> None:
    old = created("jobs", job({"completionMode": "Indexed", "completions": 3, "parallelism": 3}))
    alone = changed(old, "spec.completions", 5)
    assert update("jobs", old, alone).fields == [("Invalid", "spec.completions")]
    assert update("jobs", old, changed(alone, "spec.parallelism", 5)).causes == []


def test_the_data_of_a_revision_is_fixed() -> None:
    old = created("controllerrevisions", {"metadata": {"name": "r"}, "data": {"a": 1}, "revision": 1})
    assert update("controllerrevisions", old, changed(old, "revision", 2)).causes == []
    assert update("controllerrevisions", old, changed(old, "data", {"a": 2})).fields == [("Invalid", "data")]


def test_an_unchanged_template_gets_no_second_warning() -> None:
    old = created(
        "deployments", workload({"template": template({"nodeSelector": {"beta.kubernetes.io/os": "x"}})})
    )
    assert update("deployments", old, old).warnings == []
    assert len(update("deployments", old, changed(old, "spec.replicas", 3)).warnings) == 1
