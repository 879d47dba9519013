"""What marks a node as one of ours. Nothing without all the marks is ever counted, changed or deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROVIDER_NAME = "kwok"

PREFIX = "cluster-autoscaler.kwok.nodegroup/"
"""Of all annotations by which a template speaks to the provider."""
GROUP_NAME = f"{PREFIX}name"
FAKE = ("kwok.x-k8s.io/node", "fake")
"""Annotation by which fleets, and kwok, take a node as theirs."""
FAKE_NODE_REASON = "k8s.io/cluster-autoscaler/fake-node-reason"
"""Annotation of nodes that the autoscaler invents for machines without one."""


def provider_id(name: str) -> str:
    """The id of the machine of a node."""
    return f"{PROVIDER_NAME}:{name}"


def annotations_of(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node["metadata"].get("annotations") or {}


def is_fake(node: Mapping[str, Any]) -> bool:
    """Whether the node has no machine behind it, by its annotation."""
    return annotations_of(node).get(FAKE[0]) == FAKE[1]


def group_of(node: Mapping[str, Any]) -> str:
    """The group of a node that a kwok provider made; empty for all others.

    A node is ours if it is fake, names a group, and has an id of ours: upstream asks for one of these at a time,
    and so counts real nodes that merely carry a label.
    """
    id_ = (node.get("spec") or {}).get("providerID") or ""
    if not (is_fake(node) and id_.startswith(f"{PROVIDER_NAME}:")):
        return ""
    return annotations_of(node).get(GROUP_NAME) or ""


def by_group(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The index of nodes by group."""
    group = group_of(node)
    return (group,) if group else ()
