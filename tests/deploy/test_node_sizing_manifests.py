"""``kubectl apply -k deploy/node-sizing`` on a real cluster with RBAC, and the webhook with no more than it grants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.sizing.registration import Registration, published_bundle
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.conftest import run_control_plane
from tests.sizing import script

FOLDER = Path(__file__).parents[2] / "deploy" / "node-sizing"
RESIZING = FOLDER.parent / "node-sizing-resize-running"
NAME = "holokube-node-sizing"

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("deploy-sizing")]


def manifests(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def test_the_configuration_is_the_one_that_the_webhook_registers() -> None:
    """Otherwise every `kubectl apply` would be a quarrel."""
    (_, configuration) = manifests("webhook.yaml")
    registration = Registration(NAME, service_name=NAME, service_namespace="holokube")
    assert registration.wanted(configuration, b"") is None
    assert {hook["failurePolicy"] for hook in configuration["webhooks"]} == {"Ignore"}


def test_the_pods_are_two_and_run_as_nobody() -> None:
    deployment = manifests("deployment.yaml")[0]
    spec = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy-sizing")
    yield from run_control_plane(request, folder, ("controller-manager",), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    applied = admin("apply", "-k", str(FOLDER))
    assert "deployment.apps/holokube-node-sizing created" in applied
    return admin


def kubeconfig_of_account(kubectl: Kubectl, plane: ControlPlane, tmp_path: Path) -> Path:
    token = kubectl("create", "token", NAME, "-n", "holokube").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def arguments(kubectl: Kubectl) -> list[str]:
    """What the container would be started with, but for where it listens."""
    container = kubectl.json("get", "deployment", NAME, "-n", "holokube")["spec"]["template"]["spec"]["containers"][0]
    replaced = {"$(POD_NAME)": "pod-1", "$(POD_NAMESPACE)": "holokube"}
    found = []
    for argument in container["args"][1:]:
        for name, value in replaced.items():
            argument = argument.replace(name, value)
        if not argument.startswith(("--listen", "--metrics-address")):
            found.append(argument)
    return found


@pytest.mark.real
def test_the_pods_keep_the_restricted_standard(kubectl: Kubectl) -> None:
    """The namespace enforces it, so that the controller's pods show whether they do."""
    eventually(lambda: kubectl.json("get", "pods", "-n", "holokube")["items"], lambda found: len(found) == 2)


@pytest.mark.real
def test_the_webhook_does_its_work_with_what_the_roles_grant(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    kubectl("create", "-f", "-", stdin=script.node("mid"))
    with script.webhook(kubeconfig_of_account(kubectl, plane, tmp_path), *arguments(kubectl)) as webhook:
        kubectl("apply", "-f", "-", stdin=script.daemon_set("agent"))
        pods = eventually(lambda: kubectl.json("get", "pods", "-l", "app=agent")["items"], bool)
        assert script.tunables(pods[0], "requests", "cpu") == ["400m", "1200m"]
        kubectl("apply", "-f", "-", stdin=script.daemon_set("bad", request_cpu_fraction="lots"))
        eventually(lambda: kubectl("get", "events"), lambda text: "NodeSizingFailed" in text)
    assert "orbidden" not in "".join(webhook.said)
    kubectl("delete", "daemonset", "--all")


@pytest.mark.real
def test_applied_again_the_certificate_and_its_authority_stay(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    with script.webhook(kubeconfig_of_account(kubectl, plane, tmp_path), *arguments(kubectl), "--url="):
        """Registered by its Service this time, as in a cluster with a network."""

    def state() -> tuple[Any, bytes]:
        secret = kubectl.json("get", "secret", NAME, "-n", "holokube")
        return secret["data"], published_bundle(kubectl.json("get", "mutatingwebhookconfiguration", NAME))

    before = state()
    assert before[0]["tls.crt"] and before[1]
    kubectl("apply", "-k", str(FOLDER))
    assert state() == before


@pytest.mark.real
def test_running_pods_are_resized_with_what_the_other_roles_grant(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    kubectl("apply", "-k", str(RESIZING))
    assert "--resize-running" in arguments(kubectl)
    with script.webhook(kubeconfig_of_account(kubectl, plane, tmp_path), *arguments(kubectl)) as webhook:
        template = json.loads(script.daemon_set("elastic"))["spec"]["template"]
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "elastic"},
            "spec": {**template["spec"], "nodeName": "mid"},
        }  # fmt: skip
        kubectl("create", "-f", "-", stdin=json.dumps(pod))
        grown = {"status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}}}
        kubectl("patch", "node", "mid", "--subresource=status", "--type=merge", "-p", json.dumps(grown))
        eventually(
            lambda: kubectl.json("get", "pod", "elastic"),
            lambda found: script.tunables(found, "requests", "cpu") == ["800m", "2400m"],
        )
    assert "orbidden" not in "".join(webhook.said)


@pytest.mark.real
def test_the_account_may_nothing_else(kubectl: Kubectl) -> None:
    """With the permissions for resizing, which are the larger set."""
    account = f"--as=system:serviceaccount:holokube:{NAME}"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, account).stdout.strip()

    assert may("watch", "nodes") == "yes"
    assert may("update", f"secrets/{NAME}", "-n", "holokube") == "yes"
    for forbidden in (
        ("patch", "nodes"), ("patch", "nodes", "--subresource=status"), ("list", "secrets", "-n", "holokube"),
        ("get", "secrets/other", "-n", "holokube"), ("create", "secrets", "-n", "holokube"), ("create", "pods"),
        ("delete", "pods"), ("create", "pods", "--subresource=exec"), ("get", "daemonsets.apps"),
        ("create", "mutatingwebhookconfigurations"), ("update", "mutatingwebhookconfigurations/other"),
        ("delete", f"mutatingwebhookconfigurations/{NAME}"), ("get", "configmaps", "-n", "holokube"),
    ):  # fmt: skip
        assert may(*forbidden) == "no", forbidden
