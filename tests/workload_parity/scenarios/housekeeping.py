"""Owners and dependents, namespaces, accounts, quotas, pod cleaning, volumes, node lifecycle."""

from __future__ import annotations

from holokube.client.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from holokube.kube.timeformat import format_time
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import claim, has_condition, pod, service, volume, workload
from tests.workload_parity.stage import JsonObject, Stage

topic = Topic("housekeeping")


@topic
async def namespace_gets_its_things(stage: Stage) -> None:
    await stage.step("new")
    await stage.delete(SERVICE_ACCOUNTS, "default")
    await stage.delete(CONFIG_MAPS, "kube-root-ca.crt")
    await stage.step("they come back")
    await stage.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "mine", "other": "x"}})
    await stage.step("and are put right")


@topic
async def namespace_is_deleted(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=2))
    await stage.create(SERVICES, service("web"))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await stage.create(CONFIG_MAPS, held)
    await stage.settle()
    await stage.launch()
    await stage.delete(NAMESPACES, stage.name)
    await stage.until(NAMESPACES, stage.name, lambda n: "conditions" in n["status"])
    await stage.step("waits for a pod and a finalizer")
    await stage.finish()
    await stage.until_pods(lambda pods: not pods)
    await stage.until(NAMESPACES, stage.name, lambda n: has_condition(n, "NamespaceContentRemaining"))
    await stage.step("waits for a finalizer")
    await stage.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}})
    await stage.until_gone(NAMESPACES, stage.name)
    await stage.step("gone")


@topic
async def owner_is_deleted_in_the_foreground(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1))
    await stage.settle()
    await stage.launch()
    await stage.step("runs")
    await stage.delete(DEPLOYMENTS, "web", propagation="Foreground")
    await stage.step("waits for its pod")
    await stage.finish()
    await stage.until_gone(DEPLOYMENTS, "web")
    await stage.step("gone")


@topic
async def owner_is_deleted_and_orphans(stage: Stage) -> None:
    await stage.create(DEPLOYMENTS, workload("web", replicas=1))
    await stage.step("created")
    await stage.delete(DEPLOYMENTS, "web", propagation="Orphan")
    await stage.until_gone(DEPLOYMENTS, "web")
    await stage.step("orphaned")


def owned(name: str, *owners: JsonObject, blocks: bool = False) -> JsonObject:
    references = [
        {
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], **({"blockOwnerDeletion": True} if blocks else {}),
        }
        for owner in owners
    ]  # fmt: skip
    return {"metadata": {"name": name, "ownerReferences": references}}


@topic
async def dependents_of_two_owners(stage: Stage) -> None:
    one = await stage.create(CONFIG_MAPS, {"metadata": {"name": "one"}})
    two = await stage.create(CONFIG_MAPS, {"metadata": {"name": "two"}})
    await stage.create(CONFIG_MAPS, owned("child", one, two))
    await stage.create(CONFIG_MAPS, owned("blocking", one, blocks=True))
    await stage.settle()
    await stage.delete(CONFIG_MAPS, "one", propagation="Foreground")
    await stage.until_gone(CONFIG_MAPS, "one")
    await stage.step("one owner is gone")
    await stage.delete(CONFIG_MAPS, "two")
    await stage.until_gone(CONFIG_MAPS, "child")
    await stage.step("both are gone")


@topic
async def dependents_of_nobody(stage: Stage) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "ghost", "uid": "00000000-0000-4000-8000-000000000000"}}  # fmt: skip
    await stage.create(CONFIG_MAPS, owned("child", ghost))
    await stage.until_gone(CONFIG_MAPS, "child")
    await stage.step("gone with an owner that never was")
    foreign = {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "nobody", "uid": "00000000-0000-4000-8000-000000000001"}}  # fmt: skip
    await stage.create(CONFIG_MAPS, owned("child", foreign))
    await stage.until_gone(CONFIG_MAPS, "child")
    await stage.step("gone with a node that never was")


@topic
async def quota_is_counted(stage: Stage) -> None:
    hard = {"pods": "5", "requests.cpu": "2", "limits.memory": "2Gi", "count/configmaps": "10", "services": "3",
            "requests.storage": "10Gi", "persistentvolumeclaims": "2", "count/deployments.apps": "1"}  # fmt: skip
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "all"}, "spec": {"hard": hard}})
    scoped = {"hard": {"pods": "2"}, "scopes": ["BestEffort"]}
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "best-effort"}, "spec": scoped})
    await stage.until(RESOURCE_QUOTAS, "all", lambda q: "used" in (q.get("status") or {}))
    await stage.step("empty")
    limits = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
    for number in range(2):
        made = pod(f"p{number}")
        made["spec"]["containers"][0]["resources"] = limits
        await stage.create(PODS, made)
    await stage.create(SERVICES, service("web"))
    await stage.create(PERSISTENT_VOLUME_CLAIMS, claim("data", "2Gi"))
    await stage.create(DEPLOYMENTS, workload("web", replicas=0))
    await stage.step("used")
    await stage.delete(PODS, "p0", grace_s=0)
    await stage.end([await stage.get(PODS, "p1")])
    await stage.until(RESOURCE_QUOTAS, "all", lambda q: q["status"]["used"]["pods"] == "0")
    await stage.step("given back")


@topic
async def claims_are_bound_to_volumes(stage: Stage) -> None:
    for name, size in (("small", "1Gi"), ("large", "5Gi")):
        await stage.create(PERSISTENT_VOLUMES, volume(f"{stage.name}.{name}", size, storageClassName=stage.name))
    await stage.step("available")
    await stage.create(PERSISTENT_VOLUME_CLAIMS, claim("data", "2Gi", storageClassName=stage.name))
    await stage.until(PERSISTENT_VOLUME_CLAIMS, "data", lambda c: c["status"]["phase"] == "Bound")
    await stage.step("bound to the one that fits")
    used = pod("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    await stage.create(PODS, used)
    await stage.start(await stage.pods())
    await stage.settle()
    await stage.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    await stage.step("in use")
    await stage.delete(PODS, "user", grace_s=0)
    await stage.until_gone(PERSISTENT_VOLUME_CLAIMS, "data")
    await stage.until(
        PERSISTENT_VOLUMES, f"{stage.name}.large", lambda v: v["status"]["phase"] == "Released"
    )
    await stage.step("released")
    await stage.delete(PERSISTENT_VOLUMES, f"{stage.name}.small")
    await stage.delete(PERSISTENT_VOLUMES, f"{stage.name}.large")
    await stage.step("volumes are gone")


@topic
async def claim_is_bound_by_name(stage: Stage) -> None:
    await stage.create(PERSISTENT_VOLUMES, volume(f"{stage.name}.v", "1Gi", storageClassName=""))
    await stage.settle()
    made = claim("data", "1Gi", storageClassName="", volumeName=f"{stage.name}.v")
    await stage.create(PERSISTENT_VOLUME_CLAIMS, made)
    await stage.until(PERSISTENT_VOLUME_CLAIMS, "data", lambda c: c["status"]["phase"] == "Bound")
    await stage.step("bound")
    await stage.create(PERSISTENT_VOLUME_CLAIMS, claim("more", "1Gi", storageClassName=""))
    await stage.step("nothing left")


@topic
async def volume_is_reserved_for_a_claim(stage: Stage) -> None:
    reference = {"name": "data", "namespace": stage.name}
    made = volume(f"{stage.name}.v", "1Gi", storageClassName="", claimRef=reference)
    await stage.create(PERSISTENT_VOLUMES, made)
    await stage.step("reserved")
    await stage.create(PERSISTENT_VOLUME_CLAIMS, claim("data", "1Gi", storageClassName=""))
    await stage.until(PERSISTENT_VOLUME_CLAIMS, "data", lambda c: c["status"]["phase"] == "Bound")
    await stage.step("bound")


@topic
async def pods_of_a_deleted_node_go(stage: Stage) -> None:
    name = await stage.node("n1")
    await stage.create(PODS, pod("p"))
    await stage.start(await stage.pods(), node=name)
    await stage.settle()
    await stage.silence(name)
    await stage.delete(NODES, name)
    await stage.until_gone(PODS, "p")
    await stage.step("gone")


@topic
async def node_falls_silent_and_returns(stage: Stage) -> None:
    name = await stage.node("n1")
    stays = pod("stays", tolerations=[{"operator": "Exists"}])
    soon = pod("soon", tolerations=[
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    ])  # fmt: skip
    for made in (stays, soon, pod("later")):
        await stage.create(PODS, made)
    await stage.start(await stage.pods(), node=name)
    await stage.step("up")
    await stage.silence(name)
    await stage.until(NODES, name, lambda n: has_condition(n, "Ready", "Unknown"))
    await stage.until(PODS, "soon", lambda p: "deletionTimestamp" in p["metadata"])
    await stage.step("silent")
    await stage.revive(name)
    await stage.until(NODES, name, lambda n: not n["spec"].get("taints"))
    await stage.step("back")


@topic
async def node_is_not_ready(stage: Stage) -> None:
    name = await stage.node("n1")
    await stage.create(PODS, pod("p"))
    await stage.start(await stage.pods(), node=name)
    await stage.settle()
    now = format_time(stage.clock.now())
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": now, "lastHeartbeatTime": now, "reason": "Test"}
        for kind, status in (("Ready", "False"), ("MemoryPressure", "True"), ("DiskPressure", "True"))
    ]
    await stage.patch(NODES, name, {"status": {"conditions": conditions}}, subresource="status")
    await stage.until(NODES, name, lambda n: len(n["spec"].get("taints") or ()) == 4)
    await stage.step("not ready, under pressure")
    await stage.patch(NODES, name, {"spec": {"unschedulable": True}})
    await stage.step("cordoned")


@topic
async def pods_are_evicted_by_taints(stage: Stage) -> None:
    name = await stage.node("n1")
    stays = pod("stays", tolerations=[{"key": "maintenance", "operator": "Exists"}])
    soon = pod("soon", tolerations=[
        {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    ])  # fmt: skip
    for made in (stays, soon, pod("now")):
        await stage.create(PODS, made)
    await stage.start(await stage.pods(), node=name)
    await stage.settle()
    await stage.patch(NODES, name, {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}})
    await stage.until(PODS, "soon", lambda p: "deletionTimestamp" in p["metadata"])
    await stage.step("two are evicted")


@topic
async def replica_set_is_deleted_by_default(stage: Stage) -> None:
    await stage.create(REPLICA_SETS, workload("web", replicas=1))
    await stage.step("created")
    await stage.delete(REPLICA_SETS, "web")
    await stage.step("gone with its pod")


@topic
async def dependent_of_another_namespace(stage: Stage) -> None:
    made = {"metadata": {"name": f"{stage.name}.owner"}}
    owner = await stage.client.create(CONFIG_MAPS, made, "default")
    await stage.create(CONFIG_MAPS, owned("child", owner))
    await stage.until_gone(CONFIG_MAPS, "child")
    await stage.step("gone, and somebody was told why")


@topic
async def pod_with_an_ephemeral_volume(stage: Stage) -> None:
    template = {"metadata": {"labels": {"made": "up"}}, "spec": claim("", "1Gi", storageClassName="")["spec"]}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    await stage.create(PODS, pod("user", volumes=[scratch]))
    await stage.step("a claim of its own")
    await stage.delete(PODS, "user", grace_s=0)
    await stage.until_gone(PERSISTENT_VOLUME_CLAIMS, "user-scratch")
    await stage.step("both are gone")
    await stage.create(PERSISTENT_VOLUME_CLAIMS, claim("user-scratch", storageClassName=""))
    await stage.create(PODS, pod("user", volumes=[scratch]))
    await stage.until_event("FailedBinding", name="user")
    await stage.step("somebody else has the name")


@topic
async def node_never_reports(stage: Stage) -> None:
    name = f"{stage.name}.n1"
    await stage.create(NODES, {"metadata": {"name": name}})
    await stage.until_event("RegisteredNode", "default", name)
    await stage.step("new")
    await stage.until(NODES, name, lambda n: has_condition(n, "Ready", "Unknown"))
    await stage.step("given up")
    await stage.delete(NODES, name)


@topic
async def node_is_out_of_service(stage: Stage) -> None:
    name = await stage.node("n1")
    await stage.create(REPLICA_SETS, workload("web", replicas=1))
    await stage.settle()
    await stage.start(await stage.pods(), node=name)
    await stage.settle()
    lost = (await stage.pods())[0]["metadata"]["name"]
    await stage.silence(name)
    await stage.until(NODES, name, lambda n: len(n["spec"].get("taints") or ()) == 2)
    await stage.settle()
    taints = (await stage.get(NODES, name))["spec"]["taints"]
    more = {"key": "node.kubernetes.io/out-of-service", "value": "shutdown", "effect": "NoExecute"}
    await stage.patch(NODES, name, {"spec": {"taints": [*taints, more]}})
    await stage.until_gone(PODS, lost)
    await stage.step("its pods go by force")


@topic
async def namespace_is_kept_by_a_finalizer(stage: Stage) -> None:
    path = f"/api/v1/namespaces/{stage.name}/finalize"
    found = await stage.get(NAMESPACES, stage.name)
    more = [*found["spec"]["finalizers"], "example.com/mine"]
    await stage.client.request("PUT", path, body={**found, "spec": {"finalizers": more}})
    await stage.delete(NAMESPACES, stage.name)
    await stage.until(NAMESPACES, stage.name, lambda n: n["spec"]["finalizers"] == ["example.com/mine"])
    await stage.step("empty, but kept")
    found = await stage.get(NAMESPACES, stage.name)
    await stage.client.request("PUT", path, body={**found, "spec": {"finalizers": []}})
    await stage.until_gone(NAMESPACES, stage.name)
    await stage.step("gone")
