"""The real kube-controller-manager and kube-scheduler, at work on the embedded server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.apiserver.http.auth import TokenSigner
from holokube.testing.binaries import find_or_build
from holokube.testing.kubectl import Kubectl, KubectlError
from holokube.testing.processes import Processes
from tests.clients.conftest import Embedded, running
from tests.conftest import obtain

WAIT_S = 60.0
NODE_STATUS = (
    '{"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"110"},"allocatable":{"cpu":"8","memory":"32Gi",'
    '"pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ok"}]}}'
)


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Embedded]:
    """A server of its own: the controllers lay hands on whatever they find."""
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def controllers(request: pytest.FixtureRequest, managed: Embedded, tmp_path: Path) -> Iterator[Processes]:
    """Both programs, with leader election, logged in as the administrator."""
    programs = ("kube-controller-manager", "kube-scheduler")
    binaries = obtain(request, lambda: find_or_build(build=True, programs=programs))
    kubeconfig = managed.kubeconfig()
    signing_key = tmp_path / "sa.key"
    signing_key.write_bytes(TokenSigner().key_pem())
    common = [
        f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1", "--secure-port=0", "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]  # fmt: skip
    manager = [f"--root-ca-file={managed.ca_file}", f"--service-account-private-key-file={signing_key}"]
    processes = Processes(tmp_path / "lock", tmp_path)
    try:
        processes.start(programs[0], [str(binaries[programs[0]]), *common, *manager], tmp_path / "manager.log")
        processes.start(programs[1], [str(binaries[programs[1]]), *common], tmp_path / "scheduler.log")
        yield processes
    finally:
        processes.stop()


def eventually(look: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """What ``look`` sees once it is right; the programs take as long as they take."""
    deadline = time.monotonic() + WAIT_S
    seen: Any = None
    while time.monotonic() < deadline:
        try:
            seen = look()
        except KubectlError as problem:
            seen = problem
        else:
            if is_right(seen):
                return seen
        time.sleep(0.1)
    raise AssertionError(f"it did not come to pass within {WAIT_S:.0f} s; last seen: {seen}")


@pytest.mark.real
@pytest.mark.usefixtures("controllers")
def test_deployments_become_scheduled_pods_and_namespaces_go(managed: Embedded, kubectl_program: Path) -> None:
    kubectl = Kubectl(kubectl_program, managed.kubeconfig(), managed.folder)
    for name in ("go-1", "go-2"):
        kubectl("create", "-f", "-", stdin=f'{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}')
        kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", NODE_STATUS)
    kubectl("create", "namespace", "go")
    account = ("get", "serviceaccount", "default", "-n", "go", "-o", "name")
    eventually(lambda: kubectl(*account), bool)
    kubectl("create", "deployment", "web", "--image=registry.example/web:1", "--replicas=3", "-n", "go")

    pods = eventually(
        lambda: kubectl.json("get", "pods", "-n", "go")["items"],
        lambda items: len(items) == 3 and all(item["spec"].get("nodeName") for item in items),
    )
    assert {pod["spec"]["nodeName"] for pod in pods} == {"go-1", "go-2"}
    owners = {owner["kind"] for pod in pods for owner in pod["metadata"]["ownerReferences"]}
    assert owners == {"ReplicaSet"}
    deployment = eventually(
        lambda: kubectl.json("get", "deployment", "web", "-n", "go"),
        lambda found: found["status"].get("updatedReplicas") == 3,
    )
    assert deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    events = kubectl("get", "events", "-n", "go")
    assert "ScalingReplicaSet" in events and "Scheduled" in events

    kubectl("scale", "deployment", "web", "-n", "go", "--replicas=0")
    eventually(
        lambda: kubectl.json("get", "pods", "-n", "go")["items"],
        lambda items: all(item["metadata"].get("deletionTimestamp") for item in items),
    )
    kubectl("delete", "pods", "--all", "-n", "go", "--grace-period=0", "--force")
    kubectl("delete", "namespace", "go", "--timeout=60s")
    assert "go" not in [item["metadata"]["name"] for item in kubectl.json("get", "namespaces")["items"]]
