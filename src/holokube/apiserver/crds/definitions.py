"""What a CustomResourceDefinition makes the server serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.apiserver.crds.custom_kind import CustomKind, VersionRules
from holokube.apiserver.crds.json_schema import Check
from holokube.apiserver.crds.rules import compile_rules
from holokube.apiserver.crds.structural import schema_of, structural
from holokube.apiserver.resources import ResourceType, ResourceVersionInfo, Subresource
from holokube.apiserver.subresources.scale import ScalePaths
from holokube.apiserver.types import TypeCatalog
from holokube.kube import conditions
from holokube.kube.types import JsonObject

VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
_ANY_SCHEMA: Final[Mapping[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class ServedVersions(dict[str, ResourceVersionInfo]):
    """Served versions by name. Looking up the storage version works even if it is not served any more."""

    def __init__(self, served: Mapping[str, ResourceVersionInfo], storage: ResourceVersionInfo) -> None:
        super().__init__(served)
        self._storage = storage

    def __missing__(self, version: str) -> ResourceVersionInfo:
        if version == self._storage.version:
            return self._storage
        raise KeyError(version)


@dataclass(frozen=True, slots=True)
class Definition:
    """A CRD, compiled: the resource and the rules of each of its versions."""

    type: ResourceType
    kinds: Mapping[str, CustomKind]


def is_established(crd: JsonObject) -> bool:
    return conditions.is_true(crd, "Established")


def is_terminating(crd: JsonObject) -> bool:
    return conditions.is_true(crd, "Terminating")


def compile_definition(crd: JsonObject, catalog: TypeCatalog) -> Definition:
    """Everything the server needs to know about the resource that a CRD describes."""
    spec: JsonObject = crd["spec"]
    group: str = spec["group"]
    accepted: JsonObject = crd["status"]["acceptedNames"]
    infos: dict[str, ResourceVersionInfo] = {}
    kinds: dict[str, CustomKind] = {}
    storage = ""
    for version in spec["versions"]:
        name: str = version["name"]
        rules = _version_rules(spec, version)
        kinds[name] = CustomKind(rules, terminating=is_terminating(crd))
        infos[name] = _version_info(spec, version, rules, catalog)
        if version.get("storage"):
            storage = name
    served = {v["name"]: infos[v["name"]] for v in spec["versions"] if v.get("served")}
    plural: str = accepted["plural"]
    resource_type = ResourceType(
        group=group,
        plural=plural,
        singular=accepted.get("singular") or accepted["kind"].lower(),
        kind=accepted["kind"],
        list_kind=accepted.get("listKind") or f"{accepted['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        versions=ServedVersions(served, infos[storage]),
        storage_version=storage,
        short_names=tuple(accepted.get("shortNames") or ()),
        categories=tuple(accepted.get("categories") or ()),
        custom=True,
        bucket=f"{plural}.{group}",
    )
    return Definition(resource_type, kinds)


def _version_rules(spec: JsonObject, version: JsonObject) -> VersionRules:
    source = (version.get("schema") or {}).get("openAPIV3Schema") or _ANY_SCHEMA
    if spec.get("preserveUnknownFields"):
        source = {**source, "x-kubernetes-preserve-unknown-fields": True}
    subresources = version.get("subresources") or {}
    status = (source.get("properties") or {}).get("status")
    node = structural(source)
    return VersionRules(
        qualified_name=f"{spec['names']['plural']}.{spec['group']}",
        api_version=f"{spec['group']}/{version['name']}",
        node=node,
        check=Check(source),
        status_check=Check(status) if isinstance(status, Mapping) else None,
        rules=compile_rules(node),
        scale=_scale_paths(subresources["scale"]) if subresources.get("scale") is not None else None,
    )


def _scale_paths(scale: JsonObject) -> ScalePaths:
    return ScalePaths(
        scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""
    )


def _version_info(
    spec: JsonObject, version: JsonObject, rules: VersionRules, catalog: TypeCatalog
) -> ResourceVersionInfo:
    group, name, kind = spec["group"], version["name"], spec["names"]["kind"]
    doors: dict[str, Subresource] = {}
    subresources = version.get("subresources") or {}
    if subresources.get("status") is not None:
        doors["status"] = Subresource("status", kind, _SUBRESOURCE_VERBS, group, name)
    if subresources.get("scale") is not None:
        doors["scale"] = Subresource("scale", "Scale", _SUBRESOURCE_VERBS, "autoscaling", "v1")
    deprecated = bool(version.get("deprecated"))
    warning = version.get("deprecationWarning") or f"{group}/{name} {kind} is deprecated"
    return ResourceVersionInfo(
        name,
        schema_of(rules.node, catalog, root=True),
        doors,
        VERBS,
        deprecated=deprecated,
        deprecation_warning=warning if deprecated else "",
        selectable_fields=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
    )
