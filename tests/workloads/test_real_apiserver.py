"""All controllers at once against the real kube-apiserver, which checks every status they write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Resource,
)
from holokube.kube.types import JsonObject
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.controlplane import ControlPlane
from holokube.workloads import (
    daemon_set_controller,
    deployment_controller,
    job_controller,
    replica_set_controller,
    stateful_set_controller,
)
from tests.builders import deployment, node
from tests.workloads.fake_kubelet import FakeKubelet
from tests.workloads.test_daemon_set_controller import make as make_daemon_set
from tests.workloads.test_job_controller import make as make_job
from tests.workloads.test_stateful_set_controller import make as make_stateful_set
from tests.workloads.world import conditions

SPACE = "workloads"
BUILDS = (
    replica_set_controller.build, deployment_controller.build, daemon_set_controller.build,
    job_controller.build, stateful_set_controller.build,
)  # fmt: skip


def here(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "namespace": SPACE}}


async def until(client: Client, resource: Resource, name: str, good: Callable[[JsonObject], bool]) -> None:
    while not good(await client.get(resource, name, SPACE)):  # noqa: ASYNC110 - the server sets no event
        await asyncio.sleep(0.1)


async def live(client: Client) -> None:
    clock, rng = WallClock(), Rng(0)
    await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, SPACE)
    for number in range(2):
        await client.create(NODES, node(f"workloads-{number}"))
        await client.patch(NODES, f"workloads-{number}", {"spec": {"taints": None}})
    app = App(clock)
    recorder = EventRecorder(clock, client, "workloads", rng=rng)
    informers = InformerSet(clock, client, rng)
    controllers = [build(clock, client, informers, recorder, rng) for build in BUILDS]
    kubelet = FakeKubelet(clock, client, start_s=0.1, stop_s=0.1, run_s=0.1)
    kubelet.verdict = lambda pod: "succeed" if pod["spec"]["restartPolicy"] == "Never" else "ready"
    for component in (recorder, informers.runner(), *controllers, kubelet):
        app.add(component)
    running = asyncio.create_task(app.run())
    await client.create(DEPLOYMENTS, here(deployment("web", replicas=3)))
    await client.create(DAEMON_SETS, here(make_daemon_set()))
    await client.create(STATEFUL_SETS, here(make_stateful_set(2)))
    await client.create(JOBS, here(make_job(completions=3, parallelism=2, completionMode="Indexed")))
    await until(client, DEPLOYMENTS, "web", lambda d: d.get("status", {}).get("availableReplicas") == 3)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
    await client.patch(DEPLOYMENTS, "web", image, namespace=SPACE)
    await until(client, DEPLOYMENTS, "web", _has_rolled_out)
    await until(client, DAEMON_SETS, "agent", lambda d: d["status"].get("numberAvailable", 0) >= 2)
    await until(client, STATEFUL_SETS, "db", lambda s: s["status"].get("availableReplicas") == 2)
    await until(client, JOBS, "work", lambda j: conditions(j).get("Complete", ("",))[0] == "True")
    app.stop()
    assert await running
    # The server is shared with other tests, which may count nodes.
    for number in range(2):
        await client.delete(NODES, f"workloads-{number}")


def _has_rolled_out(found: JsonObject) -> bool:
    status = found["status"]
    return (
        found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        and status.get("updatedReplicas") == status.get("replicas") == status.get("availableReplicas") == 3
        and conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
    )


def test_the_real_server_takes_all_that_the_controllers_write(real_apiserver: ControlPlane) -> None:
    async def main() -> None:
        access = load_access(str(real_apiserver.kubeconfig))
        async with Client(HttpTransport(WallClock(), access)) as client:
            async with asyncio.timeout(60):
                await live(client)

    asyncio.run(main())
