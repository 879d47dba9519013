from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.scheduler.profiles import DEFAULT, Profile, checked


def test_profiles_that_make_sense_are_taken_as_they_are() -> None:
    others = Profile("other", disabled_filters=frozenset({"TaintToleration"}))
    assert checked([DEFAULT, others]) == (DEFAULT, others)
    assert DEFAULT.scheduler_name == "default-scheduler"


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ((), "the scheduler has no profile"),
        ((DEFAULT, DEFAULT), 'there are two profiles for the scheduler name "default-scheduler"'),
        ((Profile("x", disabled_filters=frozenset({"Nope"})),), 'profile "x" disables filters that do not exist: Nope'),
        ((Profile("Not Valid"),), '"Not Valid" cannot be the name of a scheduler: '),
    ],
)
def test_profiles_that_make_no_sense_are_refused(profiles: tuple[Profile, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(profiles)
    assert str(caught.value).startswith(message)
