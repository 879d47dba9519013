"""``holokube fault`` and ``holokube heal``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holokube.cli import fault as fault_module
from holokube.cli.node_faults import KINDS, break_node
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.node_life import Fault, asks_for_reboot, faults_of
from holokube.kube.errors import Conflict
from holokube.testing import Cluster, Server, serve
from tests.cli.program import Inside, assert_two_lines


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(objects=[node("a", zone="x"), node("b", zone="x"), node("c", zone="y")]) as running:
        yield running


def read(server: Server, name: str) -> dict[str, Any]:
    async def get(client: Client) -> dict[str, Any]:
        return await client.get(NODES, name)

    return server.run(get)


def say(inside: Inside, server: Server, *arguments: str) -> str:
    done = inside(*arguments, "--kubeconfig", str(server.kubeconfig))
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_command_line_knows_every_fault() -> None:
    assert set(fault_module.KINDS) == set(KINDS)


def test_faults_add_up_and_are_healed_one_by_one_or_all(inside: Inside, server: Server) -> None:
    say(inside, server, "fault", "node", "a", "b", "--kind", "not-ready", "--kind", "slow")
    say(inside, server, "fault", "node", "a", "--kind", "disk-pressure")
    assert faults_of(read(server, "a")) == {Fault.NOT_READY, Fault.SLOW, Fault.DISK_PRESSURE}
    assert faults_of(read(server, "b")) == {Fault.NOT_READY, Fault.SLOW}
    say(inside, server, "heal", "node", "a", "--kind", "slow")
    assert faults_of(read(server, "a")) == {Fault.NOT_READY, Fault.DISK_PRESSURE}
    assert say(inside, server, "heal", "node", "a", "c") == "1 of 2 nodes healed\n"
    assert faults_of(read(server, "a")) == frozenset()
    assert "holokube.dev/fault" not in (read(server, "a")["metadata"].get("annotations") or {})


def test_nodes_are_chosen_by_label(inside: Inside, server: Server) -> None:
    assert say(inside, server, "fault", "node", "-l", "zone=x", "--kind", "silent") == "2 nodes: silent\n"
    assert [bool(faults_of(read(server, name))) for name in "abc"] == [True, True, False]


def test_labels_of_faults_are_healed_too(inside: Inside, server: Server) -> None:
    server.load([node("d", **{"holokube.dev/fault": "silent", "node-not-ready.stage.kwok.x-k8s.io": "true"})])
    say(inside, server, "heal", "node", "d", "--kind", "silent")
    assert faults_of(read(server, "d")) == {Fault.NOT_READY}
    say(inside, server, "heal", "node", "d")
    assert faults_of(read(server, "d")) == frozenset()


def test_every_reboot_is_a_new_one(inside: Inside, server: Server) -> None:
    before = read(server, "a")
    say(inside, server, "fault", "node", "a", "--kind", "reboot")
    first = read(server, "a")
    say(inside, server, "fault", "node", "a", "--kind", "reboot")
    assert asks_for_reboot(before, first) and asks_for_reboot(first, read(server, "a"))


def test_a_fault_for_a_while_heals_itself(inside: Inside, server: Server) -> None:
    said = say(inside, server, "fault", "node", "a", "--kind", "slow", "--for", "1ms")
    assert said == "1 node: slow\n1 node healed\n"
    assert faults_of(read(server, "a")) == frozenset()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("fault", "node", "--kind", "slow"), "name nodes or give --selector"),
        (("fault", "node", "a", "-l", "x=y", "--kind", "slow"), "not both"),
        (("fault", "node", "-l", "zone=none", "--kind", "slow"), "no node matches"),
        (("fault", "node", "a"), "Missing option '--kind'"),
        (("fault", "node", "a", "--kind", "fire"), "Invalid value for '--kind'"),
        (("fault", "node", "a", "--kind", "slow", "--for", "soon"), "Invalid value for '--for'"),
        (("fault", "node", "a", "--kind", "slow", "--for", "0s"), "not a time to wait"),
    ],
)
def test_wrong_usage_is_told(inside: Inside, server: Server, arguments: tuple[str, ...], what: str) -> None:
    done = inside(*arguments, "--kubeconfig", str(server.kubeconfig))
    assert done.returncode == 2
    assert what in assert_two_lines(done.stderr)[0]


def test_a_node_that_is_not_there_is_named(inside: Inside, server: Server) -> None:
    done = inside("fault", "node", "nobody", "--kind", "slow", "--kubeconfig", str(server.kubeconfig))
    assert done.returncode == 1 and "nobody" in done.stderr


def test_a_write_of_others_in_between_is_not_lost() -> None:
    with Cluster() as cluster:
        cluster.run(disturbed_by(cluster))


async def disturbed_by(cluster: Cluster) -> None:
    class Disturbed(Client):
        disturbed = 0

        async def patch(self, *args: Any, **options: Any) -> Any:
            if self.disturbed < 2:
                self.disturbed += 1
                await cluster.client.patch(NODES, "a", {"metadata": {"annotations": {"holokube.dev/fault": "slow"}}})
                if self.disturbed == 2:
                    raise Conflict("somebody else was faster")
            return await super().patch(*args, **options)

    await cluster.client.create(NODES, node("a"))
    await break_node(Disturbed(cluster.client.transport), "a", ["silent"], "now")
    assert faults_of(await cluster.client.get(NODES, "a")) == {Fault.SLOW, Fault.SILENT}
