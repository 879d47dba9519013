"""``kubectl apply -k deploy/cloud-provider`` on a real cluster with RBAC; the server has no more than that grants."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from holokube.base.clock import WallClock
from holokube.cli.cloud_provider import command
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually
from tests.cluster_autoscaler.cloud.grpc.script import Script
from tests.cluster_autoscaler.cloud.grpc.upstream import Autoscaler
from tests.conftest import run_control_plane

FOLDER = Path(__file__).parents[2] / "deploy" / "cloud-provider"
WITH_TLS = FOLDER.parent / "cloud-provider-tls"
NAME = "holokube-cloud-provider"

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("deploy-cloud-provider")]


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Where service accounts may do what roles say, and nothing else."""
    folder = tmp_path_factory.mktemp("deploy-cloud-provider")
    yield from run_control_plane(request, folder, ("controller-manager",), authorization_mode="RBAC")


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    admin = Kubectl(kubectl_program, plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    applied = admin("apply", "-k", str(FOLDER))
    assert f"deployment.apps/{NAME} created" in applied
    return admin


def arguments(objects: list[dict[str, Any]]) -> list[str]:
    deployment = next(found for found in objects if found["kind"] == "Deployment")
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


def test_the_arguments_are_options_of_the_command() -> None:
    known = {name for parameter in command.params for name in parameter.opts}
    found = arguments(list(yaml.safe_load_all((FOLDER / "deployment.yaml").read_text())))
    found += re.findall(r"value: (--.*)", (WITH_TLS / "kustomization.yaml").read_text())
    assert found[0] == "cloud-provider"
    assert {argument.partition("=")[0] for argument in found[1:]} <= known
    assert {"--key", "--cert", "--cacert"} <= {argument.partition("=")[0] for argument in found}


def test_the_autoscaler_is_told_the_address_that_is_advertised() -> None:
    found = arguments(list(yaml.safe_load_all((FOLDER / "deployment.yaml").read_text())))
    for folder in (FOLDER, WITH_TLS):
        config = yaml.safe_load((folder / "cloud-config.yaml").read_text())
        assert f"--advertise={config['address']}" in found
        assert ("cacert" in config) == (folder is WITH_TLS)


@pytest.mark.real
def test_applied_again_nothing_changes(kubectl: Kubectl) -> None:
    def generations() -> dict[str, int]:
        objects = kubectl.json("get", "-k", str(FOLDER))["items"]
        return {f"{o['kind']} {o['metadata']['name']}": o["metadata"].get("generation", 0) for o in objects}

    before = generations()
    assert len(before) > 6
    kubectl("apply", "-k", str(FOLDER))
    assert generations() == before


@pytest.mark.real
def test_the_pod_keeps_the_restricted_standard(kubectl: Kubectl) -> None:
    """The namespace enforces it, so that the controller's pod shows whether it does."""
    eventually(lambda: kubectl.json("get", "pods", "-n", "holokube")["items"], lambda found: len(found) == 1)


@pytest.mark.real
def test_groups_are_served_with_what_the_roles_grant(kubectl: Kubectl, plane: ControlPlane, tmp_path: Path) -> None:
    token = kubectl("create", "token", NAME, "-n", "holokube").strip()
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    templates = tmp_path / "templates.yaml"
    # Nobody waits for machines here.
    templates.write_text(re.sub(r".*boot-delay.*\n", "", (FOLDER / "templates.yaml").read_text()))
    replaced = {"--address": "127.0.0.1:0", "--metrics-address": "0", "--kwok-templates": str(templates)}
    given = [
        f"{name}={replaced.get(name, value)}" if value else name
        for name, _, value in (text.partition("=") for text in arguments([kubectl.json("get", "deployment", NAME,
                                                                                       "-n", "holokube")]))
        if name != "--advertise"
    ]  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as stream, subprocess.Popen(
        [sys.executable, "-m", "holokube", *given, "--kubeconfig", kubeconfig],
        stdout=subprocess.PIPE, stderr=stream, text=True, env=dict(os.environ),
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            address = next(line.split()[-1] for line in server.stdout if line.startswith("address:"))
            asyncio.run(talk(address, plane))
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()
    assert "orbidden" not in log.read_text()
    assert kubectl.json("get", "nodes")["items"] == []


async def talk(address: str, plane: ControlPlane) -> None:
    access = load_access(str(plane.kubeconfig))
    async with Client(HttpTransport(WallClock(), access)) as cluster, grpc.aio.insecure_channel(address) as channel:
        script = Script(Autoscaler(channel), cluster)
        first = await script.run_once(increase={"small": 3, "large": 1})
        assert first.targets == {"small": 3, "large": 1}
        second = await script.run_once()
        assert sorted(filter(None, second.owners.values())) == ["large", "small", "small", "small"]
        third = await script.run_once(remove=list(second.owners))
        assert third.calls["NodeGroupDeleteNodes"] == 4
        fourth = await script.run_once()
        assert fourth.targets == {"small": 0, "large": 0}


@pytest.mark.real
def test_the_account_may_nothing_else(kubectl: Kubectl) -> None:
    account = f"--as=system:serviceaccount:holokube:{NAME}"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, account).stdout.strip()

    for granted in ("get", "list", "watch", "create", "delete"):
        assert may(granted, "nodes") == "yes"
    for forbidden in (
        ("patch", "nodes"), ("update", "nodes"), ("patch", "nodes", "--subresource=status"), ("list", "pods"),
        ("delete", "pods"), ("create", "pods", "--subresource=eviction"), ("get", "secrets", "-n", "holokube"),
        ("get", "configmaps", "-n", "kube-system"), ("deletecollection", "nodes"),
    ):  # fmt: skip
        assert may(*forbidden) == "no", forbidden


@pytest.mark.real
def test_with_certificates_the_server_is_given_them(kubectl: Kubectl) -> None:
    shown = list(yaml.safe_load_all(kubectl("kustomize", str(WITH_TLS))))
    assert [argument for argument in arguments(shown) if "tls" in argument] == [
        "--key=/etc/holokube-tls/tls.key", "--cert=/etc/holokube-tls/tls.crt", "--cacert=/etc/holokube-tls/ca.crt",
    ]  # fmt: skip
    assert f"deployment.apps/{NAME} configured" in kubectl("apply", "-k", str(WITH_TLS), "--dry-run=server")
