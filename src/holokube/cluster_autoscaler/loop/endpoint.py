"""``/metrics``, ``/health-check`` and ``/snapshotz`` on ``--address``."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from aiohttp import web

from holokube.base.errors import ConfigError
from holokube.cluster_autoscaler.loop.debugging_snapshot import DebuggingSnapshot
from holokube.cluster_autoscaler.loop.health import HealthCheck
from holokube.runtime.stop import StopSignal


class Endpoint:
    """A small HTTP server; a component of the app."""

    name = "endpoint"

    def __init__(
        self, host: str, port: int, *, render: Callable[[str], tuple[bytes, str]], health: HealthCheck,
        debugging: DebuggingSnapshot | None = None, on_started: Callable[[str], None] | None = None,
    ) -> None:
        """``render`` gives the metrics in the form that an ``Accept`` header asks for."""
        self._host = host
        self._port = port
        self._render = render
        self._health = health
        self._debugging = debugging
        self._on_started = on_started
        self.address = ""

    async def run(self, stop: StopSignal) -> None:
        """Serves until the stop."""
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health-check", self._check)
        if self._debugging is not None:
            app.router.add_get("/snapshotz", self._snapshot)
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self._host or None, self._port).start()
            except OSError as error:
                raise ConfigError(
                    f"cannot listen on {self._host}:{self._port}: {error.strerror}",
                    hint="Choose another --address, or stop the program that uses this one.",
                ) from error
            host, port = runner.addresses[0][:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if self._on_started is not None:
                self._on_started(self.address)
            await stop.wait()
        finally:
            await runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._render(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _check(self, _request: web.Request) -> web.Response:
        problem = self._health.problem()
        return web.Response(text=problem or "OK", status=200 if problem is None else 500)

    async def _snapshot(self, _request: web.Request) -> web.Response:
        assert self._debugging is not None, "it is only routed then"
        try:
            taken = await self._debugging.take()
        except TimeoutError:
            return web.Response(text="no turn has ended in time\n", status=500)
        return web.Response(body=orjson.dumps(taken, default=str), content_type="application/json")
