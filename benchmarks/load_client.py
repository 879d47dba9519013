"""A client that costs little, so that what is measured is the server: one asyncio protocol per TLS connection.

As a program it is one process of a load: ``create`` writes through many connections, ``watch`` reads through many.
Times are ``time.monotonic()``, which on Linux all processes share.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import ssl
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop
import yaml

READ_LIMIT_BYTES = 1 << 20


class Target:
    """An API server and the credentials of a kubeconfig with everything inline."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self.host, self.port = str(address.hostname), int(address.port or 443)
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=ca)
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder, "pair.pem")
            pair.touch(mode=0o600)
            pair.write_bytes(
                base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
            )
            self.tls.load_cert_chain(pair)


def request(method: str, path: str, body: bytes = b"", kind: str = "application/json", accept: str = "") -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Accept: application/json"]
    if accept:
        lines.append(f"Accept-Encoding: {accept}")
    if body:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Connection(asyncio.Protocol):
    """One request at a time; ``ask`` waits for its answer."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = -1
        self._chunked = False
        self._code = 0
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]  # uvloop's transports are not subclasses

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        """Send a request; the answer's code and body (with the framing of chunks, if it is chunked)."""
        assert self._transport is not None
        self._parts, self._size, self._wanted, self._chunked = [], 0, -1, False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._wanted < 0 and not self._chunked:
            self._read_head()
        if self._chunked:
            if b"".join(self._parts[-2:]).endswith(b"\r\n0\r\n\r\n") or data.endswith(b"0\r\n\r\n"):
                self._done()
        elif 0 <= self._wanted <= self._size:
            self._done()

    def _read_head(self) -> None:
        whole = b"".join(self._parts)
        end = whole.find(b"\r\n\r\n")
        if end < 0:
            return
        head = whole[:end]
        self._code = int(head[9:12])
        self._parts, self._size = [whole[end + 4 :]], len(whole) - end - 4
        at = head.lower().find(b"content-length:")
        if at >= 0:
            self._wanted = int(head[at + 15 :].split(b"\r\n", 1)[0])
        else:
            self._chunked = True

    def _done(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._code, b"".join(self._parts)))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def unpacked(body: bytes) -> bytes:
    """The text of an answer: chunks joined, gzip undone."""
    if body[:1] not in (b"{", b"\x1f"):
        parts, at = [], 0
        while size := int(body[at : (line := body.index(b"\r\n", at))], 16):
            parts.append(body[line + 2 : line + 2 + size])
            at = line + 4 + size
        body = b"".join(parts)
    return zlib.decompress(body, 31) if body[:1] == b"\x1f" else body


class WatchCounter(asyncio.Protocol):
    """Counts the events of a watch without decoding them: each ends with a brace and a newline."""

    def __init__(self, on_events: Callable[[int, bytes], None]) -> None:
        self._on_events = on_events
        self._rest = b""
        self.version = ""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            if not data.startswith(b"HTTP/1.1 200"):
                self.ready.set_exception(ConnectionError(data[:300].decode(errors="replace")))
                return
            self.ready.set_result(None)
        whole = self._rest + data if self._rest else data
        end = whole.rfind(b"}\n") + 2
        self._rest = whole[end:] if end >= 2 else whole
        if self._rest.endswith(b"\r\n0\r\n\r\n"):
            # The watch has ended, though the connection has not: waiting for that takes as long as a server keeps
            # idle connections, and would be counted against it.
            self.transport.close()
        if end < 2:
            return
        # Where to go on if the server cuts this watch off, as the real one does with readers that fall behind.
        start = whole.rfind(b'"resourceVersion":"', 0, end) + 19
        self.version = whole[start : whole.index(b'"', start)].decode()
        self._on_events(whole.count(b"}\n", 0, end), whole)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(exc or ConnectionResetError("the server closed the connection"))
        if not self.lost.done():
            self.lost.set_result(None)


async def connect(target: Target) -> Connection:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(Connection, target.host, target.port, ssl=target.tls)
    return protocol


async def open_watch(target: Target, path: str, on_events: Callable[[int, bytes], None]) -> WatchCounter:
    """A watch that has been answered."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(
        lambda: WatchCounter(on_events), target.host, target.port, ssl=target.tls
    )
    transport.write(request("GET", path))
    await asyncio.wait_for(protocol.ready, 30)
    return protocol


async def send_all(target: Target, requests: Iterable[bytes], connections: int) -> tuple[float, float, int]:
    """Send through many connections; when the first was sent, when the last was answered, how many."""
    opened = await asyncio.gather(*(connect(target) for _ in range(connections)))
    waiting = iter(requests)
    count = 0

    async def work(connection: Connection) -> None:
        nonlocal count
        for data in waiting:
            code, body = await connection.ask(data)
            if code >= 300:
                raise RuntimeError(f"{code}: {body[:500]!r}")
            count += 1

    started = time.monotonic()
    await asyncio.gather(*(work(connection) for connection in opened))
    ended = time.monotonic()
    for connection in opened:
        connection.close()
    return started, ended, count


# -- what is written ------------------------------------------------------------------------------------------------


def pod(name: str, namespace: str) -> dict[str, Any]:
    """A pod as a controller makes it and a kubelet reports it: some 2.5 KB once it is stored."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "checkout", "pod-template-hash": "6d4cf56db6"},
        },
        "spec": {
            "nodeName": f"node-{hash(name) % 1000:04}",
            "serviceAccountName": "default",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 45,
            "containers": [
                {
                    "name": "server",
                    "image": "registry.example/payments/checkout:2.31.4",
                    "args": ["--listen=:8080", "--metrics=:9102", "--log-format=json"],
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "resources": {
                        "requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"},
                    },
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                }
            ],
        },
    }  # fmt: skip


def body_of(kind: str, name: str, namespace: str, number: int) -> bytes:
    if kind == "pods":
        return json.dumps(pod(name, namespace)).encode()
    if kind == "leases":
        renewed = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.000000Z"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}
        return json.dumps(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        ).encode()
    return json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"number": str(number)}}
    ).encode()


def collection(kind: str, namespace: str) -> str:
    prefix = "/apis/coordination.k8s.io/v1" if kind == "leases" else "/api/v1"
    return f"{prefix}/namespaces/{namespace}/{kind}"


def creations(kind: str, namespace: str, prefix: str, count: int) -> Iterable[bytes]:
    path = collection(kind, namespace)
    return (
        request("POST", path, body_of(kind, f"{prefix}-{number:06}", namespace, number)) for number in range(count)
    )


async def renew_all(
    target: Target, namespace: str, prefix: str, objects: int, count: int, connections: int
) -> tuple[float, float, int]:
    """PUT of leases, as kubelets do: each writes its own, with the version that the last answer told it."""
    opened = await asyncio.gather(*(connect(target) for _ in range(connections)))
    path = collection("leases", namespace)
    versions: dict[int, str] = {}
    sent = 0

    async def work(first: int) -> None:
        nonlocal sent
        own = range(first, objects, connections)
        while sent < count:
            for number in own:
                sent += 1
                name = f"{prefix}-{number:06}"
                body = body_of("leases", name, namespace, sent)
                version = b'"metadata": {"resourceVersion": "%s", ' % versions[number].encode()
                body = body.replace(b'"metadata": {', version, 1)
                code, answer = await opened[first].ask(request("PUT", f"{path}/{name}", body))
                if code != 200:
                    raise RuntimeError(f"{code}: {answer[:500]!r}")
                versions[number] = version_in(answer)

    for number in range(objects):
        _, answer = await opened[0].ask(request("GET", f"{path}/{prefix}-{number:06}"))
        versions[number] = version_in(answer)
    started = time.monotonic()
    await asyncio.gather(*(work(first) for first in range(min(connections, objects))))
    ended = time.monotonic()
    for connection in opened:
        connection.close()
    return started, ended, sent


def version_in(answer: bytes) -> str:
    start = answer.index(b'"resourceVersion":"') + 19
    return answer[start : answer.index(b'"', start)].decode()


def status_patches(namespace: str, prefix: str, objects: int, count: int) -> Iterable[bytes]:
    """PATCH of pod status, as kubelets do."""
    path = collection("pods", namespace)
    for number in range(count):
        status = {
            "phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "hostIP": "10.0.0.1",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{number % 60:02}Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
        }  # fmt: skip
        yield request(
            "PATCH",
            f"{path}/{prefix}-{number % objects:06}/status",
            json.dumps({"status": status}).encode(),
            "application/strategic-merge-patch+json",
        )


# -- as a program ----------------------------------------------------------------------------------------------------


async def write(args: argparse.Namespace) -> None:
    target = Target(args.kubeconfig)
    if args.what == "renew":
        started, ended, count = await renew_all(
            target, args.namespace, args.prefix, args.objects, args.count, args.connections
        )
    else:
        if args.what == "patch":
            requests = status_patches(args.namespace, args.prefix, args.objects, args.count)
        else:
            requests = creations(args.kind, args.namespace, args.prefix, args.count)
        # Made beforehand, so that encoding bodies is not measured.
        started, ended, count = await send_all(target, list(requests), args.connections)
    print(json.dumps({"started": started, "ended": ended, "count": count}), flush=True)


async def watch(args: argparse.Namespace) -> None:
    target = Target(args.kubeconfig)
    remaining = dict.fromkeys(range(args.watchers), args.events)
    done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def counter(number: int) -> Callable[[int, bytes], None]:
        def on_events(count: int, _data: bytes) -> None:
            if number not in remaining:
                return
            remaining[number] -= count
            if remaining[number] <= 0:
                remaining.pop(number)
                if not remaining and not done.done():
                    done.set_result(time.monotonic())

        return on_events

    path = f"{collection(args.kind, args.namespace)}?watch=1&resourceVersion="
    cut_off = 0

    async def follow(number: int, first: WatchCounter) -> None:
        nonlocal cut_off
        current, version = first, args.since
        while number in remaining:
            await current.lost
            cut_off += 1
            version = current.version or version
            current = await open_watch(target, path + version, counter(number))

    opened = [await open_watch(target, path + args.since, counter(number)) for number in range(args.watchers)]
    followers = [asyncio.create_task(follow(number, watcher)) for number, watcher in enumerate(opened)]
    print("ready", flush=True)
    try:
        ended = await asyncio.wait_for(done, args.timeout_s)
        print(json.dumps({"ended": ended, "cut_off": cut_off}), flush=True)
    except TimeoutError:
        print(json.dumps({"missing": sum(remaining.values()), "watchers": len(remaining)}), flush=True)
    for follower in followers:
        follower.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("create", "renew", "patch", "watch"))
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--kind", default="configmaps")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--prefix", default="load")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--since", default="")
    parser.add_argument("--timeout-s", type=float, default=120.0)
    args = parser.parse_args()
    uvloop.install()
    asyncio.run(watch(args) if args.what == "watch" else write(args))


if __name__ == "__main__":
    sys.exit(main())
