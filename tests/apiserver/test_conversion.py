from __future__ import annotations

from typing import Any

from holokube.apiserver.conversions.events import core_to_events, events_to_core
from holokube.apiserver.conversions.horizontal_pod_autoscaler import v1_to_v2, v2_to_v1

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}


def autoscaler(*metrics: Any, **spec: Any) -> dict[str, Any]:
    body = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, **spec}
    if metrics:
        body["metrics"] = list(metrics)
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": body}


def test_cpu_utilization_is_a_field_of_its_own_in_v1() -> None:
    old = v2_to_v1(autoscaler(CPU))
    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    assert "metrics" not in old["spec"]


def test_what_v1_cannot_say_survives_the_round_trip() -> None:
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 5, "policies": policies}}
    original = autoscaler(MEMORY, CPU, behavior=behavior)
    back = v1_to_v2(v2_to_v1(original))
    assert sorted(map(str, back["spec"]["metrics"])) == sorted(map(str, [MEMORY, CPU]))
    assert back["spec"]["behavior"] == behavior
    assert back["metadata"] == original["metadata"]


def test_a_users_own_nonsense_in_the_annotation_is_ignored_and_v1s_default_holds() -> None:
    given = {**autoscaler(), "apiVersion": "autoscaling/v1"}
    given["metadata"] = {"name": "h", "annotations": {"autoscaling.alpha.kubernetes.io/metrics": "not json"}}
    metrics = v1_to_v2(given)["spec"]["metrics"]
    assert [metric["resource"]["target"]["averageUtilization"] for metric in metrics] == [80]


def test_both_spellings_of_an_event_say_the_same() -> None:
    core = {
        "apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": {"name": "p"},
        "message": "hi", "count": 2,
    }  # fmt: skip
    new = core_to_events(core)
    assert (new["regarding"], new["note"], new["deprecatedCount"]) == ({"name": "p"}, "hi", 2)
    assert events_to_core(new) == core
