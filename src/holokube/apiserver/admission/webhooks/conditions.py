"""matchConditions: CEL expressions that decide whether a webhook is called at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.apiserver.expressions import interpreter
from holokube.kube.types import JsonObject

Program = Callable[[dict[str, Any]], object]

_NO_CEL = (
    'matchConditions need a CEL interpreter, which is not installed: install the "cel" extra '
    "(pip install 'holokube[cel]')"
)


class ConditionError(Exception):
    """A condition could not be evaluated."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One compiled condition, or why it could not be compiled."""

    name: str
    expression: str
    program: Program | None
    problem: str = ""


def compile_conditions(written: Sequence[JsonObject]) -> tuple[Condition, ...]:
    return tuple(_compile(one.get("name", ""), one.get("expression", "")) for one in written)


def _compile(name: str, expression: str) -> Condition:
    cel = interpreter()
    if cel is None:
        return Condition(name, expression, None, _NO_CEL)
    try:
        return Condition(name, expression, cel.compile(expression).execute)
    except ValueError as problem:
        return Condition(name, expression, None, f"compilation error: {problem}")


def all_hold(conditions: Sequence[Condition], variables: dict[str, Any]) -> bool:
    """One that is false outweighs others that fail; otherwise a failure is a ``ConditionError``."""
    problems: list[str] = []
    for condition in conditions:
        if condition.program is None:
            problems.append(condition.problem)
            continue
        try:
            value = condition.program(variables)
        # The interpreter may raise anything that Python knows.
        except Exception as problem:
            why = f"no such key: {problem.args[0]}" if isinstance(problem, KeyError) else str(problem)
            problems.append(f"expression '{condition.expression}' resulted in error: {why}")
            continue
        if value is False:
            return False
        if value is not True:
            problems.append(
                f"matchCondition {condition.name!r} must evaluate to bool, not {type(value).__name__}"
            )
    if problems:
        raise ConditionError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
