"""The options ``--policy``, ``--policy-flags`` and ``--node-groups``, and what they mean."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holokube.base.errors import UsageError

if TYPE_CHECKING:
    from holokube.cluster.policy import Policy
    from holokube.kube.types import JsonObject

NONE: Final = "none"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
KARPENTER: Final = "karpenter"
OPTIMAL: Final = "optimal"
POLICIES: Final = (NONE, CLUSTER_AUTOSCALER, KARPENTER, OPTIMAL)


def choose_policy(name: str, flags: str, node_groups: str) -> Policy | None:
    """The policy; UsageError for settings that it does not have."""
    if name == NONE:
        for option, value in (("--policy-flags", flags), ("--node-groups", node_groups)):
            if value:
                raise UsageError(f"{option} is for a policy, and there is none", hint=f"Add --policy {POLICIES[1]}.")
        return None
    # Imported where they are needed: whoever wants no policy waits for none.
    if name in (KARPENTER, OPTIMAL):
        if node_groups:
            raise UsageError("--node-groups is for cluster-autoscaler", hint="Apply NodePools instead.")
        return _karpenter(_split(flags), is_optimal=name == OPTIMAL)
    return _cluster_autoscaler(_split(flags), node_groups)


def _karpenter(flags: list[str], *, is_optimal: bool) -> Policy:
    from holokube.cluster.karpenter_policy import KarpenterPolicy
    from holokube.cluster.optimal_policy import OptimalPolicy
    from holokube.karpenter.optimal.solver_library import load
    from holokube.karpenter.settings import parse_flags
    from holokube.pricing.catalog_files import read_catalog

    settings = parse_flags(flags)
    path = settings.instance_types_file_path
    catalog = read_catalog(Path(path)) if path else None
    if not is_optimal:
        return KarpenterPolicy(settings, catalog)
    load()
    return OptimalPolicy(settings, catalog)


def _cluster_autoscaler(flags: list[str], node_groups: str) -> Policy:
    from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy
    from holokube.cluster_autoscaler.flags import parse_flags

    parsed = parse_flags(flags)
    for warning in parsed.warnings:
        click.echo(f"warning: {warning}", err=True)
    return ClusterAutoscalerPolicy(parsed.options, _templates(node_groups) if node_groups else ())


def _split(flags: str) -> list[str]:
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise UsageError(f"--policy-flags {flags!r}: {error}", hint="Quote as a shell would.") from error


def _templates(path: str) -> list[JsonObject]:
    from holokube.apiserver.manifests import read_manifests

    nodes = [obj for obj in read_manifests(path).objects if obj.get("kind") == "Node"]
    if not nodes:
        raise UsageError(f"--node-groups {path} holds no Node", hint="Give v1 Node manifests.")
    return nodes
