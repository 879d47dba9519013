"""The runs of a sweep: what each needs, under which key its result is kept, and how it is done."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from holokube import __version__
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.log import counted
from holokube.lab.scenario.errors import Problem, ScenarioError
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.lab.scenario.reading import apply_overrides, build_scenario, read_document
from holokube.lab.sweep.fingerprint import fingerprint
from holokube.lab.sweep.settings import Settings

ChoosePolicies = Callable[[Scenario, Sequence[str]], Sequence[PolicySpec]]
"""Which policies of a scenario some names mean; none mean all."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run."""

    settings: Mapping[str, str]
    scenario: Scenario
    policy: PolicySpec

    @property
    def key(self) -> str:
        """The same for the same run: scenario, settings, seed, policy and version of this program."""
        # Where the file is, and which other policies it has, makes no difference.
        told = dataclasses.replace(self.scenario, path="", text="", policies=())
        return fingerprint(__version__, told, self.policy)

    @property
    def title(self) -> str:
        """For messages."""
        told = [f"{_short(path)}={value}" for path, value in self.settings.items()]
        return ", ".join([*told, self.policy.name])


def _short(path: str) -> str:
    return path.removeprefix("spec.")


RunTask = Callable[[Task], bytes]
"""Does a run and gives its result as JSON; a function that another process can import."""


def run_task(task: Task) -> bytes:
    """The real one."""
    # Whoever plans a sweep, or finds all of it done already, need not load a whole cluster.
    from holokube.lab.run.runner import run_scenario
    from holokube.lab.run.transport import is_on_purpose

    # What the components of so many clusters have to say is nobody's reading, unless something is broken.
    with counted(is_on_purpose):
        result = run_scenario(task.scenario, task.policy)
    return orjson.dumps(result.as_json())


def _because(problem: Problem, told: str) -> Problem:
    """The file by itself may be fine; with which values it is not must be told."""
    return dataclasses.replace(problem, what=f"{problem.what} (with {told})")


def plan_tasks(
    path: Path, choices: Sequence[Settings], policies: Sequence[str], choose: ChoosePolicies
) -> list[Task]:
    """All runs in the order of the choices, policies last. What is wrong with any of them is told before all runs."""
    document = read_document(path)
    found: list[Task] = []
    for choice in choices:
        try:
            scenario = build_scenario(apply_overrides(document, choice.overrides))
            chosen = choose(scenario, [choice.policy] if choice.policy else policies)
        except HolokubeError as error:
            if choice.texts:
                told = ", ".join(f"{name}={value}" for name, value in choice.texts.items())
                if isinstance(error, ScenarioError):
                    raise ScenarioError(_because(problem, told) for problem in error.problems) from error
                error.message = f"with {told}: {error.message}"
            raise
        found.extend(Task(choice.texts, scenario, policy) for policy in chosen)
    if not found:
        raise UsageError("the sweep has no runs", hint="The scenario needs at least one policy.")
    return found
