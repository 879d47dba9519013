"""Jobs that are made in numbers fare like those that are looked at one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.kinds import jobs_alike
from holokube.apiserver.kinds.jobs import Job
from holokube.kube.errors import ApiError
from tests.apiserver.worlds import World, in_world

JsonObject = dict[str, Any]

ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            "example.com/run-time", "plain", "not valid!", "scheduler.alpha.kubernetes.io/critical-pod",
            "container.apparmor.security.beta.kubernetes.io/c", "controller.kubernetes.io/pod-deletion-cost",
        ]
    ),
    st.sampled_from(["", "5", "runtime/default", "localhost/x"]),
    max_size=2,
)  # fmt: skip
LABELS = st.dictionaries(
    st.sampled_from(["a", "not valid!", "job-name", "controller-uid", "batch.kubernetes.io/job-name"]),
    st.sampled_from(["b", "not valid!", "job-0"]),
    max_size=2,
)
TEMPLATES = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "restartPolicy": st.sampled_from(["Never", "Never", "Always"]),
                "containers": st.just([{"name": "c", "image": "i:1"}]),
            },
            optional={"nodeSelector": st.sampled_from([{"x": "y"}, {"beta.kubernetes.io/os": "linux"}])},
        )
    },
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": LABELS, "annotations": ANNOTATIONS, "finalizers": st.just(["a.b/c"])}
        )
    },
)
SPECS = st.fixed_dictionaries(
    {"template": TEMPLATES},
    optional={
        "ttlSecondsAfterFinished": st.sampled_from([300, -1]), "completionMode": st.sampled_from(["Indexed", "x"]),
        "completions": st.just(2), "manualSelector": st.booleans(),
        "selector": st.sampled_from([{"matchLabels": {"a": "b"}}, {}]),
    },
)  # fmt: skip
NAMES = st.sampled_from(["job-0", "job-1", "with.dots", "x" * 64, "Not-Valid"])
METADATA = st.fixed_dictionaries({"name": NAMES}, optional={"labels": LABELS, "annotations": ANNOTATIONS})
BODIES = st.builds(
    lambda meta, spec: {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}, METADATA, SPECS
)


async def created(world: World, body: JsonObject) -> Any:
    served = world.served("jobs", "batch")
    try:
        made = await world.registry.create(served, "default", body)
    except ApiError as problem:
        return problem.to_status()
    finally:
        # The next one may have the same name.
        if world.registry.store.get(served.bucket, f"default/{body['metadata']['name']}") is not None:
            await world.delete("jobs", body["metadata"]["name"], "batch")
    return made.stored.raw, made.warnings, made.stored.settled


def outcomes(bodies: list[JsonObject]) -> list[Any]:
    async def run(world: World) -> list[Any]:
        return [await created(world, body) for body in bodies]

    return in_world(run)


@settings(max_examples=150, deadline=None)
@given(st.lists(BODIES, min_size=2, max_size=6), st.lists(METADATA, max_size=4), st.lists(ANNOTATIONS, max_size=4))
def test_jobs_become_what_they_become_one_by_one(
    bodies: list[JsonObject], metadata: list[JsonObject], annotations: list[JsonObject]
) -> None:
    first = bodies[0]
    bodies = bodies + [{**first, "metadata": meta} for meta in metadata]
    for own in annotations:
        template = {**first["spec"]["template"], "metadata": {"annotations": own}}
        bodies.append({**first, "spec": {**first["spec"], "template": template}})
    quick = outcomes(bodies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "is_valid_again", lambda *_: False)
        assert quick == outcomes(bodies)


def job(name: str, run_time: str = "5m") -> JsonObject:
    template = {
        "metadata": {"annotations": {"example.com/run-time": run_time}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def looked_at(bodies: list[JsonObject]) -> list[str]:
    """The names of those that were checked as a whole."""
    found: list[str] = []
    usual = Job.validate

    def noted(self: Job, new: JsonObject, errors: Any) -> None:
        found.append(new["metadata"]["name"])
        usual(self, new, errors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "validate", noted)
        outcomes(bodies)
    return found


def test_of_jobs_that_differ_in_names_and_annotations_the_first_is_checked() -> None:
    assert looked_at([job("a"), job("b", "6m"), job("c", "7m")]) == ["a"]


def test_jobs_with_anything_else_of_their_own_are_checked() -> None:
    slow, warned, bare = job("slow"), job("warned"), job("bare")
    slow["spec"]["ttlSecondsAfterFinished"] = 5
    warned["spec"]["template"]["metadata"]["annotations"]["scheduler.alpha.kubernetes.io/critical-pod"] = ""
    bare["spec"]["template"]["metadata"]["labels"] = {"job-name": "another"}
    bodies = [job("a"), slow, warned, bare, job("x" * 64), job("b")]
    assert looked_at(bodies) == ["a", "slow", "warned", "bare", "x" * 64]


def test_as_many_are_remembered_as_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_alike, "KEPT", 1)
    other = job("other")
    other["spec"]["ttlSecondsAfterFinished"] = 5
    assert looked_at([job("a"), other, job("b"), job("c")]) == ["a", "other", "b"]
