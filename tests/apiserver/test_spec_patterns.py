"""Pods of the same spec are created after one pattern, whatever their labels, as if each had been read by itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import Attributes, Plugin
from holokube.apiserver.at_once import AtOnce
from holokube.client.resources import LIMIT_RANGES, PODS, PRIORITY_CLASSES
from holokube.kube.types import JsonObject
from tests.apiserver.pattern_runs import Step, long_way, names_made_by, outcomes
from tests.builders import pod


def of_job(number: int, **spec: Any) -> JsonObject:
    """As the controller of jobs makes them."""
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "uid": f"uid-{number}", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    meta = {
        "generateName": f"job-{number}-", "namespace": "default",
        "labels": {"batch.kubernetes.io/job-name": f"job-{number}", "job-name": f"job-{number}"},
        "annotations": {"example.com/run": f"{number}s"}, "finalizers": ["batch.kubernetes.io/job-tracking"],
        "ownerReferences": [owner],
    }  # fmt: skip
    made = pod(restartPolicy="Never", **spec)
    return {**made, "metadata": meta}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of pods that were created by their spec."""
    return names_made_by(monkeypatch, AtOnce, "_create_by_spec")


def test_pods_of_other_jobs_are_created_by_their_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [(PODS, of_job(number)) for number in range(6)]
    wanted = long_way(steps)
    found = counted(monkeypatch)
    assert outcomes(steps) == wanted
    assert [name[:6] for name in found] == ["job-2-", "job-3-", "job-4-", "job-5-"]


TEXTS = st.sampled_from(["a", "b", "not valid!", "", 1, None, "x" * 64])
CHANGES = st.one_of(
    st.builds(lambda key, value: ("labels", key, value), st.sampled_from(["job-name", "other", "bad key"]), TEXTS),
    st.builds(
        lambda key, value: ("annotations", key, value),
        st.sampled_from([
            "example.com/run", "x", "kubernetes.io/config.mirror", "pod.beta.kubernetes.io/init-containers", "bad key",
            "container.apparmor.security.beta.kubernetes.io/c",
        ]),
        st.sampled_from(["a", "unconfined", 1]),
    ),
    st.builds(
        lambda key, value: ("owner", key, value),
        st.sampled_from(["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion", "unknown"]),
        st.sampled_from(["v1", "Event", "", True, False, None, 1]),
    ),
    st.builds(
        lambda key, value: ("meta", key, value),
        st.sampled_from([
            "generateName", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid",
            "deletionTimestamp", "resourceVersion", "unknown", "managedFields",
        ]),
        st.sampled_from([
            "x-", "x.-", "X-", "default", "other", "", None, {}, [], ["a/b"], ["plain"], [{}], "y" * 70 + "-", 1,
        ]),
    ),
    st.builds(
        lambda key, value: ("body", key, value), st.sampled_from(["kind", "apiVersion", "status", "spec"]),
        st.sampled_from(["Pod", "v1", "", "Job", {}, None]),
    ),
)  # fmt: skip


def changed(number: int, changes: list[tuple[str, str, Any]], spec: int) -> JsonObject:
    body = of_job(number, **([{}, {"affinity": {}}, {"priorityClassName": "high"}, {"nodeName": "n"}][spec]))
    for where, key, value in changes:
        meta = body["metadata"]
        owners = meta.get("ownerReferences")
        places = {"body": body, "meta": meta, "owner": owners[0] if owners and isinstance(owners, list) else None}
        target = places.get(where, meta.get(where))
        if isinstance(target, dict):
            target[key] = value
    return body


STEPS = st.one_of(
    st.builds(
        lambda number, changes, spec: (PODS, changed(number, changes, spec)), st.integers(0, 9),
        st.lists(CHANGES, max_size=2), st.sampled_from([0, 0, 0, 1, 2, 3]),
    ),
    st.just((PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7, "globalDefault": True})),
    st.just((LIMIT_RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "defaultRequest": {"cpu": "70m"}, "default": {"cpu": "1"}},
    ]}})),
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(STEPS, max_size=8), st.booleans())
def test_whatever_their_metadata_they_are_as_if_each_were_read_by_itself(steps: list[Step], tracks: bool) -> None:
    steps = [(PODS, of_job(number)) for number in range(10, 13)] + steps
    assert outcomes(steps, tracks=tracks) == long_way(steps, tracks=tracks)


def test_a_pod_without_the_owner_that_others_have_is_given_none() -> None:
    steps: list[Step] = [(PODS, of_job(number)) for number in range(3)]
    steps.append((PODS, changed(3, [("meta", "ownerReferences", None)], 0)))
    found = outcomes(steps)
    assert found == long_way(steps)
    assert "ownerReferences" not in orjson.loads(found[3])["metadata"]


def test_a_plugin_that_looks_at_labels_sees_every_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    class Copying(Plugin):
        resources = frozenset({("", "pods")})
        looks_at = frozenset()

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            attributes.obj["spec"]["hostname"] = attributes.obj["metadata"]["labels"]["job-name"]

    found = counted(monkeypatch)
    steps: list[Step] = [(PODS, of_job(number)) for number in range(4)]
    made = [orjson.loads(text) for text in outcomes(steps, Copying())[:4]]
    assert [each["spec"]["hostname"] for each in made] == [f"job-{number}" for number in range(4)]
    assert not found


def test_a_body_that_comes_again_is_read_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [(PODS, of_job(number)) for number in (0, 1, 2, 2, 2, 2)]
    wanted = long_way(steps)
    found = counted(monkeypatch)
    assert outcomes(steps) == wanted
    assert len(found) == 1
