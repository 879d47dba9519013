"""Rules for resources embedded in custom ones (``x-kubernetes-embedded-resource``)."""

from __future__ import annotations

from typing import Any

from holokube.apiserver.crds.structural import Structural
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind
from holokube.kube import names
from holokube.kube.types import JsonObject


class _AnyName(Kind):
    """Embedded objects may be named like anything that fits into a path."""

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_path_segment_prefix(name) if prefix else names.is_path_segment_name(name)


_ANY_NAME = _AnyName()


def check_embedded(value: Any, node: Structural | None, errors: FieldErrors, path: str = "") -> None:
    """Report what is wrong with the apiVersion, kind and metadata of embedded resources."""
    if node is None or not node.has_embedded:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            check_embedded(item, node.items, errors, f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    if node.embedded:
        _check_one(value, errors, path)
    for key, part in value.items():
        if isinstance(part, dict | list):
            known = node.properties.get(key)
            if known is not None:
                check_embedded(part, known, errors, f"{path}.{key}" if path else key)
            elif node.additional is not None:
                check_embedded(part, node.additional, errors, f"{path}[{key}]")


def _check_one(value: JsonObject, errors: FieldErrors, path: str) -> None:
    for key in ("apiVersion", "kind"):
        if key not in value:
            errors.required(f"{path}.{key}")
        elif not value[key]:
            errors.invalid(f"{path}.{key}", value[key], "must not be empty")
    api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
    if api_version.count("/") > 1:
        errors.invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    problems = names.is_dns1035_label(kind.lower()) if kind else []
    if problems:
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.invalid(f"{path}.kind", kind, text)
    if "metadata" in value:
        # Not at the top: rules for metadata need kinds, and the kind of CRDs needs this module.
        from holokube.apiserver.metadata import validate_metadata

        meta = value["metadata"]
        named = {**meta, "name": meta.get("name") or "fakename"}
        validate_metadata(
            {"metadata": named}, _ANY_NAME, namespaced=bool(meta.get("namespace")), errors=errors,
            path=f"{path}.metadata",
        )  # fmt: skip
