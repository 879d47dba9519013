"""``holokube explain``: why a pod was pending, why a node was added, kept or removed."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holokube.cli.settings import Settings, common_options

if TYPE_CHECKING:
    from rich.console import Console

    from holokube.lab.explain import Story
    from holokube.lab.result_files import Evidence


@click.command("explain")
@click.argument("subject", metavar="node/NAME|pod/NS/NAME|group/NAME")
@click.argument("result", metavar="RESULT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--at", metavar="TIME",
    help="Explain the state at this time, and what led to it: time since the start (5h30m), or virtual time (RFC "
    "3339).",
)  # fmt: skip
@click.option("--policy", metavar="NAME", help="Only the run with this policy, if RESULT has several.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
@common_options
@click.pass_obj
def command(
    settings: Settings, subject: str, result: Path, at: str | None, policy: str | None, output: str
) -> None:
    """Explain why a pod was pending, or why a node was added, kept or removed.

    RESULT is the output of `holokube run SCENARIO -o json`, or a file of its `--event-log`. The answer is in
    chronological order: what happened to the object itself, and what schedulers and autoscalers decided about it and
    why.
    """
    settings.configure_logging()
    from holokube.lab.explain import explain, parse_subject
    from holokube.lab.result_files import read_evidence

    kind, name = parse_subject(subject)
    runs = read_evidence(result)
    if policy is not None:
        runs = _chosen(runs, policy)
    stories = explain(runs, kind, name, None if at is None else _at_s(at, runs))
    if output == "json":
        import orjson

        text = orjson.dumps([story.as_json() for story in stories], option=orjson.OPT_INDENT_2).decode()
        sys.stdout.write(text + "\n")
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    console = Console(no_color=not settings.colors_stdout(), highlight=False, width=width, soft_wrap=True)
    for number, story in enumerate(stories):
        if number:
            console.print()
        _show(console, story)


def _chosen(runs: list[Evidence], policy: str) -> list[Evidence]:
    from holokube.base.errors import UsageError

    found = [run for run in runs if run.label == policy]
    if not found:
        labels = ", ".join(run.label or "(none)" for run in runs)
        raise UsageError(f"the file has no run with policy {policy!r}", hint=f"It has {labels}.")
    return found


def _at_s(text: str, runs: list[Evidence]) -> float:
    from holokube.kube.timeformat import parse_duration, parse_time

    try:
        seconds = parse_duration(text)
    except ValueError:
        try:
            moment = parse_time(text)
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is neither a time since the beginning such as 5h30m nor one such as 2026-01-05T05:30:00Z",
                param_hint="'--at'",
            ) from None
        starts = [run.start for run in runs if run.start]
        if not starts:
            raise click.BadParameter(
                "an event log does not tell when the run began; give the time since then, such as 5h30m",
                param_hint="'--at'",
            ) from None
        seconds = (moment - _parsed(starts[0])).total_seconds()
    if seconds < 0:
        raise click.BadParameter(f"{text!r} is before the beginning of the run", param_hint="'--at'")
    return seconds


def _parsed(text: str) -> datetime:
    from holokube.kube.timeformat import parse_time

    return parse_time(text)


def _show(console: Console, story: Story) -> None:
    from rich.text import Text

    from holokube.lab.explain import clock

    run = f", policy {story.run}" if story.run else ""
    console.print(Text(f"{story.kind} {story.name}{run}", style="bold"))
    for sentence in story.summary:
        console.print(Text(sentence))
    if not story.moments:
        console.print(Text("Nothing is known of what happened to it."))
        return
    if story.start:
        console.print(Text(f"Times count from {story.start}.", style="dim"))
    width = max(len(moment.who) for moment in story.moments)
    for moment in story.moments:
        who = f"{moment.who.ljust(width)}  " if width else ""
        console.print(Text.assemble((clock(moment.at_s), "cyan"), "  ", (who, "dim"), moment.what))
        for why in moment.why:
            console.print(Text(" " * (10 + width + (2 if width else 0)) + why, style="dim"))
