"""Swagger 2.0, from the version 3 documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holokube.apiserver.openapi.operations import REF_PREFIX
from holokube.apiserver.openapi.schemas import OF_EVERY_GROUP
from holokube.kube.types import JsonObject

_DEFINITIONS = "#/definitions/"
# What version 2 cannot say, or says with less.
_DROPPED = frozenset({"oneOf", "anyOf", "not", "nullable"})
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_GVK = "x-kubernetes-group-version-kind"
_WITHOUT_TYPE = ("type", "properties", "required", "items", "additionalProperties", "format", "enum")


def swagger(
    info: JsonObject, documents: Iterable[JsonObject], group_versions: Sequence[tuple[str, str]]
) -> JsonObject:
    """All documents in one. Types that belong to every group are shown with all of them."""
    paths: JsonObject = {}
    definitions: JsonObject = {}
    for document in documents:
        for path, entry in document["paths"].items():
            paths[path] = _path(entry)
        for name, schema in document["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = _definition(schema)
    for name in OF_EVERY_GROUP & definitions.keys():
        kind = name.rpartition(".")[2]
        definitions[name][_GVK] = [
            {"group": group, "kind": kind, "version": version} for group, version in sorted(group_versions)
        ]
    return {
        "swagger": "2.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer token",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }
        },
        "security": [{"BearerToken": []}],
    }


def _path(entry: Mapping[str, Any]) -> JsonObject:
    return {
        key: [_parameter(p) for p in value] if key == "parameters" else _operation(value)
        for key, value in entry.items()
    }


def _parameter(parameter: Mapping[str, Any]) -> JsonObject:
    out = {**parameter, **parameter["schema"]}
    del out["schema"]
    return out


def _operation(operation: Mapping[str, Any]) -> JsonObject:
    out: JsonObject = {key: value for key, value in operation.items() if key != "requestBody"}
    body = operation.get("requestBody")
    out["consumes"] = list(body["content"]) if body else ["*/*"]
    out["produces"] = list(operation["responses"]["200"]["content"])
    out["schemes"] = ["https"]
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if body is not None:
        taken: JsonObject = {"name": "body", "in": "body", "schema": _schema(_first(body["content"]))}
        if body.get("required"):
            taken["required"] = True
        parameters.insert(0, taken)
    if parameters:
        out["parameters"] = parameters
    out["responses"] = {code: _response(answer) for code, answer in operation["responses"].items()}
    return out


def _response(answer: Mapping[str, Any]) -> JsonObject:
    out: JsonObject = {"description": answer["description"]}
    if "content" in answer:
        out["schema"] = _schema(_first(answer["content"]))
    return out


def _first(content: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = next(iter(content.values()))["schema"]
    return schema


def _definition(schema: Mapping[str, Any]) -> JsonObject:
    """A type as a whole. One that is open to all fields says nothing but its kind, as upstream does."""
    if schema.get(_PRESERVE):
        return {key: schema[key] for key in ("description", "type", _GVK) if key in schema}
    out = _schema(schema, keeps_type=True)
    if "type" not in out and "oneOf" in schema:
        # IntOrString and Quantity: version 2 has no word for "one of these".
        out["type"] = "string"
    return out


def _schema(schema: Mapping[str, Any], *, keeps_type: bool = False) -> JsonObject:
    out: JsonObject = {}
    for key, value in schema.items():
        if key == "$ref":
            out["$ref"] = _DEFINITIONS + value.removeprefix(REF_PREFIX)
        elif key == "allOf":
            if len(value) == 1 and "$ref" in value[0]:
                out["$ref"] = _DEFINITIONS + value[0]["$ref"].removeprefix(REF_PREFIX)
        elif key == "properties":
            out[key] = {name: _schema(part) for name, part in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            out[key] = _schema(value)
        elif key not in _DROPPED and key != "default":
            out[key] = value
    if not keeps_type and (schema.get("nullable") or schema.get(_PRESERVE)):
        # Clients that read version 2 take a missing type as "anything", which is what is meant.
        for key in _WITHOUT_TYPE:
            out.pop(key, None)
    return out
