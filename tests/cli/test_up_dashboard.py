"""The live page of ``holokube up``."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Inside, assert_two_lines, up


def first_event(url: str) -> tuple[str, dict[str, Any]]:
    with urllib.request.urlopen(f"{url}events", timeout=30) as stream:
        for line in stream:
            if line.startswith(b"event: "):
                return line[7:].decode().strip(), json.loads(next(stream).removeprefix(b"data: "))
    raise AssertionError("the stream ended without an event")


def test_the_page_of_a_cluster_is_announced_and_shows_it(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "5", "--zone", "a", "--policy", "cluster-autoscaler") as server:
        url = server.announced["HOLOKUBE_DASHBOARD"]
        assert url.startswith("http://127.0.0.1:")
        kind, snapshot = first_event(url)
        assert kind == "snapshot" and snapshot["totals"]["nodes"] == 5 and snapshot["title"] == "cluster-autoscaler"
        assert snapshot["can"] == {"pace": False, "faults": True} and not snapshot["virtual"]
        code, stderr = server.stop()
    assert code == 0 and f"watch it on {url}" in stderr and "Traceback" not in stderr
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_a_server_alone_has_a_page_to_look_at_only(tmp_path: Path) -> None:
    with up(tmp_path, "--components", "none") as server:
        _, snapshot = first_event(server.announced["HOLOKUBE_DASHBOARD"])
        assert snapshot["totals"]["nodes"] == 0 and snapshot["can"] == {"pace": False, "faults": False}
        assert server.stop()[0] == 0


def test_it_can_be_left_out(tmp_path: Path) -> None:
    with up(tmp_path, "--no-dashboard") as server:
        assert "HOLOKUBE_DASHBOARD" not in server.announced
        assert "watch it on" not in server.stop()[1]


def test_a_port_that_is_taken_is_an_error_that_helps(inside: Inside) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = inside("up", "--components", "none", "--dashboard-port", port)
    assert done.returncode == 1
    what, remedy = assert_two_lines(done.stderr)
    assert port in what and "--no-dashboard" in remedy
