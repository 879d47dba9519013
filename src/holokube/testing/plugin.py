"""The pytest plugin: fixtures that give a test its own Kubernetes cluster.

``cluster``
    In this process, on virtual time: a ``holokube.testing.Cluster``.
``kube_server``, ``kubeconfig``, ``kube_url``, ``kube_token``, ``kube_ca``
    The same server behind HTTPS, on a thread: for any client in any process.

Each test gets a server of its own, empty but for what every cluster has; starting one takes some 20 ms.
``@pytest.mark.holokube(clock="virtual", seed=7, objects=[...], nodes=3)`` says how to start it; with ``nodes``, even 0,
scheduler, controllers and hollow kubelets run in it.

Pytest imports this module in every run of everybody who has installed holokube, so that it imports nothing
but pytest itself until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holokube.testing.cluster import Cluster
    from holokube.testing.server_thread import Server

_MARKER = "holokube"
_MARKER_ARGUMENTS = ("clock", "seed", "objects", "nodes")
_SERVER_FIXTURES = frozenset({"kube_server", "kubeconfig", "kube_url", "kube_token", "kube_ca"})
_SEED = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("holokube").addoption(
        "--holokube-seed",
        default="0",
        metavar="SEED",
        help="Seed of uids, generated names and other draws in clusters of tests; 'random' for new ones.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(clock='virtual', seed=0, objects=[], nodes=None): how to start the cluster of a test; the clock "
        "is 'virtual' or 'wall'; with a number of nodes scheduler, controllers and hollow kubelets run too.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and _SEED in item.stash:
        seed = item.stash[_SEED]
        report.sections.append(("holokube", f"seed {seed}; repeat with --holokube-seed={seed}"))
    return report


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster in this process; virtual time unless the marker says otherwise."""
    from holokube.testing.cluster import Cluster

    others = sorted(_SERVER_FIXTURES.intersection(request.fixturenames))
    if others:
        raise pytest.UsageError(
            f"{request.node.nodeid} uses both 'cluster' and {others[0]!r}, which are two different clusters; "
            "use kube_server.run() to reach the inside of the one behind HTTPS"
        )
    options = _options(request)
    with Cluster(
        options.get("clock", "virtual"),
        seed=_seed(request, options),
        objects=options.get("objects", ()),
        nodes=options.get("nodes"),
    ) as fresh:
        yield fresh


@pytest.fixture
def kube_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A fresh API server behind HTTPS on loopback, on a thread of its own."""
    from holokube.testing.server_thread import serve

    options = _options(request)
    if options.get("clock", "wall") != "wall":
        raise pytest.UsageError(
            f"{request.node.nodeid}: clients of a server behind HTTPS live on the wall clock; use the "
            "fixture 'cluster' for virtual time"
        )
    with serve(
        seed=_seed(request, options), objects=options.get("objects", ()), nodes=options.get("nodes")
    ) as server:
        yield server


@pytest.fixture
def kubeconfig(kube_server: Server) -> Path:
    """A kubeconfig file for the server of this test."""
    return kube_server.kubeconfig


@pytest.fixture
def kube_url(kube_server: Server) -> str:
    """The address of the server of this test."""
    return kube_server.url


@pytest.fixture
def kube_token(kube_server: Server) -> str:
    """The administrator's bearer token for the server of this test."""
    return kube_server.token


@pytest.fixture
def kube_ca(kube_server: Server) -> Path:
    """A file with the certificate authority of the server of this test."""
    return kube_server.ca


def _options(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """The marker's arguments; the nearest one counts, argument by argument."""
    found: dict[str, Any] = {}
    for marker in request.node.iter_markers(_MARKER):
        unknown = [name for name in marker.kwargs if name not in _MARKER_ARGUMENTS]
        if marker.args or unknown:
            wrong = unknown[0] if unknown else marker.args[0]
            raise pytest.UsageError(
                f"{request.node.nodeid}: the holokube marker takes {', '.join(_MARKER_ARGUMENTS)} by name, "
                f"not {wrong!r}"
            )
        found = {**marker.kwargs, **found}
    return found


def _seed(request: pytest.FixtureRequest, options: Mapping[str, Any]) -> str:
    seed = str(options.get("seed", request.config.getoption("holokube_seed")))
    if seed == "random":
        from holokube.base.rng import system_seed

        seed = str(system_seed())
    request.node.stash[_SEED] = seed
    return seed
