"""``holokube fleet --node-name``: the kubelet of one node, so that a pod can be a node."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from holokube.client.client import Client
from holokube.client.resources import LEASES, NODES, PODS
from holokube.kube.conditions import is_true
from holokube.testing import serve
from tests.builders import pod
from tests.cli.program import TIMEOUT_S, Inside, assert_two_lines
from tests.cli.test_fleet import fleet, items, wait_for
from tests.hollow.worlds import fake_node

FLAGS = (
    "--node-name=one", "--provider-id=kubemark://one", "--node-labels=autoscaling.k8s.io/nodegroup=g,pool=x",
    "--register-with-taints=dedicated=lab:NoSchedule", "--node-capacity=cpu=4,memory=16Gi", "--max-pods=30",
    "--extended-resources=nvidia.com/gpu=2", "--node-allocatable=cpu=3900m",
)  # fmt: skip


def test_it_registers_its_node_with_what_the_flags_say_and_speaks_for_no_other(tmp_path: Path) -> None:
    with serve() as server:
        async def prepare(client: Client) -> None:
            await client.create(NODES, fake_node("other"))
            await client.create(PODS, pod("elsewhere", node="other"))

        server.run(prepare)
        with fleet(tmp_path, server, *FLAGS) as process:
            async def is_up(client: Client) -> bool:
                listed = (await client.list(NODES, field_selector="metadata.name=one")).items
                return bool(listed) and is_true(listed[0], "Ready")

            async def its_pod_runs(client: Client) -> bool:
                return is_true(await client.get(PODS, "here", "default"), "Ready")

            wait_for(server, is_up)
            server.run(lambda client: client.create(PODS, pod("here", node="one")))
            wait_for(server, its_pod_runs)
            process.send_signal(signal.SIGTERM)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, stderr
            assert "1 of 1 nodes, 1 pods" in stderr.decode()
        nodes = {node["metadata"]["name"]: node for node in items(server, "nodes")}
        one, other = nodes["one"], nodes["other"]
        assert one["spec"]["providerID"] == "kubemark://one"
        assert one["metadata"]["labels"].items() >= {"autoscaling.k8s.io/nodegroup": "g", "pool": "x"}.items()
        assert {"key": "dedicated", "value": "lab", "effect": "NoSchedule"} in one["spec"]["taints"]
        assert one["status"]["capacity"] == {
            "cpu": "4", "memory": "16Gi", "ephemeral-storage": "200Gi", "pods": "30", "nvidia.com/gpu": "2",
        }  # fmt: skip
        assert one["status"]["allocatable"]["cpu"] == "3900m" and one["status"]["allocatable"]["memory"] == "16Gi"
        assert not is_true(other, "Ready")
        assert [lease["metadata"]["name"] for lease in items(server, "leases")] == ["one"]


def test_its_lease_is_held_by_the_node_as_that_of_a_kubelet_and_survives_a_restart(tmp_path: Path) -> None:
    with serve() as server:
        async def is_held(client: Client) -> bool:
            listed = (await client.list(NODES)).items
            return bool(listed) and is_true(listed[0], "Ready")

        with fleet(tmp_path, server, "--node-name=one") as process:
            wait_for(server, is_held)
            (lease,) = items(server, "leases")
            assert lease["spec"]["holderIdentity"] == "one"
            process.kill()
            process.communicate(timeout=TIMEOUT_S)
        (before,) = items(server, "leases")
        with fleet(tmp_path, server, "--node-name=one") as process:
            async def is_renewed(client: Client) -> bool:
                (found,) = (await client.list(LEASES)).items
                return bool(found["spec"]["renewTime"] != before["spec"]["renewTime"])

            # The same holder needs not wait until the lease has expired.
            wait_for(server, is_renewed)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--node-labels=a=b"], "--node-labels describes one node, but none is named"),
        (["--provider-id=x"], "--provider-id describes one node"),
        (["--node-name=N"], "--node-name 'N' is no name of a node"),
        (["--node-name=n", "--register=3"], "--node-name and --register do not go together"),
        (["--node-name=n", "--manage-all-nodes"], "--node-name and --manage-all-nodes"),
        (["--node-name=n", "--manage-nodes-with-label-selector=a=b"], "--manage-nodes-with-label-selector"),
        (["--node-name=n", "--manage-nodes-with-annotation-selector=a=b"], "--manage-nodes-with-annotation-selector"),
        (["--node-name=n", "--shard=0/2"], "--node-name and --shard"),
        (["--node-name=n", "--node-labels=a b=c"], "--node-labels: a b=c is no label"),
        (["--node-name=n", "--register-with-taints=a"], "--register-with-taints: 'a' has no effect"),
        (["--node-name=n", "--node-capacity=cpu=x"], "--node-capacity: cpu=x"),
        (["--node-name=n", "--max-pods=many"], "--max-pods: pods=many"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_reached(inside: Inside, arguments: list[str], said: str) -> None:
    done = inside("fleet", "--kubeconfig=nowhere", *arguments)
    assert done.returncode == 2
    assert said in assert_two_lines(done.stderr)[0]
