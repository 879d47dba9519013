"""HorizontalPodAutoscalers lose nothing on their way through v1."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.conversions.horizontal_pod_autoscaler import v1_to_v2, v2_to_v1
from holokube.kube.types import JsonObject

_NAMES = st.text("abcxyz", min_size=1, max_size=5)
_AMOUNTS = st.sampled_from(["1", "250m", "2Gi"])
_SELECTORS = st.none() | st.dictionaries(_NAMES, _NAMES, max_size=2).map(lambda labels: {"matchLabels": labels})


@st.composite
def _identifiers(draw: st.DrawFn) -> JsonObject:
    selector = draw(_SELECTORS)
    return {"name": draw(_NAMES), **({"selector": selector} if selector is not None else {})}


def _averages(kind: str, container: str) -> st.SearchStrategy[JsonObject]:
    targets = st.integers(1, 99).map(lambda n: {"type": "Utilization", "averageUtilization": n}) | _AMOUNTS.map(
        lambda amount: {"type": "AverageValue", "averageValue": amount}
    )
    extra = {"container": st.just(container)} if container else {}
    field = kind[:1].lower() + kind[1:]
    source = st.fixed_dictionaries({"name": st.just("memory"), "target": targets, **extra})
    return source.map(lambda part: {"type": kind, field: part})


def _of_metric(kind: str, amount: str) -> st.SearchStrategy[JsonObject]:
    target = _AMOUNTS.map(lambda value: {"type": amount[:1].upper() + amount[1:], amount: value})
    parts: dict[str, st.SearchStrategy[Any]] = {"metric": _identifiers(), "target": target}
    if kind == "Object":
        parts["describedObject"] = st.just({"kind": "Service", "name": "web", "apiVersion": "v1"})
    return st.fixed_dictionaries(parts).map(lambda part: {"type": kind, kind.lower(): part})


_METRICS = st.one_of(
    _averages("Resource", ""),
    _averages("ContainerResource", "main"),
    _of_metric("Pods", "averageValue"),
    _of_metric("External", "value"),
    _of_metric("External", "averageValue"),
    _of_metric("Object", "value"),
    _of_metric("Object", "averageValue"),
)
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
_BEHAVIOR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
    },
    "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]},
}


def _autoscaler(metrics: list[JsonObject]) -> JsonObject:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"mine": "stays"}},
        "spec": {"maxReplicas": 3, "metrics": metrics, "behavior": copy.deepcopy(_BEHAVIOR)},
        "status": {"currentReplicas": 1, "desiredReplicas": 2},
    }


@given(st.lists(_METRICS, max_size=4))
def test_a_round_trip_through_v1_changes_nothing(metrics: list[JsonObject]) -> None:
    # The metric that v1 knows itself comes back at the end of the list.
    original = _autoscaler([*metrics, _CPU])
    as_v1 = v2_to_v1(copy.deepcopy(original))
    assert as_v1["spec"]["targetCPUUtilizationPercentage"] == 70
    assert "metrics" not in as_v1["spec"]
    assert v1_to_v2(as_v1) == original


def test_without_any_metric_v1_means_eighty_percent() -> None:
    made = v1_to_v2({"metadata": {"name": "web"}, "spec": {"maxReplicas": 3}})
    [metric] = made["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


@pytest.mark.parametrize("text", ["nonsense", "[1]", "{}", '[{"type":3,"pods":4}]', '{"ScaleUp":[]}', "null"])
@pytest.mark.parametrize("key", ["metrics", "behavior", "current-metrics", "conditions"])
def test_what_people_write_into_the_annotations_does_no_harm(key: str, text: str) -> None:
    annotations = {f"autoscaling.alpha.kubernetes.io/{key}": text}
    made = v1_to_v2({"metadata": {"name": "web", "annotations": annotations}, "spec": {"maxReplicas": 3}})
    assert "annotations" not in made["metadata"]
