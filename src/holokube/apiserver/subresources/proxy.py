"""nodes/proxy, and the streams into containers that hollow pods do not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.logs import TextStream
from holokube.kube.errors import BadRequest, ServiceUnavailable

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry


class NodeProxy(Protocol):
    """Answers for the kubelet of a node: body and media type of one of its endpoints, or a stream."""

    async def get(self, node: str, path: str, query: Mapping[str, str]) -> tuple[bytes, str] | TextStream: ...


class NoNodeProxy:
    """Used while no hollow kubelet is attached to the server."""

    async def get(self, node: str, path: str, query: Mapping[str, str]) -> tuple[bytes, str] | TextStream:  # noqa: ARG002 - the protocol's
        raise ServiceUnavailable(
            f'error trying to reach service: no kubelet of node "{node}" is attached to this server (/{path})'
        )


async def proxy(
    registry: Registry,
    nodes: NodeProxy,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    rest: str,
    query: Mapping[str, str],
) -> tuple[bytes, str] | TextStream:
    """Ask the hollow kubelet; refuse what needs a real container."""
    registry.get_stored(served, namespace, name.partition(":")[0])
    if served.plural == "nodes":
        return await nodes.get(name.partition(":")[0], rest, query)
    raise BadRequest(f"{served.plural}/{subresource} needs a running container, and the pods of this server are hollow")
