"""A browser for the tests of this folder, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import obtain
from tests.report.chromium import Chromium, find_chromium


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A real Chromium; tests that ask for it are skipped, loudly, where there is none."""
    program = obtain(request, find_chromium)
    with Chromium(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
