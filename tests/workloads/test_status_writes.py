"""Status is written when there is something to say, and somebody to say it of."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.client.resources import DEPLOYMENTS
from holokube.testing.cluster import Cluster
from holokube.workloads.status_writes import same_status, write_status
from tests.builders import deployment


def test_what_the_api_leaves_out_makes_no_difference() -> None:
    assert same_status({"replicas": 1}, {"replicas": 1, "readyReplicas": 0, "conditions": []})
    assert not same_status({"replicas": 1}, {"replicas": 2})


def test_of_an_object_that_is_gone_nothing_is_said() -> None:
    with Cluster() as cluster:
        made = cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        name = made["metadata"]["name"]
        cluster.run(cluster.client.delete(DEPLOYMENTS, name, "default"))
        assert cluster.run(write_status(cluster.client, DEPLOYMENTS, made, {"replicas": 3})) is made


def test_a_race_that_is_lost_is_run_once_more() -> None:
    with Cluster() as cluster:
        made = cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        changed = {**made, "spec": {**made["spec"], "replicas": 7}}
        cluster.run(cluster.client.update(DEPLOYMENTS, changed, "default"))
        written = cluster.run(write_status(cluster.client, DEPLOYMENTS, made, {"replicas": 3}))
        assert written["spec"]["replicas"] == 7 and written["status"]["replicas"] == 3


VALUES = st.sampled_from((0, 1, 2, None, [], [1], {}, "", "x", False, True))
STATUSES = st.dictionaries(st.sampled_from("abcd"), VALUES)


@given(STATUSES, STATUSES)
def test_two_statuses_are_the_same_if_what_is_not_left_out_is(old: dict[str, Any], new: dict[str, Any]) -> None:
    def told(status: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in status.items() if value}

    assert same_status(old, new) == (told(old) == told(new))
