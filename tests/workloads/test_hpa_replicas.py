"""How many replicas one metric asks for. The numbers are those of upstream's own tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holokube.kube.timeformat import format_time, parse_time
from holokube.workloads.hpa_replicas import (
    MetricError,
    PodMetric,
    Proposal,
    ReadinessRules,
    Tolerances,
    average_value_replicas,
    plain_replicas,
    resource_replicas,
    total_of_values,
    value_replicas,
)

NOW = parse_time("2026-01-01T12:00:00Z")
RULES = ReadinessRules()
HALF = Tolerances()
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
OLD_S, HOT_S = 600, 30


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def a_pod(
    number: int, *, ready: bool = True, age_s: float = OLD_S, phase: str = "Running", deleted: bool = False,
    request: str | None = "1",
) -> dict[str, Any]:  # fmt: skip
    meta: dict[str, Any] = {"name": f"p{number}"}
    if deleted:
        meta["deletionTimestamp"] = ago(1)
    resources = {"requests": {"cpu": request, "memory": "1Gi"}} if request else {}
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ago(age_s)}
    return {
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase, "startTime": ago(age_s), "conditions": [condition]},
    }


def measured(*levels: int) -> dict[str, PodMetric]:
    return {f"p{number}": PodMetric(level, NOW, 60.0) for number, level in enumerate(levels)}


def unready(*numbers: int, of: int) -> list[dict[str, Any]]:
    return [a_pod(number, ready=number not in numbers) for number in range(of)]


def hot(*numbers: int, of: int) -> list[dict[str, Any]]:
    return [a_pod(number, age_s=HOT_S if number in numbers else OLD_S) for number in range(of)]


def failed(*numbers: int, of: int) -> list[dict[str, Any]]:
    return [a_pod(n, ready=n not in numbers, phase="Failed" if n in numbers else "Running") for n in range(of)]


def pending(*numbers: int, of: int) -> list[dict[str, Any]]:
    return [a_pod(n, ready=n not in numbers, phase="Pending" if n in numbers else "Running") for n in range(of)]


def leaving(*numbers: int, of: int) -> list[dict[str, Any]]:
    return [a_pod(n, ready=n not in numbers, deleted=n in numbers) for n in range(of)]


def asking(*requests: str) -> list[dict[str, Any]]:
    return [a_pod(number, request=request) for number, request in enumerate(requests)]


@pytest.mark.parametrize(
    ("current", "pods", "levels", "target", "expected"),
    [
        (3, unready(of=3), (300, 500, 700), 30, Proposal(5, 500, 50)),
        (3, unready(0, of=3), (300, 500, 700), 30, Proposal(4, 600, 60)),
        (3, hot(0, of=3), (300, 500, 700), 30, Proposal(4, 600, 60)),
        (3, unready(1, 2, of=3), (400, 500, 700), 30, Proposal(3, 400, 40)),
        (3, hot(1, 2, of=3), (400, 500, 700), 30, Proposal(3, 400, 40)),
        (2, failed(2, 3, of=4), (500, 700), 30, Proposal(4, 600, 60)),
        (2, leaving(2, 3, of=4), (500, 700), 30, Proposal(4, 600, 60)),
        (5, unready(of=5), (100, 300, 500, 250, 250), 50, Proposal(3, 280, 28)),
        (5, unready(3, 4, of=5), (100, 300, 500, 250, 250), 50, Proposal(2, 300, 30)),
        (5, hot(3, 4, of=5), (100, 300, 500, 1000, 1000), 50, Proposal(2, 300, 30)),
        (5, pending(3, 4, of=5), (100, 300, 500), 50, Proposal(2, 300, 30)),
        (5, leaving(3, 4, of=5), (100, 300, 500, 250, 250), 50, Proposal(2, 300, 30)),
        (3, asking("0.9", "1.0", "1.1"), (1010, 1030, 1020), 100, Proposal(3, 1020, 102)),
        (4, unready(of=4), (4000, 9500, 3000, 7000, 3200, 2000), 100, Proposal(24, 5875, 587)),
        (4, unready(of=4), (400, 95), 100, Proposal(3, 247, 24)),
        (2, unready(of=2), (1000,), 100, Proposal(2, 1000, 100)),
        (2, unready(of=2), (1900,), 100, Proposal(2, 1900, 190)),
        (2, unready(of=2), (600,), 100, Proposal(2, 600, 60)),
        (3, unready(0, of=3), (100, 450), 50, Proposal(3, 450, 45)),
        (3, hot(0, of=3), (100, 450), 50, Proposal(3, 450, 45)),
        (3, unready(0, of=3), (100, 2000), 50, Proposal(4, 2000, 200)),
        (4, unready(0, of=4), (100, 100, 100), 50, Proposal(3, 100, 10)),
        (2, unready(of=3), (100, 100), 50, Proposal(2, 100, 10)),
    ],
)
def test_utilization(
    current: int, pods: list[dict[str, Any]], levels: tuple[int, ...], target: int, expected: Proposal
) -> None:
    assert resource_replicas(current, target, "cpu", "", HALF, pods, measured(*levels), NOW, RULES) == expected


def test_a_target_above_100_percent_is_what_a_pod_without_measurement_counts_with() -> None:
    pods = unready(0, of=4)
    for number in (2, 3):
        pods[number]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    found = resource_replicas(4, 300, "cpu", "", HALF, pods, measured(200, 100, 100), NOW, RULES)
    assert (found.replicas, found.utilization) == (2, 6)


def test_only_cpu_waits_for_pods_to_warm_up() -> None:
    pods, levels = hot(0, 1, of=2), measured(1024**3 * 1000, 1024**3 * 1000)
    assert resource_replicas(2, 50, "memory", "", HALF, pods, levels, NOW, RULES).replicas == 4
    with pytest.raises(MetricError, match="did not receive metrics for targeted pods"):
        resource_replicas(2, 50, "cpu", "", HALF, pods, measured(900, 900), NOW, RULES)


@pytest.mark.parametrize(
    ("age_s", "ready_for_s", "ready", "counts"),
    [
        (100, 90, True, True),  # a full window since it became ready
        (100, 30, True, False),  # not yet
        (100, 90, False, False),
        (400, 1, True, True),  # after the initialization period readiness alone counts
        (400, 390, False, False),  # never was ready: unready since 10 s after its start
        (400, 300, False, True),  # was ready once: what it uses counts
    ],
)
def test_when_the_cpu_of_a_pod_counts(age_s: float, ready_for_s: float, ready: bool, counts: bool) -> None:
    one = a_pod(0, ready=ready, age_s=age_s)
    one["status"]["conditions"][0]["lastTransitionTime"] = ago(ready_for_s)
    if counts:
        assert resource_replicas(1, 50, "cpu", "", HALF, [one], measured(1000), NOW, RULES).replicas == 2
    else:
        with pytest.raises(MetricError, match="pods might be unready"):
            resource_replicas(1, 50, "cpu", "", HALF, [one], measured(1000), NOW, RULES)


def test_a_pod_without_ready_condition_or_start_time_is_unready() -> None:
    for field in ("conditions", "startTime"):
        one = a_pod(0)
        del one["status"][field]
        with pytest.raises(MetricError, match="pods might be unready"):
            resource_replicas(1, 50, "cpu", "", HALF, [one], measured(1000), NOW, RULES)


def test_requests_are_of_all_containers_and_sidecars_or_of_one_or_of_the_pod() -> None:
    one = a_pod(0)
    spec = one["spec"]
    spec["containers"].append({"name": "d", "resources": {"requests": {"cpu": "500m"}}})
    spec["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "once", "resources": {"requests": {"cpu": "9"}}},
    ]

    def utilization(container: str = "") -> int | None:
        return resource_replicas(1, 50, "cpu", container, HALF, [one], measured(1000), NOW, RULES).utilization

    assert utilization() == 50
    assert utilization("d") == 200
    with pytest.raises(MetricError, match="container x not found in Pod p0"):
        utilization("x")
    spec["resources"] = {"requests": {"cpu": "4"}}
    assert utilization() == 25
    assert utilization("c") == 100
    # What the pod as a whole does not say comes from its containers, the init container's peak included.
    spec["resources"] = {"requests": {"memory": "1Gi"}}
    assert utilization() == 10
    for container in (*spec["containers"], *spec["initContainers"]):
        container["resources"] = {}
    with pytest.raises(MetricError, match="missing pod-level request for cpu in Pod p0"):
        utilization()


def test_what_cannot_be_computed_says_why() -> None:
    with pytest.raises(MetricError, match="missing request for cpu in container c of Pod p0"):
        resource_replicas(1, 100, "cpu", "", HALF, [a_pod(0, request=None)], measured(200), NOW, RULES)
    with pytest.raises(MetricError, match="no pods returned by selector while calculating replica count"):
        resource_replicas(1, 100, "cpu", "", HALF, [], measured(200), NOW, RULES)
    strangers = {"other": PodMetric(100, NOW)}
    with pytest.raises(MetricError, match="no metrics returned matched known pods"):
        resource_replicas(1, 100, "cpu", "", HALF, [a_pod(0)], strangers, NOW, RULES)
    with pytest.raises(MetricError, match="no pods returned by selector"):
        plain_replicas(1, 100, "", HALF, [], measured(200), NOW, RULES)
    with pytest.raises(MetricError, match="unable to calculate ready pods: no pods returned"):
        value_replicas(1, 100, 500, HALF, [])


@pytest.mark.parametrize(
    ("current", "pods", "levels", "target", "expected"),
    [
        (3, unready(of=3), (20000, 10000, 30000), 15000, Proposal(4, 20000)),
        (3, unready(0, of=3), (50000, 10000, 30000), 15000, Proposal(6, 30000)),
        (3, unready(0, of=3), (50000, 15000, 30000), 15000, Proposal(7, 31666)),
        (5, unready(of=5), (12000,) * 5, 20000, Proposal(3, 12000)),
        (3, unready(of=3), (20000, 21000, 21000), 20000, Proposal(3, 20666)),
        (5, unready(of=5), (20000, 19000, 21000), 20000, Proposal(5, 20000)),
        (2, unready(of=3), (10000, 10000), 17000, Proposal(2, 10000)),
        (1, unready(of=1), (8600,), 4400, Proposal(2, 8600)),
    ],
)
def test_average_values_of_custom_metrics(
    current: int, pods: list[dict[str, Any]], levels: tuple[int, ...], target: int, expected: Proposal
) -> None:
    assert plain_replicas(current, target, "", HALF, pods, measured(*levels), NOW, RULES) == expected


@pytest.mark.parametrize(
    ("current", "pods", "value", "target", "replicas"),
    [
        (3, unready(of=3), 20000, 15000, 4),
        (3, unready(0, 2, of=3), 50000, 10000, 5),
        (5, unready(of=5), 12000, 20000, 3),
        (5, unready(of=5), 8600, 14334, 3),
        (3, unready(0, 2, of=3), 8600, 4400, 2),
        (3, unready(of=3), 20666, 20000, 3),
        (0, [], 8600, 4400, 2),
        (0, [], 0, 4400, 0),
        (3, unready(of=3), INT64_MAX, 1, INT32_MAX),
    ],
)
def test_a_value_as_a_whole(current: int, pods: list[dict[str, Any]], value: int, target: int, replicas: int) -> None:
    assert value_replicas(current, target, value, HALF, pods) == Proposal(replicas, value)


@pytest.mark.parametrize(
    ("replicas", "value", "target", "expected"),
    [
        (3, 20000, 5000, Proposal(4, 6667)),
        (5, 6000, 2000, Proposal(3, 1200)),
        (3, 8600, 2150, Proposal(4, 2867)),
        (5, 8600, 2867, Proposal(3, 1720)),
        (4, 8600, 2100, Proposal(4, 2150)),
        (1, INT64_MAX, 1, Proposal(INT32_MAX, INT64_MAX)),
        (1, INT64_MAX, INT64_MAX, Proposal(1, INT64_MAX)),
    ],
)
def test_a_value_per_replica(replicas: int, value: int, target: int, expected: Proposal) -> None:
    assert average_value_replicas(replicas, target, value, HALF) == expected


def test_sums_do_not_overflow() -> None:
    assert total_of_values([INT64_MAX, 5]) == INT64_MAX
    assert total_of_values([1, 2]) == 3


@pytest.mark.parametrize(("ratio", "holds"), [(0.9, True), (1.1, True), (0.89, False), (1.11, False), (1.0, True)])
def test_tolerance(ratio: float, holds: bool) -> None:
    assert HALF.hold(ratio) is holds
    assert Tolerances(down=0.5, up=0.0).hold(0.6)
    assert not Tolerances(down=0.5, up=0.0).hold(1.01)
