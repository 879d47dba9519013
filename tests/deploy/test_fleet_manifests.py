"""``kubectl apply -k deploy/fleet`` on a real cluster with RBAC, and the fleet with no more than it grants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.builders import node, pod
from tests.conftest import run_control_plane

FOLDER = Path(__file__).parents[2] / "deploy" / "fleet"
NODES = 6

pytestmark = [pytest.mark.real, pytest.mark.kubectl, pytest.mark.xdist_group("deploy")]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy")
    yield from run_control_plane(request, folder, ("controller-manager",), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    applied = admin("apply", "-k", str(FOLDER))
    assert "statefulset.apps/holokube-fleet created" in applied
    return admin


def stateful_set(kubectl: Kubectl) -> dict[str, Any]:
    return dict(kubectl.json("get", "statefulset", "holokube-fleet", "-n", "holokube"))


def test_applied_again_nothing_changes(kubectl: Kubectl) -> None:
    def generations() -> dict[str, int]:
        objects = kubectl.json("get", "-k", str(FOLDER))["items"]
        return {f"{o['kind']} {o['metadata']['name']}": o["metadata"].get("generation", 0) for o in objects}

    before = generations()
    assert len(before) > 8
    kubectl("apply", "-k", str(FOLDER))
    assert generations() == before


def test_the_pods_keep_the_restricted_standard(kubectl: Kubectl) -> None:
    """The namespace enforces it, so that the controller's pods show whether they do."""
    pods = eventually(
        lambda: kubectl.json("get", "pods", "-n", "holokube")["items"], lambda found: len(found) == 2
    )
    assert {found["metadata"]["name"] for found in pods} == {"holokube-fleet-0", "holokube-fleet-1"}
    shards = stateful_set(kubectl)["spec"]["template"]["spec"]["containers"][0]["env"][0]
    assert shards == {"name": "HOLOKUBE_SHARDS", "value": str(stateful_set(kubectl)["spec"]["replicas"])}


def arguments(kubectl: Kubectl, tmp_path: Path, ordinal: int) -> list[str]:
    """What the container would be started with."""
    container = stateful_set(kubectl)["spec"]["template"]["spec"]["containers"][0]
    values = {"$(POD_NAME)": f"holokube-fleet-{ordinal}", "$(HOLOKUBE_SHARDS)": "2"}
    profile = tmp_path / "profile.yaml"
    profile.write_text((FOLDER / "profile.yaml").read_text())
    found = []
    for argument in container["args"]:
        for name, value in values.items():
            argument = argument.replace(name, value)
        argument = argument.replace("/etc/holokube/profile.yaml", str(profile))
        found.append("--metrics-address=0" if argument.startswith("--metrics-address") else argument)
    return found


def kubeconfig_of_account(kubectl: Kubectl, plane: ControlPlane, tmp_path: Path) -> Path:
    token = kubectl("create", "token", "holokube-fleet", "-n", "holokube").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_fleet_does_its_work_with_what_the_roles_grant(
    kubectl: Kubectl, plane: ControlPlane, tmp_path: Path
) -> None:
    kubeconfig = kubeconfig_of_account(kubectl, plane, tmp_path)
    for number in range(NODES):
        made = node(f"granted-{number}")
        made["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
        kubectl("apply", "-f", "-", stdin=json.dumps(made))
    log = tmp_path / "fleet.log"
    fleets = []
    for ordinal in range(2):
        with log.open("ab") as stream:
            fleets.append(subprocess.Popen(
                [sys.executable, "-m", "holokube", *arguments(kubectl, tmp_path, ordinal), "--kubeconfig", kubeconfig],
                stdout=stream, stderr=stream, env={**os.environ, "HOSTNAME": f"holokube-fleet-{ordinal}"},
            ))  # fmt: skip
    try:
        kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
        for number in range(NODES):
            kubectl("apply", "-f", "-", stdin=json.dumps(pod(f"p{number}", node=f"granted-{number}")))
        kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s")
        leases = kubectl.json("get", "leases", "-n", "kube-node-lease")["items"]
        holders = {lease["spec"]["holderIdentity"] for lease in leases}
        assert holders == {"holokube-fleet-0", "holokube-fleet-1"}
        eventually(lambda: kubectl("get", "events"), lambda text: "Started" in text)
        kubectl("delete", "pod", "--all", "--timeout=60s")
        for fleet in fleets:
            fleet.send_signal(signal.SIGTERM)
        assert [fleet.wait(timeout=30) for fleet in fleets] == [0, 0]
    finally:
        for fleet in fleets:
            fleet.kill()
    assert "orbidden" not in log.read_text()


def test_the_account_may_nothing_else(kubectl: Kubectl) -> None:
    account = "--as=system:serviceaccount:holokube:holokube-fleet"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, account).stdout.strip()

    assert may("patch", "nodes", "--subresource=status") == "yes"
    assert may("update", "leases.coordination.k8s.io", "-n", "kube-node-lease") == "yes"
    for forbidden in (
        ("delete", "nodes"), ("update", "nodes"), ("create", "pods"), ("get", "secrets"), ("list", "secrets"),
        ("update", "leases.coordination.k8s.io", "-n", "kube-system"), ("create", "pods", "--subresource=exec"),
        ("get", "configmaps", "-n", "holokube"),
    ):  # fmt: skip
        assert may(*forbidden) == "no", forbidden


def test_heartbeats_are_told_from_the_rest(kubectl: Kubectl) -> None:
    heartbeats = kubectl.json("get", "flowschema", "holokube-fleet-heartbeats")
    rest = kubectl.json("get", "flowschema", "holokube-fleet")
    levels = {schema["spec"]["priorityLevelConfiguration"]["name"] for schema in (heartbeats, rest)}
    assert levels == {"node-high", "workload-low"}
    assert heartbeats["spec"]["matchingPrecedence"] < rest["spec"]["matchingPrecedence"]
    for schema in (heartbeats, rest):
        # A schema whose level does not exist dangles, and catches nothing.
        dangling = [c for c in schema["status"]["conditions"] if c["type"] == "Dangling"]
        assert [c["status"] for c in dangling] == ["False"]
