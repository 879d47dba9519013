"""DaemonSets: nodes that come, go and change, and their ways to update."""

from __future__ import annotations

from holokube.client.resources import DAEMON_SETS, NODES, PODS, RESOURCE_QUOTAS
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import pod, workload
from tests.workload_parity.stage import JsonObject, Stage, wanted_node

topic = Topic("daemon_sets")

HARD = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
HARSH = {"key": "dedicated", "value": "x", "effect": "NoExecute"}


def daemon(stage: Stage, pod_spec: JsonObject | None = None, **spec: object) -> JsonObject:
    """Only for the nodes of this scenario: others play at the same time."""
    return workload("agent", pod_spec={"nodeSelector": {"pool": stage.name}, **(pod_spec or {})}, **spec)


async def nodes(stage: Stage, count: int, name: str = "n") -> list[str]:
    return [await stage.node(f"{name}{number}", pool=stage.name) for number in range(count)]


async def land(stage: Stage) -> None:
    """Has every pod run on the node that it is for."""
    await stage.settle()
    await stage.run_all()


@topic
async def daemon_set_follows_nodes(stage: Stage) -> None:
    first, second = await nodes(stage, 2)
    await stage.create(DAEMON_SETS, daemon(stage))
    await stage.step("created")
    await land(stage)
    await stage.step("runs")
    third = await stage.node("n9", pool=stage.name)
    await stage.step("a third node")
    await land(stage)
    await stage.patch(NODES, first, {"metadata": {"labels": {"pool": "none"}}})
    await stage.step("first node leaves the pool")
    await stage.finish()
    await stage.step("its pod is gone")
    await stage.patch(NODES, second, {"spec": {"unschedulable": True}})
    await stage.step("second node is cordoned")
    await stage.silence(third)
    await stage.delete(NODES, third)
    await stage.finish()
    await stage.until_event("RemovingNode", "default", third)
    await stage.step("third node is deleted")


@topic
async def daemon_set_and_taints(stage: Stage) -> None:
    first, second = await nodes(stage, 2)
    await stage.patch(NODES, first, {"spec": {"taints": [HARD]}})
    await stage.settle()
    await stage.create(DAEMON_SETS, daemon(stage))
    await stage.step("one node is tainted")
    await land(stage)
    await stage.patch(NODES, second, {"spec": {"taints": [HARD]}})
    await stage.step("not schedulable, but it stays")
    await stage.patch(NODES, first, {"spec": {"taints": None}})
    await stage.step("first is open")
    await land(stage)
    await stage.patch(NODES, second, {"spec": {"taints": [HARSH]}})
    await stage.step("second is evicted")
    await stage.finish()
    await stage.step("and gone")


@topic
async def daemon_set_tolerates(stage: Stage) -> None:
    first, _ = await nodes(stage, 2)
    await stage.patch(NODES, first, {"spec": {"taints": [HARD]}})
    await stage.settle()
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    await stage.create(DAEMON_SETS, daemon(stage, {"tolerations": tolerations, "hostNetwork": True}))
    await stage.step("both nodes")


@topic
async def daemon_set_rolls(stage: Stage) -> None:
    await nodes(stage, 3, "twin")
    await stage.create(DAEMON_SETS, daemon(stage))
    await land(stage)
    await stage.step("runs")
    await stage.image(DAEMON_SETS, "agent", "registry.example/app:2")
    await stage.step("first one leaves")
    await stage.finish()
    await stage.step("first one is back")
    await land(stage)
    await stage.step("rolled")
    await stage.image(DAEMON_SETS, "agent", "registry.example/app:1")
    await land(stage)
    await stage.step("rolled back")


@topic
async def daemon_set_rolls_with_unavailable(stage: Stage) -> None:
    await nodes(stage, 4, "twin")
    limits = {"maxUnavailable": "50%"}
    made = daemon(stage, updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits})
    await stage.create(DAEMON_SETS, made)
    await land(stage)
    await stage.image(DAEMON_SETS, "agent", "registry.example/app:2")
    await stage.step("two leave")
    await land(stage)
    await stage.step("rolled")


@topic
async def daemon_set_rolls_with_surge(stage: Stage) -> None:
    await nodes(stage, 3, "twin")
    limits = {"maxSurge": 1, "maxUnavailable": 0}
    made = daemon(stage, updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits})
    await stage.create(DAEMON_SETS, made)
    await land(stage)
    await stage.image(DAEMON_SETS, "agent", "registry.example/app:2")
    await stage.step("one more")
    await land(stage)
    await stage.step("rolled")


@topic
async def daemon_set_rolls_only_on_delete(stage: Stage) -> None:
    await nodes(stage, 2, "twin")
    await stage.create(DAEMON_SETS, daemon(stage, updateStrategy={"type": "OnDelete"}))
    await land(stage)
    await stage.image(DAEMON_SETS, "agent", "registry.example/app:2")
    await stage.step("nothing happens")
    await stage.delete(PODS, (await stage.pods())[0]["metadata"]["name"])
    await land(stage)
    await stage.step("one is new")


@topic
async def daemon_set_replaces_failed_pods(stage: Stage) -> None:
    await nodes(stage, 1)
    await stage.create(DAEMON_SETS, daemon(stage))
    await land(stage)
    await stage.end(await stage.pods(), "Failed", 1)
    await stage.settle()
    await stage.finish()
    await stage.step("replaced")
    await stage.delete(DAEMON_SETS, "agent", propagation="Foreground")
    await stage.step("deleted in the foreground")
    await stage.finish()
    await stage.until_gone(DAEMON_SETS, "agent")
    await stage.step("gone")


@topic
async def daemon_set_without_nodes(stage: Stage) -> None:
    await stage.create(DAEMON_SETS, daemon(stage, minReadySeconds=4))
    await stage.step("nowhere")
    await nodes(stage, 1)
    await stage.settle()
    (found,) = await stage.pods()
    await stage.start([found], node=wanted_node(found))
    await stage.step("ready, not available")
    await stage.until(DAEMON_SETS, "agent", lambda d: d["status"].get("numberAvailable") == 1)
    await stage.step("available")


@topic
async def daemon_set_is_refused_pods(stage: Stage) -> None:
    await nodes(stage, 2, "twin")
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await stage.until(RESOURCE_QUOTAS, "few", lambda q: "hard" in (q.get("status") or {}))
    await stage.create(DAEMON_SETS, daemon(stage))
    await stage.step("one of two")


@topic
async def daemon_set_adopts(stage: Stage) -> None:
    (only,) = await nodes(stage, 1)
    await stage.create(PODS, pod("alone", nodeName=only))
    await stage.start(await stage.pods())
    await stage.settle()
    await stage.create(DAEMON_SETS, daemon(stage))
    await stage.settle()
    await stage.finish()
    await stage.step("adopted, and replaced for its template")
