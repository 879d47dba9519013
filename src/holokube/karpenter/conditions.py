"""Status conditions of NodePools, NodeClaims and node classes: some of them make up the one called Ready.

A condition that Ready depends on is never absent: until somebody sets it, it is Unknown since the object was made,
which is what time-outs are counted from. Ready is False as soon as one of the others is, and True when all are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.karpenter.api.labels import NODECLAIM_READY_NEEDS, NODEPOOL_READY_NEEDS, READY
from holokube.kube.conditions import ConditionStatus, conditions_of, get_condition, is_true, remove_condition
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject

_FIELDS: Final = {"type", "status", "reason", "message", "lastTransitionTime"}
_FIELDS_AND_GENERATION: Final = _FIELDS | {"observedGeneration"}
_WELL: Final[tuple[ConditionStatus, str, str]] = "True", READY, ""
_AWAITING: Final = ("AwaitingReconciliation", "object is awaiting reconciliation")


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """Which conditions an object's Ready is made of, and how they are read and set. Objects are never changed."""

    dependents: tuple[str, ...]

    def get(self, obj: Mapping[str, Any], type: str) -> JsonObject | None:
        """The condition; one that Ready depends on is Unknown when it was never set."""
        found = get_condition(obj, type)
        if found is None and (type == READY or type in self.dependents):
            reason, message = _AWAITING
            return _condition(obj, type, "Unknown", reason, message, _created(obj))
        return found

    def status(self, obj: Mapping[str, Any], type: str) -> ConditionStatus:
        """Its status; Unknown when it is not there."""
        # As Unknown is what ``get`` makes of those that are not there.
        found = get_condition(obj, type)
        status: ConditionStatus = found["status"] if found is not None else "Unknown"
        return status

    def is_true(self, obj: Mapping[str, Any], type: str) -> bool:
        return is_true(obj, type)

    def since_s(self, obj: Mapping[str, Any], type: str) -> float | None:
        """Since when it has the status it has, in Unix seconds; None when it is not there."""
        found = self.get(obj, type)
        if found is None or not found.get("lastTransitionTime"):
            return None
        return parse_time(found["lastTransitionTime"]).timestamp()

    def with_true(
        self, obj: JsonObject, type: str, now_s: float, *, reason: str = "", message: str = ""
    ) -> JsonObject:
        """The object with the condition True; its own name is the reason unless another is given."""
        return self._with(obj, type, "True", reason or type, message, now_s)

    def with_false(self, obj: JsonObject, type: str, now_s: float, reason: str, message: str) -> JsonObject:
        return self._with(obj, type, "False", reason, message, now_s)

    def with_unknown(
        self, obj: JsonObject, type: str, now_s: float, reason: str = _AWAITING[0], message: str = _AWAITING[1]
    ) -> JsonObject:
        return self._with(obj, type, "Unknown", reason, message, now_s)

    def observed(self, obj: JsonObject, type: str, now_s: float) -> JsonObject:
        """The object with the condition as it is, now true of the object's present generation."""
        found = self.get(obj, type)
        if found is None:
            return obj
        return self._with(obj, type, found["status"], found["reason"], found.get("message", ""), now_s)

    def are_observed(self, obj: JsonObject, *types: str) -> bool:
        """Whether all of these are True, and ``observed`` of none of them would change anything."""
        conditions = conditions_of(obj)
        found = {one["type"]: one for one in conditions}
        # In the order of the times, with Ready at the end.
        if not conditions or conditions[-1]["type"] != READY or len(found) != len(conditions):
            return False
        root, last = conditions[-1], ""
        for one in conditions[:-1]:
            time = one.get("lastTransitionTime") or ""
            if time < last:
                return False
            last = time
        is_well = True
        for name in self.dependents:
            if name not in found:
                return False
            is_well = is_well and found[name]["status"] == "True"
        told = root["status"], root.get("reason"), root.get("message")
        if told != (_WELL if is_well else self._root(found)):
            return False
        generation = obj["metadata"].get("generation") or None
        fields = _FIELDS if generation is None else _FIELDS_AND_GENERATION
        for name in (READY, *types):
            asked = found.get(name)
            if asked is None or asked.keys() != fields or asked.get("observedGeneration") != generation:
                return False
            if not asked["lastTransitionTime"] or (asked["status"] != "True" and asked is not root):
                return False
        return True

    def without(self, obj: JsonObject, type: str) -> JsonObject:
        """The object without the condition; not for those that Ready depends on."""
        assert type not in self.dependents, f"Ready depends on {type}: set it, do not remove it"
        # Nothing is written where there is nothing to remove: a claim without a status yet stays without one.
        if get_condition(obj, type) is None:
            return obj
        return _with_conditions(obj, remove_condition(conditions_of(obj), type))

    def _with(
        self, obj: JsonObject, type: str, status: ConditionStatus, reason: str, message: str, now_s: float
    ) -> JsonObject:
        now = format_time(now_s)
        known = conditions_of(obj)
        if self._takes_one_more(obj, known, type, now):
            made = _condition(obj, type, status, reason, message, now)
            return _with_conditions(obj, [*known[:-1], made, known[-1]])
        conditions = list(known)
        # Of several of a type the first counts, so that it is written last.
        found = {one["type"]: one for one in reversed(conditions)}
        for missing in self.dependents:
            if missing not in found:
                found[missing] = _condition(obj, missing, "Unknown", *_AWAITING, _created(obj) or now)
                conditions.append(found[missing])
        found[type] = _put(obj, conditions, type, status, reason, message, now)
        if self.dependents:
            _put(obj, conditions, READY, *self._root(found), now)
        conditions.sort(key=lambda one: (one["type"] == READY, one.get("lastTransitionTime") or ""))
        return obj if conditions == known else _with_conditions(obj, conditions)

    def _takes_one_more(self, obj: JsonObject, conditions: list[JsonObject], type: str, now: str) -> bool:
        """Whether a condition that is not there yet, and that Ready does not depend on, comes right before Ready, and
        all others stay as they are: so it is of an object that is well, which are those that conditions come and go of.
        """
        if not self.dependents or not conditions:
            return False
        found = {one["type"]: one for one in conditions}
        root = conditions[-1]
        if type in found or type in self.dependents or len(found) != len(conditions):
            return False
        for name in self.dependents:
            if name not in found or found[name]["status"] != "True":
                return False
        if (root["type"], root["status"], root.get("reason"), root.get("message")) != (READY, *_WELL):
            return False
        generation = obj["metadata"].get("generation") or None
        fields = _FIELDS if generation is None else _FIELDS_AND_GENERATION
        if root.keys() != fields or root.get("observedGeneration") != generation or not root["lastTransitionTime"]:
            return False
        last = ""
        for one in conditions[:-1]:
            time = one.get("lastTransitionTime") or ""
            if time < last:
                return False
            last = time
        return now >= last

    def _root(self, found: Mapping[str, JsonObject]) -> tuple[ConditionStatus, str, str]:
        """What Ready is, by the conditions of all types that it depends on."""
        for name in self.dependents:
            if found[name]["status"] != "True":
                break
        else:
            return _WELL
        unwell = [one for name in self.dependents if (one := found[name])["status"] != "True"]
        message = ", ".join(f"{one['type']}={one['status']}" for one in unwell)
        if any(one["status"] == "False" for one in unwell):
            return "False", "UnhealthyDependents", message
        return "Unknown", "ReconcilingDependents", message


CLAIM_CONDITIONS: Final = ConditionSet(NODECLAIM_READY_NEEDS)
POOL_CONDITIONS: Final = ConditionSet(NODEPOOL_READY_NEEDS)
CLASS_CONDITIONS: Final = ConditionSet(())


def _put(
    obj: JsonObject,
    conditions: list[JsonObject],
    type: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    now: str,
) -> JsonObject:
    """Puts a condition into a list, and gives it back; one that says all of it already is left as it is."""
    for place, old in enumerate(conditions):
        if old["type"] == type:
            since = old.get("lastTransitionTime") or now if old["status"] == status else now
            made = _condition(obj, type, status, reason, message, since)
            if made == old:
                return old
            conditions[place] = made
            return made
    made = _condition(obj, type, status, reason, message, now)
    conditions.append(made)
    return made


def _condition(
    obj: Mapping[str, Any], type: str, status: ConditionStatus, reason: str, message: str, since: str
) -> JsonObject:
    made: JsonObject = {
        "type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    }  # fmt: skip
    generation = obj["metadata"].get("generation")
    if generation:
        made["observedGeneration"] = generation
    return made


def _created(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("creationTimestamp") or "")


def _with_conditions(obj: JsonObject, conditions: list[JsonObject]) -> JsonObject:
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": conditions}}
