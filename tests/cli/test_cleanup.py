"""``holokube cleanup``: what kwok groups left goes, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kwok.cleanup import find_nodes, remove_nodes
from holokube.cluster_autoscaler.cloud.kwok.node_template import node_of, sanitised
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.kube.errors import Forbidden
from holokube.testing import Cluster, Server, serve
from tests.cli.program import Inside, assert_two_lines
from tests.cluster_autoscaler.cloud.kwok.worlds import template


def of_group(group: str, name: str) -> dict[str, Any]:
    return node_of(sanitised(template(), group, "", Problems(), taint=False, live=False), name)


def strangers() -> list[dict[str, Any]]:
    """Nodes that lack one mark each."""
    real = template("real")
    hollow = of_group("a", "hollow")
    del hollow["metadata"]["annotations"]["cluster-autoscaler.kwok.nodegroup/name"]
    grouped = of_group("a", "grouped")
    del grouped["metadata"]["annotations"]["kwok.x-k8s.io/node"]
    elsewhere = of_group("a", "elsewhere")
    elsewhere["spec"]["providerID"] = "aws:///i-1"
    return [real, hollow, grouped, elsewhere]


STRANGERS = {"real", "hollow", "grouped", "elsewhere"}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:

        async def fill(client: Client) -> None:
            for node in [*strangers(), of_group("a", "a-1"), of_group("a", "a-2"), of_group("b", "b-1")]:
                await client.create(NODES, node)

        running.run(fill)
        yield running


def names_of(server: Server) -> set[str]:
    async def read(client: Client) -> set[str]:
        return {node["metadata"]["name"] for node in (await client.list(NODES)).items}

    return server.run(read)


def test_only_nodes_with_all_marks_go(inside: Inside, server: Server) -> None:
    done = inside("cleanup", "--kubeconfig", str(server.kubeconfig))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "3 nodes of 2 groups removed\n")
    assert names_of(server) == STRANGERS
    again = inside("cleanup", "--kubeconfig", str(server.kubeconfig))
    assert (again.returncode, again.stderr) == (0, "0 nodes of 0 groups removed\n")


def test_a_group_can_be_chosen(inside: Inside, server: Server) -> None:
    done = inside("cleanup", "--kubeconfig", str(server.kubeconfig), "--node-group", "b", "--node-group", "c")
    assert (done.returncode, done.stderr) == (0, "no nodes of group c\n1 nodes of 1 groups removed\n")
    assert names_of(server) == STRANGERS | {"a-1", "a-2"}


def test_a_dry_run_names_nodes_and_removes_none(inside: Inside, server: Server) -> None:
    before = names_of(server)
    done = inside("cleanup", "--kubeconfig", str(server.kubeconfig), "--dry-run")
    assert done.returncode == 0
    assert sorted(done.stdout.split()) == ["a-1", "a-2", "b-1"]
    assert done.stderr == "3 nodes of 2 groups would be removed\n"
    assert names_of(server) == before


def test_a_cluster_that_cannot_be_reached_is_said_in_two_lines(inside: Inside) -> None:
    done = inside("cleanup")
    assert done.returncode == 1 and done.stdout == ""
    assert_two_lines(done.stderr)


def test_an_interrupt_leaves_whole_nodes_and_a_second_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster() as cluster:
        delete = cluster.client.delete

        async def slow(*what: Any, **more: Any) -> Any:
            await cluster.clock.sleep(1.0)
            return await delete(*what, **more)

        async def interrupted() -> int:
            monkeypatch.setattr(cluster.client, "delete", slow)
            for number in range(100):
                await cluster.client.create(NODES, of_group("a", f"a-{number}"))
            found = await find_nodes(cluster.client)
            reached = asyncio.Event()

            def progress(done: int, _total: int) -> None:
                if done == 10:
                    reached.set()

            removal = asyncio.create_task(remove_nodes(cluster.client, found, progress))
            await reached.wait()
            removal.cancel()
            with pytest.raises(asyncio.CancelledError):
                await removal
            left = await find_nodes(cluster.client)
            assert 0 < len(left) < 100
            return await remove_nodes(cluster.client, left) - len(left)

        assert cluster.run(interrupted()) == 0


def test_a_refusal_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster() as cluster:
        delete = cluster.client.delete

        async def refusing(resource: Any, name: str, **more: Any) -> Any:
            if name == "a-1":
                raise Forbidden("not this one")
            return await delete(resource, name, **more)

        async def clean() -> None:
            for name in ("a-0", "a-1", "a-2"):
                await cluster.client.create(NODES, of_group("a", name))
            monkeypatch.setattr(cluster.client, "delete", refusing)
            with pytest.raises(Forbidden, match="2 of 3 nodes removed: not this one"):
                await remove_nodes(cluster.client, await find_nodes(cluster.client))
            assert [node["metadata"]["name"] for node in await find_nodes(cluster.client)] == ["a-1"]

        cluster.run(clean())


def test_a_node_made_anew_under_the_name_stays() -> None:
    with Cluster() as cluster:

        async def clean() -> list[str]:
            await cluster.client.create(NODES, of_group("a", "a-0"))
            found = await find_nodes(cluster.client)
            await cluster.client.delete(NODES, "a-0")
            await cluster.client.create(NODES, template("a-0"))
            await remove_nodes(cluster.client, found)
            return [node["metadata"]["name"] for node in (await cluster.client.list(NODES)).items]

        assert cluster.run(clean()) == ["a-0"]
