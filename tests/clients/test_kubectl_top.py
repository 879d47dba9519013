"""kubectl top, kubectl logs and the node proxy on hollow kubelets, with the real kubectl."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holokube.apiserver.restore import restore
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES, PODS
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.embedded import attach
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.kube.timeformat import format_time
from holokube.runtime.informers import InformerSet
from holokube.testing.kubectl import Kubectl
from tests.builders import node, pod
from tests.clients.conftest import Embedded, running


@dataclass
class Hollow:
    """A server with kubelets of two nodes and three pods."""

    server: Embedded
    kubectl: Kubectl


def measured_node(name: str, hour_ago: str) -> dict[str, Any]:
    made = node(name)
    made["metadata"]["creationTimestamp"] = hour_ago
    size = {"cpu": "4", "memory": "8Gi"}
    made["status"] = {"capacity": size, "allocatable": size}
    return made


def running_pod(name: str, on: str, cpu: str, memory: str, hour_ago: str, app: str = "a") -> dict[str, Any]:
    containers = [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}]
    made = pod(name, node=on, containers=containers)
    made["metadata"].update(
        labels={"app": app}, creationTimestamp=hour_ago,
        annotations={
            "holokube.dev/usage-cpu.main": cpu, "holokube.dev/usage-memory.main": memory,
            "holokube.dev/usage-cpu.side": "1m", "holokube.dev/usage-memory.side": "1Mi",
            "kubectl.kubernetes.io/default-container": "main", "holokube.dev/log-every": "1s",
        },
    )  # fmt: skip
    state = {"running": {"startedAt": hour_ago}}
    statuses = [
        {"name": c["name"], "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
        for c in containers
    ]
    made["status"] = {"phase": "Running", "startTime": hour_ago, "containerStatuses": statuses}
    return made


@pytest.fixture(scope="module")
def hollow(tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path) -> Iterator[Hollow]:
    folder = tmp_path_factory.mktemp("hollow")
    hour_ago = format_time(WallClock().time() - 3600)
    objects = [
        measured_node("n1", hour_ago), measured_node("n2", hour_ago),
        running_pod("small", "n1", "100m", "10Mi", hour_ago), running_pod("big", "n1", "2", "100Mi", hour_ago),
        running_pod("middle", "n2", "500m", "4Gi", hour_ago, app="b"),
    ]  # fmt: skip
    with running(folder) as server:
        registry = server.server.registry
        client = Client(InProcessTransport(registry))
        informers = InformerSet(WallClock(), client, Rng(1))
        nodes, pods = informers.get(NODES), informers.get(PODS)

        async def start() -> None:
            report = await restore(registry, objects)
            assert not report.left_out
            view = KubeletView(WallClock(), nodes, pods)
            attach(registry, KubeletApi(view))
            for informer in (nodes, pods):
                informer.start()
                await informer.synced()

        async def stop() -> None:
            for informer in (nodes, pods):
                await informer.stop()

        server.do(start())
        (folder / "home").mkdir()
        try:
            yield Hollow(server, Kubectl(kubectl_program, server.kubeconfig(), folder / "home"))
        finally:
            server.do(stop())


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_top_node(hollow: Hollow) -> None:
    header, *nodes = rows(hollow.kubectl("top", "node"))
    assert header[:3] == ["NAME", "CPU(cores)", "CPU(%)"]
    # 2100m of pods, 2m of sidecars and 1 % of four cores; 2 % of 8Gi beside the pods' memory.
    assert nodes == [["n1", "2142m", "53%", "275Mi", "3%"], ["n2", "541m", "13%", "4260Mi", "52%"]]
    by_memory = rows(hollow.kubectl("top", "node", "--sort-by=memory", "--no-headers"))
    assert [row[0] for row in by_memory] == ["n2", "n1"]


def test_top_pod(hollow: Hollow) -> None:
    assert rows(hollow.kubectl("top", "pod")) == [
        ["NAME", "CPU(cores)", "MEMORY(bytes)"],
        ["big", "2001m", "101Mi"], ["middle", "501m", "4097Mi"], ["small", "101m", "11Mi"],
    ]  # fmt: skip
    by_cpu = rows(hollow.kubectl("top", "pod", "--sort-by=cpu", "--no-headers"))
    assert [row[0] for row in by_cpu] == ["big", "middle", "small"]
    by_memory = rows(hollow.kubectl("top", "pod", "--sort-by=memory", "--no-headers", "-A"))
    assert [row[1] for row in by_memory] == ["middle", "big", "small"]
    assert [row[0] for row in rows(hollow.kubectl("top", "pod", "-l", "app=b", "--no-headers"))] == ["middle"]
    containers = rows(hollow.kubectl("top", "pod", "small", "--containers", "--no-headers"))
    assert containers == [["small", "main", "100m", "10Mi"], ["small", "side", "1m", "1Mi"]]


def test_get_prints_metrics_as_a_table_and_explain_knows_them(hollow: Hollow) -> None:
    found = rows(hollow.kubectl("get", "pods.metrics.k8s.io", "small"))
    assert found == [["NAME", "CPU", "MEMORY", "WINDOW"], ["small", "101m", "11Mi", "15s"]]
    assert "What the containers of a pod use" in hollow.kubectl("explain", "podmetrics")
    assert "podmetrics" in hollow.kubectl("api-resources", "--api-group=metrics.k8s.io").lower()


def test_raw_statistics_of_a_node(hollow: Hollow) -> None:
    found = json.loads(hollow.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/stats/summary"))
    assert [item["podRef"]["name"] for item in found["pods"]] == ["big", "small"]
    text = hollow.kubectl("get", "--raw", "/api/v1/nodes/n2/proxy/metrics/resource")
    assert 'container_memory_working_set_bytes{container="main",namespace="default",pod="middle"} 4294967296 ' in text


def test_logs(hollow: Hollow) -> None:
    assert len(hollow.kubectl("logs", "small", "--tail=5").splitlines()) == 5
    assert hollow.kubectl("logs", "small").startswith("hollow container main (i) started on node n1, restart 0\n")
    assert 2 <= len(hollow.kubectl("logs", "small", "-c", "side", "--since=3s").splitlines()) <= 6
    assert len(hollow.kubectl("logs", "-l", "app=a", "--tail=1", "--prefix").splitlines()) == 2
    stamp = hollow.kubectl("logs", "small", "--tail=1", "--timestamps").split()[0]
    assert len(stamp) == len("2026-01-01T00:00:00.000000000Z") and stamp.endswith("Z")
    refused = hollow.kubectl.run("logs", "small", "--previous")
    assert refused.returncode == 1
    assert 'previous terminated container "main" in pod "small" not found' in refused.stderr


def test_a_log_that_is_followed_goes_on(hollow: Hollow) -> None:
    command = [hollow.kubectl.program, "logs", "-f", "small", "--tail=1", "--timestamps"]
    with subprocess.Popen(command, env=hollow.kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.terminate()
    assert all(line.partition(" ")[2].startswith("up ") for line in lines)
    assert len({line.partition(" ")[0] for line in lines}) == 3


def test_exec_is_refused(hollow: Hollow) -> None:
    refused = hollow.kubectl.run("exec", "small", "--", "ls")
    assert refused.returncode == 1 and "hollow" in refused.stderr
