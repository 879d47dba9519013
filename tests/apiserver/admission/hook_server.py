"""An HTTPS server on loopback that plays webhook, with a certificate authority of its own."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from holokube.base.clock import WallClock
from holokube.kube import pki

Review = dict[str, Any]
Handler = Callable[[Review], Awaitable[Any]]
SERVICE = ("system", "hook")
OWN_CA = "webhook-ca"


@cache
def authority(name: str) -> pki.Authority:
    # Certificates must be valid by the clock of the machine, which is what TLS looks at.
    return pki.Authority.create(name, WallClock().now())


def bundle(name: str = OWN_CA) -> str:
    return base64.b64encode(authority(name).cert_pem).decode()


@cache
def _server_context() -> ssl.SSLContext:
    pair = authority(OWN_CA).issue_server([f"{SERVICE[1]}.{SERVICE[0]}.svc"], ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
        cert.write_bytes(pair.cert_pem)
        key.write_bytes(pair.key_pem)
        context.load_cert_chain(cert, key)
    return context


def answer(review: Review, **response: Any) -> Review:
    """A well-formed answer; allowed unless it says otherwise."""
    full = {"uid": review["request"]["uid"], "allowed": True, **response}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": full}


def patched(review: Review, *operations: Mapping[str, Any], **response: Any) -> Review:
    encoded = base64.b64encode(orjson.dumps(operations)).decode()
    return answer(review, patchType="JSONPatch", patch=encoded, **response)


def sets_label(key: str, value: str) -> Handler:
    async def handle(review: Review) -> Review:
        labels = {**(review["request"]["object"]["metadata"].get("labels") or {}), key: value}
        return patched(review, {"op": "add", "path": "/metadata/labels", "value": labels})

    return handle


class HookServer:
    """Handlers by path; remembers what it was asked."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self.port = 0
        self.asked: list[tuple[str, Review]] = []
        self.urls: list[str] = []
        self.hosts: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        review = orjson.loads(await request.read())
        self.asked.append((path, review))
        self.urls.append(str(request.rel_url))
        self.hosts.append(request.host)
        reply = await self._handlers[path](review)
        return reply if isinstance(reply, web.StreamResponse) else web.json_response(reply)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def request(self, index: int = -1) -> Any:
        return self.asked[index][1]["request"]

    def client(self, path: str, ca: str = OWN_CA) -> dict[str, Any]:
        return {"url": f"https://127.0.0.1:{self.port}/{path}", "caBundle": bundle(ca)}

    def webhook(self, path: str, **more: Any) -> dict[str, Any]:
        """A webhook for config maps; everything can be said otherwise."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        return {
            "name": f"{path.replace('_', '-')}.example.com",
            "clientConfig": self.client(path),
            "rules": [{**rule, **more.pop("rule", {})}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }


@asynccontextmanager
async def serving(**handlers: Handler) -> AsyncIterator[HookServer]:
    server = HookServer(handlers)
    app = web.Application()
    app.router.add_post("/{path}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_server_context())
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
