"""ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.certificates import key_pair_problem
from holokube.apiserver.kinds.checks import check_immutable
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

_MAX_BYTES: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _check_frozen(new: JsonObject, old: JsonObject, fields: tuple[str, ...], errors: FieldErrors) -> None:
    if old.get("immutable"):
        if not new.get("immutable"):
            errors.forbidden("immutable", _FROZEN)
        for field in fields:
            if (new.get(field) or {}) != (old.get(field) or {}):
                errors.forbidden(field, _FROZEN)


class ConfigMap(GoKind):
    go_type = "core.v1.ConfigMap"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        data, binary = new.get("data") or {}, new.get("binaryData") or {}
        size = 0
        for key, value in data.items():
            errors.all_invalid(f"data[{key}]", key, names.is_config_map_key(key))
            if key in binary:
                errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
            size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        for key, value in binary.items():
            errors.all_invalid(f"binaryData[{key}]", key, names.is_config_map_key(key))
            size += _decoded_length(value)
        if size > _MAX_BYTES:
            # An error about the whole object; upstream's path of nothing reads like this.
            errors.too_long("[]", "", _MAX_BYTES)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _check_frozen(new, old, ("data", "binaryData"), errors)
        self.validate(new, errors)


class Secret(GoKind):
    go_type = "core.v1.Secret"
    field_labels = frozenset({"metadata.name", "metadata.namespace", "type"})

    def set_defaults(self, obj: JsonObject) -> None:
        given = obj.pop("stringData", None)
        if given:
            data: JsonObject = obj.setdefault("data", {})
            for key, text in given.items():
                data[key] = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
        obj.setdefault("type", "Opaque")

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        data: JsonObject = new.get("data") or {}
        size = 0
        for key, value in data.items():
            errors.all_invalid(f"data[{key}]", key, names.is_config_map_key(key))
            size += _decoded_length(value)
        if size > _MAX_BYTES:
            errors.too_long("data", "", _MAX_BYTES)
        kind = new["type"]
        if kind == "Opaque":
            return
        if kind == "kubernetes.io/service-account-token":
            if not (new["metadata"].get("annotations") or {}).get(_SERVICE_ACCOUNT_NAME):
                errors.required(f"metadata.annotations[{_SERVICE_ACCOUNT_NAME}]")
        elif kind in _DOCKER_KEYS:
            _check_docker_config(data, _DOCKER_KEYS[kind], errors)
        elif kind == "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                errors.required("data[username]")
                errors.required("data[password]")
        elif kind == "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                errors.required("data[ssh-privatekey]")
        elif kind == "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    errors.required(f"data[{key}]")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_immutable(new["type"], old["type"], "type", errors)
        _check_frozen(new, old, ("data",), errors)
        self.validate(new, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if new["type"] != "kubernetes.io/tls":
            return []
        data: JsonObject = new.get("data") or {}
        problem = key_pair_problem(base64.b64decode(data.get("tls.crt", "")), base64.b64decode(data.get("tls.key", "")))
        return [problem] if problem else []

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"type": obj.get("type", "")}


def _check_docker_config(data: Mapping[str, str], key: str, errors: FieldErrors) -> None:
    if key not in data:
        errors.required(f"data[{key}]")
        return
    problem = _json_object_problem(base64.b64decode(data[key]))
    if problem:
        errors.invalid(f"data[{key}]", "<secret contents redacted>", problem)


def _json_object_problem(text: bytes) -> str:
    if not text:
        return "unexpected end of JSON input"
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        return _go_json_problem(text, problem.pos)
    if isinstance(value, dict) or value is None:
        return ""
    word = {bool: "bool", str: "string", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"


def _go_json_problem(text: bytes, position: int) -> str:
    """What Go's parser says about a text that is no JSON."""
    for word in (b"null", b"true", b"false"):
        start = text[position : position + len(word)]
        if start[:1] == word[:1]:
            for index, (found, wanted) in enumerate(zip(start, word, strict=False)):
                if found != wanted:
                    expected = f"(expecting '{chr(word[index])}')"
                    return f"invalid character '{chr(found)}' in literal {word.decode()} {expected}"
    at = text[position : position + 1].decode("latin-1")
    return f"invalid character '{at}' looking for beginning of value" if at else "unexpected end of JSON input"


class ServiceAccount(GoKind):
    go_type = "core.v1.ServiceAccount"
    returns_deleted_object = True

    def _clean_secrets(self, new: JsonObject) -> None:
        """Only the names of secrets are kept."""
        secrets = new.get("secrets")
        if secrets:
            new["secrets"] = [{"name": s["name"]} if s.get("name") else {} for s in secrets]

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        self._clean_secrets(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        self._clean_secrets(new)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None and _MOUNTABLE in (old["metadata"].get("annotations") or {}):
            return []
        if _MOUNTABLE not in (new["metadata"].get("annotations") or {}):
            return []
        advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_MOUNTABLE}]: {advice}"]
