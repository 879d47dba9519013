"""The small steps."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.objects import SCALE_UP_DELAY_ANNOTATION
from holokube.cluster_autoscaler.pods.filters import (
    recreatable_pods,
    without_daemon_set_pods,
    without_expendable,
    without_tpu_requests,
    without_young,
)
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import annotated, owned_pod
from tests.packing.objects import make_node, make_pod


def names(pods: list[JsonObject]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def test_only_a_given_priority_below_the_cutoff_makes_a_pod_expendable() -> None:
    priorities = {"low": -11, "limit": -10, "zero": 0}
    pods = [make_pod("none"), *(make_pod(name, priority=priority) for name, priority in priorities.items())]
    assert names(without_expendable(pods, -10)) == ["none", "limit", "zero"]
    assert names(without_expendable(pods, 1)) == ["none"]


def test_tpus_are_asked_of_no_node() -> None:
    plain = make_pod("plain", requests={"cpu": "1"})
    with_tpus = make_pod("tpus", requests={"cpu": "1", "cloud-tpus.google.com/v2": "8"})
    kept, cleared = without_tpu_requests([plain, with_tpus])
    assert kept is plain
    assert cleared["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert "cloud-tpus.google.com/v2" in with_tpus["spec"]["containers"][0]["resources"]["requests"]


def test_pods_of_drained_nodes_come_again_without_a_node() -> None:
    pods = [
        owned_pod("moves", node="n"),
        owned_pod("daemon", kind="DaemonSet", node="n"),
        owned_pod("going", node="n", deleted=True),
        annotated(make_pod("mirror", node="n"), kubernetes_io__config_mirror="x"),
        annotated(make_pod("static", node="n"), kubernetes_io__config_source="file"),
        owned_pod("elsewhere", node="m"),
    ]
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state([make_node("n"), make_node("m")], pods)
    found = recreatable_pods(snapshot, ["n", "gone"])
    assert names(found) == ["moves"]
    assert "nodeName" not in found[0]["spec"]
    assert snapshot.pods_on("n")[0] is pods[0]


def test_daemons_are_not_helped_by_new_nodes() -> None:
    kinds = PodKinds()
    pods = [owned_pod("a"), owned_pod("b", kind="DaemonSet"), make_pod("c")]
    assert names([facts.pod for facts in without_daemon_set_pods(map(kinds.facts_of, pods))]) == ["a", "c"]


@pytest.mark.parametrize(
    ("age_s", "delay_s", "annotation", "is_kept"),
    [
        (0.0, 0.0, None, False),
        (0.5, 0.0, None, True),
        (30.0, 30.0, None, False),
        (31.0, 30.0, None, True),
        (31.0, 30.0, "1m", False),
        (61.0, 30.0, "1m", True),
        (31.0, 30.0, "10s", True),
        (15.0, 30.0, "10s", False),
        (31.0, 30.0, "soon", True),
    ],
)
def test_young_pods_wait(age_s: float, delay_s: float, annotation: str | None, is_kept: bool) -> None:
    pod = make_pod()
    pod["metadata"]["creationTimestamp"] = "1970-01-01T00:16:40Z"
    if annotation is not None:
        pod["metadata"]["annotations"] = {SCALE_UP_DELAY_ANNOTATION: annotation}
    facts = PodKinds().facts_of(pod)
    assert without_young([facts], 1000.0 + age_s, delay_s) == ([facts] if is_kept else [])
