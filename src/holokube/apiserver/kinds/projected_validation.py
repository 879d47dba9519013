"""Rules for files that the kubelet writes into a volume: secrets, config maps, pod fields, tokens."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.env_validation import validate_field_ref, validate_resource_ref
from holokube.apiserver.kinds.paths import validate_file_mode, validate_not_reserved
from holokube.kube.types import JsonObject

_VOLUME_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_SOURCES = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_TOKEN_MIN_S = 600
_TOKEN_MAX_S = 2**32
_CONFLICT = "conflicting duplicate paths"


def validate_key_paths(items: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    """Which key of a secret or config map becomes which file."""
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if not item.get("key"):
            errors.required(f"{at}.key")
        file_path = item.get("path", "")
        if not file_path:
            errors.required(f"{at}.path")
        validate_not_reserved(file_path, f"{at}.path", errors)
        validate_file_mode(item.get("mode"), f"{at}.mode", errors)


def validate_downward_items(items: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    """Fields of the pod as files. Upstream names them without their index."""
    for item in items:
        file_path = item.get("path", "")
        if not file_path:
            errors.required(f"{path}.path")
        validate_not_reserved(file_path, f"{path}.path", errors)
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            validate_field_ref(field, _VOLUME_FIELDS, f"{path}.fieldRef", errors)
            if resource is not None:
                detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.invalid(path, "resource", detail)
        elif resource is not None:
            validate_resource_ref(resource, f"{path}.resourceFieldRef", errors, in_volume=True)
        else:
            errors.required(path, "one of fieldRef and resourceFieldRef is required")
        validate_file_mode(item.get("mode"), f"{path}.mode", errors)


# Every pod mounts its token through the same projected volume; once it was found good, it needs no second look.
_KNOWN_GOOD: set[bytes] = set()
_KNOWN_GOOD_MAX = 1_000


def validate_projected(source: JsonObject, path: str, errors: FieldErrors) -> None:
    """Several sources in one volume; no two of them may write the same file."""
    text = orjson.dumps(source)
    if text in _KNOWN_GOOD:
        return
    found = len(errors.causes)
    _validate_projected(source, path, errors)
    if len(errors.causes) == found and len(_KNOWN_GOOD) < _KNOWN_GOOD_MAX:
        _KNOWN_GOOD.add(text)


def _validate_projected(source: JsonObject, path: str, errors: FieldErrors) -> None:
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        present = [key for key in _SOURCES if key in part]
        for key in present:
            content: JsonObject = part[key]
            if key == "serviceAccountToken":
                _validate_token(content, path, f"{at}.{key}", errors)
                continue
            items = content.get("items") or ()
            if key == "downwardAPI":
                validate_downward_items(items, f"{at}.{key}", errors)
            else:
                if not content.get("name"):
                    errors.required(f"{at}.{key}.name")
                validate_key_paths(items, f"{at}.{key}.items", errors)
            for item in items:
                file_path = item.get("path")
                if file_path and file_path in taken:
                    shown = file_path if key == "downwardAPI" else content.get("name", "")
                    errors.invalid(path, shown, _CONFLICT)
                taken.add(file_path)
        if len(present) > 1:
            errors.forbidden(at, "may not specify more than 1 volume type per source")


def _validate_token(token: JsonObject, volume_path: str, path: str, errors: FieldErrors) -> None:
    expiry_s = token.get("expirationSeconds", 0)
    if expiry_s < _TOKEN_MIN_S:
        errors.invalid(
            f"{path}.expirationSeconds", expiry_s, "may not specify a duration less than 10 minutes"
        )
    if expiry_s > _TOKEN_MAX_S:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.invalid(f"{path}.expirationSeconds", expiry_s, detail)
    file_path = token.get("path")
    if not file_path:
        errors.required(f"{volume_path}.path")
    else:
        validate_not_reserved(file_path, f"{volume_path}.path", errors)
