from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.versions import is_newer


def of(version: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}}


@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_the_higher_number_is_the_newer_state(a: int, b: int) -> None:
    assert is_newer(of(str(a)), of(str(b))) == (a > b)


def test_of_versions_that_are_no_numbers_only_another_one_is_newer() -> None:
    assert is_newer(of("b"), of("a"))
    assert is_newer(of("a"), of("b"))
    assert is_newer(of("7"), of(""))
    assert not is_newer(of("a"), of("a"))
    assert not is_newer({"metadata": {}}, {"metadata": {}})
