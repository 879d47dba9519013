"""The page's server: assets, the stream of events, and the few things that may be done.

It is meant for the eyes of whoever sits at the machine. Nobody has to log in, so it listens on a loopback address; a
request that names another host is refused, because a foreign site could have its name point here; and what changes
something needs a token that only a page read from here knows.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from holokube.apiserver.server import is_loopback
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.log import get_logger
from holokube.dashboard.scene import Scene
from holokube.dashboard.viewers import Viewer, Viewers
from holokube.hollow.fault_writes import KINDS
from holokube.kube.errors import ApiError

log = get_logger(__name__)

VIEWERS_MAX: Final = 32
BODY_MAX: Final = 256 * 1024
LAST_WORDS_S: Final = 0.5
"""A page that takes longer to read that it is over has to find out by itself."""
TOKEN_HEADER: Final = "X-Holokube-Token"  # noqa: S105 - the name of a header
_TOKEN_MARK: Final = b"{{token}}"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def read_assets() -> dict[str, bytes]:
    """The files of the page by name."""
    folder = resources.files("holokube.dashboard") / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}


class PageServer:
    """The requests of browsers; knows nothing of threads and ticks."""

    def __init__(self, host: str, token: str, scene_of: Callable[[], Scene | None]) -> None:
        self.viewers = Viewers()
        self._host = host
        self._token = token
        self._scene_of = scene_of
        self._assets = read_assets()
        self._streams: set[asyncio.Task[Any]] = set()

    def application(self) -> web.Application:
        """All routes, behind the guard."""
        app = web.Application(middlewares=[self._guard], client_max_size=BODY_MAX)
        app.router.add_get("/", self._page)
        app.router.add_get("/assets/{name}", self._asset)
        app.router.add_get("/events", self._events)
        app.router.add_get("/nodes/{name}/pods", self._pods)
        app.router.add_post("/actions/{verb}", self._action)
        return app

    async def close(self, note: str = "") -> None:
        """End the streams, which never end by themselves; with a note, pages get to read that first."""
        streams = set(self._streams)
        if note and streams:
            self.viewers.end(event("empty", {"note": note}))
            _, streams = await asyncio.wait(streams, timeout=LAST_WORDS_S)
        for stream in streams:
            stream.cancel()
        if streams:
            await asyncio.wait(streams, timeout=2.0)

    # -- who may ask ----------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            if not self._is_own_name(request.host):
                raise web.HTTPForbidden(text=f"this dashboard does not go by the name {request.host}\n")
            if _comes_from_elsewhere(request):
                raise web.HTTPForbidden(text="this request comes from another site\n")
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(_HEADERS)
            raise
        except Exception as error:
            log.exception("a request failed", exc=error, method=request.method, path=request.path_qs[:500])
            return web.Response(status=500, text="the dashboard failed: see its log\n", headers=_HEADERS)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _is_own_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return is_loopback(name) or name == self._host or not is_loopback(self._host)

    def _check_token(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{request.scheme}://{request.host}":
            raise web.HTTPForbidden(text="this request comes from another site\n")
        given = request.headers.get(TOKEN_HEADER, "").encode(errors="replace")
        if not hmac.compare_digest(given, self._token.encode()):
            raise web.HTTPForbidden(text="the page is older than the cluster: load it again\n")

    # -- to read --------------------------------------------------------------------------------------------

    async def _page(self, _request: web.Request) -> web.Response:
        body = self._assets["index.html"].replace(_TOKEN_MARK, self._token.encode())
        return web.Response(body=body, headers={"Content-Type": _TYPES[".html"]})

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = self._assets.get(name)
        if body is None or name == "index.html":
            raise web.HTTPNotFound(text=f"there is no file {name}\n")
        return web.Response(body=body, headers={"Content-Type": _TYPES[name[name.rindex(".") :]]})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if len(self.viewers) >= VIEWERS_MAX:
            raise web.HTTPServiceUnavailable(text=f"{VIEWERS_MAX} pages are open already: close one\n")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **_HEADERS})
        await response.prepare(request)
        task, viewer = asyncio.current_task(), self.viewers.join()
        assert task is not None
        self._streams.add(task)
        try:
            # A page that lost its stream comes back by itself, and begins with a snapshot.
            await response.write(b"retry: 1000\n\n")
            await _send_all(response, viewer)
            return response
        except (ConnectionError, asyncio.CancelledError):
            # The page was closed, or the dashboard closes.
            return response
        finally:
            self.viewers.leave(viewer)
            self._streams.discard(task)

    async def _pods(self, request: web.Request) -> web.Response:
        name, scene = request.match_info["name"], self._scene()
        found = await scene.answer(scene.call(lambda: scene.view.node_pods(name)))
        if found is None:
            raise web.HTTPNotFound(text=f"there is no node {name}\n")
        return _json(found)

    # -- to do ----------------------------------------------------------------------------------------------

    async def _action(self, request: web.Request) -> web.Response:
        self._check_token(request)
        verb = request.match_info["verb"]
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise web.HTTPBadRequest(text=f"the body is no JSON: {error}\n") from error
        if not isinstance(body, dict):
            raise web.HTTPBadRequest(text="the body must be an object\n")
        try:
            if verb in ("break", "heal"):
                return await self._act(verb, body)
            if verb == "pace":
                return self._set_pace(body)
        except (UsageError, ValueError) as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        except (ApiError, HolokubeError) as error:
            raise web.HTTPConflict(text=f"{error}\n") from error
        raise web.HTTPNotFound(text=f"there is no action {verb}\n")

    async def _act(self, verb: str, body: dict[str, Any]) -> web.Response:
        target, kinds = body.get("target"), body.get("kinds", [])
        if not isinstance(target, dict) or not isinstance(kinds, list):
            raise ValueError("an action needs a target, and kinds of faults as a list")
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or (verb == "break" and not kinds):
            raise ValueError(f"{unknown} are no kinds of faults; there are {', '.join(KINDS)}")
        scene = self._scene()
        outcome = await scene.answer(scene.run(scene.act(verb, target, kinds)))
        return _json({"done": outcome.done, "problems": outcome.problems})

    def _set_pace(self, body: dict[str, Any]) -> web.Response:
        scene = self._scene()
        if scene.pace is None:
            raise UsageError("time cannot be controlled here", hint="Only virtual time can.")
        if "speed" in body:
            speed = body["speed"]
            if speed is not None and not (isinstance(speed, (int, float)) and not isinstance(speed, bool)):
                raise ValueError("a speed is a number, or null for as fast as possible")
            scene.pace.set_speed(math.inf if speed is None else float(speed))
        if body.get("paused") is True:
            scene.pace.pause()
        elif body.get("paused") is False:
            scene.pace.resume()
        return _json(scene.status())

    def _scene(self) -> Scene:
        scene = self._scene_of()
        if scene is None:
            raise web.HTTPServiceUnavailable(text="nothing runs at the moment\n")
        return scene


def _comes_from_elsewhere(request: web.Request) -> bool:
    """Whether a browser says that another site's page asks. Following a link to the page itself is fine."""
    if request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    return not (request.path == "/" and request.headers.get("Sec-Fetch-Dest") == "document")


async def _send_all(response: web.StreamResponse, viewer: Viewer) -> None:
    while not viewer.is_ended or viewer.queued_bytes:
        await response.write(await viewer.take())


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def event(kind: str, data: Any) -> bytes:
    """A server-sent event with JSON, which never has a line break inside."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(data))
