"""A status that is read beside the stored one becomes what it becomes by itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.bodies import read_status
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.kinds.jobs import Job
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import Served
from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.store.store import Store

JsonObject = dict[str, Any]
NOON = "2026-01-01T12:00:00Z"
PLURALS = {"deployments": "apps", "replicasets": "apps", "daemonsets": "apps", "jobs": "batch"}
REGISTRY = Registry(VirtualClock(), Rng("tests"), Store())

COUNTS = st.sampled_from([0, 1, 300, -1, 2**31, 2**70, True, 1.0, None, "1"])
CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from(["Available", "Complete"]), "status": st.sampled_from(["True", "False", ""])},
    optional={
        "lastTransitionTime": st.sampled_from([NOON, "2026-01-01T13:00:00+01:00", None, "x"]),
        "message": st.sampled_from(["", "m"]), "unknown": st.just(1),
    },
)  # fmt: skip
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "replicas": COUNTS, "readyReplicas": COUNTS, "observedGeneration": COUNTS, "collisionCount": COUNTS,
        "active": COUNTS, "ready": COUNTS, "terminating": COUNTS, "numberReady": COUNTS,
        "numberMisscheduled": COUNTS, "conditions": st.lists(CONDITION, max_size=2) | st.none(),
        "startTime": st.sampled_from([NOON, "2026-01-01T12:00:00.5Z", None, 5]),
        "completedIndexes": st.sampled_from(["", "1-3"]),
        "uncountedTerminatedPods": st.sampled_from([{}, {"succeeded": ["u"], "failed": []}, None]),
    },
)  # fmt: skip


def rules(plural: str) -> tuple[Served, Kind]:
    served = REGISTRY.resolve(PLURALS[plural], "v1", plural)
    return served, REGISTRY.kind_of(served)


def stored(status: JsonObject) -> JsonObject:
    template = {"metadata": {"labels": {"a": "b"}}}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"template": template}, "status": status}


def by_itself(plural: str, before: JsonObject, status: JsonObject) -> JsonObject | None:
    with pytest.MonkeyPatch.context() as patch:
        served, kind = rules(plural)
        patch.setattr(kind, "status_reader", lambda *_: None)
        return read_status(served, kind, before, status)


@settings(max_examples=400, deadline=None)
@given(plural=st.sampled_from(sorted(PLURALS)), first=STATUSES, second=STATUSES, kept=st.sets(st.integers(0, 12)))
def test_beside_the_stored_one_it_becomes_the_same(
    plural: str, first: JsonObject, second: JsonObject, kept: set[int]
) -> None:
    served, kind = rules(plural)
    # What is not known of a kind goes, so that more than nothing is left to be looked at.
    known = {key: part for key, part in first.items() if key in served.schema.fields["status"].fields}
    before = stored(by_itself(plural, stored({}), known) or {})
    status = {key: part for key, part in second.items() if key in served.schema.fields["status"].fields}
    status |= {key: part for at, (key, part) in enumerate(before["status"].items()) if at in kept}
    text = orjson.dumps(before)
    expected = by_itself(plural, before, status)
    found = read_status(served, kind, before, status)
    assert (found is None) == (expected is None)
    assert orjson.dumps(found) == orjson.dumps(expected)
    assert orjson.dumps(before) == text, "what is stored is shared"


def test_what_was_stored_is_kept_as_it_is() -> None:
    served, kind = rules("deployments")
    conditions = [{"type": "Available", "status": "True", "lastTransitionTime": None, "lastUpdateTime": None}]
    before = stored({"replicas": 1, "conditions": conditions})
    found = read_status(served, kind, before, {"replicas": 0, "readyReplicas": 2, "conditions": conditions})
    assert found == {"readyReplicas": 2, "conditions": conditions}
    assert found["conditions"] is conditions


def test_a_number_that_does_not_fit_is_left_to_who_can_say_so() -> None:
    served, kind = rules("replicasets")
    reader = kind.status_reader(stored({}), served.schema)
    assert reader is not None
    assert reader.read({"readyReplicas": 2**31}, {}) is None
    assert reader.read({"numberReady": 1}, {}) is None, "there is no such field"
    assert reader.read({"observedGeneration": 2**31}, {}) == {"observedGeneration": 2**31, "replicas": 0}


def test_jobs_without_labels_are_given_those_of_their_template() -> None:
    served, kind = rules("jobs")
    before = stored({})
    assert isinstance(kind, Job)
    assert kind.status_reader(before, served.schema) is not None
    before["metadata"] = {}
    assert kind.status_reader(before, served.schema) is None
    assert read_status(served, kind, before, {"active": 1}) is None
