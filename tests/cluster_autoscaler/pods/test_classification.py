"""Which pods are on nodes and which wait."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.classification import split_pods
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import waiting
from tests.packing.objects import make_pod


def _status(pod: JsonObject, **status: object) -> JsonObject:
    return {**pod, "status": status}


FALSE_WITHOUT_REASON = {"type": "PodScheduled", "status": "False"}
OURS = {"schedulerName": "ours"}


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        (make_pod(node="n"), "scheduled"),
        (make_pod(node="n", deleted=True), "scheduled"),
        (_status(make_pod(node="n"), phase="Succeeded"), ""),
        (_status(make_pod(node="n"), phase="Failed"), ""),
        (waiting(make_pod()), "unschedulable"),
        (waiting(make_pod(deleted=True)), ""),
        (waiting(make_pod(), reason="SchedulingGated"), ""),
        (waiting(make_pod(), reason="SchedulerError"), ""),
        (make_pod(), ""),
        (_status(make_pod(), nominatedNodeName="n"), "nominated"),
        (_status(make_pod(deleted=True), nominatedNodeName="n"), ""),
        (_status(make_pod(), conditions=[FALSE_WITHOUT_REASON]), ""),
        (make_pod(**OURS), "unprocessed"),
        (_status(make_pod(**OURS), conditions=[FALSE_WITHOUT_REASON]), "unprocessed"),
        (waiting(make_pod(**OURS), reason="SchedulingGated"), ""),
        (_status(make_pod(**OURS), conditions=[{"type": "PodScheduled", "status": "True"}]), ""),
        (waiting(make_pod(**OURS)), "unschedulable"),
    ],
)
def test_each_pod_is_in_its_list(pod: JsonObject, where: str) -> None:
    lists = split_pods([pod], AutoscalerOptions(bypassed_scheduler_names=("ours",)))
    found = {
        name: getattr(lists, name)
        for name in ("scheduled", "nominated", "unschedulable", "unprocessed")
        if getattr(lists, name)
    }
    assert found == ({where: [pod]} if where else {})


def test_lists_keep_the_order_and_are_put_together() -> None:
    pods = [waiting(make_pod("a")), make_pod("b", node="n"), waiting(make_pod("c")), make_pod("d", **OURS)]
    pods.append(_status(make_pod("e"), nominatedNodeName="n"))
    lists = split_pods(pods, AutoscalerOptions(bypassed_scheduler_names=("ours",)))
    assert [pod["metadata"]["name"] for pod in lists.pending] == ["a", "c", "d"]
    assert [pod["metadata"]["name"] for pod in lists.allocated] == ["b", "e"]


def test_pods_of_other_schedulers_are_not_looked_at_if_some_are_named() -> None:
    pods = [waiting(make_pod("a", **OURS)), waiting(make_pod("b")), make_pod("c", node="n")]
    lists = split_pods(pods, AutoscalerOptions(allowed_scheduler_names=("ours",)))
    assert lists.unschedulable == pods[:1] and not lists.scheduled
