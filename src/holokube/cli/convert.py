"""``holokube convert``: traces and recordings from one program's format into another's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holokube.cli.settings import Settings, common_options

if TYPE_CHECKING:
    from holokube.lab.formats import Timeline
    from holokube.lab.run.runner import Progress

_READ = ("kubectl", "kwok", "openb", "simkube")
_SCENARIO = "scenario"
_WRITE = ("kubectl", "kwok", "simkube")


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from holokube.kube.timeformat import parse_duration

        try:
            seconds = parse_duration(str(value))
        except ValueError:
            seconds = -1.0
        if seconds < 0:
            self.fail(f"{value!r} is not a duration such as 90s, 15m or 24h", param, ctx)
        return seconds


@click.command("convert")
@click.argument("sources", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--from", "source_format", type=click.Choice((*_READ, _SCENARIO)),
    help="Format of IN; by default detected from its name and content.",
)  # fmt: skip
@click.option(
    "--to", "target_format", type=click.Choice(_WRITE),
    help="Format of OUT; by default detected from its name.",
)  # fmt: skip
@click.option("--policy", metavar="NAME", help="The policy with which a scenario is run; by default its first.")
@click.option("--workload", is_flag=True, help="Include only what users did, not what the cluster's components did.")
@click.option(
    "--after", type=_Duration(), default="0s", metavar="TIME",
    help="Leave out what happened before this time.",
)  # fmt: skip
@click.option("--until", type=_Duration(), metavar="TIME", help="Leave out what happened from this time on.")
@click.option(
    "--speed", type=float, default=1.0, metavar="FACTOR",
    help="Make everything happen this many times faster.",
)  # fmt: skip
@click.option("--at", type=_Duration(), metavar="TIME", help="The time to dump to a kubectl file; by default the end.")
@common_options
@click.pass_obj
def command(
    settings: Settings,
    sources: tuple[Path, ...],
    target: Path,
    source_format: str | None,
    target_format: str | None,
    policy: str | None,
    workload: bool,
    after: float,
    until: float | None,
    speed: float,
    at: float | None,
) -> None:
    """Convert a trace or recording into the format of another program.

    Reads kubectl dumps, recordings of kwokctl, SimKube traces (.sktrace), Alibaba's openb (node and pod CSV, both as
    IN), and scenarios, which it runs. Writes kubectl lists (.yaml, .json), recordings that kwokctl replays, and traces
    that SimKube's driver replays. TIME counts from the beginning of IN, such as 90s or 24h. Anything that the format of
    OUT cannot express is reported on stderr.
    """
    settings.configure_logging()
    from holokube.lab.formats import read_timeline, write_timeline
    from holokube.lab.formats.workload import workload_of

    chosen = target_format or _target_format(target)
    if at is not None and chosen != "kubectl":
        raise click.UsageError(f"--at is for kubectl files, which show one moment; a {chosen} file shows all of them.")
    source = source_format or _source_format(sources[0])
    if policy is not None and source != _SCENARIO:
        raise click.UsageError(f"--policy is for scenarios; {sources[0].name} is a {source} file.")
    timeline = _recorded(sources, policy) if source == _SCENARIO else read_timeline(source, sources)
    if workload:
        timeline = workload_of(timeline)
    if after or until is not None:
        timeline = timeline.between(after, until)
    timeline = timeline.scaled(speed)
    notes = write_timeline(chosen, timeline, target, at_s=at)
    for note in notes:
        click.echo(f"left out: {note}", err=True)
    if chosen == "kubectl":
        counts = _tell_moment(timeline, timeline.duration_s if at is None else at)
    else:
        counts = f"{len(timeline.objects)} objects, {len(timeline.changes)} changes in {_seconds(timeline.duration_s)}"
    click.echo(f"{target} ({chosen}): {counts}", err=True)


def _tell_moment(timeline: Timeline, at_s: float) -> str:
    """What is in a file that shows one moment; that it shows no other is told."""
    from holokube.lab.formats.kubectl import objects_at

    count = len(objects_at(timeline, at_s))
    if not timeline.changes:
        return f"{count} objects"
    click.echo(f"left out: all other moments, {len(timeline.changes)} changes in all", err=True)
    return f"{count} objects, as they were after {_seconds(at_s)}"


def _seconds(seconds: float) -> str:
    """Traces may be months long; nobody reads 1.29e+07."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def _source_format(path: Path) -> str:
    from holokube.lab.formats import guess_format

    if path.is_dir():
        return _SCENARIO
    found = guess_format(path)
    if found == "kubectl" and b"\nkind: Scenario" in b"\n" + path.read_bytes():
        return _SCENARIO
    return found


def _recorded(sources: tuple[Path, ...], policy: str | None) -> Timeline:
    from holokube.cli.progress import ProgressLine
    from holokube.cli.run_many import SCENARIO_FILE, choose
    from holokube.lab.formats.run_recording import record_run
    from holokube.lab.scenario.reading import read_scenario

    if len(sources) > 1:
        raise click.UsageError(f"A scenario is one file, not {len(sources)}.")
    path = sources[0] / SCENARIO_FILE if sources[0].is_dir() else sources[0]
    scenario = read_scenario(path)
    chosen = choose(scenario, [policy] if policy is not None else [])[0]
    line = ProgressLine()

    def show(progress: Progress) -> None:
        line.show(f"{progress.policy}: {progress.done_s / 3600:.1f} h of {progress.duration_s / 3600:g} h")

    return record_run(scenario, chosen, show)


def _target_format(target: Path) -> str:
    if target.suffix == ".sktrace":
        return "simkube"
    if target.suffix == ".json":
        return "kubectl"
    raise click.UsageError(
        f"{target.name!r} may be a kubectl list or a recording of kwokctl; say which with --to kubectl or --to kwok."
        if target.suffix in (".yaml", ".yml")
        else f"The name {target.name!r} does not tell a format; say it with --to {'|'.join(_WRITE)}."
    )
