"""Attributes that are worked out once."""

from __future__ import annotations

from dataclasses import dataclass, field

from holokube.base.lazy import lazy


@dataclass(frozen=True)
class Circle:
    """Something with a value that takes a while."""

    radius: int
    asked: list[str] = field(default_factory=list, compare=False)

    @lazy
    def area(self) -> int:
        """About three times the square."""
        self.asked.append("area")
        return 3 * self.radius**2


def test_a_lazy_attribute_is_worked_out_when_it_is_first_asked_for_and_not_again() -> None:
    circle = Circle(2)
    assert circle.asked == []
    assert [circle.area, circle.area] == [12, 12]
    assert circle.asked == ["area"]


def test_every_object_has_a_value_of_its_own_which_can_be_given_to_it() -> None:
    one, other = Circle(1), Circle(3)
    assert (one.area, other.area) == (3, 27)
    given = Circle(5)
    given.__dict__["area"] = 1
    assert given.area == 1
    assert given.asked == []


def test_asked_of_the_class_it_tells_of_itself() -> None:
    assert isinstance(Circle.area, lazy)
    assert Circle.area.__doc__ == "About three times the square."
