"""Which pods are one and the same to the solver."""

from __future__ import annotations

from typing import Any

from holokube.karpenter.scheduling.pod_forms import FormBook
from holokube.karpenter.scheduling.problem import NO_STORAGE
from holokube.karpenter.scheduling.state_node import requests_of
from holokube.karpenter.scheduling.topology_specs import SpecBook
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from holokube.kube.resources import pod_requests
from holokube.kube.types import JsonObject

COLUMNS = {"cpu": 0, "memory": 1, "pods": 2}


def running(
    name: str, cpu: str = "1", actual: str | None = "1", allocated: str | None = "1", **status: Any
) -> JsonObject:
    """A pod as a kubelet tells of it: each with times and ids of its own."""
    started = f"2026-01-01T00:00:0{name}Z"
    told: JsonObject = {
        "name": "c", "containerID": f"containerd://{name}", "state": {"running": {"startedAt": started}},
    }  # fmt: skip
    if actual is not None:
        told["resources"] = {"requests": {"cpu": actual}}
    if allocated is not None:
        told["allocatedResources"] = {"cpu": allocated}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Running", "podIP": f"10.0.0.{name}", "containerStatuses": [told], **status},
    }


def book(*pods: JsonObject) -> FormBook:
    return FormBook(
        SpecBook(pods, {}), VolumeReader(NO_STORAGE), COLUMNS, with_wishes=True, tolerate_preferences=False
    )


def test_pods_that_differ_only_in_when_and_where_they_run_share_a_form() -> None:
    one, two = running("1"), running("2")
    forms = book(one, two)
    assert forms.form_of(one) is forms.form_of(two)


def test_pods_in_the_middle_of_a_resize_have_forms_of_their_own() -> None:
    usual, growing = running("1"), running("2", cpu="2", actual="1", allocated="2")
    shrinking = running("3", cpu="1", actual="2", allocated="1")
    forms = book(usual, growing, shrinking)
    found = [forms.form_of(pod).requests["cpu"] for pod in (usual, growing, shrinking)]
    assert found == [1000, 2000, 2000]


def test_a_resize_that_can_never_be_counts_with_what_there_is() -> None:
    infeasible = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    asked, refused = running("1", cpu="8"), running("2", cpu="8", conditions=infeasible)
    forms = book(asked, refused)
    assert [forms.form_of(pod).requests["cpu"] for pod in (asked, refused)] == [8000, 1000]


def test_requests_of_running_pods_are_what_the_long_way_gives() -> None:
    for pod in (
        running("1"), running("2", actual=None, allocated=None), running("3", allocated=None),
        running("4", actual="3"), running("5", allocated="500m"), running("6", cpu="2", actual="1", allocated="1"),
        running("7", actual="1000m"),
    ):  # fmt: skip
        assert requests_of(pod) == {**pod_requests(pod, use_status=True), "pods": 1000}
