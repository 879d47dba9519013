"""Which names a CRD gets, and the conditions that tell about it.

Two CRDs of one group may not share a name. Whoever came first keeps it; the other waits, unserved, until it is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holokube.kube import conditions
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

GROUP: Final = "apiextensions.k8s.io"
PLURAL: Final = "customresourcedefinitions"
BUCKET: Final = f"{PLURAL}.{GROUP}"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
_MESSAGES: Final = {
    "InstanceDeletionPending": (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    ),
    "InstanceDeletionInProgress": "CustomResource deletion is in progress",
    "InstanceDeletionCompleted": "removed all instances",
    "NeverEstablished": "resource was never established",
}


def accept_names(crd: JsonObject, others: Iterable[JsonObject], now: str) -> JsonObject:
    """The status of a CRD after its names were compared with those of all others."""
    status: JsonObject = crd.get("status") or {}
    wanted: JsonObject = crd["spec"]["names"]
    accepted: JsonObject = dict(status.get("acceptedNames") or {})
    resources, kinds = _names_in_use(crd, others)
    reason, message = "", ""
    for field, used, word in (
        ("plural", resources, "Plural"), ("singular", resources, "Singular"), ("shortNames", resources, "ShortNames"),
        ("kind", kinds, "Kind"), ("listKind", kinds, "ListKind"),
    ):  # fmt: skip
        names = _as_list(wanted.get(field))
        taken = [name for name in names if name not in _as_list(accepted.get(field)) and name in used]
        if taken:
            reason = f"{word}Conflict"
            texts = [f"{go_quote(name)} is already in use" for name in taken]
            message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        else:
            _put(accepted, field, wanted.get(field))
    _put(accepted, "categories", wanted.get("categories"))
    accepted = {"plural": "", "kind": "", **accepted}
    accepted = {field: accepted[field] for field in _ORDER if field in accepted}
    known: list[JsonObject] = status.get("conditions") or []
    if reason:
        known = _set(known, "NamesAccepted", "False", reason, message, now)
        if conditions.find_condition(known, "Established") is None:
            known = _set(known, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        known = _set(known, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        established = conditions.find_condition(known, "Established")
        if established is None or established["status"] != "True":
            text = "the initial names have been accepted"
            known = _set(known, "Established", "True", "InitialNamesAccepted", text, now)
    return {
        "conditions": known,
        "acceptedNames": accepted,
        "storedVersions": status.get("storedVersions") or [],
    }


_ORDER: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _names_in_use(crd: JsonObject, others: Iterable[JsonObject]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if (
            other["metadata"]["name"] == crd["metadata"].get("name")
            or other["spec"]["group"] != crd["spec"]["group"]
        ):
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(
            _as_list(names.get("plural")), _as_list(names.get("singular")), names.get("shortNames") or ()
        )
        kinds.update(_as_list(names.get("kind")), _as_list(names.get("listKind")))
    return resources, kinds


def _as_list(value: Any) -> list[str]:
    if isinstance(value, list):
        return value
    return [value] if value else []


def _put(target: JsonObject, field: str, value: Any) -> None:
    if value:
        target[field] = value
    else:
        target.pop(field, None)


def _set(
    known: list[JsonObject], type: str, status: str, reason: str, message: str, now: str
) -> list[JsonObject]:
    """Set a condition; its fields stand in the order of upstream's type."""
    condition = {
        "type": type,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    return conditions.set_condition(known, condition, now=now)


def set_terminating(crd: JsonObject, status: str, reason: str, now: str) -> JsonObject:
    """The CRD with its Terminating condition; the very same one if nothing would change."""
    before: list[JsonObject] = (crd.get("status") or {}).get("conditions") or []
    after = _set(before, "Terminating", status, reason, _MESSAGES[reason], now)
    return crd if after is before else {**crd, "status": {**(crd.get("status") or {}), "conditions": after}}
