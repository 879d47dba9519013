"""Asks a dashboard as a browser would, without one."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30.0


@dataclass
class Answer:
    code: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


def ask(url: str, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> Answer:
    """One request."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.headers), answer.read().decode())
    finally:
        connection.close()


def token_of(url: str) -> str:
    """The token in the page."""
    found = re.search(r'name="holokube-token" content="([0-9a-f]+)"', ask(url, "/").text)
    assert found is not None
    return found[1]


def act(url: str, verb: str, body: Any) -> Answer:
    """An action as the page does it."""
    return ask(url, f"/actions/{verb}", method="POST", body=body, X_Holokube_Token=token_of(url))


@contextmanager
def stream(url: str, *, receive_bytes: int = 0) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events, each with its kind; ``receive_bytes`` is about what the kernel holds for one who does not read."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=TIMEOUT_S)
    try:
        if receive_bytes:
            connection.sock = socket.socket()
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            connection.sock.connect((address.hostname, address.port))
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        yield _events(answer)
    finally:
        connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    while line := answer.readline().decode().rstrip("\n"):
        field, _, value = line.partition(": ")
        if field == "event":
            data = answer.readline().decode().removeprefix("data: ")
            yield value, json.loads(data)
        answer.readline()
