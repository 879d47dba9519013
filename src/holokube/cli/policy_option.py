"""The options ``--policy``, ``--policy-flags`` and ``--node-groups``, and what they mean."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import click

from holokube.base.errors import UsageError

if TYPE_CHECKING:
    from holokube.cluster.policy import Policy
    from holokube.kube.types import JsonObject

NONE: Final = "none"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
POLICIES: Final = (NONE, CLUSTER_AUTOSCALER)


def choose_policy(name: str, flags: str, node_groups: str) -> Policy | None:
    """The policy; UsageError for settings that it does not have."""
    if name == NONE:
        for option, value in (("--policy-flags", flags), ("--node-groups", node_groups)):
            if value:
                raise UsageError(f"{option} is for a policy, and there is none", hint=f"Add --policy {POLICIES[1]}.")
        return None
    # Imported here: whoever wants no policy waits for none.
    from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy
    from holokube.cluster_autoscaler.flags import parse_flags

    parsed = parse_flags(_split(flags))
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
