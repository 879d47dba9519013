"""From the body of a request to an object of the right type, ready for admission."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from holokube.apiserver import conversion
from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.held_parts import NOTHING_HELD, held_parts
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.kube.errors import BadRequest, Cause, invalid
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed body together with what only its text showed."""

    value: Any
    duplicate_fields: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    """Filled while decoding; an answer carries them even if the request fails later."""
    known: JsonObject | None = None
    """The stored object that is patched or replaced; what the value shares with it needs no second look."""
    only_status: bool = False
    """Whether nothing but its status, and some metadata, will be taken over."""
    settled: bool = False
    """Whether the known object's spec is defaulted, and its parts may be shared."""


def read_body(
    registry: Registry, served: Served, body: Any, options: WriteOptions
) -> tuple[JsonObject, list[str]]:
    """Decode, convert to the storage version and default. Returns a private object and warnings."""
    value, duplicates = (body.value, body.duplicate_fields) if isinstance(body, Body) else (body, ())
    if value is None:
        value = {}
    check_kind(served, value)
    if served.type.custom:
        if isinstance(body, Body):
            return registry.custom_resources.read(
                served, value, options, duplicates, body.known, settled=body.settled
            )
        return registry.custom_resources.read(served, value, options, duplicates)
    decoder = Decoder()
    kind = registry.kind_of(served)
    known: JsonObject | None = None
    beside: tuple[str, ...] = ()
    held = NOTHING_HELD
    if isinstance(body, Body):
        known = body.known
        if (body.only_status or body.settled) and known is not None and kind.status_stands_alone:
            beside = ("spec",) if value.get("spec") is known.get("spec") else ()
            if body.settled and not body.only_status:
                held = held_parts(kind, value, known)
                value = held.left_out_of(value)
    try:
        obj = decoder.decode(value, served.schema, known, beside)
    except DecodeError as problem:
        raise cannot_handle(served, str(problem)) from None
    obj["apiVersion"], obj["kind"] = served.api_version, served.kind
    warnings = field_warnings(served, decoder.unknown_fields, duplicates, options)
    if isinstance(body, Body):
        body.warnings.extend(warnings)
    obj = conversion.to_storage(served, obj)
    if beside:
        kind.default_beside_spec(obj)
        if not (isinstance(body, Body) and body.only_status):
            obj["spec"] = dict(obj["spec"])
    else:
        kind.default(obj)
    held.put_back(obj)
    return obj, warnings


def read_status(served: Served, kind: Kind, before: JsonObject, status: Any) -> JsonObject | None:
    """A status that is to be put into a stored object, decoded and defaulted; None where there is something to say
    about it, or where the defaults go further."""
    if type(status) is not dict:
        return None
    reader = kind.status_reader(before, served.schema)
    read = None if reader is None else reader.read(status, before["status"])
    if read is not None:
        return read
    decoder = Decoder()
    try:
        obj = decoder.decode({"status": status}, served.schema)
    except DecodeError:
        return None
    if decoder.unknown_fields:
        return None
    # Defaults look at no other metadata.
    meta: JsonObject = {}
    labels, annotations = before["metadata"].get("labels"), before["metadata"].get("annotations")
    if labels is not None:
        meta["labels"] = labels
    if annotations is not None:
        meta["annotations"] = annotations
    obj["metadata"], obj["spec"] = meta, before["spec"]
    kind.default_beside_spec(obj)
    meta = obj["metadata"]
    if meta.get("labels") is not labels or meta.get("annotations") is not annotations:
        return None
    found: JsonObject = obj["status"]
    return found


def read_beside(served: Served, kind: Kind, body: JsonObject, spec: bytes) -> JsonObject | None:
    """As ``read_body``, for a body whose spec is known to become ``spec``; None where there is something to say about
    the rest of it."""
    check_kind(served, body)
    decoder = Decoder()
    try:
        rest = decoder.decode({key: part for key, part in body.items() if key != "spec"}, served.schema)
    except DecodeError:
        return None
    if decoder.unknown_fields:
        return None
    obj: JsonObject = {}
    for key in body:
        if key == "spec":
            obj[key] = orjson.loads(spec)
        elif key in rest:
            obj[key] = rest[key]
    obj["apiVersion"], obj["kind"] = served.api_version, served.kind
    kind.default_beside_spec(obj)
    return obj


def beside_stored(registry: Registry, served: Served, body: Any, old: Stored, subresource: str) -> Any:
    """A body that is to take the place of a stored object; only objects in the stored version can share parts."""
    if served.type.custom or conversion.to_served(served, old) is not old:
        return body
    only_status, settled = subresource == "status", shares_spec(registry, served, old, subresource)
    if isinstance(body, Body):
        return replace(body, known=old.obj, only_status=only_status, settled=settled)
    return Body(body, known=old.obj, only_status=only_status, settled=settled)


def shares_spec(registry: Registry, served: Served, old: Stored, subresource: str) -> bool:
    """Whether a write that leaves the spec as it is can take it over from the stored object."""
    if not old.settled or (subresource and not served.type.custom):
        return False
    return not registry.admission.spoils_spec(served)


def check_kind(served: Served, value: Any) -> None:
    """The body must be an object, and of the kind that the URL names, if it names one itself."""
    if not isinstance(value, dict):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {served.kind}): couldn't get version/kind; "
            "json parse error: the body must be an object"
        )
    kind, api_version = value.get("kind"), value.get("apiVersion")
    for name, given in (("kind", kind), ("apiVersion", api_version), ("metadata", value.get("metadata"))):
        wanted = dict if name == "metadata" else str
        if given is not None and not isinstance(given, wanted):
            raise cannot_handle(served, f"json: cannot unmarshal {name}: it has the wrong type")
    if served.type.custom and kind and kind != served.kind and api_version in (None, "", served.api_version):
        name = (value.get("metadata") or {}).get("name") or ""
        cause = Cause("FieldValueInvalid", f'Invalid value: "{kind}": must be {served.kind}', "kind")
        raise invalid(served.group, kind, str(name), [cause])
    if (kind and kind != served.kind) or (api_version and api_version != served.api_version):
        given_version = api_version or served.api_version
        raise BadRequest(
            f'{kind or served.kind} in version "{given_version.rpartition("/")[2]}" cannot be handled as a '
            f"{served.kind}: the body is {given_version} {kind or served.kind}, the path is for "
            f"{served.api_version} {served.kind}"
        )


def cannot_handle(served: Served, why: str) -> BadRequest:
    return BadRequest(f'{served.kind} in version "{served.version}" cannot be handled as a {served.kind}: {why}')


def field_warnings(
    served: Served, unknown: list[str], duplicates: tuple[str, ...], options: WriteOptions
) -> list[str]:
    """What ``fieldValidation`` makes of unknown and duplicate fields: nothing, warnings, or an error."""
    if options.field_validation == "Ignore" or not (unknown or duplicates):
        return []
    found = [f'unknown field "{path}"' for path in unknown] + [f'duplicate field "{path}"' for path in duplicates]
    if options.field_validation == "Strict":
        raise cannot_handle(served, f"strict decoding error: {', '.join(found)}")
    return found
