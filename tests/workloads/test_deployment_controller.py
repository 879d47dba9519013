"""Deployments on virtual time: rollouts, scaling, pauses, revisions, deadlines."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.client.faulty import Faults
from holokube.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from holokube.kube.types import JsonObject
from holokube.workloads import deployment_controller, replica_set_controller
from holokube.workloads.deployment_revisions import REVISION, REVISION_HISTORY
from holokube.workloads.pod_templates import template_hash
from tests.builders import deployment
from tests.workloads.world import STORM, World, conditions

BUILDS = [replica_set_controller.build, deployment_controller.build]


def make(replicas: int = 4, **spec: Any) -> JsonObject:
    body = deployment("web", replicas=replicas, app="web")
    body["spec"].update(spec)
    return body


def set_image(world: World, image: str) -> None:
    world.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": image}
    ]}}}})  # fmt: skip


def sizes(world: World) -> dict[str, int]:
    """Wanted pods by image."""
    return {
        rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs["spec"]["replicas"]
        for rs in world.list(REPLICA_SETS)
    }


def revisions(world: World) -> dict[str, str]:
    return {
        rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs["metadata"]["annotations"][REVISION]
        for rs in world.list(REPLICA_SETS)
    }


def test_a_new_deployment_has_what_kubectl_shows() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(3))
        world.pass_time()
        found = world.get(DEPLOYMENTS, "web")
        (rs,) = world.list(REPLICA_SETS)
        digest = rs["metadata"]["labels"]["pod-template-hash"]
        assert rs["metadata"]["name"] == f"web-{digest}"
        assert rs["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
        assert rs["metadata"]["annotations"] == {
            REVISION: "1",
            "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4",
        }
        assert found["metadata"]["annotations"] == {REVISION: "1"}
        status = dict(found["status"])
        del status["conditions"]
        assert status == {
            "observedGeneration": found["metadata"]["generation"], "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": 3, "availableReplicas": 3, "terminatingReplicas": 0,
        }  # fmt: skip
        assert conditions(found) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        message = f'ReplicaSet "web-{digest}" has successfully progressed.'
        assert message in [c["message"] for c in found["status"]["conditions"]]
        assert world.events("ScalingReplicaSet") == [f"Scaled up replica set web-{digest} from 0 to 3"]
        assert all(digest in p["metadata"]["labels"].values() for p in world.pods())


@pytest.mark.parametrize(
    ("surge", "unavailable"), [(1, 0), (0, 1), ("25%", "25%"), ("100%", 0), (2, 3), ("1%", "1%")]
)
def test_a_rolling_update_keeps_within_its_limits(surge: int | str, unavailable: int | str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    most = {1: 7, 0: 6, "25%": 8, "100%": 12, 2: 8, "1%": 7}[surge]
    least = {0: 6, 1: 5, "25%": 5, 3: 3, "1%": 6}[unavailable]
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(6, strategy=strategy))
        world.pass_time()
        set_image(world, "app:2")
        for _ in range(300):
            world.pass_time(0.25)
            pods = world.pods(app="web")
            ready = [p for p in pods if any(
                c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", ())
            )]  # fmt: skip
            assert len(pods) <= most
            assert len(ready) >= least
        assert sizes(world) == {"registry.example/app:1": 0, "app:2": 6}
        assert conditions(world.get(DEPLOYMENTS, "web"))["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_recreate_lets_all_old_pods_end_before_a_new_one_starts() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(3, strategy={"type": "Recreate"}))
        world.pass_time()
        world.kubelet.stop_s = 10
        set_image(world, "app:2")
        for _ in range(60):
            world.pass_time(0.5)
            images = {p["spec"]["containers"][0]["image"] for p in world.list(PODS)}
            assert len(images) <= 1
        assert images == {"app:2"}
        assert sizes(world) == {"registry.example/app:1": 0, "app:2": 3}


def test_going_back_to_an_old_template_gives_it_a_new_revision_and_a_history() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(2))
        world.pass_time()
        set_image(world, "app:2")
        world.pass_time()
        assert revisions(world) == {"registry.example/app:1": "1", "app:2": "2"}
        set_image(world, "registry.example/app:1")
        world.pass_time()
        assert revisions(world) == {"registry.example/app:1": "3", "app:2": "2"}
        history = [rs["metadata"]["annotations"].get(REVISION_HISTORY) for rs in world.list(REPLICA_SETS)]
        assert sorted(history, key=str) == ["1", None]
        assert world.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "3"
        assert sizes(world) == {"registry.example/app:1": 2, "app:2": 0}


def test_only_as_many_old_sets_are_kept_as_the_history_limit_says() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(1, revisionHistoryLimit=2))
        world.pass_time()
        for number in range(2, 7):
            set_image(world, f"app:{number}")
            world.pass_time()
        assert revisions(world) == {"app:4": "4", "app:5": "5", "app:6": "6"}


def test_a_paused_deployment_does_not_roll_out_but_scales() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(2))
        world.pass_time()
        world.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
        set_image(world, "app:2")
        world.pass_time()
        assert sizes(world) == {"registry.example/app:1": 2}
        assert conditions(world.get(DEPLOYMENTS, "web"))["Progressing"] == ("Unknown", "DeploymentPaused")
        world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
        world.pass_time()
        assert sizes(world) == {"registry.example/app:1": 5}
        world.patch(DEPLOYMENTS, "web", {"spec": {"paused": None}})
        world.pass_time(120)
        assert sizes(world) == {"registry.example/app:1": 0, "app:2": 5}
        assert conditions(world.get(DEPLOYMENTS, "web"))["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_scaling_in_the_middle_of_a_rollout_is_shared_in_proportion() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(10, strategy=strategy))
        world.pass_time()
        world.kubelet.verdict = lambda pod: (
            "stuck" if pod["spec"]["containers"][0]["image"] == "bad" else "ready"
        )
        set_image(world, "bad")
        world.pass_time()
        assert sizes(world) == {"registry.example/app:1": 8, "bad": 5}
        # The example of the Kubernetes documentation: five more pods are shared 8 to 5.
        world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        world.pass_time()
        assert sizes(world) == {"registry.example/app:1": 11, "bad": 7}


def test_a_rollout_that_gets_nowhere_misses_its_deadline_and_recovers() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(2, progressDeadlineSeconds=60))
        world.pass_time()
        world.kubelet.verdict = lambda pod: (
            "pending" if pod["spec"]["containers"][0]["image"] == "bad" else "ready"
        )
        set_image(world, "bad")
        world.pass_time(50)
        assert conditions(world.get(DEPLOYMENTS, "web"))["Progressing"] == ("True", "ReplicaSetUpdated")
        world.pass_time(20)
        found = world.get(DEPLOYMENTS, "web")
        assert conditions(found)["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert conditions(found)["Available"] == ("True", "MinimumReplicasAvailable")
        set_image(world, "good")
        world.pass_time()
        assert conditions(world.get(DEPLOYMENTS, "web"))["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert sizes(world) == {"registry.example/app:1": 0, "bad": 0, "good": 2}


def test_an_orphaned_replica_set_that_matches_is_adopted() -> None:
    with World(BUILDS) as world:
        world.create(DEPLOYMENTS, make(2))
        world.pass_time()
        (rs,) = world.list(REPLICA_SETS)
        world.delete(DEPLOYMENTS, "web", propagation="Background")
        world.patch(REPLICA_SETS, rs["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        world.create(DEPLOYMENTS, make(2))
        world.pass_time()
        (again,) = world.list(REPLICA_SETS)
        assert again["metadata"]["uid"] == rs["metadata"]["uid"]
        owner = world.get(DEPLOYMENTS, "web")["metadata"]["uid"]
        assert again["metadata"]["ownerReferences"][0]["uid"] == owner


def test_a_foreign_set_under_the_new_name_is_a_collision_that_is_solved() -> None:
    with World(BUILDS) as world:
        template = world.create(DEPLOYMENTS, make(1, paused=True))["spec"]["template"]
        name = f"web-{template_hash(template, None)}"
        foreign = {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"x": "y"}},
                "template": {**template, "metadata": {"labels": {"x": "y"}}},
            },
        }  # fmt: skip
        world.create(REPLICA_SETS, foreign)
        world.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        world.pass_time()
        found = world.get(DEPLOYMENTS, "web")
        assert found["status"]["collisionCount"] == 1
        assert found["status"]["availableReplicas"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_the_last_template_wins(seed: int) -> None:
    with World(BUILDS, seed=seed, faults=STORM) as world:
        world.create(DEPLOYMENTS, make(4))
        world.pass_time(40)
        set_image(world, "app:2")
        world.pass_time(15)
        world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        world.pass_time(15)
        set_image(world, "app:3")
        world.pass_time(120)
        world.faulty.faults = Faults()
        world.pass_time(1500)
        assert {image: size for image, size in sizes(world).items() if size} == {"app:3": 6}
        assert len(world.pods(app="web")) == 6
        found = world.get(DEPLOYMENTS, "web")
        assert found["status"]["availableReplicas"] == found["status"]["updatedReplicas"] == 6
        assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
