"""Fixtures that many test folders share: a real control plane, the real kubectl, a real browser.

Each xdist worker has its own control plane, started when a test first asks for it (2.5 seconds): tests may
then use cluster-wide objects such as Nodes without stepping on each other's feet. Under ``--dist loadgroup``
the tests of one control plane stay together on one worker, so that each is started once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from holokube.base.errors import HolokubeError
from holokube.testing.controlplane import (
    COMPONENTS,
    ControlPlane,
    ProgramsMissingError,
    find_kubectl,
    find_or_build,
    programs_for,
)
from tests.chromium import Chromium, find_chromium

T = TypeVar("T")

REAL_FIXTURES = ("real_cluster", "real_apiserver")
NOT_AVAILABLE = "not available: "


def obtain(request: pytest.FixtureRequest, find: Callable[[], T]) -> T:
    """Find programs; without them skip, or fail where HOLOKUBE_REQUIRE_REAL says that they must be there."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        # A build takes minutes: its progress must be seen while it lasts.
        with capture.global_and_fixture_disabled():
            return find()
    except ProgramsMissingError as error:
        reason = f"{NOT_AVAILABLE}{error} {error.hint}"
        if os.environ.get("HOLOKUBE_REQUIRE_REAL", "") not in ("", "0"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def run_control_plane(
    request: pytest.FixtureRequest,
    workdir: Path,
    components: tuple[str, ...],
    *,
    authorization_mode: str = "AlwaysAllow",
) -> Iterator[ControlPlane]:
    binaries = obtain(request, lambda: find_or_build(build=True, programs=programs_for(components)))
    plane = ControlPlane(binaries, workdir, components, authorization_mode=authorization_mode)
    try:
        plane.start()
    except HolokubeError as error:
        pytest.fail(f"{error}\n{error.hint}", pytrace=False)
    try:
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def real_apiserver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver only: nothing schedules, nothing reconciles."""
    yield from run_control_plane(request, tmp_path_factory.mktemp("real-apiserver"), ())


@pytest.fixture(scope="session")
def real_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""
    yield from run_control_plane(request, tmp_path_factory.mktemp("real-cluster"), COMPONENTS)


@pytest.fixture(scope="session")
def kubectl_program(request: pytest.FixtureRequest) -> Path:
    """The real kubectl, 1.32 or newer; see holokube.testing.kubectl for how to run it."""
    return obtain(request, find_kubectl)


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A real Chromium, started once; tests open pages of their own."""
    with Chromium(obtain(request, find_chromium), tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, so that ``-m "not real and not kubectl"`` cannot miss one."""
    has_xdist = config.pluginmanager.hasplugin("xdist")
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for fixture in REAL_FIXTURES:
            if fixture in fixtures:
                item.add_marker("real")
                if has_xdist:
                    item.add_marker(pytest.mark.xdist_group(fixture))
        if "kubectl_program" in fixtures:
            item.add_marker("kubectl")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups keep tests together that share a cluster; torn apart, they fail in ways that are hard to understand."""
    if getattr(session.config.option, "loadgroup", False):
        for item in session.items:
            if item.get_closest_marker("xdist_group") is not None and "@" not in item.nodeid:
                raise pytest.UsageError(f"{item.nodeid} is in a group that this pytest-xdist does not see")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[None] | pytest.TestReport:
    report: pytest.TestReport = yield
    if report.failed:
        for fixture in REAL_FIXTURES:
            plane = getattr(item, "funcargs", {}).get(fixture)
            if plane is not None:
                report.sections.append((f"logs of {fixture}", str(plane.workdir / "log")))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tested for want of other programs."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if NOT_AVAILABLE in reason:
            reasons[reason.partition(NOT_AVAILABLE)[2]] += 1
    for reason, count in reasons.items():
        terminalreporter.write_line(
            f"SKIPPED {count} tests for want of other programs: {reason}", yellow=True, bold=True
        )
    if reasons:
        terminalreporter.write_line("Set HOLOKUBE_REQUIRE_REAL=1 to make this a failure.", yellow=True)
