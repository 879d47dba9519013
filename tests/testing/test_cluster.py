"""Clusters for tests, in the process and behind HTTPS."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError, UsageError
from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS
from holokube.testing import Cluster, serve

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def test_a_cluster_starts_with_the_usual_namespaces_and_the_given_objects() -> None:
    with Cluster(objects=[NODE]) as cluster:
        names = [obj["metadata"]["name"] for obj in cluster.run(cluster.client.list(NAMESPACES)).items]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        assert len(cluster.run(cluster.client.list(NODES)).items) == 1


def test_virtual_time_passes_without_waiting() -> None:
    with Cluster() as cluster:
        before = cluster.clock.now()
        cluster.pass_time(86_400)
        assert (cluster.clock.now() - before).total_seconds() == 86_400


def test_what_a_run_leaves_running_goes_on_in_the_next() -> None:
    with Cluster() as cluster:
        beats: list[float] = []

        async def beat() -> None:
            while True:
                await cluster.clock.sleep(60)
                beats.append(cluster.clock.monotonic())

        async def start() -> asyncio.Task[None]:
            return asyncio.create_task(beat())

        task = cluster.run(start)
        cluster.pass_time(150)
        cluster.pass_time(50)
        assert beats == [60, 120, 180]
    assert task.cancelled()


def test_functions_are_given_their_arguments() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    with Cluster() as cluster:
        assert cluster.run(add, 2, 3) == 5


def test_the_wall_clock_can_be_asked_for() -> None:
    with Cluster("wall") as cluster:
        assert isinstance(cluster.clock, WallClock)
        assert cluster.run(cluster.client.get(NAMESPACES, "default"))["metadata"]["uid"]


def test_the_seed_decides_every_uid() -> None:
    def uid(seed: int) -> str:
        with Cluster(seed=seed) as cluster:
            made = cluster.run(
                cluster.client.create(CONFIG_MAPS, {"metadata": {"generateName": "x-"}}, "default")
            )
            return str(made["metadata"]["uid"] + made["metadata"]["name"])

    assert uid(1) == uid(1)
    assert uid(1) != uid(2)


def test_objects_that_cannot_be_loaded_are_an_error() -> None:
    with pytest.raises(UsageError, match="apiVersion is missing"), Cluster(objects=[{"kind": "Pod"}]):
        pass
    with pytest.raises(UsageError, match="no clock"):
        Cluster("sundial")  # type: ignore[arg-type]  # what a user may write


def test_a_server_takes_tokens_and_certificates_and_nobody_else() -> None:
    with serve(objects=[NODE]) as server:
        context = ssl.create_default_context(cafile=str(server.ca))
        request = urllib.request.Request(f"{server.url}/api/v1/nodes")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, context=context)
        assert refused.value.code in (401, 403)
        refused.value.close()
        request.add_header("Authorization", f"Bearer {server.token}")
        with urllib.request.urlopen(request, context=context) as answer:
            assert [item["metadata"]["name"] for item in json.load(answer)["items"]] == ["n1"]


def test_the_inside_of_a_server_can_be_reached() -> None:
    async def count(client: Client) -> int:
        return len((await client.list(NODES)).items)

    with serve() as server:
        server.load([NODE])
        assert server.run(count) == 1


def test_servers_are_apart_from_each_other() -> None:
    async def names(client: Client) -> list[str]:
        return [obj["metadata"]["name"] for obj in (await client.list(NODES)).items]

    with serve(objects=[NODE]) as first, serve() as second:
        assert first.url != second.url
        assert first.run(names) == ["n1"]
        assert second.run(names) == []


def test_files_of_a_server_go_with_it() -> None:
    with serve() as server:
        files = [server.kubeconfig, server.ca]
        assert all(path.exists() for path in files)
    assert not any(path.exists() for path in files)


def test_a_port_in_use_is_raised_where_the_server_was_asked_for() -> None:
    with serve() as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match="in use"), serve(port=port):
            pass


def test_an_error_inside_the_block_gets_out_and_the_server_ends() -> None:
    with pytest.raises(ZeroDivisionError), serve() as server:
        _ = 1 / 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url)


def test_data_outlives_the_server(tmp_path: Path) -> None:
    async def make(client: Client) -> dict[str, Any]:
        return await client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "nginx"}]}}, "default")  # fmt: skip

    async def read(client: Client) -> dict[str, Any]:
        return await client.get(PODS, "p", "default")

    with serve(data_dir=tmp_path / "data") as server:
        made = server.run(make)
        token = server.token
    with serve(data_dir=tmp_path / "data") as server:
        assert server.run(read) == made
        assert server.token == token


def test_importing_the_plugin_costs_next_to_nothing() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport holokube.testing.plugin\n"
        "new = {name for name in set(sys.modules) - before if name.partition('.')[0] != 'holokube'}\n"
        "ours = {name for name in sys.modules if name.startswith('holokube')}\n"
        "assert not new, new\n"
        "assert ours == {'holokube', 'holokube.testing', 'holokube.testing.plugin'}, ours\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
