"""The flags by which ``holokube fleet`` is the kubelet of one node; those that kubelets have keep their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from holokube.base.errors import UsageError
from holokube.kube.node_flags import NodeFlags, read_flags

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = (
    ("node-name", "NAME", "Be the kubelet of this node alone: register it, if it does not exist, and watch no other."),
    ("node-labels", "KEY=VALUE,...", "Labels with which it is registered."),
    ("register-with-taints", "KEY=VALUE:EFFECT,...", "Taints with which it is registered."),
    ("node-capacity", "NAME=AMOUNT,...", "Its capacity, where it differs from the profile: cpu=4,memory=16Gi."),
    ("node-allocatable", "NAME=AMOUNT,...", "Its allocatable, where it is less than the capacity."),
    ("max-pods", "NUMBER", "Its maximum number of pods; the same as pods=NUMBER in --node-capacity."),
    ("extended-resources", "NAME=AMOUNT,...", "Its devices, such as nvidia.com/gpu=4."),
    ("provider-id", "ID", "Its spec.providerID, by which a cloud provider knows it."),
)


def one_node_options(function: F) -> F:
    """Adds the flags to a command, which gets them as texts."""
    for name, metavar, help_text in reversed(_OPTIONS):
        function = click.option(f"--{name}", default="", metavar=metavar, help=help_text)(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNode:
    """The flags as they were given."""

    node_name: str
    node_labels: str
    register_with_taints: str
    node_capacity: str
    node_allocatable: str
    max_pods: str
    extended_resources: str
    provider_id: str

    def flags(self) -> NodeFlags:
        """What they say; UsageError for what makes no sense, or without a node to say it of."""
        given = {name: str(getattr(self, name.replace("-", "_"))) for name, *_ in _OPTIONS}
        for name in (name for name, value in given.items() if value and not self.node_name):
            raise UsageError(
                f"--{name} describes one node, but none is named", hint="Add --node-name=NAME, or use a profile."
            )
        return read_flags(f"--{name}={value}" for name, value in given.items() if value)
