from __future__ import annotations

from datetime import timedelta
from typing import Any

from holokube.workloads.taint_eviction_decisions import (
    Appointment,
    Evict,
    Stay,
    Wait,
    decide,
    disruption_condition,
    execute_taints,
)
from tests.workloads.objects import NOW, a_pod, ago

JsonObject = dict[str, Any]


def node(*effects: str) -> JsonObject:
    return {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": effect} for effect in effects]}}


def tolerating(seconds: int | None) -> JsonObject:
    toleration: JsonObject = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return a_pod(tolerations=[toleration])


def test_only_taints_that_execute_evict() -> None:
    assert decide(a_pod(), node("NoSchedule", "PreferNoSchedule"), None, NOW) == Stay()
    assert decide(a_pod(), node("NoSchedule", "NoExecute"), None, NOW) == Evict()
    assert execute_taints(None) == ()


def test_a_pod_that_tolerates_for_a_while_has_an_appointment_that_stands() -> None:
    due = NOW + timedelta(seconds=30)
    assert decide(tolerating(30), node("NoExecute"), None, NOW) == Wait(Appointment("uid-p", due))
    later = NOW + timedelta(seconds=29)
    known = Appointment("uid-p", due)
    assert decide(tolerating(99), node("NoExecute"), known, later) == Wait(known)
    assert decide(tolerating(99), node("NoExecute"), known, due) == Evict()


def test_a_pod_that_tolerates_for_ever_stays_and_one_whose_taint_went_is_told() -> None:
    assert decide(tolerating(None), node("NoExecute"), None, NOW) == Stay()
    assert decide(tolerating(30), node(), Appointment("uid-p", NOW), NOW) == Stay(cancelled=True)


def test_the_appointment_of_a_namesake_does_not_count() -> None:
    decided = decide(tolerating(30), node("NoExecute"), Appointment("another", NOW), NOW)
    assert decided == Wait(Appointment("uid-p", NOW + timedelta(seconds=30)))


def test_a_pod_that_leaves_is_left_in_peace() -> None:
    assert decide(a_pod(leaving=True), node("NoExecute"), None, NOW) == Stay()


def test_the_condition_says_which_generation_it_is_about_and_is_not_written_twice() -> None:
    pod = a_pod()
    condition = disruption_condition(pod, "Why", "because", NOW)
    assert condition == {
        "type": "DisruptionTarget", "status": "True", "reason": "Why", "message": "because",
        "lastTransitionTime": ago(0), "observedGeneration": 1,
    }  # fmt: skip
    pod["status"]["conditions"] = [condition]
    assert disruption_condition(pod, "Why", "because", NOW + timedelta(seconds=9)) is None
    changed = disruption_condition(pod, "Other", "because", NOW + timedelta(seconds=9))
    assert changed is not None and changed["lastTransitionTime"] == ago(0)
