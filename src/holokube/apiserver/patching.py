"""Applies one patch of any of the four types to a stored object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Caller
from holokube.apiserver.bodies import Body, read_body, shares_spec
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.ownership import manager_name
from holokube.apiserver.resources import Served
from holokube.kube.errors import (
    ApiError,
    BadRequest,
    Cause,
    Invalid,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    invalid,
)
from holokube.kube.patch import PatchError, PatchNotApplicable, PatchTooLarge
from holokube.kube.patch.apply import apply
from holokube.kube.patch.json_patch import apply_json_patch
from holokube.kube.patch.merge_patch import apply_merge_patch
from holokube.kube.patch.strategic import apply_strategic
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)


@dataclass(slots=True)
class Patched:
    """A patched object, decoded and defaulted; ``own`` replaces the usual bookkeeping after an apply."""

    obj: JsonObject
    warnings: list[str]
    own: Callable[[JsonObject], JsonObject] | None = None


def check_patch_type(served: Served, content_type: str) -> None:
    """415 for what the resource does not take."""
    if content_type in PATCH_TYPES and not (served.type.custom and content_type == STRATEGIC):
        return
    supported = [JSON_PATCH, MERGE_PATCH, *([] if served.type.custom else [STRATEGIC]), APPLY]
    raise UnsupportedMediaType(
        "415: Unsupported Media Type", details={}, hint=f"send one of {chr(44).join(supported)}"
    )


def patch_object(
    registry: Registry,
    served: Served,
    old: Stored,
    content_type: str,
    body: Any,
    options: WriteOptions,
    caller: Caller,
    subresource: str,
) -> Patched:
    """The object after the patch."""
    check_patch_type(served, content_type)
    value = body.value if isinstance(body, Body) else body
    live = conversion.to_served(served, old).obj
    try:
        if content_type == APPLY:
            return _apply(registry, served, live, body, options, caller, subresource)
        patched = apply_plain_patch(served, live, content_type, value)
    except PatchError as problem:
        raise as_api_error(problem) from None
    duplicates = body.duplicate_fields if isinstance(body, Body) else ()
    try:
        settled = live is old.obj and shares_spec(registry, served, old, subresource)
        read = Body(
            patched, tuple(duplicates), known=live, only_status=subresource == "status", settled=settled
        )
        obj, warnings = read_body(registry, served, read, options)
    except BadRequest as problem:
        # Well-formed patch, but the outcome is no object of this type.
        raise invalid("", "", "", [Cause("FieldValueInvalid", f"Invalid value: {problem}", "patch")]) from None
    return Patched(obj, warnings)


def apply_plain_patch(served: Served, live: JsonObject, content_type: str, value: Any) -> Any:
    """JSON patch, merge patch or strategic merge patch."""
    if content_type == JSON_PATCH:
        return apply_json_patch(live, value)
    if not isinstance(value, dict):
        raise PatchError("the patch must be an object")
    if content_type == MERGE_PATCH:
        return apply_merge_patch(live, value)
    return apply_strategic(live, value, served.schema)


def _apply(
    registry: Registry,
    served: Served,
    live: JsonObject,
    body: Any,
    options: WriteOptions,
    caller: Caller,
    subresource: str,
) -> Patched:
    applied, warnings = read_applied(registry, served, body, options)
    result = apply(
        live, applied, manager_name(options, caller), served.api_version,
        force=bool(options.force), now=registry.clock.now(), schema=served.schema,
        ignore=registry.writes.ownership.ignored(served, subresource), subresource=subresource,
        empty=registry.kind_of(served).empty_object(),
    )  # fmt: skip
    entries = result["metadata"].get("managedFields")
    obj, _ = read_body(registry, served, result, WriteOptions())
    given = applied["metadata"].get("resourceVersion")
    if given:
        obj["metadata"]["resourceVersion"] = given

    def own(new: JsonObject) -> JsonObject:
        if entries and registry.tracks_managed_fields:
            new["metadata"]["managedFields"] = entries
        return new

    return Patched(obj, warnings, own)


def read_applied(
    registry: Registry, served: Served, body: Any, options: WriteOptions
) -> tuple[JsonObject, list[str]]:
    """The applied configuration as it was sent: checked for unknown fields, but nothing defaulted."""
    value = body.value if isinstance(body, Body) else body
    if value is None:
        raise BadRequest("the applied configuration is empty")
    if isinstance(value, dict):
        for key in ("apiVersion", "kind"):
            if not value.get(key):
                raise BadRequest(f"Object '{key}' is missing in the applied configuration")
    _, warnings = read_body(registry, served, body, options)
    applied: JsonObject = dict(value)
    applied["metadata"] = dict(applied.get("metadata") or {})
    if applied["metadata"].get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    return applied, warnings


def as_api_error(problem: PatchError) -> ApiError:
    """The status that upstream answers for a patch that cannot be applied."""
    if isinstance(problem, PatchTooLarge):
        return RequestEntityTooLarge(str(problem))
    if isinstance(problem, PatchNotApplicable):
        return Invalid("the server rejected our request due to an error in our request", details={})
    return BadRequest(str(problem))
