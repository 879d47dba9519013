"""``holokube cluster-autoscaler``: it scales, serves, stops cleanly, and says what is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holokube.cli.cluster_autoscaler_run import AutoscalerPlan
from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS, LEASES, NODES, PODS
from holokube.cluster_autoscaler.flag_table import FLAGS, SECTIONS
from holokube.kube.types import JsonObject
from holokube.testing import Server, serve
from tests.builders import pod
from tests.cli.program import PROGRAM, TIMEOUT_S, Inside, assert_two_lines, environment
from tests.cli.test_fleet import line_with, wait_for
from tests.cluster_autoscaler.loop.lab import template

KWOK = "--cloud-provider=kwok"


@contextmanager
def autoscaler(home: Path, server: Server, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running autoscaler with one group; whatever happens, it is gone at the end."""
    templates = home / "templates.json"
    templates.write_text(json.dumps(template("small")))
    command = [
        *PROGRAM, "cluster-autoscaler", f"--kubeconfig={server.kubeconfig}", KWOK, f"--kwok-templates={templates}",
        "--scan-interval=500ms", *arguments,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home)) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_in_vain(server: Server, names: list[str]) -> None:
    """Pods for which, as a scheduler would say, there is no place."""

    async def make(client: Client) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for name in names:
            container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1500m"}}}
            made = await client.create(PODS, pod(name, containers=[container]))
            await client.update_status(PODS, {**made, "status": {"phase": "Pending", "conditions": [condition]}})

    server.run(make)


def wait_for_nodes(server: Server, count: int) -> None:
    async def are_there(client: Client) -> bool:
        return len((await client.list(NODES)).items) == count

    wait_for(server, are_there)


def read(server: Server, resource: object, namespace: str) -> dict[str, JsonObject]:
    found = server.run(lambda client: client.list(resource, namespace))  # type: ignore[arg-type]  # one of two
    return {item["metadata"]["name"]: item for item in found.items}


def test_it_scales_up_tells_how_it_does_and_leaves_nothing_behind(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    options = ("--address=127.0.0.1:0", f"--journal={journal}", "--identity=me", "--emit-per-nodegroup-metrics")
    with serve() as server:
        wait_in_vain(server, ["a", "b", "c"])
        with autoscaler(tmp_path, server, *options) as process:
            assert process.stderr is not None
            url = line_with("metrics on", process.stderr).split()[-1].removesuffix("/metrics")
            wait_for_nodes(server, 2)
            with urllib.request.urlopen(f"{url}/health-check") as answer:
                assert answer.read() == b"OK"
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                metrics = answer.read().decode()
            assert "cluster_autoscaler_scaled_up_nodes_total" in metrics
            assert 'cluster_autoscaler_node_group_max_count{node_group="small"} 200.0' in metrics
            assert 'leader_election_master_status{name="cluster-autoscaler"} 1.0' in metrics
            with pytest.raises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(f"{url}/snapshotz")
            missing.value.close()
            assert "autoscalerStatus: Running" in read(server, CONFIG_MAPS, "kube-system")[
                "cluster-autoscaler-status"]["data"]["status"]
            lease = read(server, LEASES, "kube-system")["cluster-autoscaler"]
            assert lease["spec"]["holderIdentity"] == "me"
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, stderr.decode()
        assert not server.run(lambda client: client.list(NODES)).items
        assert "cluster-autoscaler-status" not in read(server, CONFIG_MAPS, "kube-system")
        assert read(server, LEASES, "kube-system")["cluster-autoscaler"]["spec"]["holderIdentity"] == ""
    decisions = [json.loads(line) for line in journal.read_text().splitlines()]
    assert {"enlarged", "chose small"} <= {entry["decision"] for entry in decisions}


def test_nodes_can_be_kept_and_are_taken_over(tmp_path: Path) -> None:
    options = ("--address=0", "--keep-nodes", "--leader-elect=false")
    with serve() as server:
        wait_in_vain(server, ["a"])
        for _ in range(2):
            with autoscaler(tmp_path, server, *options) as process:
                assert process.stderr is not None
                line_with("autoscaling", process.stderr)
                wait_for_nodes(server, 1)
                process.terminate()
                _, stderr = process.communicate(timeout=TIMEOUT_S)
                assert process.returncode == 0, stderr.decode()
        assert len(server.run(lambda client: client.list(NODES)).items) == 1


def test_the_snapshot_of_a_turn_can_be_looked_at(tmp_path: Path) -> None:
    options = ("--address=127.0.0.1:0", "--debugging-snapshot-enabled", "--leader-elect=false")
    with serve() as server, autoscaler(tmp_path, server, *options) as process:
        assert process.stderr is not None
        url = line_with("metrics on", process.stderr).split()[-1].removesuffix("/metrics")
        with urllib.request.urlopen(f"{url}/snapshotz", timeout=TIMEOUT_S) as answer:
            taken = json.loads(answer.read())
        assert taken["NodeList"] == [] and taken["errorMessage"] == ""
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "--cloud-provider is missing"),
    (["--cloud-provider=aws"], "--cloud-provider=aws is not offered"),
    (["--cloud-provider=kubemark"], "kubemark has no groups"),
    ([KWOK, "--nodes=0:3:a"], "--nodes is not for kwok, whose groups come from templates"),
    ([KWOK, "--kwok-templates=/no/such/file"], "--kwok-templates: there is no file /no/such/file"),
    ([KWOK, "--leader-elect-renew-deadline=20s"], "--leader-elect-"),
    ([KWOK, "--leader-elect-resource-lock=endpoints"], "--leader-elect-resource-lock=endpoints is not possible"),
    ([KWOK, "--scan-interval=soon"], "--scan-interval=soon"),
    ([KWOK, "--capacity-quotas-enabled"], "--capacity-quotas-enabled=true is not possible"),
    ([KWOK, "--address=nowhere"], "--address 'nowhere' is not an address to listen on"),
])
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    inside: Inside, arguments: list[str], message: str
) -> None:
    done = inside("cluster-autoscaler", *arguments)
    assert done.returncode == 2
    assert assert_two_lines(done.stderr)[0].startswith(message)


def test_the_help_shows_every_flag_under_its_heading(inside: Inside) -> None:
    shown = inside("cluster-autoscaler", "--help").stdout
    for section in SECTIONS:
        assert f"\n{section}:\n" in shown
    for flag in FLAGS:
        assert f"--{flag.name} " in shown, flag.name


def test_flags_reach_the_plan_as_they_were_given(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[AutoscalerPlan] = []

    class Run:
        def __init__(self, plan: AutoscalerPlan) -> None:
            plans.append(plan)

        def run(self) -> int:
            return 0

    monkeypatch.setattr("holokube.cli.cluster_autoscaler_run.AutoscalerRun", Run)
    inside("cluster-autoscaler", KWOK, "--balance-similar-node-groups", "--scale-down-enabled=false", "--v=4",
           "--startup-taint=a", "--startup-taint", "b", "--scan-interval", "7s", "--kubeconfig=k")
    (plan,) = plans
    assert plan.kubeconfig == "k" and plan.flags == {
        "cloud-provider": ("kwok",), "balance-similar-node-groups": ("true",), "scale-down-enabled": ("false",),
        "v": ("4",), "startup-taint": ("a", "b"), "scan-interval": ("7s",),
    }  # fmt: skip
    options = plan.parse().options
    assert options.scan_interval_s == 7.0 and not options.scale_down_enabled and options.startup_taint == ("a", "b")
