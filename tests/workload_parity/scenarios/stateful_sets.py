"""StatefulSets: order, claims, partitions, ordinals."""

from __future__ import annotations

from holokube.client.client import PatchType
from holokube.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, STATEFUL_SETS
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import claim, pod, workload
from tests.workload_parity.stage import JsonObject, Stage

topic = Topic("stateful_sets")


def stateful(replicas: int, **spec: object) -> JsonObject:
    return workload("db", replicas=replicas, serviceName="db", **spec)


def update(**rolling: object) -> JsonObject:
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


@topic
async def stateful_set_comes_in_order(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(3))
    await stage.step("first pod")
    await stage.start(await stage.pods(), ready=False)
    await stage.step("first runs, not ready")
    await stage.start(await stage.pods())
    await stage.step("second pod")
    await stage.launch()
    await stage.step("all run")
    await stage.scale(STATEFUL_SETS, "db", 1)
    await stage.step("last one leaves")
    await stage.finish()
    await stage.step("second leaves")
    await stage.finish()
    await stage.step("one left")
    await stage.delete(STATEFUL_SETS, "db")
    await stage.step("deleted")
    await stage.finish()
    await stage.step("gone")


@topic
async def stateful_set_in_parallel(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(3, podManagementPolicy="Parallel"))
    await stage.step("all pods at once")
    await stage.start((await stage.pods())[1:2])
    await stage.step("one runs")
    await stage.scale(STATEFUL_SETS, "db", 1)
    await stage.step("two leave")


@topic
async def stateful_set_rolls(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(3))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:2")
    await stage.step("last one leaves")
    await stage.finish()
    await stage.step("last one is back")
    await stage.run_all()
    await stage.step("rolled")
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:1")
    await stage.settle()
    await stage.run_all()
    await stage.step("rolled back")


@topic
async def stateful_set_rolls_to_a_partition(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(3, updateStrategy=update(partition=2)))
    await stage.settle()
    await stage.launch()
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:2")
    await stage.settle()
    await stage.run_all()
    await stage.step("last one is new")
    await stage.delete(PODS, "db-0")
    await stage.settle()
    await stage.finish()
    await stage.step("an old one comes back old")
    await stage.run_all()
    await stage.patch(STATEFUL_SETS, "db", {"spec": {"updateStrategy": update(partition=0)}})
    await stage.settle()
    await stage.run_all()
    await stage.step("all are new")


@topic
async def stateful_set_rolls_only_on_delete(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(2, updateStrategy={"type": "OnDelete"}))
    await stage.settle()
    await stage.launch()
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:2")
    await stage.step("nothing happens")
    await stage.delete(PODS, "db-1")
    await stage.settle()
    await stage.finish()
    await stage.settle()
    await stage.run_all()
    await stage.step("one is new")


@topic
async def stateful_set_with_claims(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(2, volumeClaimTemplates=[claim("data")]))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.scale(STATEFUL_SETS, "db", 1)
    await stage.settle()
    await stage.finish()
    await stage.step("claim stays")
    await stage.delete(STATEFUL_SETS, "db")
    await stage.settle()
    await stage.finish()
    await stage.step("claims stay")


@topic
async def stateful_set_deletes_its_claims(stage: Stage) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    made = stateful(2, volumeClaimTemplates=[claim("data")], persistentVolumeClaimRetentionPolicy=policy)
    await stage.create(STATEFUL_SETS, made)
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.scale(STATEFUL_SETS, "db", 1)
    await stage.step("pod leaves")
    await stage.finish()
    await stage.until_gone(PERSISTENT_VOLUME_CLAIMS, "data-db-1")
    await stage.step("claim is gone")
    await stage.patch(
        STATEFUL_SETS, "db", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
    )
    await stage.step("claims are kept now")
    await stage.patch(
        STATEFUL_SETS, "db", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}
    )
    await stage.settle()
    await stage.delete(STATEFUL_SETS, "db")
    await stage.settle()
    await stage.finish()
    await stage.until_gone(PERSISTENT_VOLUME_CLAIMS, "data-db-0")
    await stage.step("all gone")


@topic
async def stateful_set_counts_from_five(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(2, ordinals={"start": 5}))
    await stage.settle()
    await stage.launch()
    await stage.step("five and six")
    await stage.patch(STATEFUL_SETS, "db", {"spec": {"ordinals": {"start": 6}}})
    await stage.settle()
    await stage.run_all()
    await stage.step("six and seven")


@topic
async def stateful_set_with_a_broken_pod(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(2))
    await stage.settle()
    await stage.end(await stage.pods(), "Failed", 1)
    await stage.settle()
    await stage.finish()
    await stage.step("the failed one is replaced")
    await stage.start(await stage.active())
    await stage.settle()
    await stage.launch()
    await stage.image(STATEFUL_SETS, "db", "registry.example/broken:2")
    await stage.settle()
    await stage.finish()
    await stage.settle()
    await stage.start(await stage.active("db-1"), ready=False)
    await stage.step("stuck on a broken image")
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:3")
    await stage.step("still stuck")


@topic
async def stateful_set_with_min_ready(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(2, minReadySeconds=5))
    await stage.settle()
    await stage.start(await stage.pods())
    await stage.step("ready, not available")
    await stage.until(STATEFUL_SETS, "db", lambda s: s["status"].get("availableReplicas") == 1)
    await stage.step("available")


@topic
async def stateful_set_adopts(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(1))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.delete(STATEFUL_SETS, "db", propagation="Orphan")
    await stage.until_gone(STATEFUL_SETS, "db")
    await stage.step("orphaned")
    await stage.create(STATEFUL_SETS, stateful(1))
    await stage.step("adopted")


@topic
async def stateful_set_keeps_little_history(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(1, revisionHistoryLimit=1))
    for number in range(2, 5):
        await stage.settle()
        await stage.run_all()
        await stage.step(f"template {number - 1}")
        await stage.image(STATEFUL_SETS, "db", f"registry.example/app:{number}")
    await stage.settle()
    await stage.run_all()
    await stage.step("after four templates")


@topic
async def stateful_set_takes_an_annotation(stage: Stage) -> None:
    await stage.create(STATEFUL_SETS, stateful(1))
    await stage.settle()
    await stage.launch()
    note = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
    await stage.patch(STATEFUL_SETS, "db", note, type=PatchType.STRATEGIC)
    await stage.step("restarts")
    await stage.finish()
    await stage.settle()
    await stage.run_all()
    await stage.step("restarted")


@topic
async def stateful_set_is_refused_pods(stage: Stage) -> None:
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    await stage.until(RESOURCE_QUOTAS, "none", lambda q: "hard" in (q.get("status") or {}))
    await stage.create(STATEFUL_SETS, stateful(2))
    await stage.step("none")


@topic
async def stateful_set_rolls_two_at_a_time(stage: Stage) -> None:
    strategy = update(maxUnavailable=2)
    await stage.create(STATEFUL_SETS, stateful(4, podManagementPolicy="Parallel", updateStrategy=strategy))
    await stage.settle()
    await stage.launch()
    await stage.image(STATEFUL_SETS, "db", "registry.example/app:2")
    await stage.step("two leave")
    await stage.run_all()
    await stage.step("rolled")


@topic
async def stateful_set_finds_its_name_taken(stage: Stage) -> None:
    await stage.create(PODS, pod("db-0", "stranger"))
    await stage.create(STATEFUL_SETS, stateful(2))
    await stage.step("waits")
    await stage.delete(PODS, "db-0", grace_s=0)
    await stage.until(PODS, "db-0", lambda p: p["metadata"]["labels"]["app"] == "a")
    await stage.step("its own pod")
