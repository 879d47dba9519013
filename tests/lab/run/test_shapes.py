"""Pods that a planner cannot tell apart share a shape."""

from __future__ import annotations

from typing import Any

from holokube.kube.types import JsonObject
from holokube.lab.run.shapes import Shapes
from tests import builders


def job_pod(job: str, *, cpu: str = "1", **spec: Any) -> JsonObject:
    """A pod as a Job makes it: its labels name the Job."""
    pod = builders.pod(f"{job}-x", **spec)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    pod["metadata"] |= {
        "uid": f"pod-of-{job}", "labels": {"kind": "batch", "job-name": job, "controller-uid": job},
        "ownerReferences": [{"uid": job, "controller": True}],
    }  # fmt: skip
    return pod


def anti_affinity() -> JsonObject:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"kind": "batch"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_the_jobs_of_one_kind_of_work_share_a_shape() -> None:
    shapes = Shapes()
    assert {shapes.shape_of(job_pod(f"job-{number}")) for number in range(5)} == {0}
    assert len(shapes.examples) == 1


def test_other_requests_are_another_shape() -> None:
    shapes = Shapes()
    assert shapes.shape_of(job_pod("a")) != shapes.shape_of(job_pod("b", cpu="2"))


def test_another_node_selector_is_another_shape() -> None:
    shapes = Shapes()
    assert shapes.shape_of(job_pod("a")) != shapes.shape_of(job_pod("b", nodeSelector={"disk": "ssd"}))


def test_other_labels_are_another_shape_since_other_pods_may_shun_them() -> None:
    shapes = Shapes()
    other = job_pod("b")
    other["metadata"]["labels"]["kind"] = "nightly"
    assert shapes.shape_of(job_pod("a")) != shapes.shape_of(other)


def test_pods_with_rules_about_other_pods_share_a_shape_only_with_their_siblings() -> None:
    shapes = Shapes()
    first, second = job_pod("a", affinity=anti_affinity()), job_pod("b", affinity=anti_affinity())
    assert shapes.shape_of(first) != shapes.shape_of(second)
    assert shapes.shape_of(first) == shapes.shape_of(job_pod("a", affinity=anti_affinity()))


def test_pods_with_volumes_of_their_own_share_a_shape_only_with_their_siblings() -> None:
    shapes = Shapes()
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert shapes.shape_of(job_pod("a", volumes=[claim])) != shapes.shape_of(job_pod("b", volumes=[claim]))
