"""Health, metrics and version over HTTP, on an address of its own.

``/healthz`` and ``/readyz`` run all checks, ``/livez`` only those whose failure a restart of the process
would mend. The answers are worded as kube-apiserver words them: ``?verbose`` lists the checks,
``?exclude=name`` skips one, and ``/readyz/name`` runs a single one and says why it fails.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import holokube
from holokube.base.errors import ConfigError
from holokube.base.log import get_logger
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal

if TYPE_CHECKING:
    # What serves is imported by those who serve: a run on virtual time has checks, and no server.
    from aiohttp import web

Check = Callable[[], str | None]
"""Returns what is wrong, or nothing. An exception counts as a failure too."""

_ENDPOINTS = ("healthz", "livez", "readyz")
_TEXT = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    check: Check
    live: bool


class HealthChecks:
    """The checks of one process; components add theirs."""

    def __init__(self) -> None:
        self._checks: dict[str, _Named] = {}
        self.add("ping", lambda: None, live=True)
        self._log = get_logger("holokube.runtime.health")

    def add(self, name: str, check: Check, *, live: bool = False) -> None:
        """Adds or replaces a check; ``live`` ones, which a restart would mend, decide ``/livez`` too."""
        if not name or "/" in name:
            raise ValueError(f"the name of a health check is one path segment, got {name!r}")
        self._checks[name] = _Named(name, check, live)

    def remove(self, name: str) -> None:
        self._checks.pop(name, None)

    def problems(self, endpoint: str = "healthz") -> dict[str, str]:
        """The failing checks of an endpoint and what they say."""
        found = {named.name: _problem(named) for named in self._of(endpoint)}
        return {name: problem for name, problem in found.items() if problem}

    def report(
        self, endpoint: str, *, verbose: bool, exclude: frozenset[str] = frozenset()
    ) -> tuple[int, str]:
        """Status code and body of an endpoint, word for word as upstream's."""
        lines: list[str] = []
        failed: list[str] = []
        unknown = set(exclude)
        for named in self._of(endpoint):
            if named.name in exclude:
                unknown.discard(named.name)
                lines.append(f"[+]{named.name} excluded: ok\n")
                continue
            problem = _problem(named)
            if problem:
                failed.append(f"{named.name}: {problem}")
                # Anybody may ask this endpoint; the reason is in the log and behind the check's own path.
                lines.append(f"[-]{named.name} failed: reason withheld\n")
            else:
                lines.append(f"[+]{named.name} ok\n")
        if unknown:
            names = ",".join(f'"{name}"' for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            self._log.debug("Health check failed", endpoint=endpoint, failed=failed)
            return 500, f"{''.join(lines)}{endpoint} check failed\n"
        return 200, f"{''.join(lines)}{endpoint} check passed\n" if verbose else "ok"

    def report_one(self, endpoint: str, name: str) -> tuple[int, str]:
        """Status code and body of a single check."""
        for named in self._of(endpoint):
            if named.name == name:
                problem = _problem(named)
                return (500, f"internal server error: {problem}\n") if problem else (200, "ok")
        return 404, "404 page not found\n"

    def _of(self, endpoint: str) -> list[_Named]:
        return [named for named in self._checks.values() if named.live or endpoint != "livez"]


def _problem(named: _Named) -> str:
    try:
        return named.check() or ""
    except Exception as error:
        return f"the check itself failed: {type(error).__name__}: {error}"


class HealthServer:
    """Serves checks, metrics and version; a component of the app. Add it first, so that it stops last."""

    name = "health-server"

    def __init__(
        self, checks: HealthChecks, metrics: Metrics | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._checks = checks
        self._metrics = metrics
        self._host = host
        self._port = port
        self.started = StopSignal()
        """Set when the server listens; ``address`` is known from then on."""
        self.address = ""

    def application(self) -> web.Application:
        """The aiohttp application, for a server of your own."""
        from aiohttp import web

        app = web.Application()
        for endpoint in _ENDPOINTS:
            app.router.add_get(f"/{endpoint}", self._handle_all)
            app.router.add_get(f"/{endpoint}/{{check}}", self._handle_one)
        app.router.add_get("/version", self._handle_version)
        if self._metrics is not None:
            app.router.add_get("/metrics", self._handle_metrics)
        return app

    async def run(self, stop: StopSignal) -> None:
        from aiohttp import web

        runner = web.AppRunner(self.application(), access_log=None, handle_signals=False)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host or None, self._port)
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"cannot listen on {self._host}:{self._port} for health and metrics: {error.strerror}",
                    hint="Choose another address, or end the program that uses this one.",
                ) from error
            host, port = runner.addresses[0][:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            self.started.set()
            await stop.wait()
        finally:
            await runner.cleanup()

    async def _handle_all(self, request: web.Request) -> web.Response:
        from aiohttp import web

        code, body = self._checks.report(
            request.path.strip("/"),
            verbose="verbose" in request.query,
            exclude=frozenset(request.query.getall("exclude", [])),
        )
        return web.Response(status=code, body=body.encode(), headers=_TEXT)

    async def _handle_one(self, request: web.Request) -> web.Response:
        from aiohttp import web

        endpoint = request.path.strip("/").split("/")[0]
        code, body = self._checks.report_one(endpoint, request.match_info["check"])
        return web.Response(status=code, body=body.encode(), headers=_TEXT)

    async def _handle_metrics(self, request: web.Request) -> web.Response:
        from aiohttp import web

        assert self._metrics is not None
        body, content_type = self._metrics.render(",".join(request.headers.getall("Accept", [])))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _handle_version(self, _request: web.Request) -> web.Response:
        from aiohttp import web

        return web.json_response(version_info())


def version_info() -> dict[str, str]:
    """What is running, in the shape of Kubernetes' own ``/version``."""
    major, minor = holokube.__version__.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{holokube.__version__}",
        "pythonVersion": platform.python_version(),
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system()}/{platform.machine()}".lower(),
    }


def parse_bind_address(text: str) -> tuple[str, int] | None:
    """``host:port``, ``:port`` or ``[v6]:port`` as upstream's flags take them; ``0`` and empty mean none."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ConfigError(
            f"{text!r} is not an address to listen on",
            hint='Write "host:port", ":port" for all interfaces, "[v6]:port", or "0" to switch it off.',
        )
    return host.strip("[]"), int(port)
