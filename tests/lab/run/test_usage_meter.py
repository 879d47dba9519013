"""What containers use is counted change by change as it would be counted from scratch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.hollow.usage import UsageProfile, running_containers
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.lab.run.usage_meter import TEMPLATES_MAX, UsageMeter

START = datetime(2026, 1, 1, tzinfo=UTC)
REQUESTS: tuple[dict[str, str], ...] = (
    {}, {"cpu": "100m", "memory": "64Mi"}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "100m", "memory": "1Gi"},
)  # fmt: skip
TEMPLATES: tuple[list[JsonObject], ...] = (
    [{"name": "a", "resources": {"requests": REQUESTS[1]}}],
    [{"name": "a", "resources": {"requests": REQUESTS[1]}}, {"name": "b", "resources": {"requests": REQUESTS[2]}}],
    [{"name": "b", "resources": {"requests": REQUESTS[3]}}, {"name": "a"}],
)
ANNOTATIONS: tuple[dict[str, str], ...] = (
    {}, {}, {"holokube.dev/usage-cpu": "250m"}, {"holokube.dev/usage-cpu.a": "ramp(0s=10m, 100s=900m)"},
)  # fmt: skip
STATES = st.tuples(
    st.integers(0, len(TEMPLATES) - 1), st.integers(0, len(ANNOTATIONS) - 1),
    st.sampled_from(["Running", "Running", "Pending", "Succeeded"]), st.sets(st.sampled_from(["a", "b", "init"])),
)  # fmt: skip
STEPS = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), STATES)), max_size=40)
PROFILES = (UsageProfile(), UsageProfile(memory="noise(60%, 20%)"), UsageProfile(cpu="diurnal(10%, 90%, peak=14h)"))


def pod_of(number: int, state: tuple[int, int, str, set[str]]) -> JsonObject:
    template, annotations, phase, running = state
    containers = TEMPLATES[template]
    started = {"running": {"startedAt": format_time(START)}}
    status: JsonObject = {
        "phase": phase,
        "containerStatuses": [
            {"name": one["name"], "state": started if one["name"] in running else {"waiting": {}}} for one in containers
        ],
    }
    spec: JsonObject = {"containers": containers}
    if "init" in running:
        spec["initContainers"] = [{"name": "init", "restartPolicy": "Always", "resources": {"requests": REQUESTS[2]}}]
        status["initContainerStatuses"] = [{"name": "init", "state": started}]
    meta: dict[str, Any] = {"name": f"p{number}", "uid": f"u{number}", "annotations": ANNOTATIONS[annotations]}
    return {"metadata": meta, "spec": spec, "status": status}


@settings(deadline=None)
@given(STEPS, st.sampled_from(PROFILES))
def test_the_meter_says_what_its_pods_use(steps: list[tuple[int, Any]], profile: UsageProfile) -> None:
    clock = VirtualClock(START + timedelta(hours=5))
    meter, pods = UsageMeter(clock, profile), dict[str, JsonObject]()
    for number, state in steps:
        pods.pop(f"u{number}", None)
        if state is None:
            meter.forget(f"u{number}")
        else:
            pods[f"u{number}"] = pod_of(number, state)
            meter.see(f"u{number}", pods[f"u{number}"])
        uses = [use.at(clock.time()) for pod in pods.values() for use in running_containers(pod, profile)]
        cpu, memory = meter.now()
        assert cpu == pytest.approx(sum(use.cpu_nano for use in uses) / 1e6, abs=1)
        assert memory == pytest.approx(sum(use.memory_bytes for use in uses), abs=len(uses) + 1)
    for uid in pods:
        meter.forget(uid)
    assert meter.now() == (0, 0), "nothing is left of pods that are gone"


def test_a_container_list_that_is_gone_is_not_taken_for_a_new_one() -> None:
    clock = VirtualClock(START)
    meter = UsageMeter(clock, UsageProfile())
    for number in range(TEMPLATES_MAX + 10):
        # Each list is made anew and has no other user, so that the next one may well get its place in memory.
        request = {"cpu": f"{number + 1}m", "memory": "1Mi"}
        pod = pod_of(0, (0, 0, "Running", {"a"}))
        pod["spec"] = {"containers": [{"name": "a", "resources": {"requests": request}}]}
        meter.see("u", pod)
        assert meter.now()[0] == pytest.approx((number + 1) * 0.3, abs=0.51)
