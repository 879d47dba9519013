"""Event: core/v1 (stored) and events.k8s.io/v1 are two spellings of the same object."""

from __future__ import annotations

from holokube.kube.types import JsonObject

# core field -> events.k8s.io field
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}
# The core group always shows who reported an event, even when nobody did; events.k8s.io does not.
_SHOWN_WHEN_SET = ("reportingController", "reportingInstance")


def core_to_events(obj: JsonObject) -> JsonObject:
    out = {_RENAMED.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "events.k8s.io/v1"
    for key in _SHOWN_WHEN_SET:
        if out.get(key) == "":
            del out[key]
    return out


def events_to_core(obj: JsonObject) -> JsonObject:
    out = {_RENAMED_BACK.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "v1"
    return out
