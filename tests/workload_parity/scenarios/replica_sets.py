"""ReplicaSets and ReplicationControllers: adoption, release, whom they let go first, refusals."""

from __future__ import annotations

from holokube.client.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import pod, template, workload
from tests.workload_parity.stage import Stage

topic = Topic("replica_sets")


@topic
async def replica_set_adopts_and_releases(stage: Stage) -> None:
    await stage.create(PODS, pod("alone"))
    await stage.create(PODS, pod("stranger", "b"))
    await stage.create(REPLICA_SETS, workload("web", replicas=2))
    await stage.step("adopted")
    await stage.patch(PODS, "alone", {"metadata": {"labels": {"app": "other"}}})
    await stage.step("released")
    await stage.patch(PODS, "alone", {"metadata": {"labels": {"app": "a"}}})
    await stage.step("one too many")


@topic
async def replica_set_lets_the_cheapest_go(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=4))
    await stage.settle()
    for number, found in enumerate(await stage.pods()):
        notes = {"controller.kubernetes.io/pod-deletion-cost": str(10 * number), "number": str(number)}
        await stage.patch(PODS, found["metadata"]["name"], {"metadata": {"annotations": notes}})
    await stage.start(await stage.pods())
    await stage.settle()
    await stage.scale(REPLICA_SETS, "web", 2)
    await stage.step("two went")
    await stage.finish()
    await stage.step("two are gone")


@topic
async def replica_set_lets_the_unready_go(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=4))
    await stage.settle()
    pods = await stage.pods()
    await stage.start(pods[:2])
    await stage.start(pods[2:3], ready=False)
    await stage.settle()
    await stage.scale(REPLICA_SETS, "web", 3)
    await stage.step("the pending one went")
    await stage.scale(REPLICA_SETS, "web", 2)
    await stage.step("the unready one went")


@topic
async def replica_set_spreads_by_letting_go(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=3))
    await stage.settle()
    pods = await stage.pods()
    await stage.start(pods[:2], node="parity-1")
    await stage.start(pods[2:], node="parity-2")
    await stage.settle()
    await stage.scale(REPLICA_SETS, "web", 2)
    await stage.step("one of two on a node went")


@topic
async def replica_set_is_refused_pods(stage: Stage) -> None:
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await stage.until(RESOURCE_QUOTAS, "few", lambda q: "hard" in (q.get("status") or {}))
    await stage.create(REPLICA_SETS, workload("web", replicas=3))
    await stage.step("one pod of three")
    await stage.patch(RESOURCE_QUOTAS, "few", {"spec": {"hard": {"pods": "5"}}})
    await stage.until(REPLICA_SETS, "web", lambda rs: rs["status"]["replicas"] == 3)
    await stage.step("all three")


@topic
async def replica_set_with_finished_pods(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=2))
    await stage.settle()
    await stage.end((await stage.pods())[:1], "Succeeded")
    await stage.step("one succeeded")
    await stage.end((await stage.active())[:1], "Failed", 3)
    await stage.step("one failed")
    await stage.scale(REPLICA_SETS, "web", 1)
    await stage.step("scaled down")


@topic
async def replica_set_with_terminating_pods(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=2, minReadySeconds=1))
    await stage.settle()
    await stage.start(await stage.pods())
    await stage.until(REPLICA_SETS, "web", lambda rs: rs["status"].get("availableReplicas") == 2)
    await stage.delete(PODS, (await stage.pods())[0]["metadata"]["name"])
    await stage.step("one leaves")
    await stage.finish()
    await stage.step("one left")


@topic
async def replica_set_orphans_its_pods(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=2))
    await stage.settle()
    await stage.delete(REPLICA_SETS, "web", propagation="Orphan")
    await stage.until_gone(REPLICA_SETS, "web")
    await stage.step("orphaned")
    await stage.create(REPLICA_SETS, workload("web2", replicas=1))
    await stage.step("adopted by another")


@topic
async def replication_controller_lives(stage: Stage) -> None:
    spec = {"replicas": 2, "selector": {"app": "a"}, "template": template()}
    await stage.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "rc"}, "spec": spec})
    await stage.step("created")
    await stage.launch()
    await stage.step("runs")
    await stage.scale(REPLICATION_CONTROLLERS, "rc", 1)
    await stage.step("scaled down")
    await stage.finish()
    await stage.delete(REPLICATION_CONTROLLERS, "rc", propagation="Background")
    await stage.step("deleted")
