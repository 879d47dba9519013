"""Whether the schema of a CRD is structural: every field has a type, and only the outside of a schema gives it one.

Within ``allOf``, ``anyOf``, ``oneOf`` and ``not`` a schema may only restrict values of fields that are specified
outside of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.apiserver.crds.patterns import PatternError, compile_pattern
from holokube.apiserver.field_errors import FieldErrors

Source = Mapping[str, Any]

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = (
    "id",
    "$schema",
    "$ref",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
)
_NO_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# What a schema inside of a junctor must not have, and how upstream calls the absence of it.
_FORBIDDEN_INSIDE: Final = (
    ("type", "empty"), ("additionalProperties", "undefined"), ("default", "undefined"), ("title", "empty"),
    ("description", "empty"), ("nullable", "false"), ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"), ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"), ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"), ("x-kubernetes-validations", "empty"),
)  # fmt: skip


def parts_of(source: Source) -> list[tuple[str, Source]]:
    """All schemas directly inside of a schema, with their relative paths."""
    single = ("items", "additionalProperties", "not")
    found: list[tuple[str, Source]] = [
        (f".{k}", source[k]) for k in single if isinstance(source.get(k), Mapping)
    ]
    for key in ("properties", "patternProperties", "definitions"):
        found.extend((f".{key}[{name}]", part) for name, part in (source.get(key) or {}).items())
    for key in ("allOf", "anyOf", "oneOf"):
        found.extend((f".{key}[{index}]", part) for index, part in enumerate(source.get(key) or ()))
    if isinstance(source.get("items"), list):
        found.extend((f".items[{index}]", part) for index, part in enumerate(source["items"]))
    return found


def can_be_structural(source: Source) -> bool:
    """Whether there is nothing in a schema that cannot even be expressed in a structural one."""
    if any(source.get(key) is not None for key in _UNSUPPORTED) or isinstance(source.get("items"), list):
        return False
    return all(can_be_structural(part) for _, part in parts_of(source))


def check_structural(source: Source, path: str, errors: FieldErrors) -> None:
    """Report where a schema is not structural, sorted as upstream sorts."""
    own = FieldErrors()
    _check_level(source, "root", path, own)
    _check_complete(source, source, path, path, own)
    own.causes.sort(key=lambda cause: f"{cause.field}: {cause.message}")
    errors.causes.extend(own.causes)


def _check_level(source: Source, level: str, path: str, errors: FieldErrors) -> None:
    items, extra = source.get("items"), source.get("additionalProperties")
    if source.get("type") == "array" and items is None:
        errors.required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        _check_level(items, "item", f"{path}.items", errors)
    properties: Mapping[str, Source] = source.get("properties") or {}
    for name, part in properties.items():
        _check_level(part, "field", f"{path}.properties[{name}]", errors)
    if extra is not None:
        if level == "root":
            errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(extra, Mapping):
            _check_level(extra, "field", f"{path}.additionalProperties", errors)
    if source.get("x-kubernetes-int-or-string"):
        for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if source.get(key):
                errors.invalid(f"{path}.{key}", True, "must be false if x-kubernetes-int-or-string is true")
    _check_restrictions(
        source, path, errors,
        skip_any_of=source.get("anyOf") == _INT_OR_STRING, skip_first_all_of=_starts_with_int_or_string(source),
    )  # fmt: skip
    _check_type(source, level, path, errors)
    _check_meta_fields(source, level, path, errors)


def _starts_with_int_or_string(source: Source) -> bool:
    all_of = source.get("allOf") or []
    return bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING


def _check_type(source: Source, level: str, path: str, errors: FieldErrors) -> None:
    own_type, embedded = source.get("type") or "", bool(source.get("x-kubernetes-embedded-resource"))
    preserves = bool(source.get("x-kubernetes-preserve-unknown-fields"))
    if embedded and own_type != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        if own_type:
            errors.invalid(f"{path}.type", own_type, text)
        else:
            errors.required(f"{path}.type", text)
    elif not own_type and not source.get("x-kubernetes-int-or-string") and not preserves:
        errors.required(f"{path}.type", _NO_TYPE[level])
    if embedded and source.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        errors.forbidden(f"{path}.additionalProperties", text)
    if level == "root" and own_type and own_type != "object":
        errors.invalid(f"{path}.type", own_type, "must be object at the root")
    if embedded and not preserves and not source.get("properties"):
        errors.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _check_meta_fields(source: Source, level: str, path: str, errors: FieldErrors) -> None:
    """The root and embedded resources have apiVersion, kind and metadata already; little may be said about them."""
    properties: Mapping[str, Source] = source.get("properties") or {}
    checked = level == "root" or bool(source.get("x-kubernetes-embedded-resource"))
    for key in ("kind", "apiVersion"):
        own_type = (properties.get(key) or {}).get("type") or ""
        if key in properties and checked and own_type != "string":
            errors.invalid(f"{path}.properties[{key}].type", own_type, "must be string")
    if "metadata" not in properties:
        return
    metadata = properties["metadata"]
    at = f"{path}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        errors.invalid(f"{at}.type", metadata.get("type") or "", "must be object")
    if level == "root":
        named = set(metadata.get("properties") or ()) <= {"name", "generateName"}
        others = {key for key, value in metadata.items() if value} - {"type", "properties", "default"}
        if not named or others:
            errors.forbidden(
                at,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            )


def _check_restrictions(
    source: Source, path: str, errors: FieldErrors, *, skip_any_of: bool, skip_first_all_of: bool
) -> None:
    if not skip_any_of:
        for index, part in enumerate(source.get("anyOf") or ()):
            _check_inside(part, f"{path}.anyOf[{index}]", errors)
    for index, part in enumerate(source.get("allOf") or ()):
        skip = skip_first_all_of and index == 0
        _check_inside(part, f"{path}.allOf[{index}]", errors, skip_any_of=skip)
    for index, part in enumerate(source.get("oneOf") or ()):
        _check_inside(part, f"{path}.oneOf[{index}]", errors)
    if source.get("not") is not None:
        _check_inside(source["not"], f"{path}.not", errors)
    pattern = source.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as problem:
            errors.invalid(
                f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}"
            )


def _check_inside(source: Source, path: str, errors: FieldErrors, *, skip_any_of: bool = False) -> None:
    _check_restrictions(source, path, errors, skip_any_of=skip_any_of, skip_first_all_of=False)
    if isinstance(source.get("items"), Mapping):
        _check_inside(source["items"], f"{path}.items", errors)
    properties: Mapping[str, Source] = source.get("properties") or {}
    for name, part in properties.items():
        _check_inside(part, f"{path}.properties[{name}]", errors)
    for key, absence in _FORBIDDEN_INSIDE:
        value = source.get(key)
        if value if absence != "undefined" else value is not None:
            errors.forbidden(f"{path}.{key}", f"must be {absence} to be structural")
    if "metadata" in properties:
        errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _check_complete(
    inside: Source, outside: Source, path: str, inside_path: str, errors: FieldErrors
) -> None:
    """Everything that is restricted inside must be specified outside."""
    junctors = [(f"{inside_path}.not", inside["not"])] if inside.get("not") is not None else []
    for key in ("allOf", "anyOf", "oneOf"):
        junctors.extend((f"{inside_path}.{key}[{i}]", part) for i, part in enumerate(inside.get(key) or ()))
    for part_path, part in junctors:
        _check_part_complete(part, outside, path, part_path, errors)


def _check_part_complete(
    part: Source, outside: Source, path: str, part_path: str, errors: FieldErrors
) -> None:
    _check_complete(part, outside, path, part_path, errors)
    if isinstance(part.get("items"), Mapping):
        if not isinstance(outside.get("items"), Mapping):
            errors.required(f"{path}.items", f"because it is defined in {part_path}.items")
        else:
            _check_part_complete(
                part["items"], outside["items"], f"{path}.items", f"{part_path}.items", errors
            )
    known: Mapping[str, Source] = outside.get("properties") or {}
    for name, field in (part.get("properties") or {}).items():
        at, inside_at = f"{path}.properties[{name}]", f"{part_path}.properties[{name}]"
        if name not in known:
            errors.required(at, f"because it is defined in {inside_at}")
        else:
            _check_part_complete(field, known[name], at, inside_at, errors)
