"""Reviews: questions about users and rights, answered on the spot. Whoever is known may do everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.http.auth import ISSUER, Authenticator
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.bodies import read_typed
from holokube.kube import timeformat
from holokube.kube.errors import BadRequest, invalid
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

REVIEWS = frozenset(
    {
        "tokenreviews", "selfsubjectreviews", "subjectaccessreviews", "localsubjectaccessreviews",
        "selfsubjectaccessreviews", "selfsubjectrulesreviews",
    }
)  # fmt: skip


def review(
    registry: Registry,
    authenticator: Authenticator | None,
    served: Served,
    namespace: str,
    body: Any,
    options: WriteOptions,
    caller: Caller,
) -> WriteResult:
    """Answer one review."""
    asked, warnings = read_typed(registry, body, served.group, served.version, served.kind, options)
    spec: JsonObject = asked.get("spec") or {}
    if served.plural == "tokenreviews":
        status = _token_review(registry, authenticator, spec)
    elif served.plural == "selfsubjectreviews":
        status = {"userInfo": _user(caller)}
        now = timeformat.format_time(registry.clock.now())
        asked["metadata"] = {**(asked.get("metadata") or {}), "creationTimestamp": now}
    elif served.plural == "selfsubjectrulesreviews":
        if not spec.get("namespace"):
            raise BadRequest("no namespace on request")
        status = {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    else:
        if asked.get("metadata"):
            errors = FieldErrors()
            errors.invalid("metadata", asked["metadata"], "must be empty")
            raise invalid(served.group, "", "", errors.causes)
        _CHECKS[served.plural](served, spec, namespace)
        status = {"allowed": True}
    answer = {
        "kind": served.kind,
        "apiVersion": served.api_version,
        "metadata": asked.get("metadata") or {},
        **({} if served.plural == "selfsubjectreviews" else {"spec": spec}),
        "status": status,
    }
    return WriteResult(Stored(answer, 0), created=True, warnings=warnings)


def _user(caller: Caller) -> JsonObject:
    user: JsonObject = {"username": caller.name}
    if caller.uid:
        user["uid"] = caller.uid
    user["groups"] = list(caller.groups)
    if caller.extra:
        user["extra"] = {key: list(values) for key, values in caller.extra.items()}
    return user


def _token_review(registry: Registry, authenticator: Authenticator | None, spec: JsonObject) -> JsonObject:
    token = spec.get("token", "")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    found = authenticator.by_token(token, registry.clock.now()) if authenticator is not None else None
    if found is None:
        return {"user": {}, "error": "[invalid bearer token]"}
    status: JsonObject = {"authenticated": True, "user": _user(found)}
    status["audiences"] = spec.get("audiences") or [ISSUER]
    return status


def _check_attributes(spec: JsonObject, errors: FieldErrors) -> None:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        errors.invalid(
            "spec.nonResourceAttributes", other, "cannot be specified in combination with resourceAttributes"
        )
    if resource is None and other is None:
        errors.invalid(
            "spec.resourceAttributes",
            None,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )


def _check_subject(spec: JsonObject, errors: FieldErrors) -> None:
    _check_attributes(spec, errors)
    if not spec.get("user") and not spec.get("groups"):
        errors.invalid("spec.user", "", "at least one of user or group must be specified")


def _check_access(served: Served, spec: JsonObject, _namespace: str) -> None:
    errors = FieldErrors()
    if served.plural == "selfsubjectaccessreviews":
        _check_attributes(spec, errors)
    else:
        _check_subject(spec, errors)
    if errors:
        raise invalid(served.group, "", "", errors.causes)


def _check_local(served: Served, spec: JsonObject, namespace: str) -> None:
    if (spec.get("resourceAttributes") or {}).get("namespace", namespace) != namespace:
        raise BadRequest("spec.resourceAttributes.namespace must match namespace")
    _check_access(served, spec, namespace)


_CHECKS: Mapping[str, Callable[[Served, JsonObject, str], None]] = {
    "subjectaccessreviews": _check_access,
    "selfsubjectaccessreviews": _check_access,
    "localsubjectaccessreviews": _check_local,
}
