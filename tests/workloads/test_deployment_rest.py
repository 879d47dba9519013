"""A Deployment at rest is told of by a short way: it says what the long one says, or nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.workloads.deployment_decisions import Rest, decide
from holokube.workloads.deployment_status import tells_numbers_only
from tests.workloads.objects import NOW, ago
from tests.workloads.test_deployment_decisions import JsonObject, a_set, deployment

COUNTS = st.integers(0, 6)


@st.composite
def set_statuses(draw: st.DrawFn) -> JsonObject:
    status: JsonObject = {"replicas": draw(COUNTS), "observedGeneration": 1}
    for name in ("readyReplicas", "availableReplicas", "terminatingReplicas"):
        if draw(st.booleans()):
            status[name] = draw(COUNTS)
    if draw(st.booleans()):
        status["conditions"] = [{"type": "ReplicaFailure", "status": "True", "lastTransitionTime": ago(9)}]
    return status


@st.composite
def statuses(draw: st.DrawFn) -> JsonObject:
    """What a Deployment may have said of itself before."""
    status: JsonObject = {name: draw(COUNTS) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    reasons = ("NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded", "DeploymentPaused")
    conditions = []
    if draw(st.booleans()):
        moment = ago(draw(st.sampled_from((1, 30, 900))))
        conditions.append({
            "type": "Progressing", "status": draw(st.sampled_from(("True", "False", "Unknown"))),
            "reason": draw(st.sampled_from(reasons)), "lastUpdateTime": moment, "lastTransitionTime": moment,
        })  # fmt: skip
    if draw(st.booleans()):
        conditions.append({
            "type": "Available", "status": draw(st.sampled_from(("True", "False"))),
            "reason": draw(st.sampled_from(("MinimumReplicasAvailable", "MinimumReplicasUnavailable"))),
            "lastUpdateTime": ago(50), "lastTransitionTime": ago(50),
        })  # fmt: skip
    return {**status, "conditions": conditions}


@given(
    spec=st.fixed_dictionaries({}, optional={
        "progressDeadlineSeconds": st.sampled_from((60, 600)), "paused": st.booleans(),
        "strategy": st.just({"type": "Recreate"}), "minReadySeconds": st.just(3),
    }),
    size=st.sampled_from((3, 4)),
    of=st.sampled_from((3, 4)),
    first=st.tuples(statuses(), set_statuses()),
    then=st.tuples(statuses(), set_statuses()),
    leaves=st.booleans(),
)  # fmt: skip
def test_the_short_way_says_what_the_long_one_says(
    spec: dict[str, Any], size: int, of: int, first: tuple[JsonObject, JsonObject],
    then: tuple[JsonObject, JsonObject], leaves: bool,
) -> None:  # fmt: skip
    web, its_set = deployment(**spec), a_set("new", size, 0, of=of)
    one, other = {**web, "status": first[0]}, {**its_set, "status": first[1]}
    rest = Rest.after(decide(one, [other], {}, NOW), one, other)
    if rest is None:
        return
    later = NOW + timedelta(seconds=61)
    meta = {**web["metadata"], "resourceVersion": "7"}
    if leaves:
        meta["deletionTimestamp"] = ago(1)
    one, other = {**web, "metadata": meta, "status": then[0]}, {**its_set, "status": then[1]}
    short = rest.plan(one, other, later)
    assert short is None or short == decide(one, [other], {}, later)
    assert not (leaves and short is not None)


@given(
    spec=st.fixed_dictionaries({}, optional={
        "progressDeadlineSeconds": st.sampled_from((60, 600)), "paused": st.booleans(),
        "strategy": st.just({"type": "Recreate"}), "minReadySeconds": st.just(3),
    }),
    size=st.integers(0, 5),
    of=st.sampled_from((3, 4, 5)),
    annotations=st.sampled_from(({}, {"team": "a"})),
    first=st.tuples(statuses(), set_statuses()),
    then=st.tuples(statuses(), set_statuses()),
)  # fmt: skip
def test_after_a_new_size_the_short_way_says_what_the_long_one_says(
    spec: dict[str, Any], size: int, of: int, annotations: dict[str, str], first: tuple[JsonObject, JsonObject],
    then: tuple[JsonObject, JsonObject],
) -> None:  # fmt: skip
    web, its_set = deployment(**spec), a_set("new", size, 0, of=of)
    web = {**web, "metadata": {**web["metadata"], "annotations": annotations}}
    one, other = {**web, "status": first[0]}, {**its_set, "status": first[1]}
    plan = decide(one, [other], {}, NOW)
    if not plan.brings_to_rest:
        return
    assert len(plan.updates) == 1 and plan.create is None and not plan.deletes
    sized = plan.updates[0]
    rest = Rest.of(one, sized, plan.revision)
    told = {**one, "status": plan.status}
    if tells_numbers_only(told, sized):
        # To look at what was written tells nothing else, so that nobody has to.
        again = rest.plan(told, sized, NOW)
        assert again is not None and (again.status, again.check_in_s) == (plan.status, plan.check_in_s)
    later = NOW + timedelta(seconds=61)
    one, other = {**one, "status": then[0]}, {**sized, "status": then[1]}
    long = decide(one, [other], {}, later)
    assert long.rests
    short = rest.plan(one, other, later)
    assert short is None or short == long


def test_a_new_size_brings_a_deployment_to_rest_and_the_middle_of_a_rollout_does_not() -> None:
    web, its_set = deployment(5, progressDeadlineSeconds=600), a_set("new", 4, 4)
    assert decide(web, [its_set], {}, NOW).brings_to_rest
    assert not decide(web, [its_set, a_set("old", 2, 2)], {}, NOW).brings_to_rest
    assert not decide(deployment(4, progressDeadlineSeconds=600), [its_set], {}, NOW).brings_to_rest
    assert not decide(deployment(5, strategy={"type": "Recreate"}), [its_set], {}, NOW).brings_to_rest
    assert not decide(deployment(5, paused=True), [its_set], {}, NOW).brings_to_rest


def test_a_deployment_with_all_its_pods_is_at_rest_and_one_that_grows_is_not() -> None:
    web, its_set = deployment(progressDeadlineSeconds=600), a_set("new", 4, 4)
    told = decide(web, [its_set], {}, NOW)
    rest = Rest.after(told, web, its_set)
    assert rest is not None
    web = {**web, "status": told.status}
    fewer = {**its_set, "status": {**its_set["status"], "availableReplicas": 3}}
    plan = rest.plan(web, fewer, NOW)
    assert plan is not None and plan.status["availableReplicas"] == 3
    assert Rest.after(decide(deployment(5), [its_set], {}, NOW), web, its_set) is None


def test_what_is_not_the_very_same_has_to_be_decided() -> None:
    web, its_set = deployment(progressDeadlineSeconds=600), a_set("new", 4, 4)
    told = decide(web, [its_set], {}, NOW)
    rest = Rest.after(told, web, its_set)
    assert rest is not None
    web = {**web, "status": told.status}
    assert rest.plan(web, its_set, NOW) is not None
    for changed in (
        ({**web, "spec": {**web["spec"]}}, its_set),
        ({**web, "metadata": {**web["metadata"], "annotations": {"a": "b"}}}, its_set),
        (web, {**its_set, "spec": {**its_set["spec"]}}),
        (web, {**its_set, "metadata": {**its_set["metadata"], "annotations": {}}}),
        (web, {**its_set, "metadata": {**its_set["metadata"], "labels": {}}}),
        ({**web, "status": {}}, its_set),
    ):
        assert rest.plan(*changed, NOW) is None
