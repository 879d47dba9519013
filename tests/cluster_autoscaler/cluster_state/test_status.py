"""The status that people read."""

from __future__ import annotations

import yaml

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, InstanceError
from holokube.cluster_autoscaler.cluster_state.status import (
    ERROR_MESSAGE_MAX,
    build_status,
    initial_status,
    last_updated_text,
    status_text,
)
from tests.cluster_autoscaler.cluster_state.world import START_S, World, group, node


def test_a_running_cluster_is_told_in_upstreams_words() -> None:
    world = World()
    world.see([node("a"), node("b", ready=False, age_s=0)], [group(target=2, min_size=1, max_size=5)])
    world.registry.update_candidates(["a"], world.now_s)
    text = status_text(build_status(world.registry, initial_status(), world.now_s), last_updated_text(world.now_s))
    assert text == """\
autoscalerStatus: Running
clusterWide:
  health:
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    nodeCounts:
      longUnregistered: 0
      registered:
        notStarted: 1
        ready: 1
        suspended: 0
        total: 2
        unready:
          resourceUnready: 0
          total: 0
      unregistered: 0
    status: Healthy
  scaleDown:
    candidates: 1
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    status: CandidatesPresent
  scaleUp:
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    status: NoActivity
nodeGroups:
- health:
    cloudProviderTarget: 2
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    maxSize: 5
    minSize: 1
    nodeCounts:
      longUnregistered: 0
      registered:
        notStarted: 1
        ready: 1
        suspended: 0
        total: 2
        unready:
          resourceUnready: 0
          total: 0
      unregistered: 0
    status: Healthy
  name: g
  scaleDown:
    candidates: 1
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    status: CandidatesPresent
  scaleUp:
    backoffInfo: {}
    lastProbeTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    status: NoActivity
time: 2026-01-01 00:00:00 +0000 UTC
"""


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    world = World()
    world.see([node("a")], [group(target=1)])
    status = build_status(world.registry, initial_status(), world.now_s)
    world.see([node("a")], [group(target=1)], after_s=60)
    status = build_status(world.registry, status, world.now_s)
    health = status["clusterWide"]["health"]
    assert (health["lastProbeTime"], health["lastTransitionTime"]) == ("2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z")
    world.registry.register_scale_up("g", 2, world.now_s)
    world.see([node("a")], [group(target=3)], after_s=60)
    status = build_status(world.registry, status, world.now_s)
    assert status["clusterWide"]["scaleUp"]["status"] == status["nodeGroups"][0]["scaleUp"]["status"] == "InProgress"
    assert status["clusterWide"]["scaleUp"]["lastTransitionTime"] == "2026-01-01T00:02:00Z"


def test_a_group_in_backoff_says_why_and_not_at_length() -> None:
    world = World()
    world.see([node("a")], [group(target=1)])
    world.registry.register_failed_scale_up("g", InstanceError(ErrorClass.OTHER, "QUOTA", "x" * 600), world.now_s)
    scale_up = build_status(world.registry, initial_status(), world.now_s)["nodeGroups"][0]["scaleUp"]
    assert scale_up["status"] == "Backoff" and scale_up["backoffInfo"]["errorCode"] == "QUOTA"
    message = scale_up["backoffInfo"]["errorMessage"]
    assert len(message) == ERROR_MESSAGE_MAX and message.endswith("<truncated>")


def test_an_unhealthy_group_is_called_so() -> None:
    world = World()
    world.see([node("a"), *(node(f"b{i}", ready=False) for i in range(5))], [group(target=6)])
    status = build_status(world.registry, initial_status(), world.now_s)
    assert status["nodeGroups"][0]["health"]["status"] == status["nodeGroups"][0]["scaleUp"]["status"] == "Unhealthy"
    assert status["clusterWide"]["health"]["status"] == "Unhealthy"


def test_before_the_first_turn_everything_is_empty() -> None:
    found = yaml.safe_load(status_text(initial_status(), "now"))
    assert found["autoscalerStatus"] == "Initializing"
    assert found["clusterWide"]["health"]["lastProbeTime"] is None


def test_times_are_printed_as_go_prints_them() -> None:
    assert last_updated_text(START_S + 0.25) == "2026-01-01 00:00:00.25 +0000 UTC"
    assert last_updated_text(START_S) == "2026-01-01 00:00:00 +0000 UTC"
