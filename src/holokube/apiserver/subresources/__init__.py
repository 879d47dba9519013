"""What hangs below an object: scale, binding, eviction, log, token and the like.

``status`` and its kin (resize, ephemeralcontainers, finalize, approval) are the object itself, written through another
door: ``writes`` does them, with hooks of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.binding import BoundStatuses, NodeLabels, bind, bind_by_name
from holokube.apiserver.subresources.eviction import evict
from holokube.apiserver.subresources.logs import LogSource, SyntheticLogs, TextStream, pod_log
from holokube.apiserver.subresources.proxy import NodeProxy, NoNodeProxy, proxy
from holokube.apiserver.subresources.reviews import REVIEWS, review
from holokube.apiserver.subresources.scale import ScaleDoor
from holokube.apiserver.subresources.tokens import request_token
from holokube.kube.errors import MethodNotAllowed, NotFound
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.http.auth import Authenticator
    from holokube.apiserver.registry import Registry

# Other doors to the object itself.
OBJECT_DOORS = frozenset({"status", "resize", "ephemeralcontainers", "finalize", "approval"})
Outcome = WriteResult | JsonObject | tuple[bytes, str] | TextStream


class Subresources:
    """Dispatches to the handlers; holds what they need from outside."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._scale = ScaleDoor(registry)
        self._authenticator: Authenticator | None = None
        self.bound_statuses = BoundStatuses()
        self.node_labels = NodeLabels()
        self.logs: LogSource = SyntheticLogs()
        self.node_proxy: NodeProxy = NoNodeProxy()

    def use_authenticator(self, authenticator: Authenticator) -> None:
        """Token requests and reviews need to know who is who."""
        self._authenticator = authenticator

    async def handle(
        self,
        served: Served,
        namespace: str,
        name: str,
        subresource: str,
        verb: str,
        *,
        body: Any,
        content_type: str,
        query: Mapping[str, str],
        options: WriteOptions,
        caller: Caller,
        rest: str = "",
    ) -> Outcome:
        """One request for a subresource: an object, a written object, text with its media type, or a stream of it."""
        registry = self._registry
        if subresource in OBJECT_DOORS:
            return await self._object_door(
                served, namespace, name, subresource, verb, body, content_type, options, caller
            )
        if subresource == "scale":
            return await self._scale.handle(served, namespace, name, verb, body, content_type, options, caller)
        if subresource == "binding":
            return await bind(registry, namespace, name, body, options, caller)
        if subresource == "eviction":
            return await evict(registry, namespace, name, body, options, caller)
        if subresource == "token":
            return await request_token(registry, self._authenticator, namespace, name, body, options)
        if subresource == "log":
            return pod_log(registry, self.logs, namespace, name, query)
        if subresource in ("proxy", "exec", "attach", "portforward"):
            return await proxy(registry, self.node_proxy, served, namespace, name, subresource, rest, query)
        raise NotFound("the server could not find the requested resource", details={})

    async def _object_door(
        self,
        served: Served,
        namespace: str,
        name: str,
        subresource: str,
        verb: str,
        body: Any,
        content_type: str,
        options: WriteOptions,
        caller: Caller,
    ) -> Outcome:
        registry = self._registry
        if verb == "get":
            return registry.get(served, namespace, name).obj
        if verb == "update":
            return await registry.update(served, namespace, name, body, options, caller, subresource)
        if verb == "patch":
            return await registry.patch(
                served, namespace, name, content_type, body, options, caller, subresource
            )
        raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})

    async def create_virtual(
        self, served: Served, namespace: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult:
        """Resources that are answered, not stored: reviews, and the old way to bind a pod."""
        if served.plural in REVIEWS:
            return review(self._registry, self._authenticator, served, namespace, body, options, caller)
        if served.plural == "bindings":
            return await bind_by_name(self._registry, namespace, body, options, caller)
        raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})
