from __future__ import annotations

import pytest

from holokube.client.resources import NODES
from holokube.karpenter.writes import _has_list, delete_object, patch_object, patch_status
from holokube.kube.errors import Conflict
from holokube.testing import Cluster
from tests.builders import node


def test_a_list_is_not_written_over_somebody_elses_change_but_a_label_is() -> None:
    with Cluster() as cluster:
        client = cluster.client
        stale = cluster.run(client.create(NODES, node("n")))
        cluster.run(client.patch(NODES, "n", {"spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]}}))
        tainted = {**stale, "spec": {"taints": [{"key": "ours", "effect": "NoSchedule"}]}}
        with pytest.raises(Conflict):
            cluster.run(patch_object(client, NODES, stale, tainted))
        labelled = {**stale, "metadata": {**stale["metadata"], "labels": {"a": "b"}}}
        written = cluster.run(patch_object(client, NODES, stale, labelled))
        assert written is not None
        assert (written["metadata"]["labels"]["a"], len(written["spec"]["taints"])) == ("b", 1)


def test_a_list_is_found_wherever_it_is() -> None:
    assert _has_list({"spec": {"taints": []}}) and _has_list({"a": 1, "b": {"c": None, "d": {"e": [1]}}})
    assert not _has_list({}) and not _has_list({"status": {"lastPodEventTime": "t", "capacity": {"cpu": "1"}}})


def test_nothing_is_sent_when_nothing_changed() -> None:
    with Cluster() as cluster:
        made = cluster.run(cluster.client.create(NODES, node("n")))
        before = cluster.store.revision
        assert cluster.run(patch_object(cluster.client, NODES, made, dict(made))) == made
        assert cluster.run(patch_status(cluster.client, NODES, made, dict(made))) == made
        assert cluster.store.revision == before


def test_an_object_that_is_gone_is_told_and_its_successor_is_left_alone() -> None:
    with Cluster() as cluster:
        client = cluster.client
        first = cluster.run(client.create(NODES, node("n")))
        assert cluster.run(delete_object(client, NODES, first))
        assert not cluster.run(delete_object(client, NODES, first))
        changed = {**first, "metadata": {**first["metadata"], "labels": {"a": "b"}}}
        assert cluster.run(patch_object(client, NODES, first, changed)) is None
        cluster.run(client.create(NODES, node("n")))
        assert cluster.run(patch_object(client, NODES, first, changed)) is None
        assert not cluster.run(delete_object(client, NODES, first))
        assert cluster.run(client.get(NODES, "n"))["metadata"]["uid"] != first["metadata"]["uid"]
