"""Reads what a cluster holds, resource by resource, without changing anything.

Which resources there are is asked of the server. Each is read in one version, the one it prefers, and an
object that is served under two names (events, in two groups) is taken once. What one may not read is noted,
not fatal.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from holokube.base.errors import HolokubeError, UsageError
from holokube.client.client import Client
from holokube.client.discovery import Discovered, Discovery
from holokube.client.resources import Resource
from holokube.kube.errors import Forbidden, MethodNotAllowed, NotFound
from holokube.kube.types import JsonObject

EVENTS = frozenset({"events", "events.events.k8s.io"})
LEASES = frozenset({"leases.coordination.k8s.io"})
REMOVED_DATA = "holokube.dev/secret-data"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# These must hold JSON to be valid at all.
_EMPTY_JSON_KEYS = (".dockerconfigjson", ".dockercfg")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted."""

    namespaces: tuple[str, ...] = ()
    """None: all of them. Cluster-scoped objects are always wanted."""
    skipped: frozenset[str] = EVENTS | LEASES
    """Resources left out, as ``events`` or ``leases.coordination.k8s.io``."""
    secret_data: bool = False


@dataclass(slots=True)
class Dump:
    """One reading of a cluster."""

    client: Client
    selection: Selection
    progress: Callable[[str, int, int], None]
    """Called with the name of the resource about to be read, its number and how many there are."""
    failed: dict[str, str] = field(default_factory=dict)
    """Resources that could not be read, and why."""

    async def read(self) -> AsyncIterator[list[JsonObject]]:
        """All objects, in batches of one resource each."""
        wanted = await self._resources()
        seen: set[str] = set()
        for number, resource in enumerate(wanted, 1):
            self.progress(resource.qualified_name, number, len(wanted))
            for namespace in self._spaces(resource):
                batch = await self._list(resource, namespace)
                fresh = [obj for obj in batch if _is_new(obj, seen)]
                if resource.qualified_name == "secrets" and not self.selection.secret_data:
                    fresh = [without_data(secret) for secret in fresh]
                if self.selection.namespaces and resource.qualified_name == "namespaces":
                    fresh = [obj for obj in fresh if obj["metadata"]["name"] in self.selection.namespaces]
                if fresh:
                    yield fresh

    async def _resources(self) -> list[Resource]:
        """One version of each resource that is stored: what can only be listed is computed (metrics, say)."""
        chosen: dict[tuple[str, str], Discovered] = {}
        discovered = await Discovery(self.client).all()
        for item in discovered:
            if "list" in item.verbs and "create" in item.verbs:
                chosen.setdefault((item.resource.group, item.resource.plural), item)
        known = {item.resource.qualified_name for item in chosen.values()} | EVENTS | LEASES
        unknown = sorted(self.selection.skipped - known)
        if unknown:
            raise UsageError(
                f"the cluster has no resource {', '.join(unknown)} to exclude",
                hint="Use full names such as pods or deployments.apps; `kubectl api-resources` lists them.",
            )
        kept = [item.resource for item in chosen.values()]
        kept = [resource for resource in kept if resource.qualified_name not in self.selection.skipped]
        return sorted(kept, key=_first_things_first)

    def _spaces(self, resource: Resource) -> Collection[str | None]:
        return self.selection.namespaces if resource.namespaced and self.selection.namespaces else (None,)

    async def _list(self, resource: Resource, namespace: str | None) -> list[JsonObject]:
        try:
            return (await self.client.list_all(resource, namespace)).items
        except (NotFound, MethodNotAllowed):
            # Its CRD went away meanwhile, or it says that it can be listed and cannot.
            return []
        except Forbidden as error:
            self.failed[resource.qualified_name] = error.message
            return []
        except HolokubeError as error:
            error.message = f"reading {resource.qualified_name}: {error.message}"
            raise


def _first_things_first(resource: Resource) -> tuple[int, str, str]:
    """The order in which a person, or an API server, wants to meet the objects."""
    order = {"customresourcedefinitions": 0, "namespaces": 1, "nodes": 2}
    return (order.get(resource.plural, 3), resource.group, resource.plural)


def _is_new(obj: JsonObject, seen: set[str]) -> bool:
    uid = obj["metadata"].get("uid")
    if not uid:
        return True
    if uid in seen:
        return False
    seen.add(uid)
    return True


def without_data(secret: JsonObject) -> JsonObject:
    """A secret with keys and no values; kubectl keeps a copy of those in an annotation, which goes too."""
    if not secret.get("data"):
        return secret
    empty_json = base64.b64encode(b"{}").decode()
    meta: JsonObject = dict(secret["metadata"])
    annotations = dict(meta.get("annotations") or {})
    annotations.pop(_LAST_APPLIED, None)
    meta["annotations"] = {**annotations, REMOVED_DATA: "removed"}
    data = {key: empty_json if key in _EMPTY_JSON_KEYS else "" for key in secret["data"]}
    return {**secret, "metadata": meta, "data": data}
