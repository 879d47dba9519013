"""One embedded server for all client tests, on a thread of its own, as a user's program would meet it: over HTTPS."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holokube.apiserver.server import EmbeddedServer, Endpoint, write_kubeconfig
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.store.store import Store
from holokube.testing.kubectl import Kubectl

T = TypeVar("T")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Embedded:
    """A running server, and how to reach into its thread."""

    server: EmbeddedServer
    endpoint: Endpoint
    folder: Path
    loop: asyncio.AbstractEventLoop

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine where the server runs."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def kubeconfig(self, namespace: str = "default") -> Path:
        """A kubeconfig whose context is in ``namespace``."""
        path = self.folder / f"kubeconfig-{namespace}"
        config = self.endpoint.kubeconfig()
        config["contexts"][0]["context"]["namespace"] = namespace
        write_kubeconfig(path, config)
        return path

    def new_namespace(self) -> str:
        """A namespace for one test, so that tests do not see each other's objects."""
        name = f"client-{next(_numbers)}"
        registry = self.server.registry
        for group_version, plural, space, meta in (
            (("", "v1"), "namespaces", "", name),
            (("", "v1"), "serviceaccounts", name, "default"),
        ):
            served = registry.resolve(*group_version, plural)
            body = {"apiVersion": "v1", "kind": served.kind, "metadata": {"name": meta}}
            self.do(registry.create(served, space, body))
        return name


@contextmanager
def running(folder: Path, store: Store | None = None) -> Iterator[Embedded]:
    """A server on a thread of its own, on the wall clock."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded-apiserver", daemon=True)
    thread.start()
    server = EmbeddedServer(WallClock(), Rng("clients"), store=store)
    endpoint = asyncio.run_coroutine_threadsafe(server.start(), loop).result(timeout=30)
    (folder / "ca.crt").write_bytes(endpoint.ca_pem)
    try:
        yield Embedded(server, endpoint, folder, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The server that most tests share."""
    with running(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server that remembers its last few changes only: watches from before are told so with a 410."""
    with running(tmp_path_factory.mktemp("forgetful"), Store(history=10)) as server:
        yield server


@pytest.fixture
def namespace(embedded: Embedded) -> str:
    return embedded.new_namespace()


@pytest.fixture(scope="session")
def kubectl_in(embedded: Embedded, kubectl_program: Path) -> Callable[[str], Kubectl]:
    """kubectl with a context in the namespace asked for; all share one discovery cache."""
    home = embedded.folder / "home"
    home.mkdir()
    return lambda namespace: Kubectl(kubectl_program, embedded.kubeconfig(namespace), home)


@pytest.fixture
def kubectl(kubectl_in: Callable[[str], Kubectl], namespace: str) -> Kubectl:
    """kubectl in a namespace of the test's own."""
    return kubectl_in(namespace)
