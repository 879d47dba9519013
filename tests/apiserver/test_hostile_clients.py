"""Clients that mean harm, or mean well and fail: each gets an answer or is cut off, and the others never notice."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator

import psutil
import pytest

from holokube.apiserver.http.connections import Limits
from tests.apiserver.test_fuzz import JSON_TYPE, assert_well
from tests.apiserver.wire_client import Answer, Served, WireClient, serving

QUICK = Limits(head_within_s=0.5, body_within_s=0.5, idle_s=2.0, unread_s=1.0)
MEBIBYTE = 1024 * 1024
CONFIG_MAPS = b"/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server of little patience."""
    with serving(QUICK) as running:
        yield running
        assert_well(running)


def is_closed(connection: ssl.SSLSocket) -> bool:
    """Whether the server has closed the connection, or does so before the socket's own time-out."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def post(served: Served, body: bytes, kind: bytes = JSON_TYPE, path: bytes = CONFIG_MAPS) -> Answer:
    client = WireClient(served)
    answer = client.request(b"POST", path, [(b"Content-Type", kind)], body)
    client.close()
    assert answer is not None
    return answer


# -- too much -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 10_000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"\x00" * 100 + b"\r\n\r\n",
    ],
    ids=["line", "header", "headers", "null bytes"],
)
def test_overlong_heads_are_refused_and_cut_off(served: Served, head: bytes) -> None:
    with served.connect() as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.0 400 ")
        assert is_closed(connection)


def test_a_head_that_never_ends_is_cut_off_before_it_fills_the_memory(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        sent_bytes = 0
        try:
            while sent_bytes < 50 * MEBIBYTE:
                sent_bytes += connection.send(b"a" * 65536)
        except OSError:
            pass
        assert sent_bytes < 20 * MEBIBYTE


def test_bodies_over_three_mebibytes_are_refused(served: Served) -> None:
    big = b'{"data":{"a":"' + b"x" * (3 * MEBIBYTE) + b'"}}'
    assert post(served, big).code == 413
    # Chunked, so that nothing gives the size away beforehand.
    with served.connect() as connection:
        name, value = served.authorization()
        connection.sendall(
            b"POST " + CONFIG_MAPS + b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value
            + b"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )  # fmt: skip
        try:
            for _ in range(64):
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        except OSError:
            pass
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = bomb.compress(b" " * (100 * MEBIBYTE)) + bomb.flush()
    client = WireClient(served)
    headers = [(b"Content-Type", JSON_TYPE), (b"Content-Encoding", b"gzip")]
    answer = client.request(b"POST", CONFIG_MAPS, headers, packed)
    client.close()
    assert answer is not None and answer.code == 413


def test_an_object_of_nearly_three_mebibytes_is_fine(served: Served) -> None:
    body = json.dumps({"metadata": {"generateName": "big-"}, "data": {"a": "x" * 900_000}}).encode()
    assert post(served, body).code == 201


# -- malformed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"[" * 1_000_000,
        b'{"metadata":{"name":"\\ud800"}}',
        b'{"metadata":{"name":"\xff\xfe"}}',
        b'{"metadata":{"generation":1e999}}',
        b'{"metadata":{"generation":' + b"9" * 10_000 + b"}}",
        b'{"metadata":{"generation":NaN}}',
        b'{"metadata":{"generation":-Infinity}}',
        b'{"metadata":{"name":"x"}',
        b"\x00",
        b"\xef\xbb\xbf{}",
        b"null",
        b'"text"',
    ],
    ids=lambda body: repr(body[:30]),
)
def test_malformed_json_is_a_bad_request(served: Served, body: bytes) -> None:
    answer = post(served, body)
    assert answer.code in (400, 422), answer
    status = json.loads(answer.body)
    assert status["kind"] == "Status" and status["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"{a: " * 5000 + b"1" + b"}" * 5000,
        b"a: &a [x,x,x]\n" + b"".join(b"b%d: &b%d [*%s,*%s]\n" % (n, n, p, p) for n, p in (
            (n, b"a" if n == 0 else b"b%d" % (n - 1)) for n in range(40))),
        b"&a [*a]",
        b"metadata: !!python/object/apply:os.system [id]",
        b"metadata: {name: x, generation: .nan}",
        b"metadata: {name: x, generation: .inf}",
        b"a: " + b"9" * 10_000,
        b"\xff\xfe\x00",
        b"a: b: c",
        b"? [a]\n: 1",
        b"--- {}\n--- {}",
    ],
    ids=lambda body: repr(body[:30]),
)  # fmt: skip
def test_malformed_yaml_is_a_bad_request(served: Served, body: bytes) -> None:
    answer = post(served, body, b"application/yaml")
    assert answer.code in (400, 422), answer


def test_duplicate_lengths_and_mixed_framing_are_refused(served: Served) -> None:
    for framing in (
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Content-Length: -1",
        b"Content-Length: x",
        b"Transfer-Encoding: chunked, chunked",
    ):
        with served.connect() as connection:
            connection.sendall(b"POST " + CONFIG_MAPS + b" HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n{}x")
            assert b" 400 " in connection.recv(100)
            assert is_closed(connection)


# -- slow -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["first", "second"])
def test_a_head_that_drips_is_cut_off(served: Served, before: bytes) -> None:
    with served.connect() as connection:
        if before:
            connection.sendall(before)
            assert b"200 OK" in connection.recv(65536)
        started = time.monotonic()
        try:
            for letter in b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 1000:
                connection.sendall(bytes([letter]))
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - started < 10


def test_a_body_that_drips_is_answered_and_cut_off(served: Served) -> None:
    name, value = served.authorization()
    start = b"POST " + CONFIG_MAPS + b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value + b"\r\n"
    for framing, drop in (
        (b"Content-Length: 100\r\n\r\n", b" "),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ):
        with served.connect() as connection:
            connection.sendall(start + framing)
            try:
                for _ in range(30):
                    connection.sendall(drop)
                    time.sleep(0.05)
            except OSError:
                pass
            assert connection.recv(100).startswith(b"HTTP/1.1 504 ")


def test_idle_connections_are_closed_after_a_while(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in connection.recv(65536)
        assert is_closed(connection)
    with served.connect() as silent:
        assert is_closed(silent)


def test_who_does_not_speak_tls_is_shown_the_door(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            left = plain.recv(100)
        except ConnectionError:
            left = b""
        assert b"200 OK" not in left


def test_hundreds_of_idle_connections_do_not_keep_others_from_being_served(served: Served) -> None:
    idle = [served.connect() for _ in range(200)]
    try:
        assert_well(served)
    finally:
        for connection in idle:
            connection.close()


def fill(served: Served, count: int, size_bytes: int) -> None:
    client = WireClient(served)
    body = json.dumps({"metadata": {"generateName": "fill-"}, "data": {"a": "x" * size_bytes}}).encode()
    for _ in range(count):
        answer = client.request(b"POST", CONFIG_MAPS, [(b"Content-Type", JSON_TYPE)], body)
        assert answer is not None and answer.code == 201
    client.close()


def test_a_watcher_that_never_reads_is_cut_off(served: Served) -> None:
    process = psutil.Process()
    name, value = served.authorization()
    watchers = [served.connect(receive_buffer_bytes=4096) for _ in range(5)]
    for connection in watchers:
        target = CONFIG_MAPS + b"?watch=1&resourceVersion=0"
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value + b"\r\n\r\n")
    before_bytes = process.memory_info().rss
    fill(served, 150, 200_000)
    # 5 x 30 MB were written for them; what a watcher may hold up is a small part of that.
    assert process.memory_info().rss - before_bytes < 150 * MEBIBYTE
    deadline_s = time.monotonic() + 20
    while b"apiserver_longrunning_requests" in (shown := _metric(served)) and time.monotonic() < deadline_s:
        if shown.endswith(b" 0.0"):
            break
        time.sleep(0.1)
    assert _metric(served).endswith(b" 0.0")
    for connection in watchers:
        connection.close()


def _metric(served: Served) -> bytes:
    client = WireClient(served)
    answer = client.request(b"GET", b"/metrics")
    client.close()
    assert answer is not None
    lines = [
        line for line in answer.body.splitlines()
        if line.startswith(b"apiserver_longrunning_requests{") and b'resource="configmaps"' in line
    ]  # fmt: skip
    return lines[0]


def test_a_reader_that_is_slow_but_reads_is_served_in_full(served: Served) -> None:
    name, value = served.authorization()
    with served.connect(receive_buffer_bytes=4096) as connection:
        request = b"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + name + b": " + value + b"\r\n\r\n"
        connection.sendall(request)
        got = b""
        for _ in range(8):
            # Longer in all than the server's patience with somebody who reads nothing.
            time.sleep(0.25)
            got += connection.recv(65536)
        while chunk := connection.recv(1 << 20):
            got += chunk
    head, _, body = got.partition(b"\r\n\r\n")
    assert json.loads(body)["swagger"] == "2.0"
    assert b"200 OK" in head


def test_a_list_that_nobody_reads_is_given_up(served: Served) -> None:
    name, value = served.authorization()
    fill(served, 30, 500_000)
    with served.connect(receive_buffer_bytes=4096) as connection:
        connection.sendall(b"GET " + CONFIG_MAPS + b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value + b"\r\n\r\n")
        time.sleep(QUICK.unread_s * 2.5)
        got = 0
        try:
            while chunk := connection.recv(1 << 20):
                got += len(chunk)
        except OSError:
            pass
    assert got < 15_000_000


# -- odd, but allowed -----------------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    client = WireClient(served)
    paths = [b"/healthz", b"/version", b"/livez", b"/nothing", b"/readyz?verbose"] * 20
    client.send(b"".join(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths))
    codes = [client.answer().code for _ in paths]
    client.close()
    assert codes == [200, 200, 200, 401, 200] * 20


def test_http_1_0_is_answered_and_closed(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        assert answer.startswith(b"HTTP/1.0 200") and answer.endswith(b"ok")


def test_a_client_that_waits_for_a_go_ahead_gets_it(served: Served) -> None:
    name, value = served.authorization()
    body = b'{"metadata":{"generateName":"asked-"}}'
    with served.connect() as connection:
        connection.sendall(
            b"POST " + CONFIG_MAPS + b" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + name + b": " + value
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )  # fmt: skip
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_duplicate_headers_do_not_confuse(served: Served) -> None:
    client = WireClient(served)
    headers = [(b"Accept", b"application/yaml"), (b"Accept", b"text/html"), (b"X", b"1"), (b"X", b"2")]
    answer = client.request(b"GET", b"/api/v1/namespaces/default", headers)
    client.close()
    assert answer is not None and answer.code in (200, 406)


def test_clients_that_hang_up_in_the_middle_leave_nothing_behind(served: Served) -> None:
    name, value = served.authorization()

    def hang_up(data: bytes) -> None:
        connection = served.connect()
        connection.sendall(data)
        connection.close()

    known = b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value + b"\r\n"
    head = b"POST " + CONFIG_MAPS + known + b"Content-Length: 99\r\n\r\n"
    watch = b"GET " + CONFIG_MAPS + b"?watch=1" + known + b"\r\n"
    threads = [threading.Thread(target=hang_up, args=(data,)) for data in (head, watch, head[:50], b"") * 10]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_well(served)


def test_a_watch_with_a_time_limit_of_zero_stays_open(served: Served) -> None:
    name, value = served.authorization()
    with served.connect(timeout_s=1.5) as connection:
        target = b"/api/v1/namespaces/none/pods?watch=1&timeoutSeconds=0"
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + name + b": " + value + b"\r\n\r\n")
        assert not is_closed(connection)


@pytest.mark.parametrize(
    ("method", "path", "kind", "body"),
    [
        (b"PATCH", b"/api/v1/namespaces/default?fieldManager=x", b"application/apply-patch+yaml", b"null"),
        (b"POST", b"/api/v1/namespaces/default/bindings", JSON_TYPE, b'{"metadata":true}'),
        (b"GET", b"/api/v1/pods?resourceVersion=" + b"9" * 5000, JSON_TYPE, b""),
        (b"GET", b"/api/v1/pods?limit=" + b"0" * 5000 + b"x", JSON_TYPE, b""),
        (b"PUT", b"/api/v1/namespaces/default", JSON_TYPE,
         '{"metadata":{"name":"default","resourceVersion":"²"}}'.encode()),
    ],
)  # fmt: skip
def test_what_once_was_an_internal_error_is_a_bad_request(
    served: Served, method: bytes, path: bytes, kind: bytes, body: bytes
) -> None:
    client = WireClient(served)
    answer = client.request(method, path, [(b"Content-Type", kind)], body)
    client.close()
    assert answer is not None and answer.code == 400, answer
