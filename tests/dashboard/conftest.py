"""A real Chromium for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import obtain
from tests.report.chromium import Chromium, find_chromium


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser; tests open pages of their own."""
    with Chromium(obtain(request, find_chromium), tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
