"""How fast pods are sized: ``python benchmarks/bench_node_sizing.py [--quick]``.

The webhook is the real program on one core, `holokube node-sizing`, that knows a thousand nodes; the load comes over
TLS from a process on another core, as API servers send it. First at 2,000 reviews a second on a fixed beat: the time
of an answer counts from when its request was due, so that a webhook that falls behind cannot hide it. Then as fast as
it goes. The anchor is the goal.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))

import orjson
import uvloop

from holokube.client.client import Client
from holokube.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, NODES
from holokube.kube.sizing import ENABLED_LABEL, PREFIX, size
from holokube.testing import Server, serve
from load_client import Connection, request
from summary import header, record

JsonObject = dict[str, Any]
NODE_COUNT = 1000
CORES = (2, 4, 8, 16, 32, 48, 64, 96, 128, 192)
CONNECTIONS = 16
GOAL_PER_S = 2000
GOAL_P99_S = 0.010


def node(number: int) -> JsonObject:
    cores = CORES[number % len(CORES)]
    amounts = {"cpu": f"{cores * 1000 - 80}m", "memory": f"{cores * 4 * 1024 - 700}Mi", "pods": "110"}
    return {"metadata": {"name": f"node-{number}"}, "status": {"capacity": amounts, "allocatable": amounts}}


def pod(number: int) -> JsonObject:
    """A pod of a logging agent as an API server sends it: three containers, mounts, variables, managed fields."""
    tunables = [f"{kind}-{name}" for kind in ("request", "limit") for name in ("cpu", "memory")]
    fractions = {f"{PREFIX}{tunable}-fraction": "0.07" for tunable in tunables}
    mounts = [{"name": f"volume-{i}", "mountPath": f"/var/lib/agent/{i}", "readOnly": True} for i in range(6)]
    env = [{"name": f"SETTING_{i}", "value": "a value of some length"} for i in range(15)]
    containers = [
        {
            "name": name, "image": "registry.example/agents/logging:1.2.3", "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}, "limits": {"cpu": cpu, "memory": "200Mi"}},
            "volumeMounts": mounts, "env": env, "terminationMessagePath": "/dev/termination-log",
        }
        for name, cpu in (("agent", "100m"), ("shipper", "200m"), ("exporter", "50m"))
    ]  # fmt: skip
    on_node = {"key": "metadata.name", "operator": "In", "values": [f"node-{number % NODE_COUNT}"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [on_node]}]}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u-1", "controller": True}
    fields = {f"f:field-{i}": {"f:inner": {}, ".": {}} for i in range(60)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "agent-", "namespace": "default", "labels": {ENABLED_LABEL: "true", "app": "agent"},
            "annotations": fractions, "ownerReferences": [owner],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "containers": containers,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "volumes": [{"name": f"volume-{i}", "hostPath": {"path": f"/var/{i}"}} for i in range(6)],
        },
    }  # fmt: skip


def review(number: int) -> bytes:
    body = orjson.dumps({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": f"u-{number}", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "default",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:daemon-set-controller"},
            "object": pod(number), "dryRun": False,
        },
    })  # fmt: skip
    return request("POST", "/mutate?timeout=5s", body)


@contextmanager
def webhook(server: Server, core: int) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable, "-m", "holokube", "node-sizing", "--url=https://127.0.0.1:0/mutate", "--listen=127.0.0.1:0",
        f"--kubeconfig={server.kubeconfig}", "--drain=0s",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})
    )
    try:
        assert process.stderr is not None
        if not any("registered at" in line for line in process.stderr):
            raise SystemExit("the webhook did not start")
        yield process
    finally:
        process.terminate()
        process.wait()


async def connect(configuration: JsonObject) -> list[Connection]:
    client = configuration["webhooks"][0]["clientConfig"]
    parts = urlsplit(client["url"])
    tls = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(Connection, parts.hostname, parts.port, ssl=tls) for _ in range(CONNECTIONS)]
    return [connection for _, connection in made]


async def on_a_beat(connections: list[Connection], bodies: list[bytes], seconds: float) -> list[float]:
    """Seconds from when each review was due to its answer."""
    count = int(GOAL_PER_S * seconds)
    took: list[float] = []
    started = time.monotonic() + 0.05

    async def carry(first: int, connection: Connection) -> None:
        for number in range(first, count, CONNECTIONS):
            due = started + number / GOAL_PER_S
            pause = due - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            code, answer = await connection.ask(bodies[number % len(bodies)])
            took.append(time.monotonic() - due)
            if code != 200 or b"JSONPatch" not in answer:
                raise SystemExit(f"a review was not answered with a size: {code} {answer[:300]!r}")

    await asyncio.gather(*(carry(first, connection) for first, connection in enumerate(connections)))
    return took


async def as_fast_as_it_goes(connections: list[Connection], bodies: list[bytes], seconds: float) -> float:
    """Reviews per second."""
    done = 0
    ends = time.monotonic() + seconds

    async def carry(first: int, connection: Connection) -> None:
        nonlocal done
        number = first
        while time.monotonic() < ends:
            await connection.ask(bodies[number % len(bodies)])
            done += 1
            number += CONNECTIONS

    started = time.monotonic()
    await asyncio.gather(*(carry(first, connection) for first, connection in enumerate(connections)))
    return done / (time.monotonic() - started)


def cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alone(rounds: int) -> float:
    """Microseconds of the processor for the size of one pod, nothing around it."""
    given, nodes = pod(0), [node(number) for number in range(len(CORES))]
    started = time.process_time()
    for number in range(rounds):
        size(given, nodes[number % len(nodes)])
    return (time.process_time() - started) / rounds * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small round")
    seconds = 2.0 if parser.parse_args().quick else 10.0
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this needs two cores: one for the webhook, one for the load")
    os.sched_setaffinity(0, {cores[1]})
    bodies = [review(number) for number in range(NODE_COUNT)]
    print(f"reviews of {len(bodies[0]):,} bytes, {NODE_COUNT} nodes, {CONNECTIONS} connections over TLS")
    header("goal")
    with serve() as server:

        async def prepare(client: Client) -> None:
            for number in range(NODE_COUNT):
                await client.create(NODES, node(number))

        async def find(client: Client) -> JsonObject:
            return await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "holokube-node-sizing")

        server.run(prepare)
        with webhook(server, cores[0]) as process:
            configuration = server.run(find)

            async def load() -> tuple[list[float], float, float]:
                connections = await connect(configuration)
                await on_a_beat(connections, bodies, 0.5)
                before = cpu_s(process)
                took = await on_a_beat(connections, bodies, seconds)
                used = cpu_s(process) - before
                return took, used, await as_fast_as_it_goes(connections, bodies, seconds)

            took, used, fastest = uvloop.run(load())
    took.sort()
    p50, p99, worst = took[len(took) // 2], took[len(took) * 99 // 100], took[-1]
    record("p99 at 2,000 reviews/s", p99 * 1e3, GOAL_P99_S * 1e3, "ms", goal="< 10 ms", met=p99 < GOAL_P99_S)
    record("reviews per second, one core", fastest, GOAL_PER_S, "/s", goal=">= 2,000/s", met=fastest >= GOAL_PER_S)
    record("share of the core at 2,000 reviews/s", used / seconds * 100, None, "%")
    record("p50 at 2,000 reviews/s", p50 * 1e3, None, "ms")
    record("worst at 2,000 reviews/s", worst * 1e3, None, "ms")
    record("the size of one pod alone", alone(2000), None, "us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
