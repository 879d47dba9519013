"""nodes/proxy, and the streams into containers that hollow pods do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holokube.apiserver.resources import Served
from holokube.kube.errors import BadRequest, ServiceUnavailable

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry


class NodeProxy(Protocol):
    """Answers for the kubelet of a node: body and media type of one of its endpoints."""

    async def get(self, node: str, path: str) -> tuple[bytes, str]: ...


class NoNodeProxy:
    """Used while no hollow kubelet is attached to the server."""

    async def get(self, node: str, path: str) -> tuple[bytes, str]:
        raise ServiceUnavailable(
            f'error trying to reach service: no kubelet of node "{node}" is attached to this server (/{path})'
        )


async def proxy(
    registry: Registry, nodes: NodeProxy, served: Served, namespace: str, name: str, subresource: str, rest: str
) -> tuple[bytes, str]:
    """Ask the hollow kubelet; refuse what needs a real container."""
    registry.get_stored(served, namespace, name.partition(":")[0])
    if served.plural == "nodes":
        return await nodes.get(name.partition(":")[0], rest)
    raise BadRequest(f"{served.plural}/{subresource} needs a running container, and the pods of this server are hollow")
