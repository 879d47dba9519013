"""Rules for every level of a CRD's schema, structural or not: keywords, list and map types, validation rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from holokube.apiserver.crds.field_paths import FieldPathError, field_path
from holokube.apiserver.crds.structural import META_FIELDS, structural
from holokube.apiserver.crds.structural_checks import Source, parts_of
from holokube.apiserver.field_errors import FieldErrors

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LINE_BREAK = re.compile(r"[\n\r]")


@dataclass(frozen=True, slots=True)
class Place:
    """What the surroundings of a schema say about it."""

    no_defaults: str = ""
    """Why there may be no default here; empty if there may."""
    inside_meta: bool = False
    uncorrelatable: str = ""
    """The path above which nobody can say which old value a new one replaces; empty if there is none."""


ANYWHERE: Final = Place()


def check_schema(
    source: Source,
    path: str,
    errors: FieldErrors,
    place: Place = ANYWHERE,
    *,
    root: bool = False,
) -> None:
    """Report what is wrong with a schema and all schemas inside of it."""
    _check_keywords(source, path, errors, place)
    extra = source.get("additionalProperties")
    properties: Mapping[str, Source] = source.get("properties") or {}
    if source.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(f"{path}.uniqueItems", text)
    if extra is not None:
        if properties and extra is not True:
            text = "additionalProperties and properties are mutual exclusive"
            errors.forbidden(f"{path}.additionalProperties", text)
        if isinstance(extra, Mapping):
            reason = "inside additionalProperties applying to object metadata" if place.inside_meta else ""
            within = replace(place, no_defaults=reason) if reason else place
            check_schema(extra, f"{path}.additionalProperties", errors, within)
    for name, part in properties.items():
        within = place
        if (root or source.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            within = replace(within, inside_meta=True)
            if root:
                within = replace(within, no_defaults=f"in top-level {name}")
        check_schema(part, f"{path}.properties[{name}]", errors, within)
    if source.get("not") is not None:
        check_schema(source["not"], f"{path}.not", errors, place)
    for key in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(source.get(key) or ()):
            check_schema(part, f"{path}.{key}[{index}]", errors, place)
    for name, part in (source.get("definitions") or {}).items():
        check_schema(part, f"{path}.definitions[{name}]", errors, place)
    _check_items(source, path, errors, place)
    _check_extensions(source, path, errors)
    _check_rule_texts(source, path, errors)


def _check_keywords(source: Source, path: str, errors: FieldErrors, place: Place) -> None:
    own_type = source.get("type") or ""
    if own_type and own_type not in TYPES:
        errors.not_supported(f"{path}.type", own_type, TYPES)
    if source.get("default") is not None and place.no_defaults:
        errors.forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for key in _NOT_SUPPORTED:
        if source.get(key) is not None:
            errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    if own_type == "null":
        errors.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(source.get("items"), list):
        errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.inside_meta and source.get("x-kubernetes-embedded-resource"):
        errors.forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _check_items(source: Source, path: str, errors: FieldErrors, place: Place) -> None:
    items = source.get("items")
    if source.get("x-kubernetes-list-type") != "map" and not place.uncorrelatable:
        place = replace(place, uncorrelatable=path)
    if isinstance(items, Mapping):
        check_schema(items, f"{path}.items", errors, place)
    elif isinstance(items, list):
        for index, part in enumerate(items):
            check_schema(part, f"{path}.items[{index}]", errors, place)


def _check_extensions(source: Source, path: str, errors: FieldErrors) -> None:
    if source.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    map_type, list_type = source.get("x-kubernetes-map-type"), source.get("x-kubernetes-list-type")
    if map_type is not None:
        _check_owner(source, "object", "x-kubernetes-map-type", path, errors)
        if map_type not in ("atomic", "granular"):
            errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None:
        _check_owner(source, "array", "x-kubernetes-list-type", path, errors)
        if source.get("type") == "array" and list_type == "set":
            _check_set_items(source, path, errors)
        if list_type not in ("atomic", "set", "map"):
            errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if source.get("x-kubernetes-list-map-keys") and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            errors.required(f"{path}.x-kubernetes-list-type", text)
        else:
            errors.invalid(f"{path}.x-kubernetes-list-type", list_type, text)
    if list_type == "map":
        _check_map_list(source, path, errors)
    _check_nullable_items(source, path, errors)


def _check_owner(source: Source, wanted: str, key: str, path: str, errors: FieldErrors) -> None:
    own_type = source.get("type") or ""
    text = f"must be {wanted} if {key} is specified"
    if not own_type:
        errors.required(f"{path}.type", text)
    elif own_type != wanted:
        errors.invalid(f"{path}.type", own_type, text)


def _check_set_items(source: Source, path: str, errors: FieldErrors) -> None:
    items = source.get("items")
    if not isinstance(items, Mapping):
        return
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        errors.invalid(f"{path}.items.x-kubernetes-list-type", list_type, text)
    elif items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # Upstream shows the list type here, which an object cannot have.
        errors.invalid(f"{path}.items.x-kubernetes-map-type", list_type, text)


def _check_map_list(source: Source, path: str, errors: FieldErrors) -> None:
    keys: list[str] = source.get("x-kubernetes-list-map-keys") or []
    items = source.get("items")
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        errors.required(f"{path}.x-kubernetes-list-map-keys", text)
    if items is None:
        errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if not isinstance(items, Mapping):
        errors.invalid(
            f"{path}.items", items, "must only have a single schema if x-kubernetes-list-type is map"
        )
        return
    own_type = items.get("type") or ""
    if own_type != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        errors.invalid(f"{path}.items.type", own_type, text)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            text = "entries must all be names of item properties"
            errors.invalid(f"{path}.x-kubernetes-list-map-keys", keys, text)
        elif properties[key].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.invalid(f"{path}.items.properties[{key}].type", own_type, text)
        if key in keys[:index]:
            errors.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")


def _check_nullable_items(source: Source, path: str, errors: FieldErrors) -> None:
    """Keys must always have a value, and elements of sets and maps must be there."""
    items, list_type = source.get("items"), source.get("x-kubernetes-list-type")
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        errors.forbidden(
            f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        )
    if list_type != "map":
        return
    for key in source.get("x-kubernetes-list-map-keys") or ():
        field = (items.get("properties") or {}).get(key)
        if field is None:
            continue
        at = f"{path}.items.properties[{key}]"
        lead = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and field.get("default") is None:
            errors.required(f"{at}.default", f"{lead} must have a default or be a required property")
        if field.get("nullable"):
            errors.forbidden(f"{at}.nullable", f"{lead} cannot be nullable")


def _check_rule_texts(source: Source, path: str, errors: FieldErrors) -> None:
    for index, rule in enumerate(source.get("x-kubernetes-validations") or ()):
        at = f"{path}.x-kubernetes-validations[{index}]"
        text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
        if not text:
            errors.required(f"{at}.rule", "rule is not specified")
        elif message and not message.strip():
            errors.invalid(f"{at}.message", message, "must be non-empty if specified")
        elif _LINE_BREAK.search(message.strip()):
            errors.invalid(f"{at}.message", message, "must not contain line breaks")
        elif _LINE_BREAK.search(text) and not message.strip():
            errors.required(f"{at}.message", "message must be specified if rule contains line breaks")
        expression = str(rule.get("messageExpression") or "")
        if expression and not expression.strip():
            errors.required(f"{at}.messageExpression", "messageExpression must be non-empty if specified")
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            errors.not_supported(f"{at}.reason", reason, _REASONS)
        _check_field_path(source, str(rule.get("fieldPath") or ""), f"{at}.fieldPath", errors)


def _check_field_path(source: Source, text: str, path: str, errors: FieldErrors) -> None:
    if not text:
        return
    if not text.strip():
        errors.invalid(path, text, "must be non-empty if specified")
    if _LINE_BREAK.search(text):
        errors.invalid(path, text, "must not contain line breaks")
    try:
        field_path(text, structural(source))
    except FieldPathError:
        errors.invalid(path, text, "must be a valid path")


def schemas_in(source: Source) -> list[Source]:
    """A schema and all schemas inside of it."""
    found = [source]
    for _, part in parts_of(source):
        found.extend(schemas_in(part))
    return found
