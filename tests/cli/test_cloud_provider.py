"""``holokube cloud-provider``: what it prints, whom it serves, and what it refuses to start with."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from holokube.cli import cloud_provider_certificates
from holokube.cli.cloud_provider_run import CloudProviderPlan, cloud_config
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.testing import serve
from tests.cli.program import PROGRAM, TIMEOUT_S, Inside, assert_two_lines, environment
from tests.cluster_autoscaler.cloud.grpc.script import Script
from tests.cluster_autoscaler.cloud.grpc.serving import Pki
from tests.cluster_autoscaler.cloud.grpc.upstream import Autoscaler
from tests.cluster_autoscaler.cloud.kwok.worlds import template


@dataclass
class Running:
    """A running ``holokube cloud-provider``."""

    process: subprocess.Popen[str]
    config: dict[str, str]
    said: list[str]

    def channel(self) -> Any:
        """As upstream's client connects by the file that was printed."""
        if "cert" not in self.config:
            return grpc.aio.insecure_channel(self.config["address"])
        key, cert, ca = (Path(self.config[name]).read_bytes() for name in ("key", "cert", "cacert"))
        return grpc.aio.secure_channel(self.config["address"], grpc.ssl_channel_credentials(ca, key, cert))

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, stderr = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, "".join(self.said) + stderr


@contextmanager
def cloud_provider(home: Path, kubeconfig: Path, *arguments: str) -> Iterator[Running]:
    command = [
        *PROGRAM, "cloud-provider", f"--kubeconfig={kubeconfig}", "--address=127.0.0.1:0", "--seed=1", *arguments,
    ]  # fmt: skip
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment(home)) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("ready"):
                    break
            else:
                raise AssertionError("".join(said))
            # The timeout is what the file ends with.
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("grpc_timeout"):
                    break
            yield Running(process, yaml.safe_load("".join(lines)), said)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    path = tmp_path / "templates.json"
    listed = [template("a", "pool-a", max_count=10), template("b", "pool-b", max_count=5, desired_count=1)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}))
    return path


async def names(client: Client) -> list[str]:
    return sorted(node["metadata"]["name"] for node in (await client.list_all(NODES)).items)


async def grow(running: Running, group: str, by: int) -> int:
    async with running.channel() as channel:
        real = Autoscaler(channel)
        await real.refresh()
        await real.increase_size(group, by)
        return await real.target_size(group)


def test_it_serves_what_it_prints_and_ends_cleanly(tmp_path: Path, templates: Path) -> None:
    with serve() as server:
        arguments = (f"--kwok-templates={templates}", "--metrics-address=127.0.0.1:0")
        with cloud_provider(tmp_path, server.kubeconfig, *arguments) as running:
            assert set(running.config) == {"address", "grpc_timeout"} and running.config["grpc_timeout"] == "1m0s"
            assert any("pool-a (0:10), pool-b (0:5)" in line for line in running.said)
            (first,) = server.run(names)
            assert first.startswith("pool-b-")
            assert asyncio.run(grow(running, "pool-a", 3)) == 3
            assert len(server.run(names)) == 4
            url = next(line for line in running.said if "metrics and health on" in line).split()[-1]
            with urllib.request.urlopen(f"{url}/readyz?verbose") as answer:
                assert "[+]informer-sync ok" in answer.read().decode()
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                assert 'grpc_method="NodeGroupIncreaseSize"' in answer.read().decode()
            code, said = running.stop()
            assert code == 0 and "Traceback" not in said
        # An autoscaler that only restarts finds its nodes again.
        assert len(server.run(names)) == 4


def test_a_conversation_over_certificates_that_it_made_itself(tmp_path: Path, templates: Path) -> None:
    folder = tmp_path / "certificates"
    arguments = (f"--kwok-templates={templates}", f"--certificates={folder}")

    async def talk(running: Running, cluster: Client) -> None:
        async with running.channel() as channel:
            script = Script(Autoscaler(channel), cluster)
            await script.run_once(increase={"pool-a": 2})
            turn = await script.run_once()
            assert turn.targets == {"pool-a": 2, "pool-b": 1} and turn.unregistered == {}
        async with grpc.aio.insecure_channel(running.config["address"]) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await Autoscaler(channel).refresh()

    with serve() as server:
        with cloud_provider(tmp_path, server.kubeconfig, *arguments) as running:
            assert running.config["cacert"] == str(folder / "ca.crt")
            assert folder.joinpath("client.key").stat().st_mode & 0o077 == 0
            authority = folder.joinpath("ca.crt").read_bytes()
            server.run(lambda client: talk(running, client))
            assert running.stop()[0] == 0
        # Started again, it keeps its authority, and with it the trust of whoever has its certificate.
        with cloud_provider(tmp_path, server.kubeconfig, *arguments) as running:
            assert folder.joinpath("ca.crt").read_bytes() == authority
            assert asyncio.run(grow(running, "pool-a", 1)) == 3


@pytest.mark.parametrize(("mode", "left"), [("request", 1), ("exit", 0), ("never", 1)])
def test_nodes_are_removed_at_the_end_where_that_is_wished_for(
    tmp_path: Path, templates: Path, mode: str, left: int
) -> None:
    with serve() as server:
        with cloud_provider(
            tmp_path, server.kubeconfig, f"--kwok-templates={templates}", f"--cleanup={mode}"
        ) as running:
            assert running.stop()[0] == 0
        assert len(server.run(names)) == left


def test_an_address_that_is_taken_is_told_in_two_lines(tmp_path: Path, templates: Path) -> None:
    with serve() as server, cloud_provider(tmp_path, server.kubeconfig, f"--kwok-templates={templates}") as running:
        command = [
            *PROGRAM, "cloud-provider", f"--kubeconfig={server.kubeconfig}", f"--kwok-templates={templates}",
            f"--address={running.config['address']}", "--log-format=json",
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment(tmp_path)
        )
        assert done.returncode == 1
        said = [line for line in done.stderr.splitlines() if line.startswith(("Error: ", "Hint: "))]
        assert f"cannot listen on {running.config['address']}" in assert_two_lines("\n".join(said))[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address=everywhere"], "--address"),
        (["--address=0"], "--address"),
        (["--advertise=:7"], "--advertise"),
        (["--key=x"], "belong together"),
        (["--cacert=x"], "--cacert"),
        (["--certificates=x", "--key=y"], "--certificates"),
        (["--grpc-timeout=soon"], "--grpc-timeout"),
        (["--grpc-timeout=0s"], "--grpc-timeout"),
        (["--kwok-templates=gone"], "gone"),
        (["--nodes=0:1:a"], "not for kwok"),
        (["--provider=kubemark"], "no groups"),
        (["--provider=kubemark", "--nodes=a"], "MIN:MAX:NAME"),
        (["--metrics-address=everywhere"], "everywhere"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_reached(inside: Inside, arguments: list[str], said: str) -> None:
    done = inside("cloud-provider", "--kubeconfig=nowhere", *arguments)
    assert done.returncode == 2
    assert said in assert_two_lines(done.stderr)[0]


def test_certificates_that_cannot_be_read_are_named(inside: Inside, tmp_path: Path) -> None:
    done = inside("cloud-provider", "--kubeconfig=nowhere", f"--key={tmp_path}/gone.key", f"--cert={tmp_path}/gone.crt")
    assert done.returncode == 1
    assert "gone.key cannot be read" in assert_two_lines(done.stderr)[0]


def test_an_unknown_provider_is_refused(inside: Inside) -> None:
    done = inside("cloud-provider", "--provider=aws")
    assert done.returncode == 2 and "--provider" in done.stderr


def plan(**changes: Any) -> CloudProviderPlan:
    given: dict[str, Any] = {
        "provider": "kwok", "address": "127.0.0.1:8086", "advertise": "", "key": None, "cert": None, "cacert": None,
        "certificates": None, "kwok_templates": "", "nodes": (), "external_kubeconfig": "", "external_context": "",
        "kubemark_template": "", "kubemark_template_config_map": "", "kubemark_namespace": "kubemark",
        "cleanup": "request", "grpc_timeout": "1m", "seed": "", "metrics_address": "0", "kubeconfig": "",
        "context": "", **changes,
    }  # fmt: skip
    return CloudProviderPlan(**given)


def test_the_autoscaler_is_told_where_it_reaches_the_server() -> None:
    assert plan().advertised(9) == ("127.0.0.1", 9)
    assert plan(advertise="cloud.holokube:0").advertised(9) == ("cloud.holokube", 9)
    assert plan(advertise="cloud.holokube:443", address=":8086").advertised(9) == ("cloud.holokube", 443)
    # All interfaces are nowhere to connect to.
    assert plan(address=":8086").advertised(9)[0] not in ("", "0.0.0.0", "::")


def test_the_file_is_what_upstream_reads() -> None:
    files = cloud_provider_certificates.ClientFiles("/c.key", "/c.crt", "/ca.crt")
    assert yaml.safe_load(cloud_config("::1", 8086, 30.0, files)) == {
        "address": "[::1]:8086", "key": "/c.key", "cert": "/c.crt", "cacert": "/ca.crt", "grpc_timeout": "30s",
    }  # fmt: skip


def test_given_certificates_are_served_to_who_shows_one_of_the_authority(tmp_path: Path, templates: Path) -> None:
    pki = Pki.create(tmp_path)
    arguments = (
        f"--kwok-templates={templates}", f"--key={tmp_path / 'server.key'}", f"--cert={tmp_path / 'server.crt'}",
        f"--cacert={tmp_path / 'ca.crt'}",
    )  # fmt: skip
    with serve() as server, cloud_provider(tmp_path, server.kubeconfig, *arguments) as running:
        # Where the client keeps its files only the client knows.
        assert running.config["cert"] == "CLIENT.crt"

        async def talk() -> None:
            async with grpc.aio.secure_channel(running.config["address"], pki.channel_credentials()) as channel:
                assert len(await Autoscaler(channel).node_groups()) == 2

        asyncio.run(talk())
