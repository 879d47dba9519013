from __future__ import annotations

from typing import Any

from holokube.workloads.quota_decisions import counted_resources, is_settled, status_of
from tests.workloads.objects import NOW, a_pod, an_owner

JsonObject = dict[str, Any]


def quota(status: JsonObject | None = None, **hard: str) -> JsonObject:
    return {**an_owner("ResourceQuota", "q", hard=hard), "status": status or {}}


def with_cpu(name: str, cpu: str, phase: str = "Running") -> JsonObject:
    pod = a_pod(name, phase)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return pod


def test_only_what_is_limited_is_counted() -> None:
    wanted = counted_resources(quota(**{"pods": "1", "count/widgets.example.com": "2"}))
    assert wanted == [("", "pods"), ("example.com", "widgets")]


def test_amounts_are_summed_and_pods_that_ended_cost_nothing() -> None:
    pods = [with_cpu("a", "250m"), with_cpu("b", "1"), with_cpu("c", "4", "Succeeded")]
    status = status_of(quota(**{"pods": "5", "requests.cpu": "2"}), {("", "pods"): pods}, NOW)
    assert status["used"] == {"pods": "2", "requests.cpu": "1250m"}
    assert status["hard"] == {"pods": "5", "requests.cpu": "2"}


def test_what_could_not_be_counted_keeps_its_amount_or_stays_unknown() -> None:
    before = {"hard": {"pods": "5"}, "used": {"pods": "3"}}
    status = status_of(quota(before, pods="5", services="1"), {}, NOW)
    assert status["used"] == {"pods": "3"}


def test_a_quota_is_settled_when_the_status_has_all_limits_with_amounts() -> None:
    assert is_settled(quota({"hard": {"pods": "5"}, "used": {"pods": "0"}}, pods="5"))
    assert not is_settled(quota({"hard": {"pods": "4"}, "used": {"pods": "0"}}, pods="5"))
    assert not is_settled(quota({"hard": {"pods": "5"}, "used": {}}, pods="5"))
