"""What holds for every pod on every node: from 1 to 448 cores, from 1 GiB to 24 TiB."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from holokube.kube import quantity
from holokube.kube.sizing import ORIGINAL_ANNOTATION, STATUS_ANNOTATION, SizingProblem, size, sized_pod
from holokube.kube.sizing.amounts import spread, units_of
from tests.kube.sizing.pods import container, daemon, sized_node

JsonObject = dict[str, Any]
MI, GI, TI = 2**20, 2**30, 2**40

nodes = st.builds(
    lambda cpu_milli, memory: sized_node(f"{cpu_milli}m", str(memory)),
    st.integers(1000, 448_000), st.integers(GI, 24 * TI),
)  # fmt: skip
fractions = st.integers(1, 1000).map(lambda thousandths: f"{thousandths / 1000:.3f}")
cpus = st.one_of(st.integers(1, 64).map(str), st.integers(1, 9999).map("{}m".format))
memories = st.one_of(
    st.integers(1, 4096).map("{}Mi".format), st.integers(1, 64).map("{}Gi".format),
    st.integers(1, 64).map("{}G".format), st.integers(MI, GI).map(str),
)  # fmt: skip


@st.composite
def pods(draw: st.DrawFn) -> JsonObject:
    """Pods with one to five containers, some of them sidecars, some excluded, all with all four tunables."""
    containers, sidecars, excluded = [], [], []
    for number in range(draw(st.integers(1, 5))):
        made = container(
            f"c{number}",
            {"cpu": draw(cpus), "memory": draw(memories)}, {"cpu": draw(cpus), "memory": draw(memories)},
        )  # fmt: skip
        if draw(st.booleans()) and number:
            sidecars.append({**made, "restartPolicy": "Always"})
        else:
            containers.append(made)
        if number and draw(st.integers(0, 3)) == 0:
            excluded.append(made["name"])
    annotations = {
        f"{kind}_{resource}_fraction": draw(fractions)
        for kind in ("request", "limit") for resource in ("cpu", "memory") if draw(st.integers(0, 4))
    }  # fmt: skip
    if excluded:
        annotations["exclude_containers"] = ",".join(excluded)
    if draw(st.booleans()):
        annotations["maximum_cpu"] = draw(cpus)
    if draw(st.booleans()):
        annotations["minimum_memory_request"] = draw(memories)
    return daemon(*containers, sidecars=tuple(sidecars), **annotations)


def members(pod: JsonObject) -> list[JsonObject]:
    annotation = "node-specific-sizing.manomano.tech/exclude-containers"
    excluded = pod["metadata"]["annotations"].get(annotation, "").split(",")
    both = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return [one for one in both if one["name"] not in excluded]


def amounts(pod: JsonObject, field: str, resource: str) -> list[int]:
    return [units_of(resource, one["resources"][field][resource]) for one in members(pod)]


def sized_or_assume(pod: JsonObject, node: JsonObject) -> JsonObject:
    try:
        size(pod, node)
    except SizingProblem as problem:
        # Nothing may be left for the containers, or less than a unit; everything else would be a fault here.
        if problem.reason not in ("BudgetNotPositive", "BudgetTooSmall"):
            raise
        assume(False)
    return sized_pod(pod, node)


many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@many
@given(pods(), nodes)
def test_parts_add_up_to_exactly_the_budget(pod: JsonObject, node: JsonObject) -> None:
    sized = sized_or_assume(pod, node)
    status = json.loads(sized["metadata"]["annotations"].get(STATUS_ANNOTATION, "{}"))
    for resource, text in status.get("requests", {}).items():
        assert sum(amounts(sized, "requests", resource)) == units_of(resource, text)


@many
@given(pods(), nodes)
def test_the_budget_is_the_exact_share_of_the_node(pod: JsonObject, node: JsonObject) -> None:
    """Against rational numbers, clamps aside: no float drift anywhere."""
    annotations = pod["metadata"]["annotations"]
    for name in [name for name in annotations if "/minimum-" in name or "/maximum-" in name]:
        del annotations[name]
    sized = sized_or_assume(pod, node)
    names = {one["name"] for one in members(pod)}
    both = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    for resource in ("cpu", "memory"):
        text = annotations.get(f"node-specific-sizing.manomano.tech/request-{resource}-fraction")
        if text is not None:
            excluded = sum(
                units_of(resource, one["resources"]["requests"][resource]) for one in both if one["name"] not in names
            )
            share = Fraction(text) * units_of(resource, node["status"]["allocatable"][resource]) - excluded
            assert sum(amounts(sized, "requests", resource)) == share // 1


@many
@given(pods(), nodes)
def test_limits_are_never_below_requests_where_anything_was_sized(pod: JsonObject, node: JsonObject) -> None:
    sized = sized_or_assume(pod, node)
    for resource in ("cpu", "memory"):
        if any(f"-{resource}-fraction" in name for name in pod["metadata"]["annotations"]):
            for request, limit in zip(
                amounts(sized, "requests", resource), amounts(sized, "limits", resource), strict=True
            ):
                assert request <= limit


@many
@given(pods(), nodes)
def test_proportions_between_containers_are_kept_to_within_one_unit(pod: JsonObject, node: JsonObject) -> None:
    sized = sized_or_assume(pod, node)
    for resource in ("cpu", "memory"):
        if f"node-specific-sizing.manomano.tech/request-{resource}-fraction" in pod["metadata"]["annotations"]:
            before, after = amounts(pod, "requests", resource), amounts(sized, "requests", resource)
            for part, weight in zip(after, before, strict=True):
                assert abs(Fraction(weight * sum(after), sum(before)) - part) < 1


@many
@given(pods(), nodes)
def test_sizing_a_sized_pod_changes_nothing(pod: JsonObject, node: JsonObject) -> None:
    sized = sized_or_assume(pod, node)
    assert sized_pod(sized, node) == sized


@many
@given(pods(), nodes)
def test_requests_stay_even_if_nothing_was_noted(pod: JsonObject, node: JsonObject) -> None:
    """Parts that add up to the budget are their own proportions."""
    sized = sized_or_assume(pod, node)
    sized["metadata"]["annotations"].pop(ORIGINAL_ANNOTATION, None)
    again = sized_pod(sized, node)
    for resource in ("cpu", "memory"):
        assert amounts(again, "requests", resource) == amounts(sized, "requests", resource)


@many
@given(pods(), nodes, nodes)
def test_where_a_pod_was_before_does_not_matter(pod: JsonObject, first: JsonObject, second: JsonObject) -> None:
    passed_through = sized_or_assume(pod, first)
    assert sized_pod(passed_through, second) == sized_or_assume(pod, second)


@many
@given(pods(), nodes)
def test_only_cpu_and_memory_of_members_change(pod: JsonObject, node: JsonObject) -> None:
    sized = sized_or_assume(pod, node)
    kept = {one["name"] for one in members(pod)}
    for field in ("containers", "initContainers"):
        for old, new in zip(pod["spec"].get(field, ()), sized["spec"].get(field, ()), strict=True):
            if old["name"] not in kept:
                assert old == new
            assert {**old, "resources": 0} == {**new, "resources": 0}


@many
@given(pods(), nodes)
def test_texts_are_what_the_api_server_would_store(pod: JsonObject, node: JsonObject) -> None:
    for one in members(sized_or_assume(pod, node)):
        for field in one["resources"].values():
            assert all(quantity.canonical(text) == text for text in field.values())


@given(st.integers(0, 2**63), st.lists(st.integers(0, 2**50), min_size=1, max_size=20))
def test_a_budget_is_spread_to_the_last_unit(budget: int, weights: list[int]) -> None:
    assume(sum(weights))
    parts = spread(budget, weights)
    assert sum(parts) == budget
    for part, weight in zip(parts, weights, strict=True):
        assert abs(Fraction(budget * weight, sum(weights)) - part) < 1
    assert spread(sum(weights), weights) == weights
