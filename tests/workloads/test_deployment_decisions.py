from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.workloads.deployment_decisions import Plan, decide
from holokube.workloads.deployment_revisions import REVISION, annotations_of, new_replica_set
from holokube.workloads.status_writes import same_status
from tests.workloads.objects import NOW, a_pod, ago, an_owner

JsonObject = dict[str, Any]


def template(image: str) -> JsonObject:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(replicas: int = 4, image: str = "new", **spec: Any) -> JsonObject:
    limits = {"maxSurge": spec.pop("surge", 1), "maxUnavailable": spec.pop("unavailable", 1)}
    strategy = spec.pop("strategy", {"type": "RollingUpdate", "rollingUpdate": limits})
    selector = {"matchLabels": {"app": "a"}}
    return an_owner(
        "Deployment", "web", replicas=replicas, selector=selector, template=template(image), strategy=strategy, **spec
    )


def a_set(
    image: str, replicas: int, available: int, *, revision: int = 1, age_s: float = 100, of: int = 4, **spec: Any
) -> JsonObject:
    """A ReplicaSet as the controller made it for a Deployment of ``of`` replicas."""
    made = new_replica_set(deployment(of, image, **spec), revision, replicas)
    made["metadata"] |= {"uid": f"uid-{image}", "creationTimestamp": ago(age_s), "generation": 1}
    status = {"replicas": replicas, "availableReplicas": available, "observedGeneration": 1}
    return {**made, "status": status}


def sizes(plan: Plan) -> dict[str, tuple[int, int]]:
    """By image: from, to."""
    images = {rs["metadata"]["name"]: rs["spec"]["template"]["spec"]["containers"][0]["image"] for rs in plan.updates}
    return {images[step.name]: (step.before, step.after) for step in plan.scaled}


def test_the_first_set_is_made_in_full_size() -> None:
    plan = decide(deployment(), [], {}, NOW)
    assert plan.create is not None and plan.create["spec"]["replicas"] == 4
    assert plan.create["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"] == "5"
    assert plan.revision == "1"


def test_a_rollout_grows_within_the_surge_and_shrinks_within_availability() -> None:
    started = decide(deployment(), [a_set("old", 4, 4)], {}, NOW)
    assert started.create is not None and started.create["spec"]["replicas"] == 1
    assert sizes(started) == {"old": (4, 3)}
    old, new = a_set("old", 3, 3), a_set("new", 1, 0, revision=2, age_s=1)
    assert sizes(decide(deployment(), [old, new], {}, NOW)) == {"new": (1, 2)}
    waiting = [a_set("old", 3, 3), a_set("new", 2, 0, revision=2, age_s=1)]
    assert sizes(decide(deployment(), waiting, {}, NOW)) == {}
    ready = [a_set("old", 3, 3), a_set("new", 2, 1, revision=2, age_s=1)]
    assert sizes(decide(deployment(), ready, {}, NOW)) == {"old": (3, 2)}


def test_old_pods_that_do_not_work_go_first() -> None:
    sets = [a_set("bad", 2, 0, age_s=50, revision=2), a_set("good", 3, 3, age_s=90), a_set("new", 0, 0, revision=3)]
    assert sizes(decide(deployment(), sets, {}, NOW)) != {}
    shrunk = decide(deployment(), [sets[0], sets[1], a_set("new", 1, 0, revision=3)], {}, NOW)
    assert sizes(shrunk) == {"bad": (2, 0)}


def test_a_set_whose_status_is_older_than_its_size_stops_the_shrinking() -> None:
    stale = a_set("old", 2, 4, age_s=90, of=5)
    sets = [stale, a_set("between", 3, 0, age_s=50, revision=2, of=5), a_set("new", 2, 0, revision=3, age_s=1, of=5)]
    assert sizes(decide(deployment(5, surge=2, unavailable=2), sets, {}, NOW)) == {}


def test_scaling_in_the_middle_of_a_rollout_is_shared_out() -> None:
    sets = [a_set("old", 4, 4, of=6), a_set("new", 4, 0, revision=2, age_s=1, of=6)]
    plan = decide(deployment(12, surge=2, unavailable=2), [
        {**rs, "metadata": {**rs["metadata"], "annotations": {
            **rs["metadata"]["annotations"], "deployment.kubernetes.io/max-replicas": "8"}}} for rs in sets
    ], {}, NOW)  # fmt: skip
    assert sizes(plan) == {"old": (4, 7), "new": (4, 7)}


def test_recreation_waits_until_the_last_old_pod_is_gone() -> None:
    recreating = deployment(strategy={"type": "Recreate"})
    assert sizes(decide(recreating, [a_set("old", 4, 4)], {}, NOW)) == {"old": (4, 0)}
    empty = a_set("old", 0, 0)
    waiting = decide(recreating, [empty], {"uid-old": [a_pod(leaving=True)]}, NOW)
    assert waiting.create is None
    assert decide(recreating, [empty], {"uid-old": []}, NOW).create is not None


def test_a_paused_one_is_scaled_but_not_rolled() -> None:
    paused = decide(deployment(6, paused=True), [a_set("old", 4, 4)], {}, NOW)
    assert paused.create is None and sizes(paused) == {"old": (4, 6)}


@pytest.mark.parametrize(("limit", "gone"), [(0, 2), (1, 1), (2, 0)])
def test_empty_sets_beyond_the_history_go_the_lowest_revisions_first(limit: int, gone: int) -> None:
    status = {"replicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "observedGeneration": 1}
    done = {**deployment(revisionHistoryLimit=limit), "status": status}
    sets = [a_set("one", 0, 0, revision=1), a_set("two", 0, 0, revision=2), a_set("new", 4, 4, revision=3)]
    deleted = [rs["metadata"]["uid"] for rs in decide(done, sets, {}, NOW).deletes]
    assert deleted == ["uid-one", "uid-two"][:gone]


def test_an_old_template_that_is_back_gets_the_next_revision_and_remembers_its_last() -> None:
    sets = [a_set("new", 0, 0, revision=1), a_set("other", 4, 4, revision=2, age_s=50)]
    (renewed,) = [rs for rs in decide(deployment(), sets, {}, NOW).updates if rs["metadata"]["uid"] == "uid-new"]
    notes = renewed["metadata"]["annotations"]
    assert notes["deployment.kubernetes.io/revision"] == "3"
    assert notes["deployment.kubernetes.io/revision-history"] == "1"


PROGRESS = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from([
            "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded", "DeploymentPaused",
            "FoundNewReplicaSet",
        ]), st.sampled_from([0, 5, 59, 61, 1000]),
    ),
)  # fmt: skip
COUNTS = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))


def told(progress: tuple[str, int] | None, counts: tuple[int, int, int], *, is_available: bool) -> JsonObject:
    """A status from some time before."""
    replicas, updated, available = counts
    conditions = [{
        "type": "Available", "status": "True" if is_available else "False", "lastUpdateTime": ago(90),
        "lastTransitionTime": ago(90),
        "reason": "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable", "message": "",
    }]  # fmt: skip
    if progress is not None:
        reason, age_s = progress
        conditions.append({
            "type": "Progressing", "status": "False" if reason == "ProgressDeadlineExceeded" else "True",
            "reason": reason, "message": "", "lastUpdateTime": ago(age_s), "lastTransitionTime": ago(age_s),
        })  # fmt: skip
    return {
        "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available, "conditions": conditions,
    }  # fmt: skip


# A busy machine is no reason to fail.
@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), PROGRESS, COUNTS, st.booleans(), st.booleans(),
    st.sampled_from([None, 60]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_to_decide_again_at_the_same_moment_changes_nothing(
    wanted: int, replicas: int, available: int, progress: tuple[str, int] | None, counts: tuple[int, int, int],
    is_available: bool, is_paused: bool, deadline_s: int | None, recreates: bool, has_failed: bool,
) -> None:  # fmt: skip
    spec: JsonObject = {"paused": is_paused, "progressDeadlineSeconds": deadline_s, "revisionHistoryLimit": 2}
    if recreates:
        spec["strategy"] = {"type": "Recreate"}
    made = {**deployment(wanted, **spec), "status": told(progress, counts, is_available=is_available)}
    only = a_set("new", replicas, min(available, replicas), of=wanted)
    if has_failed:
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "lastTransitionTime": ago(3)}
        only["status"]["conditions"] = [failure]
    plan = decide(made, [only], {}, NOW)
    if not plan.only_tells:
        return
    annotations = {**annotations_of(made), REVISION: plan.revision or ""}
    written = {**made, "metadata": {**made["metadata"], "annotations": annotations}, "status": plan.status}
    again = decide(written, [only], {}, NOW)
    assert again.only_tells and same_status(again.status, plan.status)
    assert (again.revision, again.check_in_s) == (plan.revision, plan.check_in_s)
