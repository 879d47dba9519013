"""``holokube scale nodes``: exactly as many, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.node_sets import NodeSet
from holokube.hollow.node_template import ProfileTemplate
from holokube.hollow.profile import NodeProfile
from holokube.kube.errors import Forbidden
from holokube.runtime.many_writes import PARALLEL
from holokube.testing import Cluster, Server, serve
from holokube.testing.controlplane import ControlPlane
from tests.cli.program import Inside, assert_two_lines


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:
        yield running


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def nodes_of(server: Server) -> list[dict[str, Any]]:
    async def read(client: Client) -> list[dict[str, Any]]:
        return (await client.list(NODES)).items

    return server.run(read)


def names_of(server: Server) -> list[str]:
    return sorted(node["metadata"]["name"] for node in nodes_of(server))


def scale(inside: Inside, server: Server, count: int, *options: str) -> str:
    done = inside("scale", "nodes", str(count), "--kubeconfig", str(server.kubeconfig), *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_nodes_are_made_removed_and_counted(inside: Inside, server: Server) -> None:
    assert scale(inside, server, 3) == "3 nodes node-*: 3 created\n"
    assert names_of(server) == ["node-0", "node-1", "node-2"]
    assert scale(inside, server, 3) == "3 nodes node-*: unchanged\n"
    assert scale(inside, server, 1) == "1 nodes node-*: 2 removed\n"
    assert names_of(server) == ["node-0"]
    scale(inside, server, 0)
    assert names_of(server) == []


def test_other_peoples_nodes_are_neither_counted_nor_touched(inside: Inside, server: Server) -> None:
    stranger = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    server.load([stranger])
    scale(inside, server, 2, "--name-prefix", "other")
    scale(inside, server, 2)
    assert names_of(server) == ["node-0", "node-1", "node-2", "other-0", "other-1"]
    scale(inside, server, 0)
    assert names_of(server) == ["node-1", "other-0", "other-1"]


def test_options_say_what_the_nodes_are(inside: Inside, server: Server) -> None:
    scale(inside, server, 2, "--cpu", "8", "--memory", "16Gi", "--pods", "20", "--resource", "nvidia.com/gpu=4",
          "--zone", "a", "--zone", "b", "--label", "team=red", "--taint", "gpu=yes:NoSchedule")  # fmt: skip
    first, second = sorted(nodes_of(server), key=lambda node: node["metadata"]["name"])
    assert first["status"]["capacity"] == {
        "cpu": "8", "memory": "16Gi", "pods": "20", "nvidia.com/gpu": "4", "ephemeral-storage": "200Gi"}  # fmt: skip
    assert first["metadata"]["labels"]["team"] == "red"
    assert {"key": "gpu", "value": "yes", "effect": "NoSchedule"} in first["spec"]["taints"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in (first, second)]
    assert zones == ["a", "b"]
    assert first["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"


def test_a_template_makes_the_nodes(inside: Inside, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: {{ Name }}, labels: {n: '{{ Index }}', t: {{ .t }}}}")
    scale(inside, server, 2, "--template", str(file), "--param", "t=red")
    assert [(n["metadata"]["labels"]["n"], n["metadata"]["labels"]["t"]) for n in nodes_of(server)] == [
        ("0", "red"), ("1", "red")]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--cpu", "much"), "cpu=much"),
        (("--cpu", "-1"), "cpu=-1 is negative"),
        (("--taint", "gpu"), "--taint 'gpu'"),
        (("--label", "x"), "--label 'x'"),
        (("--name-prefix", "Node_"), "--name-prefix 'Node_'"),
        (("--template", "nowhere.yaml"), "cannot read the template"),
        (("--template", "x", "--cpu", "1", "--zone", "a"), "--cpu, --zone cannot be used with --template"),
        (("--param", "a=b"), "--param needs --template"),
    ],
)
def test_wrong_usage_is_said_before_the_cluster_is_asked(inside: Inside, options: tuple[str, ...], what: str) -> None:
    done = inside("scale", "nodes", "1", *options)
    assert done.returncode == 2
    assert what in assert_two_lines(done.stderr)[0]


def test_a_node_that_the_server_refuses_ends_it_with_the_servers_words(inside: Inside, server: Server) -> None:
    done = inside("scale", "nodes", "1", "--kubeconfig", str(server.kubeconfig), "--label", "a=not valid")
    assert done.returncode == 1
    assert "after 0 of 1 nodes" in assert_two_lines(done.stderr)[0] and names_of(server) == []


def node_set() -> NodeSet:
    return NodeSet("n", ProfileTemplate(NodeProfile()))


class Gate(Client):
    """A client that holds creations until it is told to go on."""

    def __init__(self, inner: Client) -> None:
        super().__init__(inner.transport)
        self.open, self.full = asyncio.Event(), asyncio.Event()
        self.waiting = 0
        self.most = 0
        self.fail_after = 10**9
        self.made = 0

    async def create(self, *args: Any, **options: Any) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == PARALLEL:
            self.full.set()
        await self.open.wait()
        self.waiting -= 1
        self.made += 1
        if self.made > self.fail_after:
            raise Forbidden("no more of them")
        return await super().create(*args, **options)


def test_an_interrupt_finishes_what_is_under_way_and_the_next_run_goes_on(cluster: Cluster) -> None:
    async def interrupted() -> None:
        gate = Gate(cluster.client)
        work = asyncio.create_task(node_set().scale(gate, 100, lambda done, total: None))
        await gate.full.wait()
        work.cancel()
        await asyncio.sleep(0)
        gate.open.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert gate.most == PARALLEL
        assert len((await cluster.client.list(NODES)).items) == PARALLEL
        result = await node_set().scale(cluster.client, 100, lambda done, total: None)
        assert (result.before, result.created) == (PARALLEL, 100 - PARALLEL)
        assert len((await cluster.client.list(NODES)).items) == 100

    cluster.run(interrupted())


def test_the_first_refusal_ends_the_work(cluster: Cluster) -> None:
    async def refused() -> None:
        gate = Gate(cluster.client)
        gate.fail_after = 40
        gate.open.set()
        with pytest.raises(Forbidden, match=r"after \d+ of 1000 nodes: no more of them"):
            await node_set().scale(gate, 1000, lambda done, total: None)
        assert len((await cluster.client.list(NODES)).items) == 40

    cluster.run(refused())


def test_a_real_server_takes_the_nodes_too(inside: Inside, real_apiserver: ControlPlane) -> None:
    def count(number: int, *options: str) -> str:
        done = inside("scale", "nodes", str(number), "--name-prefix", "scaled", "--kubeconfig",
                      str(real_apiserver.kubeconfig), *options)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert count(40, "--taint", "a:NoSchedule", "--zone", "z") == "40 nodes scaled-*: 40 created\n"
    assert count(1) == "1 nodes scaled-*: 39 removed\n"
    assert inside("fault", "node", "scaled-0", "--kind", "slow", "--kubeconfig",
                  str(real_apiserver.kubeconfig)).returncode == 0  # fmt: skip
    assert inside("heal", "node", "scaled-0", "--kubeconfig",
                  str(real_apiserver.kubeconfig)).stderr == "1 of 1 nodes healed\n"  # fmt: skip
    count(0)
