"""``holokube up``: ready, reachable, and gone without a trace; errors that help."""

from __future__ import annotations

import asyncio
import gzip
import signal
import socket
import stat
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import CONFIG_MAPS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from holokube.kube.types import JsonObject
from tests.cli.program import Inside, assert_two_lines, up

T = TypeVar("T")

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, creationTimestamp: 2020-02-02T02:02:02Z}
spec: {nodeName: n1, containers: [{name: c, image: nginx}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: broken, namespace: shop}
spec: {containers: []}
"""


def with_client(kubeconfig: Path, use: Callable[[Client], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Client(HttpTransport(WallClock(), load_access(str(kubeconfig)))) as client:
            return await use(client)

    return asyncio.run(main())


def config_map(name: str) -> JsonObject:
    return {"metadata": {"name": name}, "data": {"a": "b"}}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    with up(tmp_path, XDG_RUNTIME_DIR=str(runtime)) as server:
        assert server.kubeconfig.is_relative_to(runtime / "holokube")
        assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
        listed = with_client(server.kubeconfig, lambda client: client.list(NAMESPACES))
        assert {obj["metadata"]["name"] for obj in listed.items} >= {"default", "kube-system"}
        code, stderr = server.stop(number)
    assert code == 0
    assert "kubectl get all -A" in stderr
    assert "Traceback" not in stderr
    assert list((runtime / "holokube").iterdir()) == []


def test_an_open_watch_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with up(tmp_path) as server:

        async def watch(client: Client) -> int:
            stream = client.watch(NAMESPACES)
            first = await anext(stream)
            assert first.type == "ADDED"
            server.process.send_signal(signal.SIGTERM)
            return len([event async for event in stream])

        assert with_client(server.kubeconfig, watch) >= 3
        assert server.process.wait(timeout=20) == 0


def test_without_a_runtime_dir_the_kubeconfig_is_below_home(tmp_path: Path) -> None:
    with up(tmp_path, XDG_RUNTIME_DIR="/nonexistent") as server:
        assert server.kubeconfig.is_relative_to(tmp_path / ".cache" / "holokube")
        server.stop()
        assert not server.kubeconfig.exists()


def test_a_restart_on_the_same_data_directory_is_the_same_cluster(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(tmp_path, "--data-dir", str(data), "--seed", "7") as server:
        kubeconfig = server.kubeconfig
        url = server.server

        async def write(client: Client) -> tuple[JsonObject, str]:
            made = await client.create(CONFIG_MAPS, config_map("kept"), "default")
            token = await client.create(
                SERVICE_ACCOUNTS, {"spec": {"audiences": []}}, "default", name="default", subresource="token"
            )
            return made, token["status"]["token"]

        made, token = with_client(kubeconfig, write)
        assert server.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.rglob("*") if path.is_file()}
    assert set(modes.values()) == {0o600}, modes
    old_kubeconfig = tmp_path / "copy"
    old_kubeconfig.write_bytes(kubeconfig.read_bytes())
    with up(tmp_path, "--data-dir", str(data), "--seed", "7") as server:
        assert server.server == url
        assert with_client(old_kubeconfig, lambda client: client.get(CONFIG_MAPS, "kept", "default")) == made
        other = with_client(
            kubeconfig, lambda client: client.create(CONFIG_MAPS, config_map("new"), "default")
        )
        assert other["metadata"]["uid"] != made["metadata"]["uid"], "the same seed must not repeat uids"
        assert whoami(server.server, token) == 200, "service account tokens outlive a restart"
        assert server.stop()[0] == 0
    assert kubeconfig.exists(), "it will be good again"


def whoami(url: str, token: str) -> int:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(f"{url}/api/v1/namespaces", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=context) as answer:
        return int(answer.status)


def test_a_snapshot_is_loaded_and_what_is_wrong_with_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml.gz"
    file.write_bytes(gzip.compress(MANIFEST.encode()))
    with up(tmp_path, "--from", str(file)) as server:
        found = with_client(server.kubeconfig, lambda client: client.list(PODS))
        assert [obj["metadata"]["name"] for obj in found.items] == ["web"]
        assert found.items[0]["status"]["phase"] == "Running"
        assert found.items[0]["metadata"]["creationTimestamp"] == "2020-02-02T02:02:02Z"
        _, stderr = server.stop()
    assert f"left out: {file}, line 7: Pod shop/broken: spec.containers: Required value" in stderr
    assert "loaded 1 objects" in stderr
    assert "made namespaces shop" in stderr


def test_metrics_are_served_in_plain(tmp_path: Path) -> None:
    with up(
        tmp_path, "--metrics-address", "127.0.0.1:0", "--kubeconfig-out", str(tmp_path / "config")
    ) as server:
        assert server.process.stdout is not None
        line = server.process.stdout.readline().decode().strip()
        url = line.removeprefix("HOLOKUBE_METRICS=")
        with urllib.request.urlopen(url) as answer:
            assert b"apiserver_storage_objects" in answer.read()
        with urllib.request.urlopen(url.replace("metrics", "readyz")) as answer:
            assert answer.read() == b"ok"
        server.stop()
    assert (tmp_path / "config").exists(), "a file that was asked for stays"


def test_a_port_in_use_is_an_error_that_helps(inside: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = inside("up", "--port", str(port))
    assert done.returncode == 1
    what, hint = assert_two_lines(done.stderr)
    assert what == f"port {port} on 127.0.0.1 is in use by another program"
    assert "0 for a free one" in hint
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no Kubernetes objects"),
        (b'{"kind": "List",', "is neither JSON nor YAML"),
        (b"a: [1", "is neither JSON nor YAML"),
        (b"\x1f\x8bnot gzip", "is damaged"),
        (b"\xff\xfe\x00binary", "is neither JSON nor YAML"),
    ],
)
def test_a_bad_snapshot_is_an_error_that_helps(
    tmp_path: Path, inside: Inside, content: bytes, message: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    done = inside("up", "--from", str(file), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 2
    what, _ = assert_two_lines(done.stderr)
    assert message in what
    assert not (tmp_path / "data").exists()


def test_a_missing_snapshot_and_one_of_rubbish_are_told_apart(tmp_path: Path, inside: Inside) -> None:
    done = inside("up", "--from", str(tmp_path / "nothing.json"))
    assert done.returncode == 2
    assert "No such file" in assert_two_lines(done.stderr)[0]
    file = tmp_path / "sentence"
    file.write_text("just a sentence")
    done = inside("up", "--from", str(file))
    assert done.returncode == 2
    assert f"none of the 1 objects in {file} can be loaded" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_data_directory_that_holds_a_cluster_takes_no_snapshot(tmp_path: Path, inside: Inside) -> None:
    data = tmp_path / "data"
    with up(tmp_path, "--data-dir", str(data)) as server:
        busy = inside("up", "--data-dir", str(data))
        assert busy.returncode == 1
        assert "is in use by process" in assert_two_lines(busy.stderr)[0]
        server.stop()
    file = tmp_path / "cluster.yaml"
    file.write_text(MANIFEST)
    done = inside("up", "--data-dir", str(data), "--from", str(file))
    assert done.returncode == 2
    assert "holds a cluster already" in assert_two_lines(done.stderr)[0]


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "file").write_text("")
    done = inside("up", "--data-dir", str(tmp_path / "file"))
    assert done.returncode == 2
    assert "is a file" in assert_two_lines(done.stderr)[0]
    done = inside("up", "--data-dir", str(tmp_path / "file" / "below"))
    assert done.returncode == 1
    assert_two_lines(done.stderr)


def test_somebody_elses_kubeconfig_is_never_overwritten(tmp_path: Path, inside: Inside) -> None:
    file = tmp_path / "config"
    text = "apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {}}]\n"
    file.write_text(text)
    done = inside("up", "--kubeconfig-out", str(file))
    assert done.returncode == 2
    assert "knows other clusters (production)" in assert_two_lines(done.stderr)[0]
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--host", "203.0.113.7"), "is not an address of this machine"),
        (("--host", "no.such.host.invalid"), "cannot be resolved"),
        (("--metrics-address", "nonsense"), "is not an address to listen on"),
    ],
)
def test_wrong_addresses_are_explained(inside: Inside, arguments: tuple[str, ...], message: str) -> None:
    done = inside("up", *arguments)
    assert done.returncode in (1, 2)
    assert message in assert_two_lines(done.stderr)[0]


def test_listening_to_the_network_is_warned_of(tmp_path: Path) -> None:
    with up(tmp_path, "--host", "0.0.0.0", "--kubeconfig-out", str(tmp_path / "config")) as server:
        assert server.server.startswith("https://127.0.0.1:")
        _, stderr = server.stop()
    assert "warning: listening on 0.0.0.0" in stderr
