"""The query parameters and bodies that steer a request, checked the way upstream checks them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

import msgspec
import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.kube.errors import BadRequest, invalid
from holokube.kube.selectors import FieldSelector, LabelSelector, SelectorError

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_MAX_FIELD_MANAGER_LENGTH = 128
_MAX_INT64 = 2**63 - 1
_MAX_UINT64 = 2**64 - 1
_MAX_DIGITS = len(str(_MAX_UINT64))
_INTEGER = re.compile(r"[+-]?[0-9]+")


def parse_bool(query: Mapping[str, str], key: str) -> bool | None:
    """A boolean as Go's conversion reads query parameters: an unknown word counts as true."""
    text = query.get(key)
    if text is None:
        return None
    return text not in _FALSE if text else True


def parse_int(query: Mapping[str, str], key: str) -> int | None:
    text = query.get(key)
    if text is None or text == "":
        return None
    if not _INTEGER.fullmatch(text):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # Long texts are not even read: turning thousands of digits into a number takes Python long, or is refused.
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits[: _MAX_DIGITS + 1]) * (-1 if text.startswith("-") else 1)
    if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; 0 if it is empty."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    value = int((text.lstrip("0") or "0")[: _MAX_DIGITS + 1])
    if value > _MAX_UINT64:
        raise BadRequest(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": value out of range'
        )
    return value


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """Where the next page of a list starts, and of which revision."""

    revision: int
    start_after: str

    def encode(self, prefix: str) -> str:
        body = {"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start_after.removeprefix(prefix) + "\0"}
        return base64.urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")

    @staticmethod
    def decode(text: str, prefix: str) -> ContinueToken:
        try:
            padded = text + "=" * (-len(text) % 4)
            body = orjson.loads(base64.b64decode(padded.encode(), altchars=b"-_", validate=True))
            revision, start = body["rv"], body["start"]
            if body["v"] != "meta.k8s.io/v1" or type(revision) is not int or type(start) is not str:
                raise ValueError
        except (binascii.Error, ValueError, KeyError, TypeError):
            raise BadRequest(
                "invalid continue token: continue key is not valid", hint="start the list again"
            ) from None
        return ContinueToken(revision, prefix + start.removesuffix("\0"))


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of list and watch."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_s: int | None = None
    bookmarks: bool = False
    watch: bool = False
    send_initial_events: bool | None = None

    @staticmethod
    def parse(query: Mapping[str, str], *, watch: bool | None = None) -> ListOptions:
        """Options from query parameters; raises BadRequest or Invalid like upstream."""
        try:
            labels = LabelSelector.parse(query["labelSelector"]) if query.get("labelSelector") else None
            fields = FieldSelector.parse(query["fieldSelector"]) if query.get("fieldSelector") else None
        except SelectorError as problem:
            raise BadRequest(str(problem)) from None
        limit = parse_int(query, "limit") or 0
        options = ListOptions(
            label_selector=labels,
            field_selector=fields,
            limit=max(limit, 0),
            continue_=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            resource_version_match=query.get("resourceVersionMatch", ""),
            # Zero means that the client does not mind, not that the watch should end before it begins.
            timeout_s=parse_int(query, "timeoutSeconds") or None,
            bookmarks=bool(parse_bool(query, "allowWatchBookmarks")),
            watch=bool(parse_bool(query, "watch")) if watch is None else watch,
            send_initial_events=parse_bool(query, "sendInitialEvents"),
        )
        options._check()
        return options

    def _check(self) -> None:
        errors = FieldErrors()
        if self.watch:
            self._check_watch(errors)
        else:
            self._check_list(errors)
        if errors:
            raise invalid("meta.k8s.io", "ListOptions", "", errors.causes)

    def _check_watch(self, errors: FieldErrors) -> None:
        match = self.resource_version_match
        if self.send_initial_events is not None:
            if match != "NotOlderThan":
                errors.forbidden(
                    "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                )
                if match:
                    errors.not_supported("resourceVersionMatch", match, ["NotOlderThan"])
        elif match:
            errors.forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )

    def _check_list(self, errors: FieldErrors) -> None:
        match, version = self.resource_version_match, self.resource_version
        if self.send_initial_events is not None:
            errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
        if not match:
            return
        if self.continue_:
            errors.forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        if not version:
            errors.forbidden(
                "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        if match not in ("Exact", "NotOlderThan"):
            errors.not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])
        elif match == "Exact" and version == "0":
            errors.forbidden(
                "resourceVersionMatch",
                'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of create, update and patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Ignore"
    force: bool | None = None

    @staticmethod
    def parse(query: Mapping[str, str], kind: str, *, apply: bool = False) -> WriteOptions:
        """Options from query parameters; ``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
        if not query and not apply:
            return _NO_WRITE_OPTIONS
        errors = FieldErrors()
        dry_run = check_dry_run(query.get("dryRun"), errors)
        manager = query.get("fieldManager", "")
        if len(manager) > _MAX_FIELD_MANAGER_LENGTH:
            errors.too_long("fieldManager", manager, _MAX_FIELD_MANAGER_LENGTH)
        elif not manager.isprintable():
            errors.invalid("fieldManager", manager, "should only contain printable characters")
        force = parse_bool(query, "force")
        if apply and not manager:
            errors.required("fieldManager", "is required for apply patch")
        if kind == "PatchOptions" and force is not None and not apply:
            errors.forbidden("force", "may not be specified for non-apply patch")
        validation = query.get("fieldValidation", "")
        if validation not in ("", "Ignore", "Warn", "Strict"):
            errors.not_supported("fieldValidation", validation, ["Ignore", "Strict", "Warn"])
        if errors:
            raise invalid("meta.k8s.io", kind, "", errors.causes)
        return WriteOptions(dry_run, manager, validation or "Warn", force)


_NO_WRITE_OPTIONS = WriteOptions(field_validation="Warn")


class DeleteOptions(msgspec.Struct, frozen=True):
    """Options of delete and deletecollection."""

    dry_run: bool = False
    grace_period_s: int | None = None
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None
    orphan_dependents: bool | None = None

    @staticmethod
    def parse(query: Mapping[str, str], body: Any) -> DeleteOptions:
        """Options from the body if there is one, else from query parameters."""
        given = _delete_body(body) if body else _delete_query(query)
        preconditions = given.get("preconditions") or {}
        grace_s = given.get("gracePeriodSeconds")
        # Upstream turns a negative period into the smallest one that still lets a pod stop.
        grace_period_s = 1 if grace_s is not None and grace_s < 0 else grace_s
        uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
        propagation = given.get("propagationPolicy") or ""
        if propagation in _POLICIES and "dryRun" not in given and "orphanDependents" not in given:
            return DeleteOptions(False, grace_period_s, propagation, uid, version)
        errors = FieldErrors()
        dry_run = check_dry_run(given.get("dryRun"), errors)
        orphan = given.get("orphanDependents")
        if propagation and orphan is not None:
            errors.invalid(
                "propagationPolicy", propagation, "orphanDependents and deletionPropagation cannot be both set"
            )
        elif propagation not in _POLICIES:
            errors.not_supported("propagationPolicy", propagation, ["Foreground", "Background", "Orphan", "nil"])
        if errors:
            raise invalid("meta.k8s.io", "DeleteOptions", "", errors.causes)
        return DeleteOptions(
            dry_run=dry_run,
            grace_period_s=grace_period_s,
            propagation=propagation or ("" if orphan is None else "Orphan" if orphan else "Background"),
            uid=uid,
            resource_version=version,
            orphan_dependents=orphan,
        )


_POLICIES = ("", "Foreground", "Background", "Orphan")


def _delete_query(query: Mapping[str, str]) -> dict[str, Any]:
    if not query:
        return {}
    return {
        "dryRun": query.get("dryRun"),
        "gracePeriodSeconds": parse_int(query, "gracePeriodSeconds"),
        "propagationPolicy": query.get("propagationPolicy"),
        "orphanDependents": parse_bool(query, "orphanDependents"),
    }


_DELETE_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "gracePeriodSeconds": int,
    "propagationPolicy": str,
    "orphanDependents": bool,
    "preconditions": dict,
    "dryRun": list,
}


def _delete_body(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise BadRequest("the body of a delete must be a DeleteOptions object")
    if body.get("kind") not in (None, "", "DeleteOptions"):
        raise BadRequest(f"decoded object cannot be converted to DeleteOptions: {body.get('kind')}")
    for key, value in body.items():
        if key in _DELETE_FIELDS and type(value) is not _DELETE_FIELDS[key]:
            _check_delete_fields(body)
            break
    preconditions = body.get("preconditions")
    if preconditions:
        for key in ("uid", "resourceVersion"):
            if not isinstance(preconditions.get(key), (str, NoneType)):
                raise BadRequest(f"DeleteOptions.preconditions.{key} must be a string")
    return body


def _check_delete_fields(body: dict[str, Any]) -> None:
    for key, wanted in _DELETE_FIELDS.items():
        if key not in body:
            continue
        value = body[key]
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise BadRequest(f"DeleteOptions.{key} has the wrong type")


def check_dry_run(value: Any, errors: FieldErrors) -> bool:
    """``dryRun`` may only say ``All``."""
    if not value:
        return False
    values = value if isinstance(value, list) else [value]
    if any(item != "All" for item in values):
        errors.not_supported("dryRun", values, ["All"])
    return True
