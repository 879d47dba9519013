"""The end of a namespace: what is reported about it, and how long to wait before the next look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from holokube.client.discovery import Discovered
from holokube.client.resources import Resource
from holokube.kube.conditions import conditions_of, find_condition, set_condition
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject

FINALIZER: Final = "kubernetes"
SETTLE_S: Final = 5.0
"""Time for all API servers to notice the deletion, and to stop taking in new objects."""
FINALIZER_ESTIMATE_S: Final = 15
"""How long finalizers are taken to need, as nobody knows."""

_CONDITIONS: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions", "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted", "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers", "All content-preserving finalizers finished",
    ),
}  # fmt: skip
"""The conditions that a namespace being deleted has, with reason and message for when all is well."""


@dataclass(slots=True)
class Content:
    """What one look at a namespace's content has found."""

    remaining: dict[Resource, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    estimate_s: int = 0
    failures: list[str] = field(default_factory=list)
    discovery_failure: str = ""

    @property
    def complete(self) -> bool:
        return not (self.remaining or self.failures or self.discovery_failure)

    def found(self, resource: Resource, items: Sequence[Mapping[str, Any]], estimate_s: int) -> None:
        """Takes over what a resource has left after its deletion was asked for."""
        if not items:
            return
        self.remaining[resource] = len(items)
        held = [name for item in items for name in item["metadata"].get("finalizers") or ()]
        for name in held:
            self.finalizers[name] = self.finalizers.get(name, 0) + 1
        if estimate_s:
            self.estimate_s = max(self.estimate_s, estimate_s)
        elif held:
            self.estimate_s = max(self.estimate_s, FINALIZER_ESTIMATE_S)


def deletable(discovered: Iterable[Discovered]) -> list[Discovered]:
    """The namespaced resources whose objects can be deleted, each at the server's preferred version."""
    chosen: dict[tuple[str, str], Discovered] = {}
    for item in discovered:
        if item.resource.namespaced and "delete" in item.verbs:
            chosen.setdefault((item.resource.group, item.resource.plural), item)
    return list(chosen.values())


def discovery_failure(failed: Mapping[str, str]) -> str:
    """What to say of group versions that did not answer, each with its reason; empty if all did."""
    if not failed:
        return ""
    listed = ", ".join(f"{version}: {failed[version]}" for version in sorted(failed))
    return (
        f"Discovery failed for some groups, {len(failed)} failing: "
        f"unable to retrieve the complete list of server APIs: {listed}"
    )


def is_doomed(namespace: Mapping[str, Any]) -> bool:
    """Whether it is being deleted and its content is still ours to remove."""
    finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
    return bool(namespace["metadata"].get("deletionTimestamp")) and FINALIZER in finalizers


def settles_in_s(namespace: Mapping[str, Any], now: datetime) -> float:
    """Seconds until the removal of the content may begin; nothing or less when it may now."""
    since = parse_time(namespace["metadata"]["deletionTimestamp"])
    return SETTLE_S - (now - since).total_seconds()


def pods_estimate_s(pods: Iterable[Mapping[str, Any]], namespace: Mapping[str, Any], now: datetime) -> int:
    """How long the pods may still take to go, by their grace periods; 0 when they had that time already."""
    grace_s = max(
        (
            int(pod["spec"].get("terminationGracePeriodSeconds") or 0)
            for pod in pods
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ),
        default=0,
    )
    passed_s = (now - parse_time(namespace["metadata"]["deletionTimestamp"])).total_seconds()
    return grace_s if passed_s < grace_s else 0


def next_look_s(content: Content) -> float:
    """When to look again while content is on its way out."""
    return content.estimate_s // 2 + 1


def status_of(namespace: Mapping[str, Any], content: Content, now: datetime, *, pods_only: bool) -> JsonObject:
    """The status to show; ``pods_only`` while the pods go and nothing else was looked at yet."""
    conditions = [dict(condition) for condition in conditions_of(namespace)]
    wrong = _wrong(content, pods_only)
    stamp = format_time(now)
    for type_, (reason, message) in _CONDITIONS.items():
        if type_ in wrong:
            reason, message = wrong[type_]
        old = find_condition(conditions, type_)
        status = "True" if type_ in wrong else "False"
        same = old is not None and (old.get("status"), old.get("reason"), old.get("message")) == (
            status, reason, message
        )  # fmt: skip
        if not same:
            new = {"type": type_, "status": status, "reason": reason, "message": message}
            conditions = set_condition(conditions, new, now=stamp)
    return {**(namespace.get("status") or {}), "phase": "Terminating", "conditions": conditions}


def _wrong(content: Content, pods_only: bool) -> dict[str, tuple[str, str]]:
    wrong: dict[str, tuple[str, str]] = {}
    if content.discovery_failure:
        wrong["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", content.discovery_failure)
    if content.failures:
        failures = sorted(content.failures)
        wrong["NamespaceDeletionContentFailure"] = (
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}",
        )
    # Upstream says nothing of what remains while it waits for the pods; users see the pods themselves.
    if content.remaining and not pods_only:
        # The dot stands even after a resource of the core group, as upstream has it.
        listed = sorted(f"{r.plural}.{r.group} has {n} resource instances" for r, n in content.remaining.items())
        wrong["NamespaceContentRemaining"] = (
            "SomeResourcesRemain", f"Some resources are remaining: {', '.join(listed)}"
        )  # fmt: skip
    if content.finalizers and not pods_only:
        listed = sorted(f"{name} in {n} resource instances" for name, n in content.finalizers.items())
        wrong["NamespaceFinalizersRemaining"] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(listed)}",
        )
    return wrong
