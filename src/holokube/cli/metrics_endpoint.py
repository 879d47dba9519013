"""Metrics and health over plain HTTP, for a Prometheus that has no kubeconfig."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from holokube.base.errors import ConfigError, UsageError

_HINT = 'Write "127.0.0.1:9090", ":9090" for all interfaces, or "0" for none.'


def parse_address(text: str, *, option: str = "--metrics-address") -> tuple[str, int] | None:
    """``host:port``, ``:port`` or ``[v6]:port``; None for ``0`` and nothing."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not is_v6):
        raise UsageError(f"{option} {text!r} is not an address to listen on", hint=_HINT)
    return host.strip("[]"), int(port)


class MetricsEndpoint:
    """A small server of its own; does nothing if it is started without an address."""

    def __init__(self, render: Callable[[], tuple[bytes, str]]) -> None:
        self._render = render
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, address: tuple[str, int] | None) -> None:
        if address is None:
            return
        host, port = address
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        for path in ("/healthz", "/livez", "/readyz"):
            app.router.add_get(path, self._health)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host or None, port).start()
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} for metrics: {error.strerror}",
                hint="Choose another --metrics-address, or stop the program that uses this one.",
            ) from error
        bound_host, bound_port = self._runner.addresses[0][:2]
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        self.url = f"http://{shown}:{bound_port}/metrics"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _metrics(self, _request: web.Request) -> web.Response:
        body, content_type = self._render()
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")
