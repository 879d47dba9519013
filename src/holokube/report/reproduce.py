"""How to have the same results again: the command, and what it needs."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Mapping, Sequence

from holokube.lab.results import RunResult
from holokube.lab.scenario.appendix import NamedFile, take_apart
from holokube.lab.scenario.model import POLICY_KINDS
from holokube.report.markup import text
from holokube.report.scenario_text import policy_names


def run_section(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """For each scenario, as it was after its variant, the command of the runs that came from it."""
    seen: dict[tuple[str, str, int], list[int]] = {}
    for index, result in enumerate(results):
        seen.setdefault((result.scenario, result.scenario_text, result.seed), []).append(index)
    texts = {(scenario, scenario_text) for scenario, scenario_text, _ in seen}
    parts = []
    for (scenario, scenario_text, seed), runs in seen.items():
        # Variants of one scenario have its name: the file is then named after the run as well.
        alone = sum(other == scenario for other, _ in texts) == 1
        name = file_name(scenario if alone else f"{scenario}-{labels[runs[0]]}")
        shell = run_command(name, policies_of(scenario_text, [results[index].policy for index in runs]), seed)
        who = ", ".join(labels[index] for index in runs)
        parts.append(_block(f"{who}: save", name, shell, scenario, scenario_text, shown=len(seen) == 1))
    return "".join(parts)


def sweep_section(results: Sequence[RunResult], settings: Sequence[Mapping[str, str]]) -> str:
    """For each scenario the command of the sweep; runs that make no grid as a list."""
    parts = []
    for scenario in dict.fromkeys(result.scenario for result in results):
        runs = [index for index, result in enumerate(results) if result.scenario == scenario]
        scenario_text = results[runs[0]].scenario_text
        policies = policies_of(scenario_text, [results[index].policy for index in runs])
        mine = list({tuple(settings[index].items()): dict(settings[index]) for index in runs}.values())
        shell = sweep_command(file_name(scenario), mine, policies)
        listed = "" if is_grid(mine) else _code(
            "The list of settings: settings.csv", "settings.csv", as_csv(mine), shown=True)
        parts.append(_block("Save", file_name(scenario), shell, scenario, scenario_text, shown=False, more=listed))
    return "".join(parts)


def policies_of(scenario_text: str, labels: Sequence[str]) -> list[str]:
    """What to choose by ``--policy``; empty where the labels tell no policy, and all that the scenario has are run.

    Runs of a variant are labelled with its name, after that of the policy where there are several.
    """
    known = {*POLICY_KINDS, *policy_names(scenario_text)}
    found = []
    for label in labels:
        name = label if label in known else label.rpartition("/")[0]
        if name not in known:
            return []
        found.append(name)
    return list(dict.fromkeys(found))


def run_command(name: str, policies: Sequence[str], seed: int) -> str:
    """What to type to have the same runs again."""
    chosen = [word for policy in policies for word in ("--policy", policy)]
    return shlex.join(["holokube", "run", name, *chosen, "--seed", str(seed), "--report", "report.html"])


def sweep_command(name: str, settings: Sequence[Mapping[str, str]], policies: Sequence[str]) -> str:
    """What to type to have the same sweep again."""
    words = ["holokube", "sweep", name]
    if is_grid(settings):
        for path, values in _axes(settings).items():
            words += ["--set", f"{path}={','.join(values)}"]
    else:
        words += ["--list", "settings.csv"]
    chosen = [word for policy in policies for word in ("--policy", policy)]
    return shlex.join([*words, *chosen, "--report", "sweep.html"])


def is_grid(settings: Sequence[Mapping[str, str]]) -> bool:
    """Whether each value of each setting was run with each of the others."""
    axes = _axes(settings)
    return all(one.keys() == axes.keys() for one in settings) and len(settings) == math.prod(
        len(values) for values in axes.values())


def _axes(settings: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for one in settings for name in one)
    return {name: list(dict.fromkeys(one[name] for one in settings if name in one)) for name in names}


def as_csv(settings: Sequence[Mapping[str, str]]) -> str:
    """Settings as the list that ``holokube sweep --list`` reads."""
    names = list(_axes(settings))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([one.get(name, "") for name in names] for one in settings)
    return out.getvalue()


def file_name(scenario: str) -> str:
    """What to call a scenario's file, whatever its own name has in it."""
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in scenario).strip("-.")
    return f"{kept or 'scenario'}.yaml"


def _block(
    start: str, name: str, shell: str, scenario: str, scenario_text: str, *, shown: bool, more: str = "",
) -> str:
    alone, files = take_apart(scenario_text)
    return (
        f'<div class="again"><p>{text(start)} the scenario as <code>{text(name)}</code>{_beside(files)}, then</p>'
        f'<div class="command"><pre><code>{text(shell)}</code></pre>{_tools()}</div>'
        f"{more}{_code(f'Scenario {scenario}', name, alone, shown=shown)}{''.join(_file(file) for file in files)}</div>"
    )


def _beside(files: Sequence[NamedFile]) -> str:
    """What must lie beside the scenario, and whether it is in the report."""
    parts = []
    known = [file.name for file in files if file.text is not None]
    if known:
        parts.append(f", beside it the {'file' if len(known) == 1 else f'{len(known)} files'} below")
    parts.extend(
        f", and <code>{text(file.name)}</code>, which is too large to be in here ({text(file.size)})"
        for file in files if file.text is None
    )
    return "".join(parts)


def _file(file: NamedFile) -> str:
    return "" if file.text is None else _code(file.name, file.name, file.text, shown=False)


def _code(title: str, name: str, source: str, *, shown: bool) -> str:
    return (
        f"<details{' open' if shown else ''}><summary>{text(title)}</summary>"
        f'<div class="command"><pre class="scenario"><code>{text(source)}</code></pre>{_tools(name)}</div></details>'
    )


def _tools(name: str = "") -> str:
    """To copy what is shown, and to save it where it is a file."""
    save = f'<button type="button" class="quiet save" data-name="{text(name)}" hidden>Save</button>' if name else ""
    return f'<span class="tools">{save}<button type="button" class="quiet copy" hidden>Copy</button></span>'
