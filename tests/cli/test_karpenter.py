"""``holokube karpenter``: it makes nodes, serves, stops cleanly, and says what is wrong."""

from __future__ import annotations

import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holokube.cli.karpenter_run import KarpenterPlan
from holokube.client.client import Client
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, NODES
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.settings import FLAGS
from holokube.testing import Server, serve
from tests.cli.program import PROGRAM, TIMEOUT_S, Inside, assert_two_lines, environment, free_port
from tests.cli.test_cluster_autoscaler import wait_in_vain
from tests.cli.test_fleet import line_with, wait_for
from tests.karpenter.lab import node_class, node_pool

QUICK = ("--batch-idle-duration=100ms", "--identity=me", "--seed=1")


@contextmanager
def karpenter(home: Path, server: Server, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running Karpenter; whatever happens, it is gone at the end."""
    command = [*PROGRAM, "karpenter", f"--kubeconfig={server.kubeconfig}", *QUICK, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home, HEALTH_PROBE_PORT="0")
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def make_pool(server: Server) -> None:
    async def make(client: Client) -> None:
        await client.create(KWOK_NODE_CLASSES, node_class())
        await client.create(NODE_POOLS, node_pool())

    server.run(make)


def wait_for_nodes(server: Server, count: int) -> None:
    async def are_there(client: Client) -> bool:
        return len((await client.list(NODES)).items) == count

    wait_for(server, are_there)


def test_it_brings_its_definitions_makes_nodes_tells_how_it_does_and_leaves_them(tmp_path: Path) -> None:
    port = free_port()
    with serve() as server:
        with karpenter(tmp_path, server, f"--metrics-port={port}") as process:
            assert process.stderr is not None
            line_with("karpenter works on", process.stderr)
            assert len(server.run(lambda client: client.list(CUSTOM_RESOURCE_DEFINITIONS)).items) == 3
            make_pool(server)
            wait_in_vain(server, ["a", "b"])
            wait_for_nodes(server, 1)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                metrics = answer.read().decode()
            assert 'karpenter_nodeclaims_created_total{' in metrics
            assert 'leader_election_master_status{name="karpenter-leader-election"} 1.0' in metrics
            (lease,) = server.run(lambda client: client.list(LEASES, "kube-system")).items
            assert lease["spec"]["holderIdentity"] == "me"
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, stderr.decode()
        assert len(server.run(lambda client: client.list(NODES)).items) == 1
        assert len(server.run(lambda client: client.list(NODE_CLAIMS)).items) == 1
        (lease,) = server.run(lambda client: client.list(LEASES, "kube-system")).items
        assert lease["spec"]["holderIdentity"] == ""


def test_health_is_served_and_no_lease_is_taken_if_nobody_wants_one(tmp_path: Path) -> None:
    port = free_port()
    options = ("--metrics-port=0", f"--health-probe-port={port}", "--disable-leader-election")
    with serve() as server, karpenter(tmp_path, server, *options) as process:
        assert process.stderr is not None
        line_with("karpenter works on", process.stderr)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
        assert not server.run(lambda client: client.list(LEASES, "kube-system")).items
        process.terminate()
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-max-duration=soon"], "--batch-max-duration=soon"),
        (["--preference-policy=Maybe"], "--preference-policy=Maybe: must be one of"),
        (["--feature-gates=NodeOverlay=true"], "--feature-gates=NodeOverlay=true: the feature NodeOverlay"),
        (["--feature-gates=NoSuch=true"], "--feature-gates=NoSuch=true: there is no feature gate 'NoSuch'"),
        (["--metrics-port=70000"], "--metrics-port=70000 is no port"),
        (["--kube-client-qps=0"], "--kube-client-qps=0 would let no request through"),
        (["--metrics-port=8081"], "--metrics-port and --health-probe-port are both 8081"),
        (["--catalog=a.json", "--instance-types-file-path=b.json"], "--catalog and --instance-types-file-path are"),
        (["--catalog=/no/such/file.json"], "/no/such/file.json: cannot be read"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    inside: Inside, arguments: list[str], message: str
) -> None:
    done = inside("karpenter", *arguments)
    assert done.returncode == 2
    assert assert_two_lines(done.stderr)[0].startswith(message)


def test_the_help_shows_every_setting_with_its_variable(inside: Inside) -> None:
    shown = " ".join(inside("karpenter", "--help").stdout.split())
    for flag in FLAGS:
        assert f"--{flag.name} " in shown and f"({flag.variable})" in shown, flag.name


def test_flags_win_over_the_environment() -> None:
    environ = {"BATCH_MAX_DURATION": "20s", "BATCH_IDLE_DURATION": "3s", "FEATURE_GATES": "ReservedCapacity=false"}
    found = KarpenterPlan(flags={"batch-max-duration": "7s"}).settings(environ)
    assert (found.batch_max_duration_s, found.batch_idle_duration_s) == (7.0, 3.0)
    assert not found.feature_gates.reserved_capacity


def test_flags_reach_the_plan_as_they_were_given(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[KarpenterPlan] = []

    class Run:
        def __init__(self, plan: KarpenterPlan) -> None:
            plans.append(plan)

        def run(self) -> int:
            return 0

    monkeypatch.setattr("holokube.cli.karpenter_run.KarpenterRun", Run)
    inside("karpenter", "--disable-leader-election", "--ignore-dra-requests=false", "--log-level", "debug", "--no-crds")
    (plan,) = plans
    assert plan.no_crds and plan.flags == {
        "disable-leader-election": "true", "ignore-dra-requests": "false", "log-level": "debug"}
