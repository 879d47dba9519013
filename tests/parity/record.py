"""Record what the real kube-scheduler says: ``python -m tests.parity.record feasibility|scores|deployments``.

Needs the programs of the real control plane. Clusters that are the same as in the recording are kept.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import astuple
from pathlib import Path

import click

from holokube.testing.controlplane import find_or_build, programs_for
from tests.builders import JsonObject
from tests.parity import recordings
from tests.parity.clusters import feasibility_world, scores_world
from tests.parity.random_deployments import deployments_world, pending_by_deployment
from tests.parity.real_scheduler import LOG_SCORES, NO_BATCHES, running_oracle


@click.group(name="python -m tests.parity.record")
def cli() -> None:
    """Record the verdicts of the real kube-scheduler."""


def _by_digest(name: str) -> dict[str, JsonObject]:
    """What is recorded of clusters, by their content: what did not change is not asked again."""
    return {row["digest"]: row for row in recordings.load(name)} if recordings.exists(name) else {}


_anew = click.option("--anew", is_flag=True, help="Record all clusters, not only those that changed.")


@cli.command()
@click.option("--seeds", default=400, show_default=True)
@_anew
def feasibility(seeds: int, anew: bool) -> None:
    """Which nodes pass all filters, and what is said of the others."""
    known = {} if anew else _by_digest("feasibility")

    async def record() -> list[JsonObject]:
        rows = []
        binaries = find_or_build(build=True, programs=programs_for(("scheduler",)))
        with tempfile.TemporaryDirectory(prefix="holokube-parity-") as folder:
            async with running_oracle(binaries, Path(folder)) as oracle:
                for seed in range(seeds):
                    world = feasibility_world(seed)
                    if world.digest() in known:
                        rows.append(known[world.digest()])
                        continue
                    verdicts = [astuple(verdict) for verdict in await oracle.judge(world)]
                    rows.append({"seed": seed, "digest": world.digest(), "verdicts": verdicts})
                    click.echo(f"\r{seed + 1}/{seeds}", nl=False, err=True)
        return rows

    recordings.save("feasibility", asyncio.run(record()))


@cli.command()
@click.option("--seeds", default=120, show_default=True)
@_anew
def scores(seeds: int, anew: bool) -> None:
    """Where pods go that are placed one after the other, and the score of each plugin for each node."""
    known = {} if anew else _by_digest("scores")

    async def record() -> list[JsonObject]:
        rows = []
        binaries = find_or_build(build=True, programs=programs_for(("scheduler",)))
        arguments = (LOG_SCORES, NO_BATCHES)
        with tempfile.TemporaryDirectory(prefix="holokube-parity-") as folder:
            async with running_oracle(binaries, Path(folder), refuses=False, scheduler_args=arguments) as oracle:
                for seed in range(seeds):
                    world = scores_world(seed)
                    if world.digest() in known:
                        rows.append(known[world.digest()])
                        continue
                    placements = [astuple(placement) for placement in await oracle.place(world)]
                    rows.append({"seed": seed, "digest": world.digest(), "placements": placements})
                    click.echo(f"\r{seed + 1}/{seeds}", nl=False, err=True)
        return rows

    recordings.save("scores", asyncio.run(record()))


@cli.command()
@click.option("--seeds", default=80, show_default=True)
@click.option("--runs", default=3, show_default=True, help="With the default configuration.")
@click.option("--drawn-runs", default=5, show_default=True, help="With a draw among equally good nodes.")
@_anew
def deployments(seeds: int, runs: int, drawn_runs: int, anew: bool) -> None:
    """How many pods of each deployment stay pending, where that does not depend on which good node is taken."""
    known = {} if anew else _by_digest("deployments")
    worlds = {seed: deployments_world(seed) for seed in range(seeds)}
    found: dict[int, JsonObject] = {
        seed: known[world.digest()]["pending"] for seed, world in worlds.items() if world.digest() in known
    }
    settled = set(found)

    async def run_all(times: int, *, extended: bool) -> None:
        """Drop the clusters whose outcome differs between runs. Only with an extender are ties broken by chance."""
        binaries = find_or_build(build=True, programs=programs_for(("scheduler",)))
        with tempfile.TemporaryDirectory(prefix="holokube-parity-") as folder:
            async with running_oracle(binaries, Path(folder), refuses=False, extended=extended) as oracle:
                for seed in sorted(worlds.keys() - settled):
                    for _ in range(times):
                        pending = pending_by_deployment(worlds[seed], await oracle.fill(worlds[seed]))
                        if found.setdefault(seed, pending) != pending:
                            del worlds[seed], found[seed]
                            break
                    click.echo(f"\r{seed + 1}/{seeds}, {len(found)} stable", nl=False, err=True)

    asyncio.run(run_all(runs, extended=False))
    asyncio.run(run_all(drawn_runs, extended=True))
    recordings.save("deployments", (
        {"seed": seed, "digest": worlds[seed].digest(), "pending": found[seed]} for seed in sorted(found)
    ))  # fmt: skip


if __name__ == "__main__":
    cli()
