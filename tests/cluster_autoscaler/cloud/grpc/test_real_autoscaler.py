"""The real cluster-autoscaler scales hollow nodes on a real control plane, through the server, and back to nothing."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from holokube.testing.controlplane import ControlPlane
from tests.acceptance.script import eventually
from tests.cluster_autoscaler.cloud.kwok.worlds import template
from tests.conftest import NOT_AVAILABLE

PROGRAM = (sys.executable, "-m", "holokube")
GROUP, REPLICAS = "pool-a", 6
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# As fast as upstream's flags allow, so that the test need not wait for minutes.
FLAGS = (
    "--cloud-provider=externalgrpc", "--leader-elect=false", "--scan-interval=1s", "--scale-down-delay-after-add=2s",
    "--scale-down-unneeded-time=2s", "--scale-down-delay-after-failure=2s", "--unremovable-node-recheck-timeout=1s",
    "--node-delete-delay-after-taint=0s", "--expander=least-waste", "--v=2",
)  # fmt: skip

pytestmark = [pytest.mark.slow]


@pytest.fixture
def autoscaler_program() -> str:
    found = shutil.which("cluster-autoscaler")
    if found is None:
        pytest.skip(
            f"{NOT_AVAILABLE}there is no program cluster-autoscaler on PATH. Build it from kubernetes/autoscaler, with "
            "its externalgrpc provider, to see it drive hollow nodes."
        )
    return found


@contextmanager
def running(log: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A program whose stderr goes to a file, and which is gone at the end."""
    with log.open("wb") as stream, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stream, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()


def cloud_config_of(server: subprocess.Popen[str]) -> str:
    """What the server prints when it is ready; the timeout is the last line."""
    assert server.stdout is not None
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("grpc_timeout"):
            return "".join(lines)
    raise AssertionError("the server ended before it was ready")


def deployment() -> dict[str, Any]:
    """Two of its pods fit on a node of two cores."""
    container = {"name": "c", "image": "registry.example/web:1", "resources": {"requests": {"cpu": "900m"}}}
    labels = {"app": "scaled"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "scaled"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    }


def nodes(plane: ControlPlane) -> list[str]:
    found = plane.request("GET", "/api/v1/nodes")[1]["items"]
    return sorted(node["metadata"]["name"] for node in found if node["metadata"]["name"].startswith(f"{GROUP}-"))


def running_pods(plane: ControlPlane) -> int:
    found = plane.request("GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dscaled")[1]["items"]
    return sum(pod["status"].get("phase") == "Running" for pod in found)


def test_the_real_autoscaler_makes_and_removes_hollow_nodes(
    autoscaler_program: str, real_cluster: ControlPlane, tmp_path: Path
) -> None:
    templates, config = tmp_path / "templates.json", tmp_path / "cloud-config.yaml"
    templates.write_text(json.dumps(template("t", GROUP, cpu="2", max_count=10)))
    cluster = f"--kubeconfig={real_cluster.kubeconfig}"
    fleet_log, server_log, log = (tmp_path / name for name in ("fleet.log", "server.log", "autoscaler.log"))
    serve = (
        *PROGRAM, "cloud-provider", cluster, "--address=127.0.0.1:0", f"--kwok-templates={templates}",
        f"--certificates={tmp_path / 'certificates'}", "--cleanup=exit",
    )  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"--address=127.0.0.1:{free.getsockname()[1]}"
    try:
        with ExitStack() as stack:
            stack.enter_context(running(fleet_log, *PROGRAM, "fleet", cluster))
            server = stack.enter_context(running(server_log, *serve))
            config.write_text(cloud_config_of(server))
            scaling = running(log, autoscaler_program, *FLAGS, cluster, address, f"--cloud-config={config}")
            autoscaler = stack.enter_context(scaling)
            assert real_cluster.request("POST", DEPLOYMENTS, deployment())[0] == 201
            eventually(lambda: running_pods(real_cluster), lambda count: count == REPLICAS, seconds=120)
            assert len(nodes(real_cluster)) == 3
            assert real_cluster.request("DELETE", f"{DEPLOYMENTS}/scaled", {"propagationPolicy": "Foreground"})[0] < 300
            eventually(lambda: nodes(real_cluster), lambda names: not names, seconds=120)
            assert autoscaler.poll() is None, log.read_text()[-4000:]
        assert "Error on gRPC call" not in log.read_text()
        assert "Call failed unexpectedly" not in server_log.read_text()
    finally:
        real_cluster.request("DELETE", f"{DEPLOYMENTS}/scaled", {"propagationPolicy": "Background"})
        for name in nodes(real_cluster):
            real_cluster.request("DELETE", f"/api/v1/nodes/{name}")
