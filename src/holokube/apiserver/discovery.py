"""What the server offers, in the forms clients ask for: legacy lists and the aggregated v2 document."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holokube.apiserver.http.negotiation import Format
from holokube.apiserver.resources import ResourceType, Served
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

KUBERNETES_MINOR = "36"
GIT_VERSION = "v1.36.3+holokube"


class Discovery:
    """Answers /api, /apis and everything below that is not a resource."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known_versions: dict[str, set[str]] = {}
        self._versions_of = -1

    def version(self) -> JsonObject:
        """/version: the Kubernetes release whose API this is, marked as not the real one."""
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        return {
            "major": "1",
            "minor": KUBERNETES_MINOR,
            "emulationMajor": "1",
            "emulationMinor": KUBERNETES_MINOR,
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": str(int(KUBERNETES_MINOR) - 1),
            "gitVersion": GIT_VERSION,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{platform.python_version()}",
            "compiler": platform.python_implementation().lower(),
            "platform": f"{platform.system().lower()}/{machine}",
        }

    def paths(self) -> list[str]:
        found = {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3"}
        found.update(("/readyz", "/version"))
        for group in self._registry.table.groups():
            if group:
                found.add(f"/apis/{group}")
                found.update(f"/apis/{group}/{v}" for v in self._registry.table.versions_of(group))
        return sorted(found)

    def knows(self, path: str) -> bool:
        """Whether the group of a path is served; the caller tells an unknown group from an unknown resource."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return True
        versions = self._versions().get(parts[1]) if len(parts) > 1 else None
        return versions is not None and (len(parts) < 3 or not versions or parts[2] in versions)

    def _versions(self) -> dict[str, set[str]]:
        """Versions by group for groups that only CRDs make; no version at all means that any path is known."""
        table = self._registry.table
        if self._versions_of != table.generation:
            found: dict[str, set[str]] = {}
            for resource_type in table:
                versions = found.setdefault(resource_type.group, set())
                if resource_type.custom:
                    versions.update(resource_type.versions)
            for resource_type in table:
                if not resource_type.custom:
                    found[resource_type.group] = set()
            self._known_versions, self._versions_of = found, table.generation
        return self._known_versions

    def answer(self, path: str, form: Format) -> JsonObject | None:
        """The document at a path; None if the path is not one of discovery's."""
        parts = path.strip("/").split("/")
        table = self._registry.table
        if parts == ["api"]:
            return self._aggregated([""], form) if form.discovery_v2 else self._core_versions()
        if parts == ["apis"]:
            groups = [group for group in table.groups() if group]
            if form.discovery_v2:
                return self._aggregated(groups, form)
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(group) for group in groups],
            }
        if parts == ["api", "v1"]:
            return self._resource_list("", "v1")
        if parts[0] == "apis" and len(parts) in (2, 3) and parts[1] in table.groups():
            if len(parts) == 2:
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
            if parts[2] in table.versions_of(parts[1]):
                return self._resource_list(parts[1], parts[2])
        return None

    @staticmethod
    def _core_versions() -> JsonObject:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }

    def _group(self, group: str) -> JsonObject:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.table.versions_of(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _served(self, group: str, version: str) -> list[Served]:
        found = [
            Served(resource_type, version)
            for resource_type in self._registry.table
            if resource_type.group == group and version in resource_type.versions
        ]
        return sorted(found, key=lambda served: served.plural)

    def _resource_list(self, group: str, version: str) -> JsonObject:
        resources: list[JsonObject] = []
        for served in self._served(group, version):
            resources.append(_resource_row(served))
            resources.extend(_subresource_rows(served))
        group_version = f"{group}/{version}" if group else version
        listing: JsonObject = {"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}
        # The oldest listing is the odd one out: it does not say its own version.
        return {**listing, "apiVersion": "v1"} if group else listing

    def _aggregated(self, groups: Iterable[str], form: Format) -> JsonObject:
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{form.discovery_v2_version}",
            "metadata": {},
            "items": [self._aggregated_group(group) for group in groups],
        }

    def _aggregated_group(self, group: str) -> JsonObject:
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(served) for served in self._served(group, version)],
                "freshness": "Current",
            }
            for version in self._registry.table.versions_of(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _names(resource_type: ResourceType, row: dict[str, Any]) -> dict[str, Any]:
    if resource_type.short_names:
        row["shortNames"] = list(resource_type.short_names)
    if resource_type.categories:
        row["categories"] = list(resource_type.categories)
    return row


def _resource_row(served: Served) -> JsonObject:
    row: JsonObject = {
        "name": served.plural,
        "singularName": served.type.singular,
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": list(served.info.verbs),
    }
    return _names(served.type, row)


def _subresource_rows(served: Served) -> list[JsonObject]:
    rows = []
    for name, sub in sorted(served.info.subresources.items()):
        row: JsonObject = {"name": f"{served.plural}/{name}", "singularName": "", "namespaced": served.namespaced}
        if (sub.group, sub.version) != (served.group, served.version):
            row.update(group=sub.group, version=sub.version)
        row.update(kind=sub.kind, verbs=list(sub.verbs))
        rows.append(row)
    return rows


def _aggregated_resource(served: Served) -> JsonObject:
    row: JsonObject = {
        "resource": served.plural,
        "responseKind": _response_kind(served, served.group, served.version, served.kind),
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.type.singular,
        "verbs": list(served.info.verbs),
    }
    _names(served.type, row)
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(served, sub.group, sub.version, sub.kind),
            "verbs": list(sub.verbs),
        }
        for name, sub in sorted(served.info.subresources.items())
    ]
    if subresources:
        row["subresources"] = subresources
    return row


def _response_kind(served: Served, group: str, version: str, kind: str) -> JsonObject:
    """Upstream leaves group and version empty for built-in kinds of the listing's own group and version."""
    if not served.type.custom and (group, version) == (served.group, served.version):
        return {"group": "", "version": "", "kind": kind}
    return {"group": group, "version": version, "kind": kind}
