"""Parts of the webhook on an in-process cluster."""

from __future__ import annotations

from typing import Any

from holokube.client.client import Client
from holokube.client.resources import EVENTS, NODES
from holokube.testing import Cluster
from tests.kube.sizing.pods import sized_node

JsonObject = dict[str, Any]


async def set_allocatable(client: Client, name: str, cpu: str, memory: str = "10Gi") -> None:
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}}
    await client.patch_status(NODES, name, {"status": status})


async def make_nodes(client: Client, **cores: str) -> None:
    for name, cpu in cores.items():
        await client.create(NODES, sized_node(cpu, name=name))


def events(cluster: Cluster, reason: str) -> list[JsonObject]:
    listed = cluster.run(cluster.client.list(EVENTS)).items
    return [event for event in listed if event["reason"] == reason]
