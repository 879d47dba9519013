"""Finds a resource by any of its names, from what the server says it serves (custom resources included)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holokube.base.errors import HolokubeError, UsageError
from holokube.client.client import Client
from holokube.client.resources import Resource
from holokube.kube.errors import NotFound

_PARALLEL_REQUESTS = 8


@dataclass(frozen=True, slots=True)
class Discovered:
    """A resource with the other names and the verbs that the server knows it by."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    def answers_to(self, name: str) -> bool:
        """Whether a person could mean it by this (lower-case) name."""
        kind = self.resource.kind.lower()
        return name in (self.resource.plural, kind, self.singular or kind) or name in self.short_names


class Discovery:
    """Asks once, and again when a name is not found: a CRD may have come meanwhile."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: list[Discovered] | None = None
        self._failed: dict[str, str] = {}
        self._last: tuple[Any, Any, list[Discovered]] | None = None
        """The documents that were read last, and what was in them."""
        self._asking = asyncio.Lock()

    async def all(self) -> list[Discovered]:
        """Everything, core group first, then groups and versions in the server's order of preference."""
        async with self._asking:
            if self._known is None:
                self._known = await self._ask()
            return self._known

    @property
    def failed(self) -> Mapping[str, str]:
        """Group versions (``metrics.k8s.io/v1beta1``) that did not answer when last asked, with the reason."""
        return dict(self._failed)

    def forget(self) -> None:
        """Has the next question go to the server."""
        self._known = None

    async def find(self, name: str) -> Resource:
        """By ``deploy``, ``Deployment``, ``deployments.apps``, ``deployments.v1.apps``, as in kubectl."""
        return (await self.describe(name)).resource

    async def describe(self, name: str) -> Discovered:
        lowered = name.strip().lower()
        found = await self._look_up(lambda item: _matches(item, lowered))
        if found is None:
            raise UsageError(
                f"the server does not have a resource type {name!r}{self._unreadable()}",
                hint="`kubectl api-resources` lists them; is its CustomResourceDefinition installed?",
            )
        return found

    async def for_object(self, obj: Mapping[str, Any]) -> Resource:
        """By the ``apiVersion`` and ``kind`` of an object."""
        api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        found = await self._look_up(
            lambda item: item.resource.kind == kind and item.resource.api_version == api_version
        )
        if found is None:
            raise UsageError(
                f"the server does not know kind {kind!r} in version {api_version!r}{self._unreadable()}",
                hint="Check both, and that its CustomResourceDefinition is installed.",
            )
        return found.resource

    async def _look_up(self, wanted: Callable[[Discovered], bool]) -> Discovered | None:
        was_known = self._known is not None
        found = next(filter(wanted, await self.all()), None)
        if found is None and was_known:
            self.forget()
            found = next(filter(wanted, await self.all()), None)
        return found

    async def _ask(self) -> list[Discovered]:
        if self._last is not None and self._client.answers_at_once:
            # Whoever asks again and again where there is nothing to wait for is answered without tasks.
            core, groups = await self._client.request("GET", "/api"), await self._groups()
        else:
            core, groups = await asyncio.gather(self._client.request("GET", "/api"), self._groups())
        if self._last is not None and self._last[0] is core and self._last[1] is groups and not self._failed:
            # A transport that hands out the very same documents says that nothing has changed.
            return self._last[2]
        versions = [("", str(version)) for version in core.get("versions") or ()]
        for group in groups:
            listed = [str(item["version"]) for item in group.get("versions") or ()]
            preferred = (group.get("preferredVersion") or {}).get("version")
            ordered = [v for v in listed if v == preferred] + [v for v in listed if v != preferred]
            versions += [(str(group["name"]), version) for version in ordered]
        self._failed = {}
        limit = asyncio.Semaphore(_PARALLEL_REQUESTS)
        answers = await asyncio.gather(*(self._resources(limit, *item) for item in versions))
        found = [item for answer in answers for item in answer]
        self._last = (core, groups, found)
        return found

    async def _groups(self) -> Any:
        try:
            answer = await self._client.request("GET", "/apis")
        except NotFound:  # A server with the core group alone.
            return []
        return answer.get("groups") or []

    async def _resources(self, limit: asyncio.Semaphore, group: str, version: str) -> list[Discovered]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        async with limit:
            try:
                answer = await self._client.request("GET", path)
            except HolokubeError as error:
                # An aggregated API whose server is down (metrics.k8s.io, often) must not hide all the others.
                self._failed[f"{group}/{version}" if group else version] = error.message
                return []
        return _read(group, version, answer.get("resources") or ())

    def _unreadable(self) -> str:
        return f" (could not ask {', '.join(sorted(self._failed))})" if self._failed else ""


def _read(group: str, version: str, listed: Any) -> list[Discovered]:
    subresources: dict[str, list[str]] = {}
    for item in listed:
        plural, slash, subresource = str(item["name"]).partition("/")
        if slash:
            subresources.setdefault(plural, []).append(subresource)
    return [
        Discovered(
            Resource(
                str(item.get("group") or group),
                str(item.get("version") or version),
                str(item["name"]),
                str(item["kind"]),
                bool(item.get("namespaced")),
            ),
            str(item.get("singularName") or ""),
            tuple(item.get("shortNames") or ()),
            tuple(item.get("verbs") or ()),
            tuple(item.get("categories") or ()),
            tuple(subresources.get(str(item["name"]), ())),
        )
        for item in listed
        if "/" not in item["name"]
    ]


def _matches(item: Discovered, name: str) -> bool:
    """``name``, ``name.group`` or ``name.version.group``; the whole may also be a bare name with no dots."""
    head, _, rest = name.partition(".")
    if not item.answers_to(head):
        return False
    resource = item.resource
    if not rest:
        return True
    version, _, group = rest.partition(".")
    return resource.group == rest or (resource.version, resource.group) == (version, group)
