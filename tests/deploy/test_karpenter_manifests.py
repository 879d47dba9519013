"""``kubectl apply -k deploy/karpenter`` on a real cluster with RBAC, and Karpenter with what it grants."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.karpenter.api.install import definitions
from holokube.karpenter.settings import parse_flags
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.cli.program import TIMEOUT_S
from tests.conftest import run_control_plane
from tests.deploy.test_cluster_autoscaler_manifests import running

FOLDER = Path(__file__).parents[2] / "deploy" / "karpenter"
NAME = "holokube-karpenter"

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("deploy-karpenter")]

WORKLOAD = json.dumps({
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {
        "replicas": 6, "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "900m"}}}]},
        },
    },
})  # fmt: skip


def manifests(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def container() -> dict[str, Any]:
    (deployment,) = manifests("deployment.yaml")
    return dict(deployment["spec"]["template"]["spec"]["containers"][0])


def test_the_flags_are_flags() -> None:
    own = ("karpenter", "--identity")
    parse_flags(text for text in container()["args"] if not text.startswith(own))


def test_the_ports_are_the_defaults() -> None:
    settings = parse_flags(())
    assert [port["containerPort"] for port in container()["ports"]] == [
        settings.metrics_port, settings.health_probe_port]


def test_the_pods_run_as_nobody() -> None:
    (deployment,) = manifests("deployment.yaml")
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


def test_the_role_names_the_definitions_that_are_installed() -> None:
    role = next(one for one in manifests("rbac.yaml") if one["kind"] == "ClusterRole")
    (rule,) = [
        one for one in role["rules"] if one["resources"] == ["customresourcedefinitions"] and "resourceNames" in one]
    assert sorted(rule["resourceNames"]) == sorted(one["metadata"]["name"] for one in definitions())


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy-karpenter")
    yield from run_control_plane(request, folder, ("controller-manager", "scheduler"), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    assert f"deployment.apps/{NAME} created" in admin("apply", "-k", str(FOLDER))
    return admin


@pytest.mark.real
def test_it_does_its_work_with_what_the_roles_grant(kubectl: Kubectl, plane: ControlPlane, tmp_path: Path) -> None:
    """Definitions, a pool, nodes for pods, nodes gone with the pods, and an end, beside a fleet."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", NAME, "-n", "holokube").strip()}
    account = tmp_path / "kubeconfig"
    account.write_text(yaml.safe_dump(config))
    given = [
        text.replace("$(POD_NAMESPACE)", "holokube").replace("$(POD_NAME)", "pod-1") for text in container()["args"]]
    pools = manifests("example-pool.yaml")
    pools[1]["spec"]["disruption"]["consolidateAfter"] = "0s"
    pools[1]["spec"]["disruption"]["budgets"] = [{"nodes": "100%"}]

    def nodes() -> list[Any]:
        return list(kubectl.json("get", "nodes")["items"])

    with (
        running(tmp_path, "fleet", f"--kubeconfig={plane.kubeconfig}", "--manage-all-nodes"),
        running(
            tmp_path, *given, f"--kubeconfig={account}", "--metrics-port=0", "--health-probe-port=0",
            "--batch-idle-duration=200ms", "-v",
        ) as loop,
    ):  # fmt: skip
        eventually(lambda: kubectl.run("get", "nodepools").returncode, lambda code: code == 0)
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pools))
        kubectl("apply", "-f", "-", stdin=WORKLOAD)
        eventually(lambda: kubectl.json("get", "deployment", "web")["status"].get("readyReplicas", 0), lambda n: n == 6)
        assert nodes()
        kubectl("scale", "deployment", "web", "--replicas=0")
        eventually(nodes, lambda found: not found)
        loop.send_signal(signal.SIGTERM)
        _, said = loop.communicate(timeout=TIMEOUT_S)
    assert loop.returncode == 0, said
    assert "orbidden" not in said
    assert not kubectl.json("get", "nodeclaims")["items"]


@pytest.mark.real
def test_the_account_may_nothing_else(kubectl: Kubectl) -> None:
    account = f"--as=system:serviceaccount:holokube:{NAME}"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, account).stdout.strip()

    for allowed in (("create", "pods", "--subresource=eviction"), ("delete", "nodes"), ("patch", "nodes")):
        assert may(*allowed) == "yes", allowed
    for forbidden in (
        ("create", "pods"), ("patch", "nodes", "--subresource=status"), ("list", "secrets"), ("get", "configmaps"),
        ("delete", "nodepools.karpenter.sh"), ("update", "deployments.apps"),
        ("update", "customresourcedefinitions/other.example.com"), ("update", "leases/other", "-n", "holokube"),
    ):  # fmt: skip
        assert may(*forbidden) == "no", forbidden
