"""Which pods are one and the same to the solver."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.karpenter.scheduling.pod_forms import FormBook, rank_of
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


_SELECTORS = (None, {"disk": "fast"})
_SPREAD = [{
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
}]  # fmt: skip
_CONTAINERS = (
    [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
)
_STATUSES: tuple[JsonObject, ...] = (
    {},
    {"containerStatuses": [{"name": "c", "ready": True}]},
    {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
    {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}], "resources": {"cpu": "3"}},
    {
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    },
    {
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}],
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    },
)


@given(drawn=st.lists(st.tuples(*(st.integers(0, 59) for _ in range(6))), min_size=2, max_size=12))
def test_pods_that_share_their_parts_have_the_forms_of_pods_that_share_nothing(drawn: list[tuple[int, ...]]) -> None:
    pods: list[JsonObject] = []
    for number, (labels, containers, status, selector, spread, overhead) in enumerate(drawn):
        spec: JsonObject = {"containers": _CONTAINERS[containers % 3], "nodeSelector": _SELECTORS[selector % 2]}
        if spread % 3 == 0:
            spec["topologySpreadConstraints"] = _SPREAD
        if overhead % 5 == 0:
            spec["overhead"] = {"cpu": "1"}
        metadata = {"name": str(number), "uid": str(number), "labels": {"app": "ab"[labels % 2], "n": str(number)}}
        pods.append({"metadata": metadata, "spec": spec, "status": _STATUSES[status % len(_STATUSES)]})
    alone = [deepcopy(pod) for pod in pods]
    shared, own = book(*pods), book(*alone)
    found, expected = [shared.form_like(pod) for pod in pods], [own.form_like(pod) for pod in alone]
    for one, other in zip(found, expected, strict=True):
        assert one.requests == other.requests
        assert [found.index(one), one.number] == [expected.index(other), other.number]


def test_a_pod_that_can_go_anywhere_has_the_size_of_its_loosest_form() -> None:
    wished = [{**_SPREAD[0], "whenUnsatisfiable": "ScheduleAnyway"}]
    one, two, picky = running("1"), running("2"), running("3")
    one["spec"]["topologySpreadConstraints"] = wished
    picky["spec"]["nodeSelector"] = {"disk": "fast"}
    forms = book(one, two, picky)
    size = forms.form_of(one).size
    assert size is not None
    assert size is forms.form_of(two).size
    assert not size.specs
    assert forms.form_of(picky).size is None


AMOUNTS = st.sampled_from((0, 1, 99, 100, 1000, 2**40, 2**63 - 1))
TEXTS = st.text(st.sampled_from("-0129:TZabz"), max_size=4)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, TEXTS, TEXTS)))
def test_ranks_put_pods_in_order_by_cpu_and_memory_downwards_then_by_time_and_uid(
    pods: list[tuple[int, int, str, str]],
) -> None:
    by_parts = sorted(pods, key=lambda pod: (-pod[0], -pod[1], pod[2], pod[3]))
    assert sorted(pods, key=lambda pod: rank_of(*pod)) == by_parts
