"""A Kubernetes cluster in one process, seen as kubectl sees it. Needs nothing but holokube itself.

    python examples/demo.py          (or: make demo)

It starts the embedded API server behind HTTPS, applies manifests to it, runs a small controller that gives
a Deployment its pods and puts them on nodes, and shows what ``kubectl get`` would print: the tables come
from the server, as they do for kubectl. At the end, a day of another controller passes on virtual time.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import time
import urllib.request
from collections import Counter
from typing import Any

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.informer import Informer
from holokube.client.kubeconfig import load_access
from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.runtime.app import App
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerRunner, InformerSource, enqueue_owner, enqueue_self, split_key
from holokube.testing import Server, serve
from virtual_time_controller import a_day

COLORED = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
OWNERS = enqueue_owner("Deployment")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


# -- the controller ----------------------------------------------------------------------------------------


class TinyWorkloads:
    """Deployment to pods, pods to nodes, nodes run them: three controllers' work, made as small as can be."""

    def __init__(self, client: Client, deployments: Informer, nodes: Informer) -> None:
        self._client = client
        self._deployments, self._nodes = deployments.lister, nodes.lister

    async def reconcile(self, key: str) -> None:
        deployment = self._deployments.by_key(key)
        if deployment is None:
            return
        namespace, name = split_key(key)
        # Read from the server, not from the cache: a pod just made may not have reached the cache yet.
        pods = [pod for pod in (await self._client.list(PODS, namespace)).items if key in OWNERS(pod)]
        wanted = deployment["spec"]["replicas"]
        for _ in range(wanted - len(pods)):
            await self._client.create(PODS, new_pod(deployment), namespace)
        for pod in pods[wanted:]:
            await self._client.delete(PODS, pod["metadata"]["name"], namespace, grace_s=0)
        load = Counter(pod["spec"].get("nodeName") for pod in pods)
        for pod in pods[:wanted]:
            await self._advance(pod, load)
        ready = sum(pod["status"]["phase"] == "Running" for pod in pods[:wanted])
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(pods), "updatedReplicas": len(pods),
            "readyReplicas": ready, "availableReplicas": ready,
        }  # fmt: skip
        if status != deployment.get("status"):
            await self._client.patch_status(DEPLOYMENTS, name, {"status": status}, namespace=namespace)

    async def _advance(self, pod: dict[str, Any], load: Counter[str]) -> None:
        """One step in the life of a pod: it gets the emptiest node, then it runs."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if "nodeName" not in pod["spec"]:
            nodes = sorted(node["metadata"]["name"] for node in self._nodes.list())
            chosen = min(nodes, key=lambda node: load[node])
            load[chosen] += 1
            await self._client.bind(namespace, name, chosen)
        elif pod["status"]["phase"] == "Pending":
            image = pod["spec"]["containers"][0]["image"]
            running = {"name": "web", "image": image, "imageID": image, "ready": True, "restartCount": 0,
                       "state": {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}}}  # fmt: skip
            ready = {"type": "Ready", "status": "True"}
            status = {"phase": "Running", "containerStatuses": [running], "conditions": [ready]}
            await self._client.patch_status(PODS, name, {"status": status}, namespace=namespace)


def new_pod(deployment: dict[str, Any]) -> dict[str, Any]:
    meta, template = deployment["metadata"], deployment["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"],
             "controller": True}  # fmt: skip
    labels = template["metadata"]["labels"]
    return {
        "metadata": {"generateName": f"{meta['name']}-", "labels": labels, "ownerReferences": [owner]},
        "spec": template["spec"],
    }


# -- the cluster -------------------------------------------------------------------------------------------


def node(name: str, zone: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    status = {
        "capacity": resources, "allocatable": resources, "nodeInfo": node_info(),
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }  # fmt: skip
    labels = {"topology.kubernetes.io/zone": zone, "node.kubernetes.io/instance-type": "demo.4x16"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def node_info() -> dict[str, str]:
    names = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
             "kubeProxyVersion", "operatingSystem", "architecture")  # fmt: skip
    return {**dict.fromkeys(names, ""), "kubeletVersion": "v1.36.3"}


def web(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": "nginx:1.29",
        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
    }
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def live(server: Server) -> None:
    """Apply, wait, look, scale, look again."""
    clock = WallClock()
    async with Client(HttpTransport(clock, load_access(str(server.kubeconfig)))) as client:
        informers = [Informer(clock, client, kind) for kind in (DEPLOYMENTS, PODS, NODES)]
        deployments, pods, nodes = informers
        app = App(clock)
        app.add(InformerRunner("informers", informers))
        sources = [InformerSource(deployments, enqueue_self), InformerSource(pods, OWNERS)]
        app.add(
            Controller(
                clock, "workloads", TinyWorkloads(client, deployments, nodes).reconcile, sources=sources
            )
        )
        running = asyncio.create_task(app.run())
        try:
            headline("kubectl apply -f web.yaml     # a Deployment of 3, and a controller that gives it pods")
            await client.apply(DEPLOYMENTS, web(3), field_manager="demo")
            await until_available(client, 3)
            show(server, "deployments", "/apis/apps/v1/namespaces/default/deployments")
            show(server, "pods -o wide", "/api/v1/namespaces/default/pods", wide=("NODE",))
            headline("kubectl scale deployment web --replicas=6")
            scale = await client.get_scale(DEPLOYMENTS, "web", "default")
            await client.update_scale(DEPLOYMENTS, "web", {**scale, "spec": {"replicas": 6}}, "default")
            await until_available(client, 6)
            show(server, "pods -o wide", "/api/v1/namespaces/default/pods", wide=("NODE",))
        finally:
            app.stop("the demo is over")
            await running


async def until_available(client: Client, replicas: int) -> None:
    async with asyncio.timeout(30):
        async for event in client.watch(DEPLOYMENTS, "default"):
            if event.object.get("status", {}).get("availableReplicas") == replicas:
                return


# -- what is shown -----------------------------------------------------------------------------------------


def show(server: Server, what: str, path: str, *, wide: tuple[str, ...] = ()) -> None:
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
    print()


def headline(text: str) -> None:
    print(styled(f"$ {text}", "36") + "\n")


def styled(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLORED else text


def main() -> None:
    began_s = time.perf_counter()
    nodes = [node(f"node-{zone}", f"zone-{zone}") for zone in "abc"]
    with serve(objects=nodes) as server:
        ready_s = time.perf_counter() - began_s
        print(f"A Kubernetes API server is up at {server.url} after {ready_s:.2f} s, in this process.\n")
        show(server, "nodes", "/api/v1/nodes")
        asyncio.run(live(server))
    print("The same on virtual time: a controller that switches Deployments off at night, over one day.\n")
    day_s = time.perf_counter()
    timeline = a_day()
    took_s = time.perf_counter() - day_s
    for name in ("shop", "reports"):
        print(f"{name:<8} " + "".join("#" if replicas[name] else "." for _, replicas in timeline))
    print(f"         {''.join(hour[:2][-1] for hour, _ in timeline)}\n")
    print(f"24 hours in {took_s:.2f} s. Try it yourself: `holokube up`, then `kubectl get all -A`.")


if __name__ == "__main__":
    main()
