"""Faults of hollow nodes by command: which nodes are meant."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.base.errors import UsageError
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.fault_writes import KINDS, break_node, heal_node

__all__ = ["KINDS", "break_node", "chosen_nodes", "heal_node", "node_count"]


async def chosen_nodes(client: Client, names: Sequence[str], selector: str) -> list[str]:
    """The nodes that are named, or that a label selector picks; none at all is an error."""
    if bool(names) == bool(selector):
        raise UsageError(
            "name nodes or give --selector" + (", not both" if names else ""),
            hint="For example: node-0 node-1, or --selector topology.kubernetes.io/zone=a.",
        )
    if names:
        return list(dict.fromkeys(names))
    found = (await client.list_all(NODES, label_selector=selector)).items
    if not found:
        raise UsageError(f"no node matches {selector!r}", hint="See `kubectl get nodes --show-labels`.")
    return [node["metadata"]["name"] for node in found]


def node_count(count: int) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} node" if count == 1 else f"{count} nodes"
