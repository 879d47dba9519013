"""Which form an answer takes: JSON or YAML; the object itself, a Table, or just its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from holokube.kube.errors import NotAcceptable

_JSON_RANGES = frozenset({"application/json", "*/*"})
_TABLE_VERSIONS = frozenset({"v1", "v1beta1"})


@dataclass(frozen=True, slots=True)
class Format:
    """What the client wants. ``form`` is empty, Table, PartialObjectMetadata or PartialObjectMetadataList."""

    yaml: bool = False
    pretty: bool = False
    form: str = ""
    form_version: str = "v1"
    discovery_v2: bool = False
    discovery_v2_version: str = "v2"


@lru_cache(maxsize=512)
def negotiate(accept: str, *, discovery: bool = False) -> Format:
    """The best format of an Accept header; NotAcceptable if there is none the server can produce."""
    if not accept.strip():
        return Format()
    ranked = sorted(_parse(accept), key=lambda item: -item[0])
    for _, media_type, parameters in ranked:
        chosen = _choose(media_type, parameters, discovery=discovery)
        if chosen is not None:
            return chosen
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml",
        hint="add application/json to the Accept header; protobuf is not offered",
    )


def _parse(accept: str) -> list[tuple[float, str, dict[str, str]]]:
    found: list[tuple[float, str, dict[str, str]]] = []
    for part in accept.split(","):
        media_type, *rest = [piece.strip() for piece in part.split(";")]
        parameters: dict[str, str] = {}
        for piece in rest:
            key, _, value = piece.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media_type and quality > 0:
            found.append((quality, media_type.lower(), parameters))
    return found


def _choose(media_type: str, parameters: dict[str, str], *, discovery: bool) -> Format | None:
    if media_type in _JSON_RANGES:
        yaml = False
    elif media_type in ("application/yaml", "text/yaml", "application/x-yaml"):
        yaml = True
    else:
        return None
    form = parameters.get("as", "")
    pretty = parameters.get("pretty") == "1"
    if not form:
        return Format(yaml=yaml, pretty=pretty)
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if group == "meta.k8s.io" and version in _TABLE_VERSIONS:
        if form in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Format(yaml=yaml, pretty=pretty, form=form, form_version=version)
        return None
    aggregated = group == "apidiscovery.k8s.io" and form == "APIGroupDiscoveryList"
    if discovery and aggregated and version in ("v2", "v2beta1"):
        return Format(yaml=yaml, discovery_v2=True, discovery_v2_version=version)
    return None
