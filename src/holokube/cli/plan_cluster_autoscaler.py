"""``holokube plan --policy cluster-autoscaler``: reads the files, plays the loop, hands back the answer."""

from __future__ import annotations

from typing import Any

import click

from holokube.apiserver.manifests import Manifests, read_manifests
from holokube.base.errors import UsageError
from holokube.cli.plan import Answer, Request
from holokube.cli.plan_files import paths_of
from holokube.cli.plan_tables import show_scenario, show_snapshot
from holokube.cluster_autoscaler.cloud.kwok.grouping import Template
from holokube.cluster_autoscaler.flags import ParsedFlags, parse_flags
from holokube.cluster_autoscaler.plan.scenario import is_scenario, read_scenario
from holokube.cluster_autoscaler.plan.scenario_run import run_scenario
from holokube.cluster_autoscaler.plan.snapshot_input import read_snapshot
from holokube.cluster_autoscaler.plan.snapshot_run import run_snapshot


def plan(request: Request) -> Answer:
    """The plan for what the files hold."""
    for option, value in (("--catalog", request.catalog), ("--price-overlays", request.overlays)):
        if value:
            raise UsageError(f"{option} is for karpenter and optimal; the cluster-autoscaler's nodes come from groups",
                             hint="Leave it out, or add --policy karpenter.")
    documents = [read_manifests(path) for path in paths_of(request.files)]
    scenarios = [(found, obj) for found in documents for obj in found.objects if is_scenario(obj)]
    if scenarios:
        return _plan_scenario(request, documents, scenarios)
    parsed = _flags(request.flags)
    given = read_snapshot(
        [obj for found in documents for obj in found.objects],
        templates=_templates(request.templates), sizes=parsed.process.nodes,
        defaults=parsed.options.group_defaults())
    values = run_snapshot(
        given, parsed.options, seed=request.seed, waits=request.waits, node_order=request.node_order)
    return Answer(values, lambda console: show_snapshot(console, values))


def _plan_scenario(
    request: Request, documents: list[Manifests], scenarios: list[tuple[Manifests, Any]]
) -> Answer:
    found, obj = scenarios[0]
    if len(scenarios) > 1 or len(documents) > 1 or len(found.objects) > 1:
        raise UsageError(
            f"{found.name} holds a scenario, which is planned by itself",
            hint="Give one file with one scenario, or objects of a cluster in any number of files.")
    if request.templates:
        raise UsageError("--templates cannot be used with a scenario, which has its own node groups",
                         hint=f"Add the groups to nodeGroups in {found.name}.")
    scenario = read_scenario(obj, found.name)
    options = _flags((*scenario.flags, *request.flags)).options
    values = run_scenario(scenario, options, seed=request.seed, node_order=request.node_order)
    return Answer(values, lambda console: show_scenario(console, values))


def _flags(flags: tuple[str, ...]) -> ParsedFlags:
    parsed = parse_flags(flags)
    for warning in parsed.warnings:
        click.echo(f"Warning: {warning}", err=True)
    return parsed


def _templates(files: tuple[str, ...]) -> list[Template]:
    found: list[Template] = []
    for path in paths_of(files):
        manifests = read_manifests(path)
        for index, obj in enumerate(manifests.objects):
            if not isinstance(obj, dict) or obj.get("kind") != "Node":
                raise UsageError(
                    f"{manifests.where(index)}: a template must be a Node", hint="Give Node objects only.")
            found.append(Template(obj, manifests.where(index)))
    return found
