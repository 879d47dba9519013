"""``kubectl apply -k deploy/kubemark/...`` on a real cluster with RBAC, and both programs with what it grants."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec
from holokube.cluster_autoscaler.cloud.kubemark.provider import build
from holokube.kube.node_flags import expand
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.builders import pod
from tests.conftest import run_control_plane

FOLDER = Path(__file__).parents[2] / "deploy" / "kubemark"
# The cluster is both clusters here; the external one has more to say about the namespace.
FOLDERS = ("kubemark-cluster", "external")

pytestmark = [pytest.mark.real, pytest.mark.kubectl, pytest.mark.xdist_group("deploy_kubemark")]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy-kubemark")
    yield from run_control_plane(request, folder, ("controller-manager",), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    for folder in FOLDERS:
        admin("apply", "-k", str(FOLDER / folder))
    return admin


def kubeconfig_of(account: str, kubectl: Kubectl, plane: ControlPlane, folder: Path) -> Path:
    token = kubectl("create", "token", account, "-n", "kubemark").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = folder / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def change_size(kubeconfig: Path, delta: int) -> None:
    """What the autoscaler does, with its account in both clusters and the template that was applied."""

    async def main() -> None:
        async with Client(HttpTransport(WallClock(), load_access(str(kubeconfig)))) as client:
            provider = await build(
                WallClock(), client, client, None, Rng(delta), nodes=[NodeSpec(0, 5, "granted")],
                template_config_map="hollow-node-template",
            )  # fmt: skip
            async with provider:
                (group,) = provider.node_groups()
                if delta > 0:
                    await group.increase_size(delta)
                    return
                (instance,) = await group.nodes()
                name = instance.id.removeprefix("kubemark://")
                await group.delete_nodes([{"metadata": {"name": name}, "spec": {"providerID": instance.id}}])
                assert await group.target_size() == 0
                async with asyncio.timeout(60):
                    while (await client.list(NODES)).items:  # noqa: ASYNC110 - the reaper works beside
                        await asyncio.sleep(0.05)

    asyncio.run(main())


def test_hollow_nodes_come_and_go_with_what_the_roles_grant(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    autoscaler = kubeconfig_of("cluster-autoscaler", kubectl, plane, tmp_path)
    hollow_node = kubeconfig_of("hollow-node", kubectl, plane, tmp_path)
    change_size(autoscaler, 1)
    # The namespace enforces the restricted standard: that there is a pod says that it keeps it.
    (made,) = eventually(lambda: kubectl.json("get", "pods", "-n", "kubemark")["items"], bool)
    name, (container,) = made["metadata"]["name"], made["spec"]["containers"]
    *arguments, last = (
        expand(argument, {"NODE_NAME": name, "NODE_GROUP": "granted"}) for argument in container["args"]
    )
    assert last == "--kubeconfig=/kubeconfig/kubelet.kubeconfig"
    log = tmp_path / "fleet.log"
    command = [sys.executable, "-m", "holokube", *arguments, f"--kubeconfig={hollow_node}"]
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as process:
        try:
            eventually(lambda: kubectl("get", "nodes", "-o", "name"), lambda text: name in text)
            kubectl("wait", "node", name, "--for=condition=Ready", "--timeout=60s")
            kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod("p", node=name)))
            kubectl("wait", "pod", "p", "--for=condition=Ready", "--timeout=60s")
            eventually(lambda: kubectl("get", "events"), lambda text: "Started" in text)
            kubectl("delete", "pod", "p", "--timeout=60s")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    assert "orbidden" not in log.read_text()
    silent = '{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}'
    kubectl("patch", "node", name, "--subresource=status", "--type=strategic", "-p", silent)
    change_size(autoscaler, -1)
    assert kubectl.json("get", "replicationcontrollers,pods", "-n", "kubemark")["items"] == []


def test_applied_again_nothing_changes(kubectl: Kubectl) -> None:
    applied = kubectl("apply", "-k", str(FOLDER / "external")).splitlines()
    assert len(applied) == 5
    assert [line for line in applied if not line.endswith("unchanged")] == []


def test_the_accounts_may_nothing_else(kubectl: Kubectl) -> None:
    def may(account: str, *what: str) -> str:
        return kubectl.run("auth", "can-i", *what, f"--as=system:serviceaccount:kubemark:{account}").stdout.strip()

    assert may("cluster-autoscaler", "create", "replicationcontrollers", "-n", "kubemark") == "yes"
    assert may("hollow-node", "create", "nodes") == "yes"
    for account, *what in (
        ("cluster-autoscaler", "create", "replicationcontrollers", "-n", "default"),
        ("cluster-autoscaler", "delete", "pods", "-n", "kubemark"),
        ("cluster-autoscaler", "get", "secrets", "-n", "kubemark"),
        ("cluster-autoscaler", "get", "configmaps/other", "-n", "kubemark"),
        ("hollow-node", "delete", "nodes"), ("hollow-node", "create", "pods"), ("hollow-node", "get", "secrets"),
        ("hollow-node", "create", "replicationcontrollers", "-n", "kubemark"),
    ):  # fmt: skip
        assert may(account, *what) == "no", (account, what)
