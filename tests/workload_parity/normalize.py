"""What two clusters have in common when the same happened in both: objects without what chance decided.

Uids, times, addresses of services and generated suffixes become marks; hashes of templates become numbers in
the order in which they came up. Pods that differ in nothing else are then equal, so lists are sorted by content.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = dict[str, Any]
Snapshot = dict[str, list[JsonObject]]

SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
MARKS: tuple[tuple[re.Pattern[str], str], ...] = tuple((re.compile(pattern), mark) for pattern, mark in (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-*"),
    # Nodes that are alike: upstream goes through them in no order.
    (r"\.twin\d", ".twin*"),
    (r"tick-2\d{7}\b", "tick-<minute>"),
    (r"10\.96\.\d+\.\d+", "<cluster-ip>"),
    (r"10\.1\.\d+\.\d+", "<pod-ip>"),
    # Written in place of an event's own text from the eleventh similar one on.
    (r"\(combined from similar events\): ", ""),
))  # fmt: skip
DROPPED_METADATA = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")
FAMILIES = ("ReplicaSet", "ReplicationController", "DaemonSet", "Job", "Service", "StatefulSet", "Endpoints")
LOST_RACE = "the object has been modified"
REPEATED = ("FailedCreate", "FailedDelete", "ProvisioningFailed", "FailedBinding", "NoPods", "ReplicaSetCreateError")
"""Events that are told again at every retry; how often depends on how long one looks."""


class Names:
    """Remembers the hashes and prefixes that came up in one scenario."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}
        self._families: dict[str, int] = {}
        self._prefixes: set[str] = set()
        self._told: Counter[str] = Counter()

    def snapshot(self, listed: Mapping[str, Sequence[JsonObject]]) -> Snapshot:
        self._learn(listed)
        plain = {
            name: sorted((self._plain(obj) for obj in objects), key=_order)
            for name, objects in listed.items() if objects and name != "events"
        }  # fmt: skip
        plain["events"] = self._events(listed.get("events") or ())
        return plain

    def _learn(self, listed: Mapping[str, Sequence[JsonObject]]) -> None:
        # Pods are looked at last: of a set that is gone already, they are all that tells its hash.
        for resource, label in (
            ("replicasets.apps", "pod-template-hash"), ("controllerrevisions.apps", ""), ("pods", "pod-template-hash"),
        ):  # fmt: skip
            fresh: list[tuple[int, str, str, str]] = []
            for obj in listed.get(resource) or ():
                meta = obj["metadata"]
                owner = next((ref["name"] for ref in meta.get("ownerReferences") or ()), "")
                labels = meta.get("labels") or {}
                digest = labels.get(label) if label else meta["name"].removeprefix(f"{owner}-")
                note = (meta.get("annotations") or {}).get("deployment.kubernetes.io/revision")
                if digest and owner and digest not in self._hashes:
                    number = int(note or obj.get("revision") or 0)
                    fresh.append((number, meta["creationTimestamp"], owner, digest))
            for _, _, owner, digest in sorted(fresh):
                self._families[owner] = self._families.get(owner, 0) + 1
                self._hashes[digest] = f"{{h{self._families[owner]}}}"
        for objects in listed.values():
            for obj in objects:
                if obj["metadata"].get("generateName"):
                    self._prefixes.add(self._unhash(obj["metadata"]["generateName"]))
                if obj.get("kind") in FAMILIES:
                    self._prefixes.add(self._unhash(obj["metadata"]["name"]) + "-")

    def _unhash(self, text: str) -> str:
        for pattern, mark in MARKS:
            text = pattern.sub(mark, text)
        for digest, name in self._hashes.items():
            text = text.replace(digest, name)
        return text

    def plain_text(self, text: str) -> str:
        text = self._unhash(text)
        for prefix in sorted(self._prefixes, key=len, reverse=True):
            text = re.sub(rf"{re.escape(prefix)}{SUFFIX}\b", f"{prefix}*", text)
        return text

    def _plain(self, obj: JsonObject) -> JsonObject:
        dropped = DROPPED_METADATA
        if obj.get("kind") == "EndpointSlice":
            # It counts the writes, and how many pods are seen in one look is a matter of chance.
            dropped = (*dropped, "generation")
        if (obj.get("spec") or {}).get("claimRef"):
            claim = {**obj["spec"]["claimRef"]}
            claim["resourceVersion"] = "<version>" if claim.get("resourceVersion") else ""
            obj = {**obj, "spec": {**obj["spec"], "claimRef": claim}}
        if (obj.get("status") or {}).get("active") and obj.get("kind") == "CronJob":
            active = [{**reference, "resourceVersion": "<version>"} for reference in obj["status"]["active"]]
            obj = {**obj, "status": {**obj["status"], "active": active}}
        obj = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        obj["metadata"] = {k: v for k, v in obj["metadata"].items() if k not in dropped}
        if obj["metadata"].get("name") == "kube-root-ca.crt":
            obj["data"] = dict.fromkeys(obj.get("data") or (), "<pem>")
        plain: JsonObject = _sorted(json.loads(self.plain_text(json.dumps(obj))))
        return plain

    def _events(self, events: Sequence[JsonObject]) -> list[JsonObject]:
        """What was told since the last snapshot."""
        told: Counter[str] = Counter()
        for event in events:
            if (event.get("source") or {}).get("component") == "ipallocator-repair-controller":
                continue  # Part of the real API server, which mends its own tables.
            if LOST_RACE in str(event.get("message")):
                continue  # Whether a write loses a race depends on the machine; both sides tell of it when it does.
            involved = event["involvedObject"]
            entry = {
                "on": f"{involved['kind']}/{involved['name']}", "type": event.get("type"),
                "reason": event.get("reason"), "message": event.get("message"),
                "from": (event.get("source") or {}).get("component") or event.get("reportingComponent"),
            }  # fmt: skip
            if involved.get("fieldPath"):
                entry["field"] = involved["fieldPath"]
            told[self.plain_text(json.dumps(entry, sort_keys=True))] += int(event.get("count") or 1)
        fresh = {text: count - self._told[text] for text, count in told.items() if count > self._told[text]}
        known, self._told = self._told, told
        result: list[JsonObject] = []
        for text, count in sorted(fresh.items()):
            entry = json.loads(text)
            if entry["reason"] not in REPEATED:
                result.append({**entry, "count": count})
            elif text not in known:
                result.append(entry)
        return result


def _order(obj: JsonObject) -> tuple[str, str]:
    return obj["metadata"]["name"], json.dumps(obj, sort_keys=True)


def _sorted(value: Any, key: str = "") -> Any:
    """Lists whose order means nothing, sorted; keys too."""
    if isinstance(value, dict):
        return {name: _sorted(value[name], name) for name in sorted(value)}
    if isinstance(value, list):
        items = [_sorted(item) for item in value]
        if key == "conditions" and all(isinstance(item, dict) for item in items):
            items.sort(key=lambda item: str(item.get("type")))
        elif key in ("endpoints", "addresses", "notReadyAddresses", "subsets", "taints", "finalizers",
                   "secrets", "ports"):  # fmt: skip
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return items
    return value


def differences(real: Any, ours: Any, path: str = "") -> list[str]:
    """Where two snapshots differ, as readable lines."""
    if isinstance(real, dict) and isinstance(ours, dict):
        return [
            line for key in sorted(real.keys() | ours.keys())
            for line in _member(real, ours, key, f"{path}.{key}" if path else key)
        ]  # fmt: skip
    if isinstance(real, list) and isinstance(ours, list):
        return _list_differences(real, ours, path)
    return [] if real == ours else [f"{path}: real {_short(real)}, ours {_short(ours)}"]


def _member(real: JsonObject, ours: JsonObject, key: str, path: str) -> list[str]:
    if key not in ours:
        return [f"{path}: only real {_short(real[key])}"]
    if key not in real:
        return [f"{path}: only ours {_short(ours[key])}"]
    return differences(real[key], ours[key], path)


def _list_differences(real: list[Any], ours: list[Any], path: str) -> list[str]:
    if (all(isinstance(item, dict) for item in (*real, *ours)) and len(real) != len(ours)) or path == "events":
        left = [json.dumps(item, sort_keys=True) for item in real]
        right = [json.dumps(item, sort_keys=True) for item in ours]
        missing, added = Counter(left) - Counter(right), Counter(right) - Counter(left)
        return [
            *(f"{path}[]: only real {_short(json.loads(text))}" for text in missing.elements()),
            *(f"{path}[]: only ours {_short(json.loads(text))}" for text in added.elements()),
        ]
    if len(real) != len(ours):
        return [f"{path}: real {_short(real)}, ours {_short(ours)}"]
    return [
        line for index, (one, other) in enumerate(zip(real, ours, strict=True))
        for line in differences(one, other, f"{path}[{_label(one, index)}]")
    ]  # fmt: skip


def _label(item: Any, index: int) -> str:
    if isinstance(item, dict):
        name = (item.get("metadata") or {}).get("name") or item.get("type")
        if isinstance(name, str):
            return name
    return str(index)


def _short(value: Any) -> str:
    if isinstance(value, dict) and "metadata" in value:
        meta = {k: v for k, v in value["metadata"].items() if k in ("name", "deletionTimestamp", "generation")}
        value = {"metadata": meta, "status": value.get("status")}
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 400 else text[:400] + "..."
