"""What becomes of an object whose owners went away: the garbage collector's judgement, without its I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from holokube.client.discovery import Discovered
from holokube.kube.types import JsonObject
from holokube.workloads.garbage_graph import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, is_waiting


class OwnerState(Enum):
    """How things stand with the owner that a reference points to."""

    SOLID = "solid"
    """It exists, and keeps what it owns."""
    DANGLING = "dangling"
    """It does not exist, or another object has its name."""
    WAITING = "waiting"
    """It is deleted in the foreground and waits for its dependents to go."""


@dataclass(frozen=True, slots=True)
class Keep:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class DropReferences:
    """The object stays, without the references to these owners."""

    owner_uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """The object goes; with ``unblock`` it first stops blocking its owners, to break a circle."""

    propagation: str
    unblock: bool = False


Verdict = Keep | DropReferences | Delete


def owner_state(owner: Mapping[str, Any] | None, uid: str) -> OwnerState:
    """What a live look at an owner says; None when nothing was there."""
    if owner is None or owner["metadata"].get("uid") != uid:
        return OwnerState.DANGLING
    return OwnerState.WAITING if is_waiting(owner, FOREGROUND_FINALIZER) else OwnerState.SOLID


def judge(
    obj: Mapping[str, Any],
    owners: Sequence[tuple[str, OwnerState]],
    *,
    has_dependents: bool,
    dependent_waits: bool,
) -> Verdict:
    """The fate of ``obj``, given the uid and state of each of its owners.

    ``dependent_waits`` says that something it owns is itself deleted in the foreground: with an owner that
    waits too, the three may form a circle in which each waits for the next.
    """
    if not owners:
        return Keep()
    if len(owners) == 1:
        # As of most objects that have one.
        if owners[0][1] is OwnerState.SOLID:
            return Keep()
    else:
        gone = frozenset(uid for uid, state in owners if state is not OwnerState.SOLID)
        if len(gone) < len({uid for uid, _ in owners}):
            return DropReferences(gone) if gone else Keep()
    if has_dependents and any(state is OwnerState.WAITING for _, state in owners):
        return Delete("Foreground", unblock=dependent_waits)
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN_FINALIZER in finalizers:
        return Delete("Orphan")
    return Delete("Foreground" if FOREGROUND_FINALIZER in finalizers else "Background")


def without_owners(obj: Mapping[str, Any], owner_uids: frozenset[str]) -> JsonObject | None:
    """The patch that takes references off an object; None when they are off already."""
    references = obj["metadata"].get("ownerReferences") or []
    kept = [reference for reference in references if reference.get("uid") not in owner_uids]
    return _patch(obj, ownerReferences=kept) if len(kept) < len(references) else None


def unblocked(obj: Mapping[str, Any]) -> JsonObject | None:
    """The patch after which an object blocks none of its owners; None when it blocks none already."""
    references = obj["metadata"].get("ownerReferences") or []
    if not any(reference.get("blockOwnerDeletion") for reference in references):
        return None
    return _patch(obj, ownerReferences=[{**reference, "blockOwnerDeletion": False} for reference in references])


def without_finalizer(obj: Mapping[str, Any], finalizer: str) -> JsonObject | None:
    """The patch that takes a finalizer off an object; None when it is off already."""
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        return None
    return _patch(obj, finalizers=[name for name in finalizers if name != finalizer])


def _patch(obj: Mapping[str, Any], **fields: Any) -> JsonObject:
    """A merge patch replaces whole lists, so it may only meet the very version that it was made from."""
    meta = obj["metadata"]
    return {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], **fields}}


def collectable(discovered: Sequence[Discovered]) -> list[Discovered]:
    """The resources that take part: those that can be listed, watched and deleted, at one version each.

    Events are left out, as upstream does: they are many, own nothing and expire by themselves.
    """
    chosen: dict[tuple[str, str], Discovered] = {}
    for item in discovered:
        resource = item.resource
        if {"list", "watch", "delete"} <= set(item.verbs) and resource.plural != "events":
            chosen.setdefault((resource.group, resource.plural), item)
    return list(chosen.values())
