from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

import holokube
from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError
from holokube.runtime.app import App
from holokube.runtime.health import HealthChecks, HealthServer, parse_bind_address
from holokube.runtime.stop import StopSignal


def explode() -> str:
    raise ZeroDivisionError("oh")


def test_verbose_lists_the_checks_as_kube_apiserver_does() -> None:
    checks = HealthChecks()
    checks.add("informer-sync", lambda: None)
    assert checks.report("healthz", verbose=False) == (200, "ok")
    assert checks.report("readyz", verbose=True) == (
        200,
        "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n",
    )


def test_a_failure_is_always_told_in_full_and_its_reason_only_on_its_own_path() -> None:
    checks = HealthChecks()
    checks.add("etcd", lambda: "no answer")
    checks.add("bug", explode)
    code, body = checks.report("healthz", verbose=False)
    assert code == 500
    assert body == (
        "[+]ping ok\n[-]etcd failed: reason withheld\n[-]bug failed: reason withheld\nhealthz check failed\n"
    )
    assert checks.report_one("healthz", "etcd") == (500, "internal server error: no answer\n")
    assert checks.report_one("healthz", "ping") == (200, "ok")
    assert checks.report_one("healthz", "nope")[0] == 404
    assert checks.problems() == {"etcd": "no answer", "bug": "the check itself failed: ZeroDivisionError: oh"}
    checks.remove("bug")
    checks.remove("etcd")
    assert checks.problems() == {}


def test_checks_can_be_excluded_and_unknown_names_are_told() -> None:
    checks = HealthChecks()
    checks.add("etcd", lambda: "no answer")
    assert checks.report("livez", verbose=True) == (200, "[+]ping ok\nlivez check passed\n")
    code, body = checks.report("readyz", verbose=True, exclude=frozenset({"etcd", "nope"}))
    assert code == 200
    assert body == (
        "[+]ping ok\n[+]etcd excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "nope"\n'
        "readyz check passed\n"
    )


def test_live_checks_decide_livez_too() -> None:
    checks = HealthChecks()
    checks.add("leaderElection", lambda: "stuck", live=True)
    assert checks.report("livez", verbose=False)[0] == 500


def test_the_name_of_a_check_must_fit_a_path() -> None:
    with pytest.raises(ValueError, match="one path segment"):
        HealthChecks().add("a/b", lambda: None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8081", ("", 8081)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:9", ("::1", 9)),
        ("0", None),
        ("", None),
    ],
)
def test_bind_addresses_are_read_as_upstream_flags(text: str, expected: tuple[str, int] | None) -> None:
    assert parse_bind_address(text) == expected


@pytest.mark.parametrize("text", ["8080", "host", "host:http", "::1:80", ":99999"])
def test_bad_bind_addresses_are_refused_with_a_hint(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_bind_address(text)
    assert "host:port" in caught.value.hint


class Broken:
    name = "broken"

    def __init__(self) -> None:
        self.crashed = asyncio.Event()

    async def run(self, stop: StopSignal) -> None:
        self.crashed.set()
        raise ValueError("bad luck")


def test_the_server_shows_health_metrics_and_version_of_an_app() -> None:
    async def main() -> None:
        app = App(WallClock(), restart_base_s=3600, restart_max_s=3600)
        server = app.add(HealthServer(app.checks, app.metrics))
        broken = app.add(Broken())
        running = asyncio.create_task(app.run())
        await server.started.wait()
        await broken.crashed.wait()
        async with aiohttp.ClientSession(f"http://{server.address}") as session:

            async def get(path: str) -> tuple[int, str, str]:
                async with session.get(path) as answer:
                    return answer.status, await answer.text(), answer.headers["Content-Type"]

            assert await get("/livez") == (200, "ok", "text/plain; charset=utf-8")
            status, body, _ = await get("/readyz?verbose")
            assert status == 500
            assert body == (
                "[+]ping ok\n[+]health-server ok\n[-]broken failed: reason withheld\n[+]shutdown ok\n"
                "readyz check failed\n"
            )
            status, body, _ = await get("/healthz?verbose&exclude=broken")
            assert (status, "[+]broken excluded: ok" in body) == (200, True)
            status, body, _ = await get("/healthz/broken")
            assert status == 500
            assert body.startswith("internal server error: crashed once, last: ValueError: bad luck; starts")
            status, body, content_type = await get("/metrics")
            assert (status, content_type.split(";")[0]) == (200, "text/plain")
            assert 'holokube_component_up{component="broken"} 0.0' in body
            status, body, content_type = await get("/version")
            assert content_type.startswith("application/json")
            assert f'"gitVersion": "v{holokube.__version__}"' in body
            assert (await get("/nope"))[0] == 404
        app.stop()
        assert await running is True

    asyncio.run(main())


def test_a_taken_port_is_a_clear_error() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
                await HealthServer(HealthChecks(), port=port).run(StopSignal())

    asyncio.run(main())
