"""``holokube up --nodes``: a cluster that lives."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from holokube.client.client import Client
from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.kube.conditions import is_true
from tests.builders import deployment
from tests.cli.program import (
    PROGRAM,
    Inside,
    assert_two_lines,
    environment,
    free_port,
    up,
    wait_for_port,
)  # fmt: skip
from tests.cli.test_up import with_client


def test_nodes_are_ready_when_it_says_so(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "5", "--zone", "a", "--zone", "b") as server:
        nodes = with_client(server.kubeconfig, lambda client: client.list(NODES)).items
        assert [node["metadata"]["name"] for node in nodes] == [f"node-{number}" for number in range(5)]
        assert all(is_true(node, "Ready") and not node["spec"].get("taints") for node in nodes)
        assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {"a", "b"}
        code, stderr = server.stop()
    assert code == 0
    assert "5 nodes are Ready" in stderr
    assert "Traceback" not in stderr


def test_a_deployment_made_from_outside_gets_its_pods(tmp_path: Path) -> None:
    async def run(client: Client) -> list[str]:
        await client.create(DEPLOYMENTS, deployment(replicas=3))
        running: set[str] = set()
        async for event in client.watch(PODS):
            if event.type != "BOOKMARK" and event.object["status"].get("phase") == "Running":
                running.add(event.object["metadata"]["name"])
            if len(running) == 3:
                break
        return sorted(running)

    with up(tmp_path, "--nodes", "2", "--profile", "fast") as server:
        assert len(with_client(server.kubeconfig, run)) == 3
        assert server.stop()[0] == 0


def test_nodes_survive_a_restart_and_are_brought_to_the_number_asked_for(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with up(tmp_path, "--nodes", "3", "--data-dir", data) as server:
        before = with_client(server.kubeconfig, lambda client: client.list(NODES)).items
        assert server.stop()[0] == 0
    with up(tmp_path, "--nodes", "4", "--data-dir", data) as server:
        after = with_client(server.kubeconfig, lambda client: client.list(NODES)).items
        assert server.stop()[0] == 0
    uids = {node["metadata"]["uid"] for node in after}
    assert len(after) == 4
    assert {node["metadata"]["uid"] for node in before} < uids


def test_a_server_alone_runs_nothing_else(tmp_path: Path) -> None:
    with up(tmp_path, "--components", "none") as server:
        created = with_client(server.kubeconfig, lambda client: client.create(DEPLOYMENTS, deployment()))
        assert created["status"] == {}
        assert server.stop()[0] == 0


def test_a_signal_while_nodes_are_made_ends_it_cleanly(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [*PROGRAM, "up", "--nodes", "50000", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:  # fmt: skip
        try:
            # It says nothing before its nodes are up, and listens before it makes them.
            wait_for_port(port, process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, err.decode()
    assert b"Traceback" not in err
    assert b"KUBECONFIG" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--components", "kubelet"), "'kubelet' is not a component"),
        (("--nodes", "3", "--components", "scheduler"), "--nodes 3 needs the component fleet"),
        (("--nodes", "-1"), "-1 is not in the range"),
    ],
)
def test_what_cannot_be_is_refused(inside: Inside, arguments: tuple[str, ...], message: str) -> None:
    done = inside("up", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_missing_profile_is_an_error_that_helps(inside: Inside, tmp_path: Path) -> None:
    done = inside("up", "--profile", str(tmp_path / "none.yaml"))
    what, hint = assert_two_lines(done.stderr)
    assert "cannot read the profile" in what
    assert "readable YAML file" in hint
