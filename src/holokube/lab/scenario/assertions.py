"""What is expected of a run: ``pending_p99_s < 60``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from holokube.lab.results import MEASURE_BY_NAME, Measure
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Wrong, choose_among, one_of
from holokube.lab.scenario.values import Reading, Value, duration_s

Operator = Literal["<", "<=", ">", ">=", "==", "!="]

_OPERATORS: Final[Mapping[Operator, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*([<>=!~]+)\s*(\S.*?)\s*", re.ASCII)
_EXAMPLE: Final = "pending_p99_s < 60"


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must hold at the end for the run to count as good."""

    measure: str
    """A name of ``lab.results.MEASURES``."""
    op: Operator
    value: float
    text: str
    """As it was written."""

    def holds(self, measured: float | None) -> bool:
        """Whether a measured value is as it should be; nothing measured is not."""
        return measured is not None and _OPERATORS[self.op](measured, self.value)


@dataclass(frozen=True)
class AssertionValue(Value):
    """A measure, a comparison and a number."""

    title: ClassVar[str] = "text: [measure](#measures), `<`, `<=`, `>`, `>=`, `==` or `!=`, and a number"
    example: ClassVar[str] = _EXAMPLE

    def read(self, given: Marked, path: str, reading: Reading) -> Assertion:  # noqa: ARG002 - part of the protocol
        if not isinstance(given.value, str):
            raise Wrong(f"an assertion is expected, not {given.kind}", f"Write one such as {_EXAMPLE}.")
        return parse_assertion(given.value)

    def shown(self, value: Any) -> str:
        return str(value.text)


def parse_assertion(text: str) -> Assertion:
    """Reads an assertion; Wrong if it is none."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise Wrong(f"{text!r} is no assertion", f"Write a measure, a comparison and a number: {_EXAMPLE}.")
    name, sign, number = form.groups()
    measure = MEASURE_BY_NAME.get(name)
    if measure is None:
        raise Wrong(f"there is no measure {name!r}", choose_among(name, MEASURE_BY_NAME))
    for known in _OPERATORS:
        if sign == known:
            return Assertion(name, known, _number(number, measure), text)
    raise Wrong(f"{sign!r} is no comparison", f"Use {one_of(list(_OPERATORS))}.")


def _number(text: str, measure: Measure) -> float:
    try:
        if text.endswith("%") and measure.unit == "share":
            return float(text.removesuffix("%")) / 100
        number = float(text)
    except ValueError:
        pass
    else:
        if number > 1 and measure.unit == "share" and measure.better == "higher":
            raise Wrong(f"no share is {text}", f"Shares are from 0 to 1; write {text}% if that is meant.")
        return number
    if measure.unit == "s":
        try:
            return duration_s(text)
        except Wrong as wrong:
            remedy = "Write one such as 60, or a duration such as 2m."
            raise Wrong(f"{text!r} is no number of seconds", remedy) from wrong
    share = ", or a share such as 80%" if measure.unit == "share" else ""
    raise Wrong(f"{text!r} is no number", f"Write one such as 0.5{share}, without a unit.")
