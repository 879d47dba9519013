"""``kubectl apply -k deploy/cluster-autoscaler`` on a real cluster with RBAC, and the loop with what it grants."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.cluster_autoscaler.flags import from_values
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.cli.program import PROGRAM, TIMEOUT_S, environment
from tests.conftest import run_control_plane

FOLDER = Path(__file__).parents[2] / "deploy" / "cluster-autoscaler"
NAME = "holokube-cluster-autoscaler"

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("deploy-autoscaler")]

WORKLOAD = json.dumps({
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {
        "replicas": 6, "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "tolerations": [{"key": "kwok-provider", "operator": "Exists"}],
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "900m"}}}],
            },
        },
    },
})  # fmt: skip


def manifests(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def container() -> dict[str, Any]:
    (deployment,) = manifests("deployment.yaml")
    return dict(deployment["spec"]["template"]["spec"]["containers"][0])


def test_the_flags_are_flags() -> None:
    given = dict(text.removeprefix("--").split("=", 1) for text in container()["args"][1:] if "=" in text)
    own = {"identity"}
    parsed = from_values({name: [text] for name, text in given.items() if name not in own})
    assert parsed.process.cloud_provider == "kwok" and parsed.process.leader_elect and not parsed.warnings
    assert "--keep-nodes" in container()["args"]


def test_the_pods_run_as_nobody() -> None:
    (deployment,) = manifests("deployment.yaml")
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy-autoscaler")
    yield from run_control_plane(request, folder, ("controller-manager", "scheduler"), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    assert f"deployment.apps/{NAME} created" in admin("apply", "-k", str(FOLDER))
    return admin


@contextmanager
def running(home: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A program of ours; whatever happens, it is gone at the end."""
    with subprocess.Popen(
        [*PROGRAM, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=environment(home, POD_NAMESPACE="holokube"),
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.real
def test_the_loop_does_its_work_with_what_the_roles_grant(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    """Up, down with a drain, and an end, beside a fleet that brings the nodes to life."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", NAME, "-n", "holokube").strip()}
    account = tmp_path / "kubeconfig"
    account.write_text(yaml.safe_dump(config))
    given = [
        text.replace("$(POD_NAMESPACE)", "holokube").replace("$(POD_NAME)", "pod-1") for text in container()["args"]
    ]
    quick = ("--address=0", "--scan-interval=500ms", "--scale-down-delay-after-add=1s", "--scale-down-unneeded-time=1s",
             "--unremovable-node-recheck-timeout=1s", "--node-delete-delay-after-taint=1s", "-v")  # fmt: skip

    def nodes() -> list[Any]:
        return list(kubectl.json("get", "nodes")["items"])

    with (
        running(tmp_path, "fleet", f"--kubeconfig={plane.kubeconfig}"),
        running(tmp_path, *given, f"--kubeconfig={account}", *quick) as loop,
    ):
        kubectl("apply", "-f", "-", stdin=WORKLOAD)
        eventually(lambda: kubectl.json("get", "deployment", "web")["status"].get("readyReplicas", 0), lambda n: n == 6)
        assert nodes()
        kubectl("scale", "deployment", "web", "--replicas=0")
        eventually(nodes, lambda found: not found)
        loop.send_signal(signal.SIGTERM)
        _, said = loop.communicate(timeout=TIMEOUT_S)
    assert loop.returncode == 0, said
    assert "orbidden" not in said
    assert "TriggeredScaleUp" in kubectl("get", "events")
    assert "Running" in kubectl("get", "configmap", "cluster-autoscaler-status", "-n", "holokube", "-o", "yaml")


@pytest.mark.real
def test_the_account_may_nothing_else(kubectl: Kubectl) -> None:
    account = f"--as=system:serviceaccount:holokube:{NAME}"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, account).stdout.strip()

    for allowed in (("create", "pods", "--subresource=eviction"), ("delete", "nodes"), ("update", "nodes")):
        assert may(*allowed) == "yes", allowed
    for forbidden in (
        ("delete", "pods"), ("create", "pods"), ("patch", "nodes", "--subresource=status"), ("list", "secrets"),
        ("get", "configmaps", "-n", "kube-system"), ("update", "configmaps/other", "-n", "holokube"),
        ("update", "deployments.apps"), ("update", "leases/other", "-n", "holokube"),
    ):  # fmt: skip
        assert may(*forbidden) == "no", forbidden
