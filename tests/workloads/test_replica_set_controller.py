"""ReplicaSets and ReplicationControllers on virtual time."""

from __future__ import annotations

import pytest

from holokube.client.faulty import Faults
from holokube.client.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS
from holokube.kube.types import JsonObject
from holokube.workloads import replica_set_controller
from tests.builders import pod
from tests.workloads.world import STORM, World, conditions

BUILDS = [replica_set_controller.build, replica_set_controller.build_replication_controller]


def replica_set(name: str = "web", replicas: int = 3, **spec: object) -> JsonObject:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec,
        },
    }  # fmt: skip


def test_a_replica_set_gets_its_pods_its_status_and_its_events() -> None:
    with World(BUILDS) as world:
        world.create(REPLICA_SETS, replica_set())
        world.pass_time()
        pods = world.pods(app="web")
        found = world.get(REPLICA_SETS, "web")
        assert len(pods) == 3
        assert found["status"] == {
            "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "terminatingReplicas": 0, "observedGeneration": 1,
        }  # fmt: skip
        for each in pods:
            assert each["metadata"]["generateName"] == "web-"
            assert each["metadata"]["ownerReferences"] == [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                "uid": found["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
            }]  # fmt: skip
        made = {f"Created pod: {each['metadata']['name']}" for each in pods}
        assert set(world.events("SuccessfulCreate")) == made


def test_pods_are_made_of_the_template_as_it_is_and_for_the_owner_that_there_is() -> None:
    with World(BUILDS) as world:
        world.create(REPLICA_SETS, replica_set(replicas=1))
        world.pass_time()
        labelled = {"metadata": {"labels": {"new": "yes"}}}
        world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2, "template": labelled}})
        world.pass_time()
        assert len(world.pods(app="web")) == 2 and len(world.pods(new="yes")) == 1
        before = world.get(REPLICA_SETS, "web")
        world.delete(REPLICA_SETS, "web")
        for each in world.pods():
            world.delete(PODS, each["metadata"]["name"])
        world.create(REPLICA_SETS, replica_set(replicas=1))
        world.pass_time()
        (last,) = world.pods(app="web")
        owner = world.get(REPLICA_SETS, "web")["metadata"]["uid"]
        assert last["metadata"]["ownerReferences"][0]["uid"] == owner != before["metadata"]["uid"]


def test_scaling_down_deletes_pods_that_are_not_ready_first() -> None:
    with World(BUILDS) as world:
        world.create(REPLICA_SETS, replica_set(replicas=2))
        world.pass_time()
        good = {each["metadata"]["name"] for each in world.pods()}
        world.kubelet.verdict = lambda _pod: "stuck"
        world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 5}})
        world.pass_time()
        assert world.get(REPLICA_SETS, "web")["status"]["readyReplicas"] == 2
        world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        world.pass_time()
        assert {each["metadata"]["name"] for each in world.pods()} == good
        assert len(world.events("SuccessfulDelete")) == 3


def test_a_pod_that_is_deleted_or_fails_is_replaced_and_a_finished_one_is_left_alone() -> None:
    with World(BUILDS) as world:
        world.create(REPLICA_SETS, replica_set(replicas=2))
        world.pass_time()
        first = world.pods()[0]["metadata"]["name"]
        world.delete(PODS, first)
        world.pass_time()
        assert len(world.pods()) == 2 and first not in {p["metadata"]["name"] for p in world.pods()}
        victim = world.pods()[0]
        status = {**victim["status"], "phase": "Failed"}
        world.cluster.run(world.client.update_status(PODS, {**victim, "status": status}))
        world.pass_time()
        assert len(world.pods()) == 2
        assert len(world.list(PODS)) == 3


def test_matching_orphans_are_adopted_and_those_that_stop_matching_released() -> None:
    with World(BUILDS) as world:
        orphan = pod("stray")
        orphan["metadata"]["labels"] = {"app": "web"}
        world.create(PODS, orphan)
        world.create(REPLICA_SETS, replica_set(replicas=2))
        world.pass_time()
        assert {p["metadata"]["name"] for p in world.pods(app="web")} >= {"stray"}
        assert len(world.pods(app="web")) == 2
        owner = world.get(REPLICA_SETS, "web")["metadata"]["uid"]
        assert world.get(PODS, "stray")["metadata"]["ownerReferences"][0]["uid"] == owner
        world.patch(PODS, "stray", {"metadata": {"labels": {"app": "other"}}})
        world.pass_time()
        assert "ownerReferences" not in world.get(PODS, "stray")["metadata"]
        assert len(world.pods(app="web")) == 2


def test_availability_waits_for_min_ready_seconds() -> None:
    with World(BUILDS) as world:
        world.create(REPLICA_SETS, replica_set(replicas=1, minReadySeconds=30))
        world.pass_time(20)
        status = world.get(REPLICA_SETS, "web")["status"]
        assert status["readyReplicas"] == 1 and "availableReplicas" not in status
        world.pass_time(20)
        assert world.get(REPLICA_SETS, "web")["status"]["availableReplicas"] == 1


def test_a_refused_pod_shows_in_condition_and_event_and_heals() -> None:
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }  # fmt: skip
    with World(BUILDS) as world:
        created = world.create(RESOURCE_QUOTAS, quota)
        filled = {**created, "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
        world.cluster.run(world.client.update_status(RESOURCE_QUOTAS, filled))
        world.create(REPLICA_SETS, replica_set(replicas=3))
        world.pass_time()
        found = world.get(REPLICA_SETS, "web")
        assert found["status"]["replicas"] == 1
        assert conditions(found) == {"ReplicaFailure": ("True", "FailedCreate")}
        assert "exceeded quota: q" in found["status"]["conditions"][0]["message"]
        assert "Error creating" in world.events("FailedCreate")[0]
        world.delete(RESOURCE_QUOTAS, "q")
        world.pass_time(1200)
        assert "conditions" not in world.get(REPLICA_SETS, "web")["status"]
        assert len(world.pods()) == 3


def test_a_replication_controller_works_the_same_with_its_plain_selector() -> None:
    template = {"metadata": {"labels": {"app": "rc"}}, "spec": pod()["spec"]}
    body = {
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "rc", "namespace": "default"}, "spec": {"replicas": 2, "template": template},
    }  # fmt: skip
    with World(BUILDS) as world:
        world.create(REPLICATION_CONTROLLERS, body)
        world.pass_time()
        assert len(world.pods(app="rc")) == 2
        status = world.get(REPLICATION_CONTROLLERS, "rc")["status"]
        assert status["readyReplicas"] == 2 and "terminatingReplicas" not in status


def test_a_late_cache_never_makes_pods_twice() -> None:
    late = Faults(event_delay=0.9, event_delay_max_s=3.0)
    with World(BUILDS, faults=late) as world:
        for replicas in (7, 2, 9):
            world.create(REPLICA_SETS, replica_set(f"web{replicas}", replicas=replicas))
            for _ in range(30):
                world.pass_time(1)
                assert len(world.pods(app=f"web{replicas}")) <= replicas
            world.pass_time(60)
            assert len(world.events("SuccessfulDelete")) == 0
            assert len(world.pods(app=f"web{replicas}")) == replicas


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_the_number_comes_right(seed: int) -> None:
    with World(BUILDS, seed=seed, faults=STORM) as world:
        world.create(REPLICA_SETS, replica_set(replicas=4))
        world.pass_time(60)
        world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        world.pass_time(60)
        world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 6}})
        world.pass_time(120)
        world.faulty.faults = Faults()
        world.pass_time(1200)
        assert len(world.pods(app="web")) == 6
        assert world.get(REPLICA_SETS, "web")["status"]["availableReplicas"] == 6
        assert world.faulty.injected.total() > 5
