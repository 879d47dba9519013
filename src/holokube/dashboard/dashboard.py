"""The dashboard: a page of its own address, served from a thread of its own.

The cluster's loop may be busy, or on virtual time, or both: the page is served in real time all the same. A few times
a second the thread asks the cluster's loop for what has changed (:mod:`holokube.dashboard.scene`), and tells everybody
who looks on (:mod:`holokube.dashboard.viewers`). While nobody does, it only takes a point of the history now and then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from aiohttp import web

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError, HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import system_seed
from holokube.dashboard.scene import Scene
from holokube.dashboard.server import PageServer, event

log = get_logger(__name__)

TICK_S: Final = 0.25
IDLE_TICK_S: Final = 1.0


class Dashboard:
    """Serves one page, on which one cluster after the other may be shown."""

    def __init__(self, clock: Clock, *, host: str = "127.0.0.1", port: int = 0, token: str = "") -> None:
        """``clock`` is real time, for the pace of the page; what is shown has its own."""
        self._clock = clock
        self._host = host
        self._port = port
        self._scene: Scene | None = None
        self._note = "waiting for a cluster"
        self._server = PageServer(host, token or f"{system_seed(bits=256):064x}", lambda: self._scene)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.url = ""
        """Where it is, once started."""

    def start(self) -> str:
        """Begin to serve; returns the address."""
        if self._thread is not None:
            raise HolokubeError("the dashboard runs already", hint="Its address is in `url`.")
        bound: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, args=(bound,), name="holokube-dashboard", daemon=True)
        self._thread.start()
        try:
            self.url = bound.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise
        return self.url

    def show(self, scene: Scene) -> None:
        """Show a cluster from now on, instead of what was shown before."""
        self._scene = scene
        self._on_thread(self._server.viewers.lose)

    def clear(self, note: str = "the cluster has stopped") -> None:
        """Show nothing but a note; to be called before the cluster's loop ends."""
        self._scene = None
        self._note = note
        self._on_thread(self._server.viewers.lose)

    def stop(self) -> None:
        """End it; open pages are told so, keep the last picture, and try to come back."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if self._stop is not None:
                self._on_thread(self._stop.set)
            thread.join()

    def _on_thread(self, function: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    # -- on the thread --------------------------------------------------------------------------------------

    def _run(self, bound: Future[str]) -> None:
        asyncio.run(self._main(bound))

    async def _main(self, bound: Future[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = web.AppRunner(
            self._server.application(), access_log=None, handle_signals=False, shutdown_timeout=1.0
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self._host, self._port).start()
            except OSError as error:
                bound.set_exception(_cannot_listen(self._host, self._port, error))
                return
            host, port = runner.addresses[0][:2]
            bound.set_result(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
            ticking = asyncio.create_task(self._tick_forever())
            await self._stop.wait()
            ticking.cancel()
            await asyncio.wait({ticking})
        finally:
            await self._server.close(self._note if self._scene is None else self._scene.last_words)
            await runner.cleanup()

    async def _tick_forever(self) -> None:
        while True:
            scene = self._scene
            try:
                await self._tick()
            except HolokubeError as error:
                # Its loop is gone although nobody said so; what is shown instead by now, if anything, stays.
                if scene is self._scene:
                    self.clear(error.message)
            except Exception as error:
                log.exception("the dashboard could not be brought up to date", exc=error)
            await self._clock.sleep(TICK_S)
            await self._until_wanted()

    async def _until_wanted(self) -> None:
        """Nobody looks on: wait for somebody, and not longer than the history can."""
        viewers = self._server.viewers
        if not len(viewers):
            waiting = asyncio.create_task(viewers.wanted.wait())
            await asyncio.wait({waiting}, timeout=IDLE_TICK_S - TICK_S)
            waiting.cancel()
        viewers.wanted.clear()

    async def _tick(self) -> None:
        viewers, scene = self._server.viewers, self._scene
        if scene is None:
            if viewers.want_snapshot:
                viewers.send(b"", event("empty", {"note": self._note}))
            return
        wanted = viewers.want_snapshot
        is_watched = len(viewers) > 0

        def collect() -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
            view = scene.view
            view.sample()
            if not is_watched:
                view.forget_changes()
                return None, None
            return view.drain(), view.snapshot() if wanted else None

        delta, snapshot = await scene.answer(scene.call(collect))
        if delta is None or scene is not self._scene:
            return
        status = scene.status()
        whole = None if snapshot is None else event("snapshot", {**snapshot, **status})
        viewers.send(event("delta", {**delta, **status}), whole)


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot listen on {host}:{port} for the dashboard: {error.strerror}",
        hint="Choose another --dashboard-port, 0 for a free one, or leave the page out with --no-dashboard.",
    )
