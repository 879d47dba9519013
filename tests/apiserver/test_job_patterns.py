"""Jobs that differ in names and annotations are created after one pattern, as if each had been read by itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import Attributes, Plugin
from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.job_patterns import JobPatterns
from holokube.apiserver.registry import Registry
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import JOBS, NAMESPACES, RESOURCE_QUOTAS
from holokube.kube.types import JsonObject
from holokube.store.store import Store
from tests.apiserver.pattern_runs import Step, long_way, names_made_by, outcomes

RESTRICTED = {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}}
QUOTA = {"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "3"}}}


def job(number: int, **spec: Any) -> JsonObject:
    """As it arrives in a scenario."""
    template = {
        "metadata": {"annotations": {"example.com/run": f"{number}s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    made = {"ttlSecondsAfterFinished": 300, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"job-{number}"}, "spec": made}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of jobs that were created after a pattern."""
    return names_made_by(monkeypatch, JobPatterns, "create")


def test_the_second_job_is_made_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [(JOBS, job(number)) for number in range(4)]
    wanted = long_way(steps)
    found = counted(monkeypatch)
    assert outcomes(steps) == wanted
    assert found == ["job-1", "job-2", "job-3"]


def test_jobs_share_the_spec_of_their_pods_and_nothing_that_is_their_own() -> None:
    async def main(clock: VirtualClock) -> list[JsonObject]:
        registry = Registry(clock, Rng("tests"), Store(), tracks_managed_fields=False)
        await bootstrap(registry)
        client = Client(InProcessTransport(registry))
        return [await client.create(JOBS, job(number), "default") for number in range(3)]

    _, second, third = run_virtual(main)
    assert second["spec"]["template"]["spec"] is third["spec"]["template"]["spec"]
    assert second["metadata"]["labels"]["job-name"] == "job-1"
    assert third["spec"]["selector"]["matchLabels"] == {
        "batch.kubernetes.io/controller-uid": third["metadata"]["uid"]
    }
    assert second["metadata"]["uid"] != third["metadata"]["uid"]


VALUES = st.sampled_from(["a", "", 1, None, {}, [], {"a": "b"}, {"a": 1}, "not valid!", "default", "other", "x" * 64])
PLACES = st.sampled_from([
    ("metadata", "name"), ("metadata", "namespace"), ("metadata", "labels"), ("metadata", "annotations"),
    ("metadata", "generateName"), ("metadata", "uid"), ("metadata", "finalizers"), ("kind",), ("apiVersion",),
    ("status",), ("spec", "selector"), ("spec", "manualSelector"), ("spec", "parallelism"), ("spec", "suspend"),
    ("spec", "completionMode"), ("spec", "template", "metadata", "labels"), ("spec", "template", "metadata", "name"),
    ("spec", "template", "metadata", "annotations"), ("spec", "template", "metadata", "annotations", "x"),
    ("spec", "template", "metadata", "annotations", "bad key"), ("spec", "template", "metadata", "unknown"),
    ("spec", "template", "metadata", "annotations", "seccomp.security.alpha.kubernetes.io/pod"),
    ("spec", "template", "spec", "restartPolicy"), ("spec", "template", "spec", "hostname"),
])  # fmt: skip


def changed(number: int, changes: list[tuple[tuple[str, ...], Any]]) -> JsonObject:
    body = job(number)
    for path, value in changes:
        target: Any = body
        for step in path[:-1]:
            target = target.get(step) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target[path[-1]] = value
    return body


STEPS = st.one_of(
    st.builds(
        lambda number, changes: (JOBS, changed(number, changes)), st.integers(0, 12),
        st.lists(st.tuples(PLACES, VALUES), max_size=2),
    ),
    st.just((NAMESPACES, RESTRICTED)),
    st.just((RESOURCE_QUOTAS, QUOTA)),
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(STEPS, max_size=8), st.booleans())
def test_whatever_they_are_like_they_are_as_if_each_were_read_by_itself(steps: list[Step], tracks: bool) -> None:
    steps = [(JOBS, job(number)) for number in range(10, 12)] + steps
    assert outcomes(steps, tracks=tracks) == long_way(steps, tracks=tracks)


def test_a_quota_and_a_policy_that_come_later_are_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [(JOBS, job(number)) for number in range(3)]
    steps += [(NAMESPACES, RESTRICTED), (JOBS, job(3)), (RESOURCE_QUOTAS, QUOTA), (JOBS, job(4)), (JOBS, job(5))]
    wanted = long_way(steps)
    found = counted(monkeypatch)
    assert outcomes(steps) == wanted
    assert found == ["job-1", "job-2"]


def test_a_plugin_that_looks_at_annotations_sees_every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    class Copying(Plugin):
        resources = frozenset({("batch", "jobs")})
        looks_at = frozenset()

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            run = attributes.obj["spec"]["template"]["metadata"]["annotations"]["example.com/run"]
            attributes.obj["spec"]["activeDeadlineSeconds"] = int(run[:-1]) + 1

    found = counted(monkeypatch)
    made = [orjson.loads(text) for text in outcomes([(JOBS, job(number)) for number in range(3)], Copying())[:3]]
    assert [each["spec"]["activeDeadlineSeconds"] for each in made] == [1, 2, 3]
    assert not found


def test_a_name_that_is_taken_is_refused_as_it_would_be_anyway() -> None:
    steps: list[Step] = [(JOBS, job(number)) for number in (0, 1, 1, 2)]
    assert outcomes(steps) == long_way(steps)
