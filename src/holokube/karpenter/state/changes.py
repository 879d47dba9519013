"""What of a change to a Node or a NodeClaim matters to those who decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.karpenter.api.labels import DISRUPTED_TAINT, DISRUPTION_REASON, INSTANCE_TERMINATING
from holokube.kube.conditions import conditions_of, get_condition
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject

_DECISIVE_CONDITIONS: Final = frozenset({DISRUPTION_REASON, INSTANCE_TERMINATING})
_DECISIVE_METADATA: Final = ("uid", "labels", "annotations", "deletionTimestamp", "finalizers", "ownerReferences")


def is_told_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether two states of a claim with an instance stand and count alike, by the identity of what that goes by: most
    changes tell of pods that came or went, and leave all of it alone."""
    was, is_, before, after = old["metadata"].get, new["metadata"].get, old["status"].get, new["status"].get
    return (
        before("conditions") is after("conditions")
        and before("capacity") is after("capacity")
        and was("labels") is is_("labels")
        and was("deletionTimestamp") is is_("deletionTimestamp")
    )


def stands_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether neither marks nor the standing of an instance can differ between two states of its claim."""
    if old["metadata"].get("deletionTimestamp") != new["metadata"].get("deletionTimestamp"):
        return False
    before, after = conditions_of(old), conditions_of(new)
    return before is after or _decisive(before) == _decisive(after)


def _decisive(conditions: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """The conditions that tell of an instance's end, which nearly no claim has."""
    return [(one["type"], one["status"]) for one in conditions if one["type"] in _DECISIVE_CONDITIONS]


def counts_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether two states of a claim, which stand alike, speak for the same pool, and for as much."""
    before, after = old["metadata"].get("labels"), new["metadata"].get("labels")
    if before is not after and before != after:
        return False
    before, after = (old.get("status") or {}).get("capacity"), (new.get("status") or {}).get("capacity")
    return before is after or bool(before == after)


def has_mark(node: JsonObject | None, claim: JsonObject | None) -> bool:
    """Whether a Node with a claim looks like one that is being disrupted."""
    if node is None or claim is None:
        return False
    taints = (node.get("spec") or {}).get("taints")
    if taints and any(taint.is_same(DISRUPTED_TAINT) for taint in taints_of(node)):
        return True
    return get_condition(claim, DISRUPTION_REASON) is not None


def is_heartbeat(old: JsonObject, new: JsonObject) -> bool:
    """Whether a Node only told that it is still there: nobody decides anything by what has changed."""
    if old.get("spec") != new.get("spec"):
        return False
    if any(old["metadata"].get(field) != new["metadata"].get(field) for field in _DECISIVE_METADATA):
        return False
    before, after = old.get("status") or {}, new.get("status") or {}
    if any(before.get(field) != after.get(field) for field in ("capacity", "allocatable")):
        return False
    return _statuses(old) == _statuses(new)


def _statuses(node: JsonObject) -> dict[str, str]:
    return {one["type"]: one["status"] for one in conditions_of(node)}


def is_older(claim: JsonObject, known: JsonObject) -> bool:
    """Whether an answer that came late tells less than an event that came early."""
    if claim["metadata"]["uid"] != known["metadata"]["uid"]:
        return False
    version, known_version = (one["metadata"].get("resourceVersion") or "" for one in (claim, known))
    return version.isdecimal() and known_version.isdecimal() and int(version) < int(known_version)
