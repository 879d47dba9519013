"""StatefulSets on virtual time: order, partitions, claims, revisions."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.client.faulty import Faults
from holokube.client.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from holokube.kube.types import JsonObject
from holokube.workloads import stateful_set_controller
from tests.builders import pod
from tests.workloads.world import STORM, World

BUILDS = [stateful_set_controller.build]
OLD = "registry.example/app:1"


def make(replicas: int = 3, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod()["spec"]}, **spec,
        },
    }  # fmt: skip


def set_image(world: World, image: str) -> None:
    world.patch(STATEFUL_SETS, "db", {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": image}
    ]}}}})  # fmt: skip


def names(world: World) -> list[str]:
    return sorted(p["metadata"]["name"] for p in world.pods())


def images(world: World) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in world.pods()}


def is_ready(found: JsonObject) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", ()))


def test_pods_start_one_after_the_other_with_names_and_identities() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make())
        for _ in range(40):
            world.pass_time(0.25)
            pods = sorted(world.pods(), key=lambda p: p["metadata"]["name"])
            assert sum(not is_ready(p) for p in pods) <= 1
            assert [p["metadata"]["name"] for p in pods] == [f"db-{n}" for n in range(len(pods))]
        assert names(world) == ["db-0", "db-1", "db-2"]
        (revision,) = world.list(CONTROLLER_REVISIONS)
        name = revision["metadata"]["name"]
        first = world.get(PODS, "db-0")
        assert first["metadata"]["labels"] == {
            "app": "db", "statefulset.kubernetes.io/pod-name": "db-0", "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": name,
        }  # fmt: skip
        assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("db-0", "db")
        assert world.get(STATEFUL_SETS, "db")["status"] == {
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "currentReplicas": 3, "updatedReplicas": 3, "currentRevision": name, "updateRevision": name,
            "collisionCount": 0,
        }  # fmt: skip
        assert world.events("SuccessfulCreate") == [
            f"Create Pod db-{n} in StatefulSet db successful" for n in range(3)
        ]


def test_a_pod_that_is_not_ready_holds_up_its_successors_unless_in_parallel() -> None:
    for policy, expected in (("OrderedReady", ["db-0"]), ("Parallel", ["db-0", "db-1", "db-2"])):
        with World(BUILDS) as world:
            world.kubelet.verdict = lambda _pod: "stuck"
            world.create(STATEFUL_SETS, make(podManagementPolicy=policy))
            world.pass_time()
            assert names(world) == expected


def test_scaling_down_goes_from_the_highest_ordinal_one_at_a_time() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(4))
        world.pass_time()
        world.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        seen = []
        for _ in range(60):
            world.pass_time(0.25)
            if not seen or seen[-1] != names(world):
                seen.append(names(world))
        assert seen[-3:] == [["db-0", "db-1", "db-2"], ["db-0", "db-1"], ["db-0"]]
        assert world.events("SuccessfulDelete") == [
            f"Delete Pod db-{n} in StatefulSet db successful" for n in (3, 2, 1)
        ]


def test_ordinals_may_start_elsewhere() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(2, ordinals={"start": 5}))
        world.pass_time()
        assert names(world) == ["db-5", "db-6"]


def test_an_update_goes_downwards_and_stops_at_the_partition() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(3, updateStrategy=strategy))
        world.pass_time()
        set_image(world, "db:2")
        order = []
        for _ in range(120):
            world.pass_time(0.25)
            assert sum(map(is_ready, world.pods())) >= 2
            order += [n for n, image in images(world).items() if image == "db:2" and n not in order]
        assert order == ["db-2", "db-1"]
        assert images(world) == {"db-0": OLD, "db-1": "db:2", "db-2": "db:2"}
        status = world.get(STATEFUL_SETS, "db")["status"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)
        assert status["currentRevision"] != status["updateRevision"]
        world.delete(PODS, "db-0")
        world.pass_time()
        # Below the partition even a new pod is of the old revision.
        assert images(world)["db-0"] == OLD
        world.patch(STATEFUL_SETS, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        world.pass_time()
        assert set(images(world).values()) == {"db:2"}
        status = world.get(STATEFUL_SETS, "db")["status"]
        assert status["currentRevision"] == status["updateRevision"]


def test_on_delete_updates_only_what_the_user_deletes() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(2, updateStrategy={"type": "OnDelete"}))
        world.pass_time()
        set_image(world, "db:2")
        world.pass_time()
        assert images(world) == {"db-0": OLD, "db-1": OLD}
        world.delete(PODS, "db-0")
        world.pass_time()
        assert images(world) == {"db-0": "db:2", "db-1": OLD}


def test_availability_waits_for_min_ready_seconds_before_the_next_pod() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(2, minReadySeconds=20))
        world.pass_time(15)
        assert names(world) == ["db-0"]
        world.pass_time(60)
        assert names(world) == ["db-0", "db-1"]
        assert world.get(STATEFUL_SETS, "db")["status"]["availableReplicas"] == 2


CLAIMS = [{
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}]  # fmt: skip


def claims(world: World) -> dict[str, list[str]]:
    return {
        c["metadata"]["name"]: [r["kind"] for r in c["metadata"].get("ownerReferences", ())]
        for c in world.list(PERSISTENT_VOLUME_CLAIMS)
    }


def test_every_pod_has_claims_of_its_own_that_outlive_it() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(2, volumeClaimTemplates=CLAIMS))
        world.pass_time()
        assert claims(world) == {"data-db-0": [], "data-db-1": []}
        volume = world.get(PODS, "db-1")["spec"]["volumes"][0]
        assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
        labels = world.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1")["metadata"]["labels"]
        assert labels == {"app": "db"}
        assert "Create Claim data-db-0 Pod db-0 in StatefulSet db success" in world.events("SuccessfulCreate")
        world.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        world.pass_time()
        assert claims(world) == {"data-db-0": [], "data-db-1": []}


def test_the_retention_policy_decides_who_owns_a_claim() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    with World(BUILDS) as world:
        spec = {"volumeClaimTemplates": CLAIMS, "persistentVolumeClaimRetentionPolicy": policy}
        world.create(STATEFUL_SETS, make(2, **spec))
        world.pass_time()
        assert claims(world) == {"data-db-0": ["StatefulSet"], "data-db-1": ["StatefulSet"]}
        world.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        world.pass_time()
        assert names(world) == ["db-0"]
        assert claims(world) == {"data-db-0": ["StatefulSet"], "data-db-1": ["Pod"]}


def test_going_back_reuses_the_revision_and_unused_ones_are_trimmed() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(1, revisionHistoryLimit=1))
        world.pass_time()
        for number in range(2, 5):
            set_image(world, f"db:{number}")
            world.pass_time()

        def numbers() -> dict[str, int]:
            return {
                r["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: r["revision"]
                for r in world.list(CONTROLLER_REVISIONS)
            }

        assert numbers() == {"db:3": 3, "db:4": 4}
        set_image(world, "db:3")
        world.pass_time()
        assert numbers() == {"db:4": 4, "db:3": 5}
        assert images(world) == {"db-0": "db:3"}


def test_a_failed_pod_is_made_anew_under_its_name() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(2))
        world.pass_time()
        before = world.get(PODS, "db-0")
        status = {**before["status"], "phase": "Failed"}
        world.cluster.run(world.client.update_status(PODS, {**before, "status": status}))
        world.pass_time()
        after = world.get(PODS, "db-0")
        assert after["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(after)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_whatever_goes_wrong_the_set_comes_right(seed: int, policy: str) -> None:
    with World(BUILDS, seed=seed, faults=STORM) as world:
        world.create(STATEFUL_SETS, make(3, podManagementPolicy=policy, volumeClaimTemplates=CLAIMS))
        world.pass_time(60)
        set_image(world, "db:2")
        world.pass_time(40)
        world.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 4}})
        world.pass_time(120)
        world.faulty.faults = Faults()
        world.pass_time(1500)
        assert images(world) == {f"db-{n}": "db:2" for n in range(4)}
        status = world.get(STATEFUL_SETS, "db")["status"]
        assert status["availableReplicas"] == status["updatedReplicas"] == 4
        assert status["currentRevision"] == status["updateRevision"]
        assert sorted(claims(world)) == [f"data-db-{n}" for n in range(4)]


def test_a_change_of_the_retention_policy_is_told_and_the_first_setting_is_not() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    with World(BUILDS) as world:
        world.create(
            STATEFUL_SETS, make(1, volumeClaimTemplates=CLAIMS, persistentVolumeClaimRetentionPolicy=policy)
        )
        world.pass_time()
        owners = world.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")["metadata"]["ownerReferences"]
        assert [owner["kind"] for owner in owners] == ["StatefulSet"]
        assert world.events("SuccessfulUpdate") == []
        retain = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
        world.patch(STATEFUL_SETS, "db", retain)
        world.pass_time()
        assert "ownerReferences" not in world.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")["metadata"]
        assert world.events("SuccessfulUpdate") == ["Update Pod db-0 in StatefulSet db successful"]


def test_a_set_that_is_being_deleted_makes_no_revision_again() -> None:
    with World(BUILDS) as world:
        world.create(STATEFUL_SETS, make(1))
        world.pass_time()
        world.delete(STATEFUL_SETS, "db", propagation="Foreground")
        for revision in world.list(CONTROLLER_REVISIONS):
            world.delete(CONTROLLER_REVISIONS, revision["metadata"]["name"])
        world.pass_time()
        assert world.get(STATEFUL_SETS, "db")["metadata"]["deletionTimestamp"]
        assert world.list(CONTROLLER_REVISIONS) == []
        assert world.events("FailedUpdate") == []
