"""Autoscalers on virtual time, on simulated usage, with the real Deployment controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

from holokube.client.client import PatchType
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    Resource,
)
from holokube.client.transport import Call, Transport, WatchEvent
from holokube.kube.errors import Conflict, Forbidden
from tests.apiserver.crds.steps import LAB, definition
from tests.workloads.autoscaling import AutoscaledWorld

WIDGETS = Resource(LAB, "v1", "widgets", "Widget", True)
UTILIZATION = "cpu resource utilization (percentage of request)"


def test_a_deployment_follows_its_load_up_and_down() -> None:
    with AutoscaledWorld() as world:
        # Busy from the tenth minute to the thirtieth, the same for all pods, whenever they started.
        world.deploy("steps(0s=45%, 10m=150%, 30m=10%, from=2026-01-01T00:00:00Z)", replicas=2)
        world.autoscale()
        sizes = []
        for _ in range(45):
            world.pass_time(60)
            sizes.append(world.size())
        assert set(sizes[:9]) == {2}
        # At most doubled at a time; and what is new has to warm up before it counts.
        assert sizes[11] >= 4 and sizes[20:30] == [10] * 10
        # Five minutes of calm before anything goes.
        assert sizes[33] == 10 and sizes[44] == 1
        first, *_ = world.events("SuccessfulRescale")
        assert first == f"New size: 4; reason: {UTILIZATION} above target"
        assert "New size: 2; reason: All metrics below target" in world.events("SuccessfulRescale")
        status = world.autoscaler()["status"]
        assert status["currentReplicas"] == status["desiredReplicas"] == 1
        current = status["currentMetrics"][0]["resource"]["current"]
        assert current == {"averageUtilization": 10, "averageValue": "10m"}
        assert world.conditions()["ScalingActive"] == ("True", "ValidMetricFound")
        assert world.conditions()["ScalingLimited"] == ("False", "DesiredWithinRange")


def test_the_first_look_comes_after_one_period_and_changes_bring_none_forward() -> None:
    with AutoscaledWorld() as world:
        world.deploy("10%", replicas=20)
        world.autoscale()
        world.pass_time(10)
        world.cluster.run(
            world.client.patch(
                HORIZONTAL_POD_AUTOSCALERS, "web", {"metadata": {"labels": {"a": "b"}}}, namespace="default",
                type=PatchType.MERGE,
            )
        )
        world.pass_time(4)
        assert world.size() == 20
        assert world.conditions() == {}
        world.pass_time(3)
        assert world.size() == 10
        assert world.events("SuccessfulRescale") == [
            "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"
        ]


def test_policies_slow_a_deployment_down() -> None:
    with AutoscaledWorld() as world:
        world.deploy("500%", replicas=1)
        one_a_minute = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
        world.autoscale(maxReplicas=100, behavior={"scaleUp": one_a_minute})
        sizes = []
        for _ in range(10):
            world.pass_time(60)
            sizes.append(world.size())
        assert all(later - earlier <= 1 for earlier, later in pairwise(sizes))
        assert sizes[-1] >= 7
        assert world.conditions()["ScalingLimited"] == ("True", "ScaleUpLimit")


def test_without_metrics_nothing_is_scaled_and_the_reason_is_upstreams() -> None:
    with AutoscaledWorld(metrics=False) as world:
        world.deploy("500%", replicas=2)
        world.autoscale()
        world.pass_time(60)
        assert world.size() == 2
        (found,) = (c for c in world.autoscaler()["status"]["conditions"] if c["type"] == "ScalingActive")
        assert (found["status"], found["reason"]) == ("False", "FailedGetResourceMetric")
        why = (
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from "
            "resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        assert found["message"] == f"the HPA was unable to compute the replica count: {why}"
        assert why in world.events("FailedGetResourceMetric")
        assert world.events("FailedComputeMetricsReplicas")


def test_custom_and_external_metrics_nobody_serves_are_told_in_upstreams_words() -> None:
    with AutoscaledWorld() as world:
        world.deploy("10%")
        described = {"kind": "Service", "name": "web", "apiVersion": "v1"}
        world.autoscale(metrics=[
            {"type": "Pods", "pods": {
                "metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
            {"type": "Object", "object": {
                "metric": {"name": "qps"}, "describedObject": described, "target": {"type": "Value", "value": "1"}}},
            {"type": "External", "external": {
                "metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}}},
        ])  # fmt: skip
        world.pass_time(60)
        none = (
            "unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered"
        )
        assert world.events("FailedGetPodsMetric") == [f"unable to get metric qps: {none}"]
        assert world.events("FailedGetObjectMetric") == [f"unable to get metric qps: Service on default web/{none}"]
        (message,) = world.events("FailedGetExternalMetric")
        assert message == (
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
            "the server could not find the requested resource (get queue.external.metrics.k8s.io)"
        )


def test_a_target_that_is_missing_is_told_and_scaled_once_it_comes() -> None:
    with AutoscaledWorld() as world:
        world.autoscale()
        world.autoscale(name="moon", target={"apiVersion": "apps/v1", "kind": "Moon", "name": "m"})
        world.pass_time(20)
        assert world.conditions()["AbleToScale"] == ("False", "FailedGetScale")
        assert world.events("FailedGetScale") == [
            'deployments.apps "web" not found', 'no matches for kind "Moon" in group "apps"',
        ]  # fmt: skip
        world.deploy("200%")
        world.pass_time(400)
        assert world.conditions()["AbleToScale"][0] == "True"
        assert world.size() > 1


def test_a_target_scaled_to_zero_by_hand_is_left_alone() -> None:
    with AutoscaledWorld() as world:
        world.deploy("50%", replicas=0)
        world.autoscale(minReplicas=2)
        world.pass_time(60)
        assert world.size() == 0
        assert world.conditions()["ScalingActive"] == ("False", "ScalingDisabled")
        world.cluster.run(
            world.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, namespace="default", type=PatchType.MERGE)
        )
        world.pass_time(30)
        assert world.size() == 2
        assert world.events("SuccessfulRescale") == [
            "New size: 2; reason: Current number of replicas below Spec.MinReplicas"
        ]


def test_pods_of_two_autoscalers_are_scaled_by_neither() -> None:
    with AutoscaledWorld() as world:
        world.deploy("200%", replicas=2)
        world.pass_time(10)
        world.autoscale()
        world.autoscale(name="rival")
        world.pass_time(20)
        # Whoever looks first does not know of the other yet, here as upstream.
        before = world.size()
        world.pass_time(200)
        assert world.size() == before <= 4
        assert world.conditions()["ScalingActive"] == ("False", "AmbiguousSelector")
        assert world.events("AmbiguousSelector")[0] == (
            "pods by selector app=web are controlled by multiple HPAs: [{rival default} {web default}]"
        )
        world.cluster.run(world.client.delete(HORIZONTAL_POD_AUTOSCALERS, "rival", "default"))
        world.pass_time(400)
        assert world.size() > before


def make_widgets(world: AutoscaledWorld, *, selector: bool) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    if selector:
        scale["labelSelectorPath"] = ".status.selector"
    crd = definition(subresources={"status": {}, "scale": scale})
    world.cluster.run(world.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd))
    body: dict[str, Any] = {
        "apiVersion": f"{LAB}/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"},
        "spec": {"replicas": 2},
    }  # fmt: skip
    made = world.cluster.run(world.client.create(WIDGETS, body))
    status = {"replicas": 2, "selector": "app=widget"}
    world.cluster.run(world.client.update_status(WIDGETS, {**made, "status": status}))
    for number in range(2):
        world.make_pod(
            f"widget-{number}", labels={"app": "widget"}, requests={"cpu": "100m"},
            annotations={"holokube.dev/usage-cpu": "75%"},
        )  # fmt: skip


def test_custom_resources_with_a_scale_are_scaled_too() -> None:
    with AutoscaledWorld() as world:
        make_widgets(world, selector=True)
        world.autoscale(target={"apiVersion": f"{LAB}/v1", "kind": "Widget", "name": "w"})
        world.pass_time(400)
        found = world.cluster.run(world.client.get(WIDGETS, "w", "default"))
        assert found["spec"]["replicas"] == 3
        assert world.events("SuccessfulRescale")[0] == f"New size: 3; reason: {UTILIZATION} above target"


def test_a_scale_without_selector_cannot_be_judged() -> None:
    with AutoscaledWorld() as world:
        make_widgets(world, selector=False)
        world.autoscale(target={"apiVersion": f"{LAB}/v1", "kind": "Widget", "name": "w"})
        world.pass_time(60)
        assert world.conditions()["ScalingActive"] == ("False", "InvalidSelector")
        assert world.events("SelectorRequired") == ["selector is required"]


class OddServer:
    """An API server with custom metrics, and with trouble about the scale of Deployments."""

    def __init__(self) -> None:
        self.inner: Transport | None = None
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refusals: list[Exception] = []

    async def call(self, call: Call) -> dict[str, Any]:
        assert self.inner is not None
        if call.verb == "update" and call.subresource == "scale" and self.refusals:
            raise self.refusals.pop(0)
        return await self.inner.call(call)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        assert self.inner is not None
        return self.inner.watch(call)

    async def request(self, method: str, path: str, **options: Any) -> Any:
        assert self.inner is not None
        if path in self.answers:
            self.asked.append((path, dict(options.get("query") or {})))
            return self.answers[path]
        return await self.inner.request(method, path, **options)

    async def close(self) -> None: ...


def odd_world() -> tuple[AutoscaledWorld, OddServer]:
    server = OddServer()
    world = AutoscaledWorld(transport=server)
    server.inner = InProcessTransport(world.registry)
    return world, server


def test_custom_and_external_metrics_that_somebody_serves_scale() -> None:
    world, server = odd_world()
    custom, external = "/apis/custom.metrics.k8s.io", "/apis/external.metrics.k8s.io"
    server.answers[custom] = {"versions": [{"version": "v1beta1"}, {"version": "v1beta2"}]}
    value = {"describedObject": {"name": "front"}, "timestamp": "2026-01-01T00:00:00Z", "value": "60"}
    path = f"{custom}/v1beta2/namespaces/default/services/front/qps"
    server.answers[path] = {"items": [value]}
    path_of_queue = f"{external}/v1beta1/namespaces/default/queue"
    server.answers[path_of_queue] = {"items": [{"value": "2500m"}, {"value": "2500m"}]}
    with world:
        world.deploy("1%", replicas=2)
        world.pass_time(30)
        described = {"kind": "Service", "name": "front", "apiVersion": "v1"}
        selector = {"matchLabels": {"verb": "GET"}}
        world.autoscale(metrics=[
            {"type": "Object", "object": {
                "metric": {"name": "qps", "selector": selector}, "describedObject": described,
                "target": {"type": "AverageValue", "averageValue": "20"}}},
            {"type": "External", "external": {
                "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
        ])  # fmt: skip
        world.pass_time(120)
        assert world.size() == 5
        assert (path, {"metricLabelSelector": "verb=GET"}) in server.asked
        current = world.autoscaler()["status"]["currentMetrics"]
        assert current[0]["object"]["current"] == {"averageValue": "12"}
        assert current[1]["external"]["current"] == {"averageValue": "1"}


def test_metrics_of_pods_are_asked_for_with_their_selector() -> None:
    world, server = odd_world()
    custom = "/apis/custom.metrics.k8s.io"
    server.answers[custom] = {"versions": [{"version": "v1beta1"}]}
    path = f"{custom}/v1beta1/namespaces/default/pods/*/qps"
    with world:
        world.deploy("1%", replicas=2)
        world.pass_time(30)
        names = [pod["metadata"]["name"] for pod in world.cluster.run(world.client.list(PODS, "default")).items]
        at = "2026-01-01T00:01:00Z"
        server.answers[path] = {
            "items": [{"describedObject": {"name": name}, "timestamp": at, "value": "30"} for name in names]
        }
        target = {"type": "AverageValue", "averageValue": "20"}
        world.autoscale(metrics=[{"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": target}}])
        world.pass_time(20)
        assert world.size() == 3
        assert (path, {"labelSelector": "app=web"}) in server.asked


def test_a_conflict_at_the_scale_is_tried_again_at_once_and_a_refusal_is_told() -> None:
    world, server = odd_world()
    with world:
        world.deploy("10%", replicas=20)
        world.autoscale()
        server.refusals = [Conflict("somebody was faster"), Conflict("and again")]
        world.pass_time(20)
        assert world.size() == 10
        assert world.events("FailedRescale") == []
    world, server = odd_world()
    with world:
        world.deploy("10%", replicas=20)
        world.autoscale()
        server.refusals = [Forbidden("not you")]
        world.pass_time(20)
        assert world.size() == 20
        assert world.conditions()["AbleToScale"] == ("False", "FailedUpdateScale")
        reason = "Current number of replicas above Spec.MaxReplicas"
        assert world.events("FailedRescale") == [f"New size: 10; reason: {reason}; error: not you"]
        world.pass_time(20)
        assert world.size() == 10


def test_two_runs_of_the_same_day_are_the_same() -> None:
    def run() -> list[tuple[int, Any]]:
        with AutoscaledWorld() as world:
            world.deploy("noise(diurnal(10%, 200%, period=20m), 30%)", replicas=2)
            world.autoscale()
            found = []
            for _ in range(25):
                world.pass_time(60)
                found.append((world.size(), world.autoscaler().get("status")))
            return found

    first = run()
    assert first == run()
    assert max(size for size, _ in first) > 3
