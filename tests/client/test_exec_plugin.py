from __future__ import annotations

import asyncio
import base64
import os
import ssl
import stat
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError
from holokube.client.access import ClusterAccess, UserSettings
from holokube.client.client import Client
from holokube.client.exec_plugin import ExecAuth, ExecPlugin
from holokube.client.http import HttpTransport
from holokube.client.resources import PODS
from holokube.client.tls import TlsSettings

from .servers import Certificates, common_name, serving, status

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def program(tmp_path: Path, body: str) -> str:
    """A plugin in Python; `state` is a folder it may write to, `info` what it was asked."""
    file = tmp_path / "plugin"
    file.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        f"state = pathlib.Path({str(tmp_path)!r})\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "def answer(**status):\n"
        "    print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'], 'status': status}))\n"
        "calls = state / 'calls'\n"
        "calls.write_text((calls.read_text() if calls.exists() else '') + 'x')\n"
        "number = len(calls.read_text())\n" + body
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text())


def plugin_for(command: str, **options: Any) -> ExecPlugin:
    return ExecPlugin(command, options.pop("api_version", V1), interactive_mode="Never", **options)


class MovedClock(WallClock):
    __slots__ = ("ahead",)

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> Any:
        return super().now() + self.ahead


@pytest.mark.parametrize("api_version", [V1, V1BETA1])
def test_the_program_gets_its_arguments_environment_and_the_cluster(tmp_path: Path, api_version: str) -> None:
    command = program(
        tmp_path,
        "(state / 'seen').write_text(json.dumps([sys.argv[1:], os.environ['COLOUR'], info,"
        " sys.stdin.read()]))\nanswer(token='t')\n",
    )
    plugin = plugin_for(
        command, api_version=api_version, args=("get", "token"), env=(("COLOUR", "red"),), provide_cluster_info=True
    )
    access = ClusterAccess(
        "https://h:6443",
        tls=TlsSettings(ca_data=b"pem", server_name="kubernetes"),
        user=UserSettings(exec_plugin=plugin),
        exec_config={"audience": "a"},
    )

    async def main() -> None:
        credentials = await access.authenticator(WallClock()).credentials()
        assert credentials.headers == (("Authorization", "Bearer t"),)

    asyncio.run(main())
    args, colour, info, stdin = orjson.loads((tmp_path / "seen").read_bytes())
    assert (args, colour, stdin) == (["get", "token"], "red", "")
    assert info == {
        "kind": "ExecCredential",
        "apiVersion": api_version,
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://h:6443",
                "tls-server-name": "kubernetes",
                "certificate-authority-data": base64.b64encode(b"pem").decode(),
                "config": {"audience": "a"},
            },
        },
    }


def test_a_credential_is_kept_until_it_expires(tmp_path: Path) -> None:
    moment = (WallClock().now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f"answer(token=f't{{number}}', **({{'expirationTimestamp': '{moment}'}} if number == 1 else {{}}))\n"

    async def main() -> None:
        clock = MovedClock()
        auth = ExecAuth(clock, plugin_for(program(tmp_path, body)))
        first = await asyncio.gather(*(auth.credentials() for _ in range(5)))
        assert {item.headers[0][1] for item in first} == {"Bearer t1"}
        assert calls(tmp_path) == 1
        clock.ahead = timedelta(minutes=59)
        assert (await auth.credentials()).headers[0][1] == "Bearer t1"
        clock.ahead = timedelta(minutes=61)
        assert (await auth.credentials()).headers[0][1] == "Bearer t2"
        clock.ahead = timedelta(days=9)
        assert (await auth.credentials()).headers[0][1] == "Bearer t2"

    asyncio.run(main())


def test_after_401_it_is_asked_once_for_all_waiting_requests(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer t2":
            return web.json_response({})
        return web.json_response(status(401, "Unauthorized", "expired"), status=401)

    async def main() -> None:
        async with serving(handler, certificates.server_context()) as url:
            plugin = plugin_for(program(tmp_path, "answer(token=f't{number}')\n"))
            access = ClusterAccess(
                url,
                tls=TlsSettings(ca_data=certificates.authority.cert_pem),
                user=UserSettings(exec_plugin=plugin),
            )
            async with Client(HttpTransport(WallClock(), access, environ={})) as client:
                await asyncio.gather(*(client.get(PODS, f"p{i}", "default") for i in range(4)))

    asyncio.run(main())
    assert calls(tmp_path) == 2


def test_its_certificate_is_shown_to_the_server(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    pair = certificates.client("carol")
    body = f"answer(clientCertificateData={pair.cert_pem.decode()!r}, clientKeyData={pair.key_pem.decode()!r})\n"

    async def handler(request: web.Request) -> web.StreamResponse:
        assert "Authorization" not in request.headers
        return web.json_response({"who": common_name(request)})

    async def main() -> None:
        context = certificates.server_context(client_certificates=ssl.CERT_REQUIRED)
        async with serving(handler, context) as url:
            access = ClusterAccess(
                url,
                tls=TlsSettings(ca_data=certificates.authority.cert_pem),
                user=UserSettings(exec_plugin=plugin_for(program(tmp_path, body))),
            )
            async with Client(HttpTransport(WallClock(), access, environ={})) as client:
                assert await client.get(PODS, "p", "default") == {"who": "carol"}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)\n", "failed with exit code 3"),
        ("print('hello')\n", "did not print JSON"),
        ("print('[]')\n", "did not print an ExecCredential"),
        ("info['apiVersion'] += 'beta9'; answer(token='t')\n", "and printed client.authentication.k8s.io/v1beta9"),
        ("print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion']}))\n", "no status"),
        ("answer()\n", "neither a token nor a certificate"),
        ("answer(clientKeyData='k')\n", "only one of certificate and key"),
        ("answer(token='t', expirationTimestamp='tomorrow')\n", "no RFC 3339 time"),
        ("answer(token='a\\nb')\n", "line break"),
    ],
)
def test_a_plugin_that_does_something_else_is_named(tmp_path: Path, body: str, message: str) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            await ExecAuth(WallClock(), plugin_for(program(tmp_path, body))).credentials()
        assert caught.value.hint

    asyncio.run(main())


def test_a_missing_program_gives_its_own_hint_without_escape_codes() -> None:
    async def main() -> None:
        plugin = ExecPlugin(
            "no-such-program", V1, install_hint="\x1b[1mget it\nhere", origin="users[u].exec in config"
        )
        with pytest.raises(ConfigError, match=r"users\[u\]\.exec in config") as caught:
            await ExecAuth(WallClock(), plugin, is_terminal=lambda: False).credentials()
        assert caught.value.hint == "U+001B[1mget it\nhere"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Always", True, True)],
)
def test_the_terminal_is_handed_over_as_the_mode_says(
    tmp_path: Path, mode: str, terminal: bool, interactive: bool
) -> None:
    command = program(tmp_path, "answer(token=str(info['spec']['interactive']))\n")

    async def main() -> None:
        plugin = ExecPlugin(command, V1, interactive_mode=mode)
        auth = ExecAuth(WallClock(), plugin, is_terminal=lambda: terminal)
        assert (await auth.credentials()).headers[0][1] == f"Bearer {interactive}"

    asyncio.run(main())


def test_a_plugin_that_needs_a_terminal_is_not_run_without_one(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = ExecPlugin(program(tmp_path, "answer(token='t')\n"), V1, interactive_mode="Always")
        with pytest.raises(ConfigError, match="needs a terminal"):
            await ExecAuth(WallClock(), plugin, is_terminal=lambda: False).credentials()

    asyncio.run(main())
    assert not (tmp_path / "calls").exists()


def test_other_credentials_win_over_the_plugin(tmp_path: Path) -> None:
    plugin = plugin_for(os.fspath(tmp_path / "never-run"))

    async def main() -> None:
        for access in (
            ClusterAccess("https://h", user=UserSettings(token="t", exec_plugin=plugin)),
            ClusterAccess(
                "https://h",
                tls=TlsSettings(certificate_data=b"c", key_data=b"k"),
                user=UserSettings(exec_plugin=plugin),
            ),
            ClusterAccess("http://h", user=UserSettings(exec_plugin=plugin)),
        ):
            assert (await access.authenticator(WallClock()).credentials()).certificate is None

    asyncio.run(main())
