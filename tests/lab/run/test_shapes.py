"""Pods that a planner cannot tell apart share a shape."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=20))
def test_one_job_after_the_other_gets_the_shape_that_its_form_has(jobs: list[tuple[int, int, int]]) -> None:
    specs: list[dict[str, Any]] = [{}, {"nodeSelector": {"a": "b"}}, {"affinity": anti_affinity()}, {"priority": 5}]
    shapes, by_form = Shapes(), dict[Any, int]()
    for number, (spec, labels, cpu) in enumerate(jobs):
        pod = job_pod(f"job-{number}", cpu=str(1 + cpu // 2), **specs[spec])
        pod["metadata"]["labels"] |= [{}, {"kind": "nightly"}, {"more": "x"}][labels]
        pod["metadata"]["namespace"] = "other" if cpu % 2 else "default"
        form = number if spec == 2 else (spec, labels, cpu)
        assert shapes.shape_of(pod) == by_form.setdefault(form, len(by_form))
