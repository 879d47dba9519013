from __future__ import annotations

from holokube.karpenter.optimal.persistence import TIMES_MOST, Persistence


def test_what_stays_the_same_is_looked_at_for_longer_each_time_and_then_no_more() -> None:
    persistence, asked = Persistence(), []
    for _ in range(8):
        asked.append(persistence.times_for("the same"))
        persistence.was_in_vain()
    assert asked == [1, 2, 4, TIMES_MOST, 0, 0, 0, 0]


def test_what_has_changed_is_looked_at_as_if_for_the_first_time() -> None:
    persistence = Persistence()
    for _ in range(8):
        persistence.times_for("before")
        persistence.was_in_vain()
    assert persistence.times_for("after") == 1
    assert persistence.times_for("before") == 1


def test_a_look_that_found_something_makes_the_next_one_no_longer() -> None:
    persistence = Persistence()
    assert [persistence.times_for("the same") for _ in range(3)] == [1, 1, 1]
