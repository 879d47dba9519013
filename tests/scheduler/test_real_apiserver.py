"""The scheduler against a real kube-apiserver, and its words beside those of the real kube-scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import (
    EVENTS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
)
from holokube.kube.conditions import get_condition
from holokube.kube.errors import AlreadyExists
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.scheduler.profiles import Profile
from holokube.scheduler.scheduler import build
from holokube.testing.controlplane import ControlPlane
from tests.builders import JsonObject, pod
from tests.packing.objects import affinity_term, make_node, pod_affinity, pod_anti_affinity, spread

OURS = "scheduler-under-test"
"""The server is shared with other tests, whose pods are none of ours."""
THEIRS = "default-scheduler"


def run(plane: ControlPlane, test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        access = load_access(str(plane.kubeconfig))
        async with Client(HttpTransport(WallClock(), access)) as client:
            async with asyncio.timeout(60):
                await test(client)

    asyncio.run(main())


async def with_scheduler(client: Client, test: Callable[[], Awaitable[None]]) -> None:
    clock, rng = WallClock(), Rng(0)
    informers = InformerSet(clock, client, rng)
    recorder = EventRecorder(clock, client, OURS, rng=rng, api="events.k8s.io/v1")
    scheduler = build(clock, client, informers, recorder, rng, profiles=(Profile(OURS),))
    app = App(clock)
    for component in (recorder, informers.runner(), scheduler):
        app.add(component)
    running = asyncio.create_task(app.run())
    try:
        await test()
    finally:
        app.stop()
        assert await running
    assert all(status.restarts == 0 for status in app.status()), app.status()


async def prepare(client: Client, space: str, *nodes: JsonObject) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": space}})
    with suppress(AlreadyExists):
        # A controller manager, if there is one, may be quicker.
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, space)
    for node in nodes:
        await client.create(NODES, node)
        await client.patch(NODES, node["metadata"]["name"], {"spec": {"taints": node["spec"]["taints"] or None}})
        await client.patch_status(NODES, node["metadata"]["name"], {"status": node["status"]})


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    while not await check():  # noqa: ASYNC110 - nothing tells when a server is done
        await asyncio.sleep(0.1)


def make(name: str, space: str, cpu: str = "1", *, scheduler: str = OURS, **spec: Any) -> JsonObject:
    made = pod(name, space, schedulerName=scheduler, automountServiceAccountToken=False, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


def test_pods_on_a_real_server_are_bound_and_make_way(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        space = "bound"
        await prepare(client, space, *(make_node(f"bound-{n}", {"for": space}, cpu="2") for n in range(3)))
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "bound-high"}, "value": 1000})
        mine = {"nodeSelector": {"for": space}, "terminationGracePeriodSeconds": 0}

        async def at_work() -> None:
            for number in range(6):
                await client.create(PODS, make(f"p{number}", space, **mine))
            await eventually(lambda: _count_bound(client, space, 6))
            await client.create(PODS, make("vip", space, cpu="2", priorityClassName="bound-high", **mine))

            async def vip_is_bound() -> bool:
                return bool((await client.get(PODS, "vip", space))["spec"].get("nodeName"))

            await eventually(vip_is_bound)

        await with_scheduler(client, at_work)
        listed = (await client.list(PODS, space)).items
        per_node: dict[str, int] = {}
        for item in listed:
            cpu = int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            per_node[item["spec"]["nodeName"]] = per_node.get(item["spec"]["nodeName"], 0) + cpu
        assert sorted(per_node.values()) == [2, 2, 2] and len(listed) == 5
        events = (await client.list(EVENTS, space)).items
        reasons = [event["reason"] for event in events]
        assert (reasons.count("Scheduled"), reasons.count("Preempted")) == (7, 2)
        for number in range(3):
            await client.delete(NODES, f"bound-{number}")

    run(real_apiserver, test)


async def _count_bound(client: Client, space: str, count: int) -> bool:
    return sum(bool(item["spec"].get("nodeName")) for item in (await client.list(PODS, space)).items) == count


HOST = "kubernetes.io/hostname"
TOLERATIONS = [
    {"key": key, "operator": "Exists"}
    for key in ("words", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
REFUSED: dict[str, JsonObject] = {
    "huge": {"cpu": "64"},
    "picky": {"nodeSelector": {"no": "such"}},
    "named": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["words-0"]}]}]}}}, "cpu": "64"},
    "claiming": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
    "lonely": {"affinity": pod_affinity(affinity_term("nobody", HOST))},
    "spread": {"topologySpreadConstraints": [spread("no-such-label", "x")]},
    "polite": {"cpu": "64", "priorityClassName": "words-polite"},
    "ports": {"containers": [{"name": "c", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    "important": {"cpu": "5", "priorityClassName": "words-high"},
    "crowded": {"cpu": "3"},
    "wary": {"affinity": pod_anti_affinity(affinity_term("there", "for")), "cpu": "100m"},
}  # fmt: skip


def test_refusals_read_like_the_real_schedulers(real_cluster: ControlPlane) -> None:
    """Both schedulers see the same nodes at the same time, and must say the same about the same pods."""

    async def test(client: Client) -> None:
        space = "words"
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        nodes = [make_node(f"words-{n}", {"for": space}, taints=[taint] if n == 2 else []) for n in range(3)]
        for node in nodes:
            node["spec"]["taints"].append({"key": "words", "effect": "NoSchedule"})
        await prepare(client, space, *nodes)
        for name, policy in (("words-high", "PreemptLowerPriority"), ("words-polite", "Never")):
            made = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": policy}
            await client.create(PRIORITY_CLASSES, made)

        tolerations = TOLERATIONS
        for number in range(2):
            there = make(f"there-{number}", space, cpu="2", node=f"words-{number}", tolerations=tolerations)
            there["metadata"]["labels"] = {"app": "there"}
            there["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
            await client.create(PODS, there)

        async def compare() -> None:
            for name, spec in REFUSED.items():
                for scheduler in (OURS, THEIRS):
                    made = make(f"{name}-{scheduler}", space, scheduler=scheduler, tolerations=tolerations, **spec)
                    await client.create(PODS, made)
            said: dict[str, tuple[str, str]] = {}

            async def agree() -> bool:
                for name in REFUSED:
                    ours = await _message(client, f"{name}-{OURS}", space)
                    said[name] = ours, await _message(client, f"{name}-{THEIRS}", space)
                return all(ours == theirs != "" for ours, theirs in said.values())

            try:
                async with asyncio.timeout(15):
                    await eventually(agree)
            except TimeoutError:
                different = {name: both for name, both in said.items() if both[0] != both[1]}
                raise AssertionError(different) from None

        await with_scheduler(client, compare)
        for item in (await client.list(PODS, space)).items:
            await client.delete(PODS, item["metadata"]["name"], space, grace_s=0)
        for number in range(3):
            await client.delete(NODES, f"words-{number}")

    run(real_cluster, test)


SCENARIOS = 6


def test_the_same_pods_make_way_as_under_the_real_scheduler(real_cluster: ControlPlane) -> None:
    """The same nodes and pods twice, one copy for each scheduler: the same pods must go, from the same node.

    The seed is one without ties between nodes, which upstream breaks as its maps happen to be ordered.
    """

    async def test(client: Client) -> None:
        space, rng = "way", Rng("preemption")
        await prepare(client, space)
        for value in range(1, 10):
            await client.create(PRIORITY_CLASSES, {"metadata": {"name": f"way-{value}"}, "value": value * 10})
        selector = {"matchLabels": {"app": "guarded"}}
        guard = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": selector}}
        await client.create(POD_DISRUPTION_BUDGETS, guard, space)
        scenarios = [_scenario(rng.fork(str(number))) for number in range(SCENARIOS)]
        copies = [(number, scheduler) for number in range(SCENARIOS) for scheduler in (OURS, THEIRS)]
        for number, scheduler in copies:
            await _build(client, space, f"{number}-{scheduler}", scenarios[number])

        async def at_work() -> None:
            for number, scheduler in copies:
                vip = make(
                    f"vip-{number}-{scheduler}", space, cpu="3", scheduler=scheduler, priorityClassName="way-9",
                    nodeSelector={"for": f"{number}-{scheduler}"}, tolerations=TOLERATIONS,
                )  # fmt: skip
                await client.create(PODS, vip)

            async def all_vips_are_bound() -> bool:
                listed = (await client.list(PODS, space)).items
                vips = [item for item in listed if item["metadata"]["name"].startswith("vip-")]
                return all(item["spec"].get("nodeName") for item in vips)

            await eventually(all_vips_are_bound)

        await with_scheduler(client, at_work)
        left = (await client.list(PODS, space)).items
        for number in range(SCENARIOS):
            ours, theirs = (_outcome(left, f"{number}-{scheduler}") for scheduler in (OURS, THEIRS))
            assert ours == theirs, (number, scenarios[number])
            assert len(ours) <= len(scenarios[number]), "somebody had to go"
        for item in left:
            await client.delete(PODS, item["metadata"]["name"], space, grace_s=0)
        for number, scheduler in copies:
            for node in range(3):
                await client.delete(NODES, f"way-{number}-{scheduler}-{node}")

    run(real_cluster, test)


def _scenario(rng: Rng) -> list[tuple[int, int, int, bool]]:
    """For each pod: its node, cpus, priority, and whether a budget guards it. All nodes of four cpus are full."""
    pods = []
    for node in range(3):
        left = 4
        while left:
            cpu = min(left, 1 + rng.randrange(2))
            left -= cpu
            pods.append((node, cpu, 1 + rng.randrange(8), rng.randrange(4) == 0))
    return pods


async def _build(client: Client, space: str, copy: str, pods: list[tuple[int, int, int, bool]]) -> None:
    for number in range(3):
        node = make_node(f"way-{copy}-{number}", {"for": copy}, taints=[{"key": "words", "effect": "NoSchedule"}])
        await client.create(NODES, node)
        await client.patch_status(NODES, node["metadata"]["name"], {"status": node["status"]})
    for number, (on, cpu, priority, is_guarded) in enumerate(pods):
        made = make(
            f"p{number}-{copy}", space, cpu=str(cpu), node=f"way-{copy}-{on}", tolerations=TOLERATIONS,
            priorityClassName=f"way-{priority}", terminationGracePeriodSeconds=0,
        )  # fmt: skip
        made["metadata"]["labels"] = {"app": "guarded" if is_guarded else "free"}
        await client.create(PODS, made)


def _outcome(pods: list[JsonObject], copy: str) -> list[tuple[str, str]]:
    """The pods that are left, and where, without the name of the copy."""
    return sorted(
        (item["metadata"]["name"].removesuffix(f"-{copy}"), item["spec"]["nodeName"].removeprefix(f"way-{copy}-"))
        for item in pods if item["metadata"]["name"].endswith(f"-{copy}")
    )  # fmt: skip


async def _message(client: Client, name: str, space: str) -> str:
    found = get_condition(await client.get(PODS, name, space), "PodScheduled") or {}
    return str(found.get("message", ""))
