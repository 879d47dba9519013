"""Fixtures for tests of commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Inside, untouched_logging


@pytest.fixture
def inside(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Inside]:
    """Runs commands in this process, with an empty home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with untouched_logging():
        yield Inside(capsys)
