"""Workloads that were only written down get the pods they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.workload_pods import missing_pods, wanted_pods


def workload(kind: str, name: str = "w", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    return {"kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": {"template": template, **spec}}


def owned(kind: str, name: str, owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "controller": True}
    return {"kind": kind, "metadata": {"name": name, "namespace": "ns", "ownerReferences": [reference]}, **more}


def names(objects: list[dict[str, Any]], kind: str = "Pod") -> list[str]:
    return [obj["metadata"]["name"] for obj in objects if obj["kind"] == kind]


def test_a_deployment_gets_a_replica_set_and_its_pods() -> None:
    made = missing_pods([workload("Deployment", "web", replicas=2)])
    assert names(made, "ReplicaSet") == ["web-planned"]
    assert names(made) == ["web-planned-0", "web-planned-1"]
    pod = made[1]
    assert pod["metadata"]["namespace"] == "ns" and pod["metadata"]["labels"] == {"app": "web"}
    (reference,) = pod["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["controller"]) == ("ReplicaSet", "web-planned", True)
    assert reference["uid"] == made[0]["metadata"]["uid"]


def test_pods_that_are_there_count_by_way_of_the_replica_set() -> None:
    web = workload("Deployment", "web", replicas=3)
    replicas = owned("ReplicaSet", "web-1", web, spec={"replicas": 3, "template": {}})
    there = [owned("Pod", f"web-1-{n}", replicas) for n in range(2)]
    assert len(names(missing_pods([web, replicas, *there]))) == 1
    assert missing_pods([web, replicas, *there, owned("Pod", "web-1-2", replicas)]) == []


def test_finished_pods_do_not_count() -> None:
    rs = workload("ReplicaSet", replicas=1)
    assert names(missing_pods([rs, owned("Pod", "w-x", rs, status={"phase": "Failed"})])) == ["w-0"]


def test_a_stateful_set_goes_on_counting() -> None:
    db = workload("StatefulSet", "db", replicas=3)
    assert names(missing_pods([db, owned("Pod", "db-0", db)])) == ["db-1", "db-2"]


def test_what_has_a_controller_of_its_own_is_the_controllers_business() -> None:
    cron = workload("CronJob", "c")
    job = {**workload("Job"), **owned("Job", "j", cron)}
    assert missing_pods([job]) == []


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        ({}, {}, 1),
        ({"parallelism": 5}, {}, 5),
        ({"parallelism": 5, "completions": 3}, {}, 3),
        ({"parallelism": 5, "suspend": True}, {}, 0),
        ({"parallelism": 5}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
    ],
)
def test_a_job_wants_as_many_as_run_at_a_time(spec: dict[str, Any], status: dict[str, Any], wanted: int) -> None:
    assert wanted_pods({"kind": "Job", "spec": spec, "status": status}) == wanted


def test_a_workload_without_a_template_is_left_alone() -> None:
    assert missing_pods([{"kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": {"replicas": 3}}]) == []
