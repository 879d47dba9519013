"""Defaults of volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holokube.apiserver.kinds.image_names import default_pull_policy
from holokube.kube import quantity
from holokube.kube.types import JsonObject

_FILE_MODE = 0o644
_TOKEN_EXPIRY_S = 3600


def default_volumes(volumes: Iterable[JsonObject]) -> None:
    """Every volume has a source: an ``emptyDir`` if no other is named."""
    for volume in volumes:
        sources = [key for key in volume if key != "name"]
        if not sources:
            volume["emptyDir"] = {}
        for key in sources:
            default = _DEFAULTS.get(key)
            if default is not None:
                default(volume[key])


def _default_mode(source: JsonObject) -> None:
    source.setdefault("defaultMode", _FILE_MODE)


def _host_path(source: JsonObject) -> None:
    source.setdefault("type", "")


def _values(**defaults: Any) -> Callable[[JsonObject], None]:
    def fill(source: JsonObject) -> None:
        for key, value in defaults.items():
            if key not in source:
                source[key] = value

    return fill


def _downward(source: JsonObject) -> None:
    _default_mode(source)
    _downward_items(source)


def _downward_items(source: JsonObject) -> None:
    for item in source.get("items") or ():
        field = item.get("fieldRef")
        if field is not None and not field.get("apiVersion"):
            field["apiVersion"] = "v1"


def _projected(source: JsonObject) -> None:
    _default_mode(source)
    for part in source["sources"] or ():
        downward = part.get("downwardAPI")
        if downward is not None:
            _downward_items(downward)
        token = part.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", _TOKEN_EXPIRY_S)


def _ephemeral(source: JsonObject) -> None:
    template = source.get("volumeClaimTemplate")
    if template is not None:
        default_claim_spec(template["spec"])


def default_claim_spec(spec: JsonObject) -> None:
    """Defaults of a persistent volume claim, alone or inside a template."""
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec["resources"]
    for amounts in (resources.get("limits"), resources.get("requests")):
        for name, text in (amounts or {}).items():
            amounts[name] = str(quantity.parse(text).rounded_up_to_milli())


def _image(source: JsonObject) -> None:
    if "pullPolicy" not in source:
        source["pullPolicy"] = default_pull_policy(source.get("reference", ""))


_DEFAULTS: Mapping[str, Callable[[JsonObject], None]] = {
    "hostPath": _host_path,
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _downward,
    "projected": _projected,
    "iscsi": _values(iscsiInterface="default"),
    "rbd": _values(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "azureDisk": _values(cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared"),
    "scaleIO": _values(storageMode="ThinProvisioned", fsType="xfs"),
    "ephemeral": _ephemeral,
    "image": _image,
}
