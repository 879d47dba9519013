"""Deployments: rolled out, scaled, paused, undone, stuck, deleted."""

from __future__ import annotations

from holokube.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS, RESOURCE_QUOTAS
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import rolling, template, workload
from tests.workload_parity.stage import Stage

topic = Topic("deployments")


@topic
async def deployment_created_and_scaled(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=3))
    await stage.step("created")
    await stage.start((await stage.pods())[:1])
    await stage.step("one runs")
    await stage.start((await stage.pods()), ready=True)
    await stage.step("all run")
    await stage.scale(DEPLOYMENTS, "web", 5)
    await stage.step("scaled up")
    await stage.scale(DEPLOYMENTS, "web", 1)
    await stage.step("scaled down")
    await stage.finish()
    await stage.scale(DEPLOYMENTS, "web", 0)
    await stage.step("scaled to nothing")
    await stage.finish()
    await stage.step("nothing left")


async def _roll(stage: Stage, surge: int | str, unavailable: int | str, replicas: int) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=replicas, strategy=rolling(surge, unavailable)))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    for turn in range(6):
        await stage.step(f"turn {turn}")
        await stage.advance()
    await stage.run_all()
    await stage.step("rolled")


@topic
async def deployment_rolls_by_default(stage: Stage) -> None:
    await _roll(stage, "25%", "25%", 4)


@topic
async def deployment_rolls_with_numbers(stage: Stage) -> None:
    await _roll(stage, 2, 1, 5)


@topic
async def deployment_rolls_without_surge(stage: Stage) -> None:
    await _roll(stage, 0, 2, 5)


@topic
async def deployment_rolls_without_loss(stage: Stage) -> None:
    await _roll(stage, "10%", 0, 7)


@topic
async def deployment_is_scaled_while_rolling(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=6, strategy=rolling(2, 2)))
    await stage.settle()
    await stage.launch()
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    await stage.step("half way")
    await stage.scale(DEPLOYMENTS, "web", 12)
    await stage.step("scaled proportionally")
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:3")
    await stage.step("third template")
    await stage.scale(DEPLOYMENTS, "web", 5)
    await stage.step("scaled down proportionally")
    await stage.run_all()
    await stage.step("done")


@topic
async def deployment_is_paused_and_resumed(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.settle()
    await stage.launch()
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await stage.step("paused")
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    await stage.scale(DEPLOYMENTS, "web", 3)
    await stage.step("changed while paused")
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await stage.step("resumed")
    await stage.run_all()
    await stage.step("rolled")


@topic
async def deployment_created_paused(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2, paused=True))
    await stage.step("created")
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": None}})
    await stage.step("resumed")


@topic
async def deployment_is_undone(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.settle()
    await stage.launch()
    cause = {"kubernetes.io/change-cause": "a better image"}
    await stage.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": cause}})
    await stage.settle()
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    await stage.settle()
    await stage.run_all()
    await stage.step("second revision")
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:1")
    await stage.settle()
    await stage.run_all()
    await stage.step("undone")


@topic
async def deployment_recreates(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2, strategy={"type": "Recreate"}))
    await stage.settle()
    await stage.launch()
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    await stage.step("old ones stop")
    await stage.finish()
    await stage.step("new ones come")
    await stage.run_all()
    await stage.step("done")


@topic
async def deployment_keeps_little_history(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1, revisionHistoryLimit=1))
    for number in range(2, 5):
        await stage.settle()
        await stage.run_all()
        await stage.step(f"template {number - 1}")
        await stage.image(DEPLOYMENTS, "web", f"registry.example/app:{number}")
    await stage.settle()
    await stage.run_all()
    await stage.step("after four templates")
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"revisionHistoryLimit": 0}})
    await stage.step("no history")


@topic
async def deployment_misses_its_deadline(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1, progressDeadlineSeconds=4, minReadySeconds=1))
    await stage.until(
        DEPLOYMENTS, "web",
        lambda d: any(c.get("reason") == "ProgressDeadlineExceeded" for c in d["status"].get("conditions") or ()),
    )  # fmt: skip
    await stage.step("too late")
    await stage.start(await stage.pods())
    await stage.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 1)
    await stage.step("after all")


@topic
async def deployment_waits_for_min_ready(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1, minReadySeconds=6))
    await stage.settle()
    await stage.start(await stage.pods())
    await stage.step("ready, not yet available")
    await stage.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 1)
    await stage.step("available")


@topic
async def deployment_loses_pods(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.settle()
    await stage.launch()
    pods = await stage.pods()
    await stage.end(pods[:1], "Failed", 1)
    await stage.step("one failed")
    await stage.delete(PODS, pods[1]["metadata"]["name"])
    await stage.step("one is deleted")
    await stage.finish()
    await stage.step("one is gone")


@topic
async def deployment_adopts_a_replica_set(stage: Stage) -> None:
    made = workload("old", replicas=1)
    made["metadata"]["labels"] = {"app": "a"}
    await stage.create(REPLICA_SETS, made)
    await stage.step("a set alone")
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.step("adopted")


@topic
async def deployment_copies_annotations_and_labels(stage: Stage) -> None:
    made = workload("web", replicas=1)
    made["metadata"] |= {"annotations": {"team": "x"}, "labels": {"tier": "front"}}
    await stage.create(DEPLOYMENTS, made)
    await stage.step("created")
    await stage.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {"team": "y"}}})
    await stage.step("annotated")
    labelled = template("a", labels={"extra": "yes"})
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"template": labelled}})
    await stage.step("another label in the template")


@topic
async def deployment_is_deleted(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.delete(DEPLOYMENTS, "web")
    await stage.step("deleted in the background")
    await stage.finish()
    await stage.step("gone")


@topic
async def deployment_meets_a_collision(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1))
    await stage.step("a first time")
    (found,) = (await stage.client.list(REPLICA_SETS, stage.name)).items
    await stage.delete(DEPLOYMENTS, "web", propagation="Background")
    await stage.until_gone(REPLICA_SETS, found["metadata"]["name"])
    await stage.create(REPLICA_SETS, workload(found["metadata"]["name"], "b", replicas=0))
    await stage.create(DEPLOYMENTS, workload("web", replicas=1))
    await stage.until(DEPLOYMENTS, "web", lambda d: (d.get("status") or {}).get("updatedReplicas") == 1)
    await stage.step("under another name")


@topic
async def deployment_is_refused_pods(stage: Stage) -> None:
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await stage.until(RESOURCE_QUOTAS, "few", lambda q: "hard" in (q.get("status") or {}))
    await stage.create(DEPLOYMENTS, workload("web", replicas=2, progressDeadlineSeconds=60))
    await stage.step("one of two")
    await stage.delete(RESOURCE_QUOTAS, "few")
    await stage.until(DEPLOYMENTS, "web", lambda d: d["status"].get("replicas") == 2)
    await stage.step("both")


@topic
async def deployment_rolls_with_min_ready(stage: Stage) -> None:
    made = workload("web", replicas=2, minReadySeconds=4, strategy=rolling(1, 0))
    await stage.create(DEPLOYMENTS, made)
    await stage.settle()
    await stage.launch()
    await stage.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 2)
    await stage.image(DEPLOYMENTS, "web", "registry.example/app:2")
    await stage.settle()
    await stage.start([p for p in await stage.active() if p["status"].get("phase") != "Running"])
    await stage.step("ready, not available")
    await stage.until(DEPLOYMENTS, "web", lambda d: d["status"].get("updatedReplicas") == 2)
    await stage.step("available, so the next")
