"""``holokube node-sizing``: what it says, what it serves, and what it refuses to start with."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from holokube.base.clock import WallClock
from holokube.cli.node_sizing_run import SizingPlan
from holokube.client.client import Client
from holokube.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS
from holokube.kube.pki import Authority
from holokube.kube.types import JsonObject
from holokube.sizing.registration import published_bundle
from holokube.testing import serve
from tests.cli.program import PROGRAM, TIMEOUT_S, Inside, assert_two_lines, environment
from tests.sizing.script import webhook


def test_it_serves_health_and_metrics_and_cleans_nothing_up_that_others_need(tmp_path: Path) -> None:
    with serve() as server:
        with webhook(server.kubeconfig, "--metrics-address=127.0.0.1:0") as running:
            url = next(line for line in running.said if "metrics and health on" in line).split()[-1]
            for path in ("healthz", "readyz", "livez"):
                with urllib.request.urlopen(f"{url}/{path}") as answer:
                    assert answer.read() == b"ok"
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                metrics = answer.read().decode()
            assert "holokube_node_sizing_certificate_expiry_timestamp_seconds" in metrics
            assert 'holokube_node_sizing_admissions_total{outcome="sized"} 0.0' in metrics

        async def left(client: Client) -> tuple[JsonObject, JsonObject]:
            configuration = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "holokube-node-sizing")
            return configuration, await client.get(SECRETS, "holokube-node-sizing", "default")

        configuration, secret = server.run(left)
        assert configuration["webhooks"] and secret["data"]["tls.crt"]


def test_a_certificate_of_ones_own_is_served(tmp_path: Path) -> None:
    authority = Authority.create("mine", WallClock().now())
    pair = authority.issue_server((), ("127.0.0.1",))
    for name, pem in (("tls.crt", pair.cert_pem), ("tls.key", pair.key_pem), ("ca.crt", authority.cert_pem)):
        (tmp_path / name).write_bytes(pem)
    options = (
        f"--tls-cert-file={tmp_path / 'tls.crt'}", f"--tls-private-key-file={tmp_path / 'tls.key'}",
        f"--tls-ca-file={tmp_path / 'ca.crt'}",
    )  # fmt: skip
    with serve() as server, webhook(server.kubeconfig, *options):
        found = server.run(lambda client: client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "holokube-node-sizing"))
        assert published_bundle(found) == authority.cert_pem
        assert not server.run(lambda client: client.list(SECRETS, "default")).items


def test_before_it_is_registered_it_is_not_ready(tmp_path: Path) -> None:
    """Somebody without permissions: alive, not ready, and it says why."""
    with serve() as server:
        taken = {"metadata": {"name": "holokube-node-sizing"}, "data": {}}
        server.run(lambda client: client.create(SECRETS, taken, "default"))
        command = [
            *PROGRAM, "node-sizing", f"--kubeconfig={server.kubeconfig}", "--listen=127.0.0.1:0", "--namespace=missing",
            "--metrics-address=127.0.0.1:0", "--drain=0s",
        ]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(tmp_path)) as process:
            try:
                assert process.stderr is not None
                url = next(line for line in process.stderr if "metrics and health" in line).split()[-1]
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(f"{url}/readyz/webhook")
                assert b"no certificate yet" in refused.value.read()
                refused.value.close()
                with urllib.request.urlopen(f"{url}/livez") as answer:
                    assert answer.read() == b"ok"
                process.terminate()
                process.communicate(timeout=TIMEOUT_S)
                assert process.returncode == 0
            finally:
                if process.poll() is None:
                    process.kill()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen=everywhere"], "--listen"),
        (["--url=http://127.0.0.1/mutate"], "--url"),
        (["--url=https://"], "--url"),
        (["--url=https://h:x/mutate"], "--url"),
        (["--node-wait=5s"], "--node-wait"),
        (["--node-wait=soon"], "--node-wait"),
        (["--certificate-lifetime=1ms"], "--certificate-lifetime"),
        (["--namespace=Upper"], "--namespace"),
        (["--service=a.b"], "--service"),
        (["--tls-cert-file=x"], "belong together"),
        (["--tls-ca-file=x"], "--tls-ca-file"),
        (["--tls-cert-file=gone", "--tls-private-key-file=gone"], "gone"),
        (["--metrics-address=everywhere"], "everywhere"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_reached(inside: Inside, arguments: list[str], said: str) -> None:
    done = inside("node-sizing", "--kubeconfig=nowhere", *arguments)
    assert done.returncode == 2
    assert said in assert_two_lines(done.stderr)[0]


def test_an_unknown_way_to_handle_errors_is_refused(inside: Inside) -> None:
    done = inside("node-sizing", "--on-error=panic")
    assert done.returncode == 2 and "--on-error" in done.stderr


def plan(**changes: object) -> SizingPlan:
    given: dict[str, object] = {
        "listen": "127.0.0.1:9443", "url": "", "service": "s", "namespace": "", "secret": "x", "configuration": "c",
        "on_error": "allow", "failure_policy": "Ignore", "resize_running": False, "node_wait": "2s",
        "tls_cert_file": "", "tls_private_key_file": "", "tls_ca_file": "", "certificate_lifetime": "90h",
        "ca_lifetime": "900h", "ca_settle": "1m", "drain": "5s", "identity": "me", "seed": "", "metrics_address": "0",
        "kubeconfig": "", "context": "", **changes,
    }  # fmt: skip
    return SizingPlan(**given)  # type: ignore[arg-type]  # the names and types are the plan's own


def test_the_certificate_is_for_the_name_that_api_servers_call() -> None:
    assert plan().options("space").policy.names == ("s.space.svc",)
    assert plan(namespace="mine").options("space").policy.names == ("s.mine.svc",)
    assert plan(url="https://10.0.0.7/mutate").options("space").policy.names == ("10.0.0.7",)
    assert plan(url="https://hook.example:8443").options("space").policy.names == ("hook.example",)


def test_the_url_has_the_port_and_the_path_that_are_served() -> None:
    assert plan(url="https://127.0.0.1:0").options("x").registration.url == "https://127.0.0.1:9443/mutate"
    assert plan(url="https://[::1]:7/mutate").options("x").registration.url == "https://[::1]:7/mutate"
    assert plan(url="https://hook.example").options("x").registration.url == "https://hook.example/mutate"


def test_help_names_every_option(inside: Inside) -> None:
    done = inside("node-sizing", "--help")
    for option in ("--on-error", "--resize-running", "--tls-cert-file", "--tls-private-key-file", "--url"):
        assert option in done.stdout
