"""serviceaccounts/token: ``kubectl create token``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holokube.apiserver.answers import WriteResult
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.http.auth import ISSUER, Authenticator
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.subresources.bodies import read_typed
from holokube.kube import timeformat
from holokube.kube.errors import BadRequest, ServiceUnavailable, conflict, invalid
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_DEFAULT_S = 3600
_MIN_S = 600
_MAX_S = 1 << 32
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


async def request_token(
    registry: Registry,
    authenticator: Authenticator | None,
    namespace: str,
    name: str,
    body: Any,
    options: WriteOptions,
) -> WriteResult:
    """Sign a token for a service account."""
    if authenticator is None:
        raise ServiceUnavailable("this server runs without authentication and signs no tokens")
    account = registry.get_stored(registry.resolve("", "v1", "serviceaccounts"), namespace, name).obj
    request, warnings = read_typed(registry, body, "authentication.k8s.io", "v1", "TokenRequest", options)
    given = (request.get("metadata") or {}).get("name")
    if given and given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
    spec: JsonObject = dict(request.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or [ISSUER]
    spec.setdefault("expirationSeconds", _DEFAULT_S)
    _validate(spec)
    now = registry.clock.now()
    expires = now + timedelta(seconds=spec["expirationSeconds"])
    details: JsonObject = {
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
    }
    bound = spec.get("boundObjectRef")
    if bound:
        details[bound["kind"].lower()] = _bound_object(registry, namespace, bound)
    claims = {
        "aud": spec["audiences"],
        "exp": int(expires.timestamp()),
        "iat": int(now.timestamp()),
        "iss": ISSUER,
        "jti": registry.rng.uid(),
        "kubernetes.io": details,
        "nbf": int(now.timestamp()),
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }
    token = authenticator.signer.sign(claims)
    answer: JsonObject = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": account["metadata"]["uid"],
            "creationTimestamp": timeformat.format_time(now),
        },
        "spec": {**spec, "boundObjectRef": bound},
        "status": {"token": token, "expirationTimestamp": timeformat.format_time(expires)},
    }
    return WriteResult(Stored(answer, 0), created=True, warnings=warnings)


def _validate(spec: JsonObject) -> None:
    errors = FieldErrors()
    seconds = spec["expirationSeconds"]
    if seconds < _MIN_S:
        errors.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    elif seconds > _MAX_S:
        errors.invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if errors:
        raise invalid("authentication.k8s.io", "TokenRequest", "", errors.causes)


def _bound_object(registry: Registry, namespace: str, bound: JsonObject) -> JsonObject:
    plural = _BINDABLE.get(bound.get("kind", ""))
    if plural is None or bound.get("apiVersion", "v1") != "v1":
        raise BadRequest(f"cannot bind token to object of type {bound.get('apiVersion')}, Kind={bound.get('kind')}")
    served = registry.resolve("", "v1", plural)
    target = registry.get_stored(served, namespace, bound.get("name", "")).obj["metadata"]
    if bound.get("uid") and bound["uid"] != target["uid"]:
        raise conflict(
            "", bound["kind"], target["name"],
            f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. The object "
            "might have been deleted and then recreated",
        )  # fmt: skip
    return {"name": target["name"], "uid": target["uid"]}
