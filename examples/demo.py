"""A Kubernetes cluster in one process, seen as kubectl sees it. Needs nothing but holokube itself.

    python examples/demo.py

First live: an API server behind HTTPS with a scheduler, controllers and a hundred hollow nodes. A Deployment is
applied and rolled out; the tables come from the server, as they do for kubectl. Then on virtual time: the same
components, a zone that falls silent, and what happens to the pods in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import time
import urllib.request
from typing import Any

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.cluster import LivingOptions
from holokube.hollow.node_life import Fault
from holokube.hollow.profile import named_profile
from holokube.kube.conditions import is_true
from holokube.testing import Cluster, Server, serve

COLORED = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LIVE_NODES = 100
ZONE = "topology.kubernetes.io/zone"


def web(replicas: int, image: str = "nginx:1.28") -> dict[str, Any]:
    labels = {"app": "web"}
    requests = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    container = {"name": "web", "image": image, "resources": requests}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


# -- live ----------------------------------------------------------------------------------------------------


async def live(server: Server) -> None:
    """Apply, wait, look, roll, look again."""
    async with Client(HttpTransport(WallClock(), load_access(str(server.kubeconfig)))) as client:
        headline("kubectl apply -f web.yaml     # a Deployment of 300")
        took_s = await rolled_out(client, web(300))
        show(server, "deployments", "/apis/apps/v1/namespaces/default/deployments")
        show(server, "pods", "/api/v1/namespaces/default/pods?limit=3", wide=("NODE",), more=297)
        print(f"300 pods scheduled and running after {took_s:.1f} s.\n")
        headline("kubectl set image deployment/web web=nginx:1.29")
        took_s = await rolled_out(client, web(300, "nginx:1.29"))
        show(server, "replicasets", "/apis/apps/v1/namespaces/default/replicasets")
        print(f"Rolled out after {took_s:.1f} s.\n")


async def rolled_out(client: Client, deployment: dict[str, Any]) -> float:
    """Apply, and wait until all replicas are new and available; returns how long it took."""
    began_s = time.perf_counter()
    applied = await client.apply(DEPLOYMENTS, deployment, field_manager="demo")
    generation, wanted = applied["metadata"]["generation"], deployment["spec"]["replicas"]
    async with asyncio.timeout(60):
        async for event in client.watch(DEPLOYMENTS, "default"):
            status = event.object.get("status", {})
            counts = {status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")}
            if status.get("observedGeneration") == generation and counts == {wanted}:
                break
    return time.perf_counter() - began_s


# -- on virtual time -----------------------------------------------------------------------------------------


def zone_failure() -> list[tuple[int, int, int]]:
    """Minute by minute: nodes that are Ready, and pods that are; zone b is silent from minute 5 to minute 20."""
    options = LivingOptions(profile=named_profile("kubelet"), zones=("a", "b", "c"))
    seen = []
    with Cluster(nodes=60, options=options) as cluster:
        assert cluster.living is not None
        assert cluster.living.fleet is not None
        cluster.run(cluster.client.create(DEPLOYMENTS, web(300)))
        nodes = cluster.run(cluster.client.list(NODES)).items
        lost = [node["metadata"]["name"] for node in nodes if node["metadata"]["labels"][ZONE] == "b"]
        for minute in range(31):
            if minute == 5:
                for name in lost:
                    cluster.living.fleet.inject(name, Fault.SILENT)
            if minute == 20:
                for name in lost:
                    cluster.living.fleet.heal(name)
            cluster.pass_time(60)
            listed = [cluster.run(cluster.client.list(kind)).items for kind in (NODES, PODS)]
            ready_nodes, ready_pods = (sum(is_true(found, "Ready") for found in items) for items in listed)
            seen.append((minute, ready_nodes, ready_pods))
    return seen


# -- what is shown -------------------------------------------------------------------------------------------


def show(server: Server, what: str, path: str, *, wide: tuple[str, ...] = (), more: int = 0) -> None:
    """Print a table as kubectl does: columns and cells are the server's."""
    request = urllib.request.Request(f"{server.url}{path}")
    request.add_header("Accept", TABLE)
    request.add_header("Authorization", f"Bearer {server.token}")
    context = ssl.create_default_context(cafile=str(server.ca))
    with urllib.request.urlopen(request, context=context) as answer:
        table = json.load(answer)
    shown = [
        index
        for index, column in enumerate(table["columnDefinitions"])
        if column["priority"] == 0 or column["name"].upper() in wide
    ]
    rows = [[column["name"].upper() for column in table["columnDefinitions"]]]
    rows += [[str(cell) for cell in row["cells"]] for row in table["rows"]]
    widths = [max(len(row[index]) for row in rows) for index in shown]
    print(styled(f"$ kubectl get {what}", "36"))
    for number, row in enumerate(rows):
        line = "   ".join(
            row[index].ljust(width) for index, width in zip(shown, widths, strict=True)
        ).rstrip()
        print(styled(line, "1") if number == 0 else line)
    print(f"... and {more} more\n" if more else "")


def headline(text: str) -> None:
    print(styled(f"$ {text}", "36") + "\n")


def styled(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLORED else text


def main() -> None:
    began_s = time.perf_counter()
    with serve(nodes=LIVE_NODES) as server:
        ready_s = time.perf_counter() - began_s
        print(f"A cluster of {LIVE_NODES} nodes is up at {server.url} after {ready_s:.1f} s, in this process.\n")
        show(server, "nodes", "/api/v1/nodes?limit=3", more=LIVE_NODES - 3)
        asyncio.run(live(server))
    print("The same parts on virtual time: zone b of three falls silent at minute 5 and is back at minute 20.\n")
    began_s = time.perf_counter()
    timeline = zone_failure()
    took_s = time.perf_counter() - began_s
    print(styled("minute   nodes ready   pods ready", "1"))
    for minute, nodes, pods in timeline:
        if minute % 2 == 0:
            print(f"{minute:>6}   {nodes:>11}   {pods:>10}  {'#' * (pods // 6)}")
    print(f"\nHalf an hour in {took_s:.1f} s. Try it yourself: `holokube up --nodes 100`, then `kubectl get nodes`.")


if __name__ == "__main__":
    main()
