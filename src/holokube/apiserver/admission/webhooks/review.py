"""AdmissionReview: the question a webhook is asked, and its answer."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final

import orjson

from holokube.apiserver.admission.base import NAMESPACES, Attributes, Operation
from holokube.apiserver.admission.webhooks.views import kind_seen
from holokube.apiserver.resources import Served
from holokube.kube.types import JsonObject

_GROUP: Final = "admission.k8s.io"
_KNOWN_VERSIONS: Final = ("v1", "v1beta1")
_OPTIONS_KINDS: Final[dict[Operation, str]] = {
    "CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions", "CONNECT": "",
}  # fmt: skip


class ReviewError(Exception):
    """An answer that does not follow the protocol."""


class UnreadableAnswer(ReviewError):
    """An answer that is no AdmissionReview of the right version."""


class UnreadablePatch(ReviewError):
    """A patch that is no JSON patch."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a webhook has decided."""

    allowed: bool
    patch: list[Any]
    warnings: tuple[str, ...]
    result: JsonObject | None


def review_version(offered: tuple[str, ...]) -> str:
    """The first version that both sides know."""
    for version in offered:
        if version in _KNOWN_VERSIONS:
            return version
    raise ReviewError("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def namespace_of(attributes: Attributes) -> str:
    """The namespace of a request; upstream says that a namespace is in itself."""
    if (attributes.served.group, attributes.served.plural) == NAMESPACES:
        return attributes.name or str((attributes.obj or {}).get("metadata", {}).get("name") or "")
    return attributes.namespace


def build_request(
    uid: str, attributes: Attributes, served: Served, new: JsonObject | None, old: JsonObject | None
) -> JsonObject:
    """The ``request`` of a review; ``new`` and ``old`` are in the version that the webhook wants."""
    asked, caller, below = attributes.served, attributes.caller, attributes.subresource
    user: JsonObject = {"username": caller.name}
    if caller.uid:
        user["uid"] = caller.uid
    if caller.groups:
        user["groups"] = list(caller.groups)
    if caller.extra:
        user["extra"] = {key: list(values) for key, values in caller.extra.items()}
    request: JsonObject = {
        "uid": uid,
        "kind": kind_seen(served, below)._asdict(),
        "resource": _resource(served),
        "subResource": below,
        "requestKind": kind_seen(asked, below)._asdict(),
        "requestResource": _resource(asked),
        "requestSubResource": below,
        "name": attributes.name,
        "namespace": namespace_of(attributes),
        "operation": attributes.operation,
        "userInfo": user,
        "object": new,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
    }
    for key in ("subResource", "requestSubResource", "name", "namespace"):
        if not request[key]:
            del request[key]
    return request


def _resource(served: Served) -> JsonObject:
    return {"group": served.group, "version": served.version, "resource": served.plural}


def _options(attributes: Attributes) -> JsonObject | None:
    kind = _OPTIONS_KINDS[attributes.operation]
    if not kind:
        return None
    options: JsonObject = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if attributes.dry_run:
        options["dryRun"] = ["All"]
    options.update((key, value) for key, value in attributes.options.items() if value)
    return options


def encode(version: str, request: JsonObject) -> bytes:
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request})


def decode(body: bytes, version: str) -> JsonObject:
    """The review in a body."""
    try:
        review = orjson.loads(body)
    except ValueError as problem:
        raise UnreadableAnswer(f"couldn't get version/kind; json parse error: {problem}") from None
    if not isinstance(review, dict):
        raise UnreadableAnswer("couldn't get version/kind; json parse error: the answer is not an object")
    kind, given = str(review.get("kind") or ""), str(review.get("apiVersion") or "")
    if not kind and not given:
        return review
    group, _, given_version = given.rpartition("/")
    if kind != "AdmissionReview" or group != _GROUP or given_version not in _KNOWN_VERSIONS:
        raise UnreadableAnswer(f'no kind "{kind}" is registered for version "{given}"')
    if given_version != version:
        raise UnreadableAnswer(
            f"converting ({given_version}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )
    return review


def verify(review: JsonObject, version: str, uid: str, *, mutating: bool) -> Answer:
    """Check an answer as strictly as upstream does, which for v1beta1 is hardly at all."""
    response = review.get("response")
    if not isinstance(response, dict):
        raise ReviewError("webhook response was absent")
    patch_type = response.get("patchType")
    patch = _patch_bytes(response.get("patch"))
    if version == "v1":
        if response.get("uid", "") != uid:
            raise ReviewError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
        if not review.get("kind"):
            raise ReviewError(f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got /, Kind=")
        _verify_patch(patch, patch_type, mutating=mutating)
    elif not mutating:
        patch = b""
    warnings, result = response.get("warnings"), response.get("status")
    return Answer(
        bool(response.get("allowed")),
        _operations(patch, "JSONPatch" if version == "v1beta1" else patch_type)
        if response.get("allowed")
        else [],
        tuple(str(one) for one in warnings) if isinstance(warnings, list) else (),
        result if isinstance(result, dict) else None,
    )


def _patch_bytes(written: Any) -> bytes:
    if not written:
        return b""
    try:
        if isinstance(written, str):
            return base64.b64decode(written, validate=True)
    except binascii.Error:
        pass
    raise ReviewError("response.patch is not base64-encoded")


def _verify_patch(patch: bytes, patch_type: Any, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise ReviewError("validating webhook may not return response.patch")
        if patch_type is not None:
            raise ReviewError("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise ReviewError("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise ReviewError("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise ReviewError('webhook returned invalid response.patchType of ""')


def _operations(patch: bytes, patch_type: Any) -> list[Any]:
    if not patch:
        return []
    try:
        operations = orjson.loads(patch)
    except ValueError as problem:
        raise UnreadablePatch(f"received undecodable patch in webhook response: {problem}") from None
    if not operations and operations in (None, []):
        return []
    if not isinstance(operations, list):
        raise UnreadablePatch(
            "received undecodable patch in webhook response: it is not a list of operations"
        )
    if patch_type != "JSONPatch":
        raise UnreadablePatch(f'unsupported patch type "{patch_type}"')
    return operations
