from __future__ import annotations

import asyncio
import base64
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import holokube
from holokube.base.clock import WallClock
from holokube.base.errors import TransportError
from holokube.client.access import ClusterAccess, UserSettings
from holokube.client.client import Client, PatchType
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.client.tls import TlsSettings
from holokube.client.transport import WatchEvent
from holokube.kube.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)

from .servers import Certificates, Handler, common_name, kubeconfig, serving, status, write_kubeconfig


class ImpatientClock(WallClock):
    """Wall time whose sleeps are noted instead of slept."""

    __slots__ = ("slept",)

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def run(handler: Handler, test: Callable[[Client], Awaitable[None]], **options: Any) -> ImpatientClock:
    clock = ImpatientClock()

    async def main() -> None:
        async with serving(handler) as url:
            transport = HttpTransport(clock, ClusterAccess(url), environ={}, **options)
            async with Client(transport) as client:
                await test(client)

    asyncio.run(main())
    return clock


def answers(*responses: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> tuple[Handler, list[web.Request]]:
    """A handler that gives one answer after the other, the last one for ever."""
    waiting = list(responses)
    requests: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        requests.append(request)
        code, body, *headers = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(body, str):
            return web.Response(status=code, text=body, headers=headers[0] if headers else None)
        return web.json_response(body, status=code, headers=headers[0] if headers else None)

    return handler, requests


def test_requests_have_the_path_query_headers_and_body_of_the_api() -> None:
    seen: list[tuple[str, str, str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        assert request.headers["User-Agent"] == f"holokube/{holokube.__version__}"
        assert request.headers["Accept"] == "application/json"
        content_type = request.headers.get("Content-Type", "")
        seen.append((request.method, request.path_qs, content_type, body))
        return web.json_response({"kind": "Pod", "items": []})

    async def test(client: Client) -> None:
        await client.get(NODES, "n1")
        await client.list(PODS, label_selector="a in (b,c)", limit=5)
        await client.list(PODS, "default")
        await client.create(PODS, {"metadata": {"generateName": "x-"}}, "default", dry_run=True, field_manager="m")
        await client.update_status(DEPLOYMENTS, {"metadata": {"name": "d", "namespace": "ns"}})
        await client.patch(
            NODES, "n1", [{"op": "remove", "path": "/spec"}], type=PatchType.JSON, subresource="status"
        )
        await client.delete(PODS, "p", "default", grace_s=0, uid="u")
        await client.delete_collection(PODS, "default", field_selector="status.phase=Failed")

    run(handler, test)
    json = "application/json"
    assert seen == [
        ("GET", "/api/v1/nodes/n1", "", None),
        ("GET", "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&limit=5", "", None),
        ("GET", "/api/v1/namespaces/default/pods", "", None),
        (
            "POST", "/api/v1/namespaces/default/pods?dryRun=All&fieldManager=m", json,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}},
        ),
        (
            "PUT", "/apis/apps/v1/namespaces/ns/deployments/d/status", json,
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"}},
        ),
        ("PATCH", "/api/v1/nodes/n1/status", "application/json-patch+json", [{"op": "remove", "path": "/spec"}]),
        (
            "DELETE", "/api/v1/namespaces/default/pods/p", json,
            {
                "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"},
            },
        ),
        ("DELETE", "/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DFailed", "", None),
    ]  # fmt: skip


def test_connections_are_kept_and_bounded() -> None:
    peers: set[Any] = set()
    now, most = 0, 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal now, most
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return web.json_response({})

    async def test(client: Client) -> None:
        await asyncio.gather(*(client.get(NODES, f"n{i}") for i in range(60)))

    run(handler, test, max_connections=4)
    assert most == 4
    assert len(peers) == 4


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (410, "Expired", Expired),
    ],
)
def test_a_status_becomes_its_error(code: int, reason: str, kind: type[ApiError]) -> None:
    handler, _ = answers((code, status(code, reason, "no", name="p")))

    async def test(client: Client) -> None:
        with pytest.raises(kind) as caught:
            await client.get(PODS, "p", "default")
        assert type(caught.value) is kind
        assert caught.value.message == "no"
        assert caught.value.details == {"name": "p"}

    run(handler, test)


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (404, "404 page not found\n", NotFound),
        (502, "<html><h1>Bad\x1b Gateway</h1></html>", ApiError),
        (503, "", ServiceUnavailable),
        (403, {"error": "nope"}, Forbidden),
    ],
)
def test_an_error_without_a_status_is_told_by_its_code(code: int, body: Any, kind: type[ApiError]) -> None:
    handler, _ = answers((code, body))

    async def test(client: Client) -> None:
        with pytest.raises(kind) as caught:
            await client.get(PODS, "p", "default")
        assert caught.value.http_code == code
        assert "get pods default/p" in caught.value.message
        assert "\x1b" not in caught.value.message

    run(handler, test)


def test_an_answer_that_is_no_json_or_no_object_is_refused() -> None:
    async def test(client: Client) -> None:
        with pytest.raises(TransportError, match="not JSON: please log in"):
            await client.get(PODS, "p", "default")
        with pytest.raises(TransportError, match="no object"):
            await client.get(PODS, "p", "default")

    run(answers((200, "please log in"), (200, [1]))[0], test)


def test_redirects_are_not_followed() -> None:
    handler, requests = answers((302, "", {"Location": "https://elsewhere.example/"}))

    async def test(client: Client) -> None:
        with pytest.raises(TransportError, match=r"pointing at https://elsewhere\.example/"):
            await client.get(PODS, "p", "default")

    run(handler, test)
    assert len(requests) == 1


BUSY = (429, status(429, "TooManyRequests", "busy"), {"Retry-After": "2"})
DOWN = (503, status(503, "ServiceUnavailable", "down"), {"Retry-After": "3"})


def test_waits_as_asked_on_429_even_for_writes() -> None:
    handler, requests = answers(BUSY, BUSY, (201, {"kind": "Pod"}))

    async def test(client: Client) -> None:
        assert await client.create(PODS, {"metadata": {"name": "p"}}, "default") == {"kind": "Pod"}

    assert run(handler, test).slept == [2, 2]
    assert len(requests) == 3


def test_waits_as_asked_on_503_for_reads_only() -> None:
    async def read(client: Client) -> None:
        await client.get(PODS, "p", "default")

    async def write(client: Client) -> None:
        with pytest.raises(ServiceUnavailable):
            await client.create(PODS, {"metadata": {"name": "p"}}, "default")

    assert run(answers(DOWN, (200, {}))[0], read).slept == [3]
    handler, requests = answers(DOWN, (200, {}))
    assert run(handler, write).slept == []
    assert len(requests) == 1


def test_gives_up_after_a_bounded_number_of_waits() -> None:
    handler, requests = answers(BUSY)

    async def test(client: Client) -> None:
        with pytest.raises(TooManyRequests) as caught:
            await client.get(PODS, "p", "default")
        assert caught.value.retry_after_s == 2

    assert run(handler, test, max_retries=3).slept == [2, 2, 2]
    assert len(requests) == 4


@pytest.mark.parametrize("header", [{}, {"Retry-After": "soon"}, {"Retry-After": "3600"}])
def test_does_not_wait_without_a_sensible_time(header: dict[str, str]) -> None:
    handler, requests = answers((429, status(429, "TooManyRequests", "busy"), header))

    async def test(client: Client) -> None:
        with pytest.raises(TooManyRequests):
            await client.get(PODS, "p", "default")

    assert run(handler, test).slept == []
    assert len(requests) == 1


def test_a_refused_eviction_is_told_at_once() -> None:
    handler, requests = answers(BUSY)

    async def test(client: Client) -> None:
        with pytest.raises(TooManyRequests):
            await client.evict("default", "p")

    assert run(handler, test).slept == []
    assert requests[0].path == "/api/v1/namespaces/default/pods/p/eviction"


def test_raw_requests_give_json_or_text() -> None:
    handler, requests = answers((200, {"major": "1"}), (200, "ok"), (200, {}))

    async def test(client: Client) -> None:
        assert await client.request("get", "/version") == {"major": "1"}
        assert await client.request("GET", "/readyz?verbose", query={"exclude": "etcd"}) == "ok"
        await client.request("POST", "/apis", body={"a": 1})

    run(handler, test)
    assert requests[1].path_qs == "/readyz?verbose&exclude=etcd"


# Watches


def streaming(*chunks: bytes, hold: bool = False, cut: bool = False) -> tuple[Handler, list[web.Request]]:
    requests: list[web.Request] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if hold:
            await asyncio.sleep(60)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return handler, requests


async def collect(client: Client, **options: Any) -> list[WatchEvent]:
    return [event async for event in client.watch(PODS, "default", resource_version="7", **options)]


LINES = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"\xc3\xa4"}}}\n{"type":"BOOKMARK","object":{}}\n'


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_a_watch_is_cut_into_events_wherever_the_chunks_end(size: int) -> None:
    handler, requests = streaming(*(LINES[i : i + size] for i in range(0, len(LINES), size)))

    async def test(client: Client) -> None:
        assert await collect(client, timeout_s=30, label_selector="a=b") == [
            WatchEvent("ADDED", {"kind": "Pod", "metadata": {"name": "ä"}}),
            WatchEvent("BOOKMARK", {}),
        ]

    run(handler, test)
    assert dict(requests[0].query) == {
        "watch": "true",
        "resourceVersion": "7",
        "labelSelector": "a=b",
        "timeoutSeconds": "30",
        "allowWatchBookmarks": "true",
    }


def test_an_event_may_be_large_but_not_endless() -> None:
    def event(size: int) -> bytes:
        return b'{"type":"ADDED","object":{"data":"' + b"x" * size + b'"}}\n'

    async def test(client: Client) -> None:
        stream = client.watch(PODS)
        assert len((await anext(stream)).object["data"]) == 2_000_000
        with pytest.raises(TransportError, match="the limit is 3000000"):
            await anext(stream)

    run(streaming(event(2_000_000), event(3_000_000))[0], test, max_event_bytes=3_000_000)


def test_an_error_event_is_raised() -> None:
    error = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'

    async def test(client: Client) -> None:
        stream = client.watch(PODS)
        assert (await anext(stream)).type == "ADDED"
        assert (await anext(stream)).type == "BOOKMARK"
        with pytest.raises(Expired, match="too old"):
            await anext(stream)

    run(streaming(LINES, error)[0], test)


def test_a_watch_refused_at_once_is_raised() -> None:
    async def test(client: Client) -> None:
        with pytest.raises(Expired):
            await collect(client)

    run(answers((410, status(410, "Expired", "too old")))[0], test)


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (streaming(LINES, b'{"type":"MODI')[0], "cut in the middle"),
        (streaming(LINES, cut=True)[0], "broke"),
        (streaming(LINES, b"<html>\n")[0], "not JSON"),
        (streaming(LINES, b'{"kind":"Pod"}\n')[0], "no watch event"),
        (streaming(LINES, b"[]\n")[0], "no watch event"),
    ],
)
def test_a_watch_that_breaks_says_so_after_the_whole_events(handler: Handler, message: str) -> None:
    async def test(client: Client) -> None:
        stream = client.watch(PODS)
        await anext(stream)
        await anext(stream)
        with pytest.raises(TransportError, match=message):
            await anext(stream)

    run(handler, test)


def test_watches_do_not_use_up_the_connections_of_calls() -> None:
    waiting, _ = streaming(LINES, hold=True)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await waiting(request) if "watch" in request.query else web.json_response({})

    async def test(client: Client) -> None:
        streams = [client.watch(PODS) for _ in range(5)]
        for stream in streams:
            await anext(stream)
        await client.get(PODS, "p", "default")
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]  # every stream of a client is a generator

    run(handler, test, max_connections=1)


def test_closing_the_client_ends_its_watches() -> None:
    async def test(client: Client) -> None:
        stream = client.watch(PODS)
        await anext(stream)
        await anext(stream)
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        await client.close()
        with pytest.raises(TransportError):
            await reading
        with pytest.raises(TransportError, match="is closed"):
            await client.get(PODS, "p", "default")

    run(streaming(LINES, hold=True)[0], test)


# When there is no answer


def test_a_refused_connection_says_where_and_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        async def main() -> None:
            async with Client(HttpTransport(WallClock(), ClusterAccess(url), environ={})) as client:
                with pytest.raises(TransportError) as caught:
                    await client.get(PODS, "p", "default")
                assert url in caught.value.message
                assert "get pods default/p: cannot connect" in caught.value.message
                assert "API server runs" in caught.value.hint

        asyncio.run(main())


def test_a_request_ends_at_its_time_limit() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def test(client: Client) -> None:
        with pytest.raises(TransportError, match="a write may have taken effect"):
            await client.create(PODS, {"metadata": {"name": "p"}}, "default")

    run(handler, test, request_timeout_s=0.05)


# TLS and credentials


def secure(
    tmp_path: Path,
    handler: Handler,
    test: Callable[[Client], Awaitable[None]],
    *,
    tls: Callable[[Certificates], TlsSettings],
    user: UserSettings | None = None,
    certificates: Certificates | None = None,
    host: str = "",
    client_certificates: ssl.VerifyMode = ssl.CERT_NONE,
) -> None:
    certificates = certificates or Certificates(tmp_path)

    async def main() -> None:
        context = certificates.server_context(client_certificates=client_certificates)
        async with serving(handler, context) as url:
            access = ClusterAccess(
                url.replace("127.0.0.1", host) if host else url,
                tls=tls(certificates),
                user=user or UserSettings(),
            )
            async with Client(HttpTransport(WallClock(), access, environ={})) as client:
                await test(client)

    asyncio.run(main())


async def get_pod(client: Client) -> None:
    await client.get(PODS, "p", "default")


def trusting(certificates: Certificates) -> TlsSettings:
    return TlsSettings(ca_data=certificates.authority.cert_pem)


def test_trusts_the_given_authority_only(tmp_path: Path) -> None:
    async def refused(client: Client) -> None:
        with pytest.raises(TransportError, match="is not trusted") as caught:
            await get_pod(client)
        assert "certificate-authority" in caught.value.hint

    handler, requests = answers((200, {}))
    secure(tmp_path, handler, get_pod, tls=trusting)
    secure(tmp_path, handler, refused, tls=lambda _: TlsSettings())
    secure(tmp_path, handler, refused, tls=lambda _: trusting(Certificates(tmp_path)))
    assert len(requests) == 1
    secure(tmp_path, handler, get_pod, tls=lambda _: TlsSettings(insecure_skip_verify=True))
    assert len(requests) == 2


def test_expects_the_servers_name_or_the_one_it_is_told(tmp_path: Path) -> None:
    async def refused(client: Client) -> None:
        with pytest.raises(TransportError, match="is not trusted"):
            await get_pod(client)

    handler, _ = answers((200, {}))
    other = Certificates(tmp_path, ("kubernetes.default.svc",), ())
    secure(tmp_path, handler, refused, certificates=other, tls=trusting)
    secure(
        tmp_path,
        handler,
        get_pod,
        certificates=other,
        tls=lambda c: TlsSettings(ca_data=c.authority.cert_pem, server_name="kubernetes.default.svc"),
    )


def test_shows_its_client_certificate_on_calls_and_watches(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert common_name(request) == "alice"
        if "watch" in request.query:
            return web.Response(body=LINES)
        return web.json_response({})

    def tls(certificates: Certificates) -> TlsSettings:
        pair = certificates.client("alice")
        return TlsSettings(
            ca_data=certificates.authority.cert_pem, certificate_data=pair.cert_pem, key_data=pair.key_pem
        )

    async def test(client: Client) -> None:
        await get_pod(client)
        assert len(await collect(client)) == 2

    secure(tmp_path, handler, test, tls=tls, client_certificates=ssl.CERT_REQUIRED)


def test_a_renewed_certificate_file_is_used_for_new_connections(tmp_path: Path) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(common_name(request))
        return web.json_response({})

    certificates = Certificates(tmp_path)
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def renew(user: str) -> None:
        pair = certificates.client(user)
        files[0].write_bytes(pair.cert_pem)
        files[1].write_bytes(pair.key_pem)

    class Leaping(WallClock):
        __slots__ = ("ahead_s",)

        def __init__(self) -> None:
            self.ahead_s = 0.0

        def monotonic(self) -> float:
            return super().monotonic() + self.ahead_s

    async def main() -> None:
        clock = Leaping()
        context = certificates.server_context(client_certificates=ssl.CERT_REQUIRED)
        async with serving(handler, context) as url:
            settings = TlsSettings(
                ca_data=certificates.authority.cert_pem, certificate_file=str(files[0]), key_file=str(files[1])
            )
            access = ClusterAccess(url, tls=settings)
            async with Client(HttpTransport(clock, access, environ={})) as client:
                renew("first")
                await get_pod(client)
                renew("second")
                await get_pod(client)
                clock.ahead_s = 61
                await get_pod(client)
                for file in files:
                    file.unlink()
                clock.ahead_s = 130
                await get_pod(client)

    asyncio.run(main())
    assert seen == ["first", "first", "second", "second"]


@pytest.mark.parametrize(
    ("user", "header"),
    [
        (UserSettings(token="secret"), "Bearer secret"),
        (UserSettings(username="bob", password="pw"), f"Basic {base64.b64encode(b'bob:pw').decode()}"),
        (UserSettings(), None),
    ],
)
def test_credentials_go_over_tls(tmp_path: Path, user: UserSettings, header: str | None) -> None:
    handler, requests = answers((200, {}))
    secure(tmp_path, handler, get_pod, tls=trusting, user=user)
    assert requests[0].headers.get("Authorization") == header


def test_credentials_do_not_go_without_tls() -> None:
    handler, requests = answers((200, {}))

    async def main() -> None:
        async with serving(handler) as url:
            access = ClusterAccess(url, user=UserSettings(token="secret"))
            async with Client(HttpTransport(WallClock(), access, environ={})) as client:
                await get_pod(client)

    asyncio.run(main())
    assert "Authorization" not in requests[0].headers


def test_a_token_file_is_read_again_after_401(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        token = request.headers["Authorization"]
        seen.append(token)
        if token == "Bearer new":
            return web.json_response({})
        file.write_text("new\n")
        return web.json_response(status(401, "Unauthorized", "expired"), status=401)

    secure(tmp_path, handler, get_pod, tls=trusting, user=UserSettings(token_file=str(file)))
    assert seen == ["Bearer old", "Bearer new"]


def test_an_unchanged_token_is_not_tried_twice(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    handler, requests = answers((401, status(401, "Unauthorized", "who?")))

    async def refused(client: Client) -> None:
        with pytest.raises(Unauthorized, match="who"):
            await get_pod(client)

    secure(tmp_path, handler, refused, tls=trusting, user=UserSettings(token_file=str(file)))
    assert len(requests) == 1


def test_a_kubeconfig_leads_to_the_server(tmp_path: Path) -> None:
    handler, requests = answers((200, {}))
    certificates = Certificates(tmp_path)
    (tmp_path / "ca.crt").write_bytes(certificates.authority.cert_pem)

    async def main() -> None:
        async with serving(handler, certificates.server_context()) as url:
            document = kubeconfig(
                {"server": f"{url}/prefix/", "certificate-authority": "ca.crt"}, {"token": "t", "as": "root"}
            )
            file = write_kubeconfig(tmp_path / "config", document)
            async with Client(HttpTransport(WallClock(), load_access(file), environ={})) as client:
                await get_pod(client)

    asyncio.run(main())
    assert requests[0].path == "/prefix/api/v1/namespaces/default/pods/p"
    assert requests[0].headers["Impersonate-User"] == "root"


def test_goes_through_the_proxy(tmp_path: Path) -> None:
    seen: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        seen.append(f"{request.method} {request.raw_path}")
        return web.json_response({})

    async def main() -> None:
        async with serving(proxy) as url:
            access = ClusterAccess("http://api.example:8080", proxy_url=url)
            async with Client(HttpTransport(WallClock(), access, environ={})) as client:
                await client.get(NODES, "n")
            access = ClusterAccess("http://api.example:8080")
            async with Client(HttpTransport(WallClock(), access, environ={"HTTP_PROXY": url})) as client:
                await client.get(NODES, "n")

    asyncio.run(main())
    assert seen == ["GET http://api.example:8080/api/v1/nodes/n"] * 2


async def a_watch_left(client: Client) -> None:
    stream = client.watch(PODS)
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator


async def a_call_given_up(client: Client) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await get_pod(client)


@pytest.mark.parametrize(
    ("answer", "use"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(LINES), LINES), a_watch_left),
        (b"", a_call_given_up),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", get_pod),
    ],
)
def test_no_socket_outlives_a_client_whose_peer_does_not_say_goodbye(
    tmp_path: Path, answer: bytes, use: Callable[[Client], Awaitable[None]]
) -> None:
    certificates = Certificates(tmp_path)
    context = certificates.server_context()
    ready, port = threading.Event(), 0
    done = threading.Event()

    def peer() -> None:
        nonlocal port
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            ready.set()
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(answer)
                done.wait(10)  # Alive, silent, and deaf to the farewell of TLS.

    async def main() -> None:
        access = ClusterAccess(f"https://127.0.0.1:{port}", tls=trusting(certificates))
        async with Client(HttpTransport(WallClock(), access, environ={})) as client:
            await use(client)

    thread = threading.Thread(target=peer)
    thread.start()
    ready.wait(10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    done.set()
    thread.join()
    assert [str(warning.message) for warning in caught] == []
