from __future__ import annotations

import pytest

from holokube.karpenter.api.durations import duration_s


def test_durations_are_seconds_and_never_is_none() -> None:
    given = {"a": "1h30m", "b": "Never", "c": "0s"}
    assert duration_s(given, "a") == 5400
    assert duration_s(given, "b", 60.0) is None
    assert duration_s(given, "c", 60.0) == 0
    assert duration_s(given, "missing", 60.0) == 60
    assert duration_s(given, "missing") is None


@pytest.mark.parametrize("wrong", ["30 days", "", 30, "never"])
def test_what_is_no_duration_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"expireAfter: .*1h30m"):
        duration_s({"expireAfter": wrong}, "expireAfter")
