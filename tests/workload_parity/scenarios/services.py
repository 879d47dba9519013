"""Services with their Endpoints and EndpointSlices, and disruption budgets."""

from __future__ import annotations

from holokube.client.resources import (
    DEPLOYMENTS,
    ENDPOINTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
)
from holokube.kube.errors import TooManyRequests
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import budget, pod, service, workload
from tests.workload_parity.stage import Stage

topic = Topic("services")


@topic
async def service_finds_its_pods(stage: Stage) -> None:
    await stage.create(SERVICES, service("web"))
    await stage.step("no pods")
    await stage.create(REPLICA_SETS, workload("web", replicas=3))
    await stage.settle()
    pods = await stage.pods()
    await stage.start(pods[:2])
    await stage.start(pods[2:], ready=False)
    await stage.step("two of three ready")
    await stage.delete(PODS, pods[0]["metadata"]["name"])
    await stage.step("one leaves")
    await stage.finish()
    await stage.step("one left")
    await stage.patch(SERVICES, "web", {"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 9090}]}})
    await stage.step("another port")
    await stage.patch(SERVICES, "web", {"metadata": {"labels": {"team": "x"}}})
    await stage.step("labelled")
    await stage.delete(SERVICES, "web")
    await stage.step("gone")


@topic
async def service_without_head_or_readiness(stage: Stage) -> None:
    await stage.create(SERVICES, service("db", clusterIP="None", publishNotReadyAddresses=True))
    await stage.create(STATEFUL_SETS, workload("db", replicas=2, serviceName="db", podManagementPolicy="Parallel"))
    await stage.settle()
    await stage.start(await stage.pods(), ready=False)
    await stage.step("published though not ready")
    await stage.start(await stage.pods())
    await stage.step("ready")


@topic
async def service_with_named_ports(stage: Stage) -> None:
    ports = [
        {"name": "http", "port": 80, "targetPort": "web"},
        {"name": "dns", "port": 53, "targetPort": "dns", "protocol": "UDP"},
    ]
    await stage.create(SERVICES, service("web", ports=ports))
    for number, port in enumerate((8080, 9090)):
        made = pod(f"p{number}")
        made["spec"]["containers"][0]["ports"] = [
            {"name": "web", "containerPort": port}, {"name": "dns", "containerPort": 5353, "protocol": "UDP"},
        ]  # fmt: skip
        await stage.create(PODS, made)
    await stage.start(await stage.pods())
    await stage.step("ports by name")
    await stage.end((await stage.pods())[:1], "Failed", 1)
    await stage.step("one failed")


@topic
async def service_without_selector(stage: Stage) -> None:
    made = service("outside")
    del made["spec"]["selector"]
    await stage.create(SERVICES, made)
    await stage.step("no endpoints of its own")
    subsets = [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"name": "http", "port": 8080}]}]
    await stage.create(ENDPOINTS, {"metadata": {"name": "outside"}, "subsets": subsets})
    await stage.step("endpoints by hand")
    more = [
        {**subsets[0], "notReadyAddresses": [{"ip": "192.0.2.8", "hostname": "eight"}]},
        {"addresses": [{"ip": "2001:db8::7"}], "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]},
    ]
    changed = {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}, "subsets": more}
    await stage.patch(ENDPOINTS, "outside", changed)
    await stage.step("other endpoints by hand")
    await stage.delete(ENDPOINTS, "outside")
    await stage.step("no endpoints by hand")


@topic
async def service_changes_its_selector(stage: Stage) -> None:
    await stage.create(SERVICES, service("web"))
    await stage.create(PODS, pod("a", "a"))
    await stage.create(PODS, pod("b", "b"))
    await stage.start(await stage.pods())
    await stage.step("one app")
    await stage.patch(SERVICES, "web", {"spec": {"selector": {"app": "b"}}})
    await stage.step("the other app")
    await stage.patch(PODS, "a", {"metadata": {"labels": {"app": "b"}}})
    await stage.step("both")


@topic
async def budget_of_a_deployment(stage: Stage) -> None:
    await stage.create(POD_DISRUPTION_BUDGETS, budget("b", maxUnavailable="25%"))
    await stage.step("no pods")
    await stage.create(DEPLOYMENTS, workload("web", replicas=4))
    await stage.step("not ready")
    await stage.launch()
    await stage.step("ready")
    victims = await stage.pods()
    await stage.client.evict(stage.name, victims[0]["metadata"]["name"])
    await stage.step("one evicted")
    try:
        await stage.client.evict(stage.name, victims[1]["metadata"]["name"])
    except TooManyRequests:
        await stage.step("no more")
    await stage.finish()
    await stage.settle()
    await stage.run_all()
    await stage.scale(DEPLOYMENTS, "web", 8)
    await stage.settle()
    await stage.run_all()
    await stage.step("twice as many")
    await stage.patch(POD_DISRUPTION_BUDGETS, "b", {"spec": {"maxUnavailable": 3}})
    await stage.step("a number")


@topic
async def budget_of_bare_pods(stage: Stage) -> None:
    for number in range(3):
        await stage.create(PODS, pod(f"p{number}"))
    await stage.start(await stage.pods())
    await stage.create(POD_DISRUPTION_BUDGETS, budget("number", minAvailable=2))
    await stage.step("a number works")
    await stage.delete(POD_DISRUPTION_BUDGETS, "number")
    await stage.create(POD_DISRUPTION_BUDGETS, budget("percent", maxUnavailable="50%"))
    await stage.step("a percentage does not")


@topic
async def budget_of_a_stateful_set(stage: Stage) -> None:
    made = workload("db", replicas=3, serviceName="db", podManagementPolicy="Parallel")
    await stage.create(STATEFUL_SETS, made)
    await stage.settle()
    await stage.create(POD_DISRUPTION_BUDGETS, budget("b", minAvailable="50%"))
    await stage.settle()
    await stage.start((await stage.pods())[:2])
    await stage.step("two of three")
    await stage.start((await stage.pods())[2:])
    await stage.step("all")
    await stage.start((await stage.pods())[:1], ready=False)
    await stage.step("one is not ready any more")


@topic
async def budgets_that_overlap(stage: Stage) -> None:
    await stage.create(POD_DISRUPTION_BUDGETS, budget("one", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"))
    await stage.settle()
    await stage.create(PODS, pod("p"))
    await stage.start(await stage.pods())
    await stage.step("one budget")
    await stage.delete(PODS, "p", grace_s=0)
    await stage.step("no pod")
    await stage.delete(POD_DISRUPTION_BUDGETS, "one")
    await stage.step("no budget")
