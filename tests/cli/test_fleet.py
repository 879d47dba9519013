"""``holokube fleet``: adopts, registers, tells how it does, stops cleanly, and says what is wrong."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from holokube.base.errors import UsageError
from holokube.cli.fleet_run import parse_shard
from holokube.client.client import Client
from holokube.client.resources import LEASES, NODES, PODS
from holokube.kube.conditions import is_true
from holokube.kube.types import JsonObject
from holokube.testing import Server, serve
from tests.builders import pod
from tests.cli.program import PROGRAM, TIMEOUT_S, Inside, assert_two_lines, environment
from tests.hollow.worlds import fake_node


@contextmanager
def fleet(home: Path, server: Server, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running fleet; whatever happens, it is gone at the end."""
    command = [*PROGRAM, "fleet", f"--kubeconfig={server.kubeconfig}", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home)) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def line_with(text: str, stream: IO[bytes]) -> str:
    for raw in stream:
        line = raw.decode().strip()
        if text in line:
            return line
    raise AssertionError(f"the fleet ended without saying {text!r}")


def wait_for(server: Server, check: Callable[[Client], Awaitable[bool]]) -> None:
    async def until(client: Client) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not await check(client):  # noqa: ASYNC110 - nothing tells when a server is done
                await asyncio.sleep(0.05)

    server.run(until)


def items(server: Server, kind: str) -> list[JsonObject]:
    resource = {"nodes": NODES, "pods": PODS, "leases": LEASES}[kind]

    async def read(client: Client) -> list[JsonObject]:
        return (await client.list(resource)).items

    return server.run(read)


async def all_ready(client: Client) -> bool:
    listed = [*(await client.list(NODES)).items, *(await client.list(PODS)).items]
    return len(listed) >= 3 and all(is_true(item, "Ready") for item in listed)


def test_it_adopts_the_nodes_of_kwok_and_gives_their_leases_back(tmp_path: Path) -> None:
    with serve() as server:
        foreign = {**fake_node("foreign"), "metadata": {"name": "foreign"}}

        async def prepare(client: Client) -> None:
            for node in (fake_node("one"), fake_node("two")):
                await client.create(NODES, node)
            await client.create(PODS, pod("p", "default", node="one"))

        server.run(prepare)
        with fleet(tmp_path, server, "--identity=me", "--metrics-address=127.0.0.1:0") as process:
            assert process.stderr is not None
            url = line_with("metrics and health on", process.stderr).rpartition(" ")[2]
            assert "me speaks to" in line_with("speaks to", process.stderr)
            wait_for(server, all_ready)
            server.run(lambda client: client.create(NODES, foreign))
            with urllib.request.urlopen(f"{url}/readyz") as answer:
                assert answer.read() == b"ok"
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                metrics = answer.read().decode()
            assert "holokube_fleet_nodes_owned 2.0" in metrics and "holokube_fleet_pod_patches_total 1.0" in metrics
            held = {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in items(server, "leases")}
            assert held == {"one": "me", "two": "me"}
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, stderr
            assert "2 of 2 nodes, 1 pods" in stderr.decode()
        assert not any(lease["spec"].get("holderIdentity") for lease in items(server, "leases"))
        untouched = next(node for node in items(server, "nodes") if node["metadata"]["name"] == "foreign")
        assert not is_true(untouched, "Ready")


def test_it_registers_nodes_of_its_own(tmp_path: Path) -> None:
    with serve() as server:
        profile = tmp_path / "profile.yaml"
        profile.write_text("nodes: {capacity: {cpu: '7', memory: 1Gi, pods: '10'}, labels: {pool: x}}")
        with fleet(tmp_path, server, "--register=12", "--name-prefix=mine-", f"--profile={profile}") as process:
            async def all_there(client: Client) -> bool:
                nodes = (await client.list(NODES, label_selector="pool=x")).items
                return len(nodes) == 12 and all(is_true(node, "Ready") for node in nodes)

            wait_for(server, all_there)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0
        nodes = items(server, "nodes")
        assert [node["metadata"]["name"] for node in nodes] == [f"mine-{number:02}" for number in range(12)]
        assert all(node["status"]["capacity"]["cpu"] == "7" for node in nodes)
        assert all(node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake" for node in nodes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--manage-all-nodes", "--manage-nodes-with-label-selector=a=b"], "both"),
        (["--manage-nodes-with-label-selector=a in b"], "--manage-nodes-with-label-selector"),
        (["--shard=3"], "--shard '3'"),
        (["--shard=3/3"], "there is no shard 3 of 3"),
        (["--profile=nowhere.yaml"], "nowhere.yaml"),
        (["--node-lease-duration-seconds=2"], "too short"),
        (["--metrics-address=everywhere"], "everywhere"),
        (["--register=1", "--name-prefix=UPPER"], "--name-prefix"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_reached(inside: Inside, arguments: list[str], said: str) -> None:
    done = inside("fleet", "--kubeconfig=nowhere", *arguments)
    assert done.returncode == 2
    assert said in assert_two_lines(done.stderr)[0]


def test_an_unknown_field_of_a_profile_is_named(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("pods: {speed: 7}")
    done = inside("fleet", f"--profile={path}")
    assert done.returncode == 2 and "speed" in assert_two_lines(done.stderr)[0]


def test_a_missing_kubeconfig_is_named(inside: Inside, tmp_path: Path) -> None:
    done = inside("fleet", f"--kubeconfig={tmp_path / 'missing'}")
    assert done.returncode == 1 and "missing" in assert_two_lines(done.stderr)[0]


def test_an_unreachable_cluster_is_an_error_at_once(inside: Inside, tmp_path: Path) -> None:
    with serve() as server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(server.kubeconfig.read_bytes())
    done = inside("fleet", f"--kubeconfig={kubeconfig}")
    assert done.returncode == 1
    what, hint = assert_two_lines(done.stderr)
    assert "cannot connect to https://127.0.0.1" in what and "kubeconfig" in hint


def test_a_shard_may_come_from_the_name_of_a_pod() -> None:
    assert parse_shard("", "anything") == (0, 1)
    assert parse_shard("1/3", "anything") == (1, 3)
    assert parse_shard("ordinal/3", "holokube-fleet-2") == (2, 3)
    with pytest.raises(UsageError, match="does not end in a number"):
        parse_shard("ordinal/3", "laptop")
