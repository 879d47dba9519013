"""What resources there are: names, versions, verbs and subresources, built in or from a CRD."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import orjson

from holokube.apiserver.types import TypeCatalog
from holokube.kube.schema import ANYTHING, Schema

# Upstream shows groups in this order of preference; the rest follow by name.
GROUP_ORDER = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
    "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subresource:
    """``pods/binding`` and the like: its own kind, possibly of another group, and its verbs."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ResourceVersionInfo:
    """One served version of a resource."""

    version: str
    schema: Schema
    subresources: Mapping[str, Subresource]
    verbs: tuple[str, ...]
    deprecated: bool = False
    deprecation_warning: str = ""
    selectable_fields: tuple[str, ...] = ()
    """JSON paths that a CRD declares selectable, such as ``.spec.color``."""
    printer_columns: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A resource, with all versions in which it is served. Objects are stored in ``storage_version``."""

    group: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    versions: Mapping[str, ResourceVersionInfo]
    storage_version: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    custom: bool = False
    """Comes from a CRD: unstructured, no strategic merge patch."""
    bucket: str = field(default="")
    """Where the store keeps the objects; two resources may share one (core and events.k8s.io events)."""

    @property
    def qualified_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_group(self) -> str:
        """The group in which objects are stored; validation errors name it."""
        return "" if self.bucket == "events" else self.group

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version


@dataclass(frozen=True, slots=True)
class Served:
    """A resource in one of its versions: what a request path names."""

    type: ResourceType
    version: str
    # Asked for many times in every request, and the same for ever.
    group: str = field(init=False, repr=False, compare=False)
    plural: str = field(init=False, repr=False, compare=False)
    kind: str = field(init=False, repr=False, compare=False)
    namespaced: bool = field(init=False, repr=False, compare=False)
    bucket: str = field(init=False, repr=False, compare=False)
    api_version: str = field(init=False, repr=False, compare=False)
    info: ResourceVersionInfo = field(init=False, repr=False, compare=False)
    custom: bool = field(init=False, repr=False, compare=False)
    qualified_name: str = field(init=False, repr=False, compare=False)
    is_storage_version: bool = field(init=False, repr=False, compare=False)
    """Whether it is the version in which objects are stored."""
    shows_stored: bool = field(init=False, repr=False, compare=False)
    """Whether objects are shown just as they are stored."""

    def __post_init__(self) -> None:
        of_type = self.type
        for name in ("group", "plural", "kind", "namespaced", "bucket", "custom", "qualified_name"):
            object.__setattr__(self, name, getattr(of_type, name))
        object.__setattr__(self, "api_version", of_type.api_version(self.version))
        object.__setattr__(self, "info", of_type.versions[self.version])
        is_storage_version = self.version == of_type.storage_version
        object.__setattr__(self, "is_storage_version", is_storage_version)
        object.__setattr__(self, "shows_stored", is_storage_version and of_type.group != "events.k8s.io")

    @property
    def schema(self) -> Schema:
        return self.info.schema


class ResourceTable:
    """All resources of one server. Built-in ones are fixed; CRDs come and go."""

    def __init__(self, catalog: TypeCatalog) -> None:
        self.catalog = catalog
        self.generation = 0
        """Moves whenever a resource comes, changes or goes; until then, what is derived from it can be kept."""
        self._types: dict[tuple[str, str], ResourceType] = {}
        self._served: dict[tuple[str, str, str], Served] = {}
        for resource_type in _built_in_types(catalog):
            self.add(resource_type)

    def add(self, resource_type: ResourceType) -> None:
        """Serve a resource, replacing an earlier description of it."""
        self.remove(resource_type.group, resource_type.plural)
        self.generation += 1
        self._types[resource_type.group, resource_type.plural] = resource_type
        for version in resource_type.versions:
            served = Served(resource_type, version)
            self._served[resource_type.group, version, resource_type.plural] = served

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource; unknown ones are ignored."""
        gone = self._types.pop((group, plural), None)
        if gone is not None:
            self.generation += 1
            for version in gone.versions:
                self._served.pop((group, version, plural), None)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def type(self, group: str, plural: str) -> ResourceType | None:
        return self._types.get((group, plural))

    def by_kind(self, group: str, kind: str, version: str = "") -> Served | None:
        """The resource that a kind belongs to; the storage version unless another is named."""
        for resource_type in self._types.values():
            if resource_type.group == group and resource_type.kind == kind:
                served = list(resource_type.versions)
                preferred = resource_type.storage_version if resource_type.storage_version in served else served[0]
                return self.find(group, version or preferred, resource_type.plural)
        return None

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def groups(self) -> list[str]:
        """Group names in the order in which discovery shows them, the core group first."""
        present = {resource_type.group for resource_type in self}
        known = [group for group in GROUP_ORDER if group in present]
        return known + sorted(present.difference(known))

    def versions_of(self, group: str) -> list[str]:
        """Served versions of a group, the preferred one first."""
        found = {v for t in self if t.group == group for v in t.versions}
        return sorted(found, key=version_priority)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key of upstream's rule: v2, v1, v2beta1, v1beta2, v1alpha1, then anything else by name."""
    if not version.startswith("v"):
        return (1, 0, 0, version)
    body = version[1:]
    for rank, word in ((2, "beta"), (1, "alpha")):
        major, found, minor = body.partition(word)
        if found and major.isdigit() and minor.isdigit():
            return (0, -rank, -(int(major) * 1000 + int(minor)), "")
    if body.isdigit():
        return (0, -3, -int(body), "")
    return (1, 0, 0, version)


# Objects of these resources are served in several groups or versions; upstream stores them in one place.
_SHARED_BUCKETS = {("events.k8s.io", "events"): "events"}
_STORAGE_VERSIONS = {("autoscaling", "horizontalpodautoscalers"): "v2"}
_DEPRECATED = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}


def _built_in_types(catalog: TypeCatalog) -> Iterable[ResourceType]:
    path = resources.files("holokube.apiserver").joinpath("schemas", "resources.json")
    rows: list[dict[str, Any]] = orjson.loads(path.read_bytes())
    subresources: dict[tuple[str, str, str], dict[str, Subresource]] = {}
    mains: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        plural, _, sub = row["name"].partition("/")
        if sub:
            subresources.setdefault((row["group"], row["version"], plural), {})[sub] = Subresource(
                sub,
                row["kind"],
                tuple(row["verbs"]),
                row.get("kindGroup", row["group"]),
                row.get("kindVersion", row["version"]),
            )
        else:
            mains.setdefault((row["group"], plural), []).append(row)
    for (group, plural), group_rows in mains.items():
        yield _built_in_type(catalog, group, plural, group_rows, subresources)


def _built_in_type(
    catalog: TypeCatalog,
    group: str,
    plural: str,
    rows: list[dict[str, Any]],
    subresources: Mapping[tuple[str, str, str], Mapping[str, Subresource]],
) -> ResourceType:
    first = rows[0]
    versions = {
        row["version"]: ResourceVersionInfo(
            row["version"],
            catalog.schema_of_kind(group, row["version"], row["kind"]) or ANYTHING,
            subresources.get((group, row["version"], plural), {}),
            tuple(row["verbs"]),
            deprecation_warning=_DEPRECATED.get((group, row["version"], plural), ""),
        )
        for row in rows
    }
    return ResourceType(
        group=group,
        plural=plural,
        singular=first["singularName"],
        kind=first["kind"],
        list_kind=f"{first['kind']}List",
        namespaced=first["namespaced"],
        versions=versions,
        storage_version=_STORAGE_VERSIONS.get((group, plural), rows[0]["version"]),
        short_names=tuple(first.get("shortNames", ())),
        categories=tuple(first.get("categories", ())),
        bucket=_SHARED_BUCKETS.get((group, plural)) or (f"{plural}.{group}" if group else plural),
    )
