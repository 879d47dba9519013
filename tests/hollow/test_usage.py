"""What containers use, from annotations, requests and the profile."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.hollow.usage import (
    NOTHING,
    Usage,
    UsageProfile,
    pod_usage,
    running_containers,
    system_usage,
    usage_of,
    usage_problems,
)
from tests.builders import node, pod

START_S = 1_767_225_600.0
STARTED = "2026-01-01T00:00:00Z"
MI = 1024 * 1024


def running(annotations: dict[str, str] | None = None, requests: dict[str, str] | None = None, **more: Any) -> Any:
    made = pod()
    made["metadata"].update(uid="u1", annotations=annotations or {})
    if requests:
        made["spec"]["containers"][0]["resources"] = {"requests": requests}
    made["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": STARTED}}}],
        **more,
    }
    return made


@pytest.mark.parametrize(
    ("annotations", "requests", "usage"),
    [
        ({}, {}, Usage(1_000_000, MI)),
        ({}, {"cpu": "1", "memory": "100Mi"}, Usage(300_000_000, 60 * MI)),
        ({"kwok.x-k8s.io/usage-cpu": "250m"}, {}, Usage(250_000_000, MI)),
        ({"kwok.x-k8s.io/usage-memory": "2Gi"}, {"cpu": "2"}, Usage(600_000_000, 2048 * MI)),
        ({"holokube.dev/usage-cpu": "90%"}, {"cpu": "2"}, Usage(1_800_000_000, MI)),
        ({"holokube.dev/usage-cpu": "1", "kwok.x-k8s.io/usage-cpu": "2"}, {}, Usage(1_000_000_000, MI)),
        ({"holokube.dev/usage-cpu.c": "3", "holokube.dev/usage-cpu": "1"}, {}, Usage(3_000_000_000, MI)),
        ({"holokube.dev/usage-cpu.other": "3"}, {}, Usage(1_000_000, MI)),
        ({"holokube.dev/usage-cpu": "much", "kwok.x-k8s.io/usage-cpu": "5m"}, {}, Usage(5_000_000, MI)),
    ],
)
def test_the_nearest_word_about_a_container_counts(
    annotations: dict[str, str], requests: dict[str, str], usage: Usage
) -> None:
    assert usage_of(running(annotations, requests), "c", START_S + 60) == usage


def test_who_does_not_run_uses_nothing() -> None:
    waiting = running(containerStatuses=[{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}])
    assert usage_of(waiting, "c", START_S) == NOTHING
    assert usage_of(running(phase="Succeeded"), "c", START_S) == NOTHING
    assert usage_of(running(), "no-such", START_S) == NOTHING
    assert usage_of(running(), "c", START_S - 1) == NOTHING


def test_a_pod_uses_what_all_its_running_containers_do() -> None:
    made = running({"kwok.x-k8s.io/usage-cpu": "100m", "holokube.dev/usage-cpu.side": "50m"})
    made["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}, {"name": "once"}]
    made["status"]["initContainerStatuses"] = [
        {"name": "side", "state": {"running": {"startedAt": STARTED}}},
        {"name": "once", "state": {"terminated": {"exitCode": 0}}},
    ]
    assert pod_usage(made, START_S).cpu_nano == 150_000_000


def test_the_counter_is_the_integral_and_a_restart_begins_it_anew() -> None:
    (use,) = running_containers(running({"holokube.dev/usage-cpu": "steps(0s=1, 1m=2)"}))
    assert use.cpu_core_ns(START_S) == 0
    assert use.cpu_core_ns(START_S + 60) == 60 * 10**9
    assert use.cpu_core_ns(START_S + 90) == 120 * 10**9
    assert use.average(START_S + 50, START_S + 70).cpu_nano == 1_500_000_000
    restarted = running({"holokube.dev/usage-cpu": "steps(0s=1, 1m=2)"})
    state = {"running": {"startedAt": "2026-01-01T00:10:00Z"}}
    restarted["status"]["containerStatuses"][0]["state"] = state
    (use,) = running_containers(restarted)
    assert use.cpu_core_ns(START_S + 630) == 30 * 10**9


def test_noise_differs_from_pod_to_pod_and_stays_the_same_for_one() -> None:
    one, other = (running({"holokube.dev/usage-cpu": "noise(1, 50%)"}) for _ in range(2))
    other["metadata"]["uid"] = "u2"
    assert usage_of(one, "c", START_S + 7) == usage_of(one, "c", START_S + 7)
    assert usage_of(one, "c", START_S + 7) != usage_of(other, "c", START_S + 7)


def test_a_node_uses_a_share_of_itself() -> None:
    host = {**node(), "status": {"capacity": {"cpu": "100", "memory": "100Gi"}}}
    assert system_usage(host) == Usage(1_000_000_000, 2 * 1024 * MI)
    assert system_usage(node()) == NOTHING


def test_annotations_that_mean_nothing_are_told() -> None:
    annotations = {
        "holokube.dev/usage-cpu": "much", "holokube.dev/usage-gpu": "1", "holokube.dev/usage-cpu.x": "1",
        "holokube.dev/usage-memory.c": "1Gi", "kwok.x-k8s.io/usage-memory": "1Gi", "other": "much",
    }  # fmt: skip
    problems = usage_problems(running(annotations))
    assert len(problems) == 3
    assert problems[0].startswith("holokube.dev/usage-cpu: 'much' is neither")
    assert problems[1] == "holokube.dev/usage-gpu: there is no usage of 'gpu', only of cpu and memory"
    assert problems[2] == "holokube.dev/usage-cpu.x: the pod has no container 'x'"


def test_a_profile_is_checked() -> None:
    with pytest.raises(ValueError, match="cpu: 'x' is neither"):
        UsageProfile(cpu="x")
    with pytest.raises(ValueError, match="system_cpu_share must be between"):
        UsageProfile(system_cpu_share=2)
    assert usage_of(running(requests={"cpu": "1"}), "c", START_S, UsageProfile(cpu="80%")).cpu_nano == 800_000_000


@pytest.mark.parametrize("requests", [None, {"cpu": "200m", "memory": "64Mi"}])
def test_annotations_about_something_else_say_nothing_of_the_usage(requests: dict[str, str] | None) -> None:
    other = {"holokube.dev/run-time": "5s", "kwok.x-k8s.io/node": "fake", "example.com/usage-cpu": "9"}
    assert running_containers(running(other, requests)) == running_containers(running({}, requests))
    noisy = UsageProfile(cpu="noise(30%, 10%)", cpu_without_request="noise(1m, 10%)")
    assert running_containers(running(other, requests), noisy) == running_containers(running({}, requests), noisy)


@pytest.mark.parametrize(
    "key", ["holokube.dev/usage-cpu", "holokube.dev/usage-cpu.c", "kwok.x-k8s.io/usage-cpu"]
)
def test_an_annotation_about_the_usage_is_found_among_others(key: str) -> None:
    found = running({"holokube.dev/run-time": "5s", key: "3"}, {"cpu": "200m"})
    assert usage_of(found, "c", START_S + 1).cpu_nano == 3 * 10**9
