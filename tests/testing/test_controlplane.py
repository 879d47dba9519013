from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml

from holokube.testing import controlplane
from holokube.testing.binaries import Binaries
from holokube.testing.controlplane import ControlPlane, ControlPlaneError, find_or_build, programs_for
from holokube.testing.kubectl import Kubectl, KubectlError

REPOSITORY = Path(__file__).parents[2]
APISERVER_ONLY = ("etcd", "kube-apiserver")
CONTAINERS = [{"name": "web", "image": "web"}]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def fake_binaries(folder: Path, script: str) -> Binaries:
    """Programs that all do the same: ``script``."""
    program = folder / "fake"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Binaries(dict.fromkeys(controlplane.programs_for(controlplane.COMPONENTS), program), "fake")


def test_the_programs_are_listed_in_the_order_of_their_start() -> None:
    assert programs_for(["scheduler", "controller-manager"]) == (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    )
    assert programs_for([]) == APISERVER_ONLY


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown component 'kubelet'"):
        programs_for(["scheduler", "kubelet"])


def test_a_program_that_dies_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    binaries = fake_binaries(tmp_path, "echo 'first line'; echo 'cannot go on'; exit 3")
    plane = ControlPlane(binaries, tmp_path / "work", ())
    message = r"(?s)(etcd|kube-apiserver) ended with status 3.*first line\n  cannot go on"
    with pytest.raises(ControlPlaneError, match=message) as caught:
        plane.start()
    assert str(tmp_path / "work" / "log") in caught.value.hint
    assert "first line" in plane.log_file("etcd").read_text()
    assert plane.pids == {}


def test_a_program_that_never_gets_ready_is_given_up_after_the_deadline(tmp_path: Path) -> None:
    binaries = fake_binaries(tmp_path, "echo 'thinking'; exec sleep 600")
    plane = ControlPlane(binaries, tmp_path / "work", (), ready_within_s=0.3)
    with pytest.raises(ControlPlaneError, match=r"(?s)no /readyz within 0 s.*thinking"):
        plane.start()


def test_a_port_that_was_taken_in_between_is_replaced_by_another(tmp_path: Path) -> None:
    script = "echo x >> attempts; echo 'listen tcp 127.0.0.1:1: bind: address already in use'; exit 1"
    plane = ControlPlane(fake_binaries(tmp_path, script), tmp_path / "work", ())
    with pytest.raises(ControlPlaneError, match="address already in use"):
        plane.start()
    assert 3 <= len((tmp_path / "work" / "attempts").read_text().split()) <= 6


def test_a_temporary_folder_is_kept_with_its_logs_when_the_start_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    binaries = fake_binaries(tmp_path, "echo oops; exit 1")
    with pytest.raises(ControlPlaneError), ControlPlane(binaries, None, ()):
        pass
    (log,) = tmp_path.glob("holokube-controlplane-*/log/etcd.log")
    assert log.read_text() == "oops\n"


def test_there_is_no_address_before_the_start(tmp_path: Path) -> None:
    plane = ControlPlane(fake_binaries(tmp_path, "exit 1"), None, ())
    with pytest.raises(ControlPlaneError, match="no address before start"):
        _ = plane.url
    with pytest.raises(ControlPlaneError, match="no folder while it is not running"):
        _ = plane.kubeconfig


def test_free_ports_differ_and_are_free() -> None:
    ports = list(controlplane._free_ports(20))
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))


@pytest.mark.real
def test_a_control_plane_starts_answers_stops_and_leaves_nothing_behind(
    real_apiserver: ControlPlane, kubectl_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # The fixture is asked for only because it skips where the programs are missing.
    binaries = find_or_build(build=False, programs=APISERVER_ONLY)
    with ControlPlane(binaries, None, (), authorization_mode="RBAC") as plane:
        kubectl = Kubectl(kubectl_program, plane.kubeconfig, tmp_path)
        names = kubectl("get", "namespaces", "--output=name").split()
        assert "namespace/default" in names
        assert stat.S_IMODE(plane.kubeconfig.stat().st_mode) == 0o600

        jane = tmp_path / "jane"
        plane.write_kubeconfig(jane, "jane", ["developers"])
        with pytest.raises(KubectlError, match='User "jane" cannot list resource "nodes"'):
            Kubectl(kubectl_program, jane, tmp_path)("get", "nodes")
        who = Kubectl(kubectl_program, jane, tmp_path).json("auth", "whoami")
        assert "developers" in who["status"]["userInfo"]["groups"]

        # An open watch must not delay the end.
        watch = subprocess.Popen(
            [kubectl_program, "get", "namespaces", "--watch"],
            env=kubectl.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith(b"NAME")
        group = [psutil.Process(pid) for pid in plane.pids.values()]
        assert [process.name() for process in group] == list(APISERVER_ONLY)
        supervisor = group[0].parent()
        assert supervisor is not None
        folder = plane.workdir
    watch.kill()
    watch.communicate()
    assert not any(process.is_running() for process in (*group, supervisor))
    assert not folder.exists()


@pytest.mark.real
def test_pods_can_be_created_where_nobody_makes_service_accounts(real_apiserver: ControlPlane) -> None:
    assert set(real_apiserver.pids) == set(APISERVER_ONLY)
    real_apiserver.create_namespace("pods-at-once")
    pod = {"metadata": {"name": "web"}, "spec": {"containers": CONTAINERS}}
    for namespace in ("default", "pods-at-once"):
        status, answer = real_apiserver.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        assert (status, answer["spec"].get("nodeName")) == (201, None)


@pytest.mark.real
def test_the_token_and_the_kubeconfig_both_mean_an_administrator(
    real_apiserver: ControlPlane, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, real_apiserver.kubeconfig, tmp_path)
    assert "system:masters" in kubectl.json("auth", "whoami")["status"]["userInfo"]["groups"]
    config = tmp_path / "token-config"
    cluster = {"server": real_apiserver.url, "certificate-authority": str(real_apiserver.ca_file)}
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": real_apiserver.token}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    who = Kubectl(kubectl_program, config, tmp_path).json("auth", "whoami")["status"]["userInfo"]
    assert (who["username"], "system:masters" in who["groups"]) == ("token-admin", True)


@pytest.mark.real
def test_the_whole_control_plane_schedules_what_a_deployment_asks_for(real_cluster: ControlPlane) -> None:
    real_cluster.create_namespace("whole")
    node = {
        "metadata": {"name": "whole-node"},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert real_cluster.request("POST", "/api/v1/nodes", node)[0] == 201
    labels = {"app": "web"}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": CONTAINERS, "tolerations": [{"operator": "Exists"}]},
            },
        },
    }
    assert real_cluster.request("POST", "/apis/apps/v1/namespaces/whole/deployments", deployment)[0] == 201

    def bound() -> list[str]:
        pods = real_cluster.request("GET", "/api/v1/namespaces/whole/pods")[1]["items"]
        return [pod["spec"].get("nodeName", "") for pod in pods]

    wait_until(lambda: bound() == ["whole-node"] * 2, "both pods are bound")
    real_cluster.check()
    assert real_cluster.request("DELETE", "/api/v1/nodes/whole-node")[0] == 200


@pytest.mark.real
def test_a_control_plane_dies_with_the_process_that_was_starting_it(
    real_apiserver: ControlPlane, tmp_path: Path
) -> None:
    script = """
import sys
from pathlib import Path
from holokube.testing.controlplane import ControlPlane, find_or_build
binaries = find_or_build(build=False, programs=("etcd", "kube-apiserver"))
ControlPlane(binaries, Path(sys.argv[1]), ()).start()
"""
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) as launcher:
        process = psutil.Process(launcher.pid)

        def descendants() -> list[psutil.Process]:
            return process.children(recursive=True)

        wait_until(lambda: len(descendants()) == 3, "supervisor, etcd and kube-apiserver run")
        started = descendants()
        launcher.kill()
    wait_until(lambda: all(is_gone(each.pid) for each in started), "all of them are gone")


@pytest.mark.real
def test_the_command_line_starts_tells_and_stops(real_apiserver: ControlPlane, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "holokube.testing.controlplane", *arguments, "--workdir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert run("status").returncode == 1
    started = run("start", "--apiserver-only")
    try:
        assert started.stdout == f"KUBECONFIG={tmp_path / 'kubeconfig'}\n", started.stderr
        again = run("start", "--apiserver-only")
        assert again.returncode == 1
        assert "another control plane runs in" in again.stderr
        told = run("status").stdout.splitlines()
        assert [line.split("\t")[0] for line in told[:2]] == list(APISERVER_ONLY)
        pids = [int(line.split("\t")[1]) for line in told[:2]]
        assert not any(is_gone(pid) for pid in pids)
    finally:
        stopped = run("stop")
    assert stopped.returncode == 0
    assert all(is_gone(pid) for pid in pids)
    assert run("status").returncode == 1


def test_the_command_line_explains_what_is_missing(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "", "XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": ""}
    result = subprocess.run(
        [sys.executable, "-m", "holokube.testing.controlplane", "build"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: Go is needed to build")
    assert "Install Go" in result.stderr.splitlines()[1]


@pytest.mark.parametrize("required", [False, True])
def test_without_the_programs_real_tests_are_skipped_loudly_or_fail(tmp_path: Path, required: bool) -> None:
    environment = {
        **os.environ,
        "PATH": "",
        "XDG_CACHE_HOME": str(tmp_path),
        "KUBEBUILDER_ASSETS": "",
        "HOLOKUBE_REQUIRE_REAL": str(int(required)),
    }
    chosen = "pods_can_be_created or mean_an_administrator"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", chosen, __file__],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == int(required), result.stdout
    if required:
        assert "2 errors" in result.stdout
        assert "PATH has no `go`" in result.stdout
    else:
        assert "SKIPPED 2 tests for want of other programs: Go is needed to build" in result.stdout
