"""Which daemon pods to create and delete, how an update goes over the nodes, and the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holokube.kube.types import JsonObject
from holokube.workloads.daemon_set_pods import is_updated, target_node, template_generation
from holokube.workloads.pod_status import is_available, is_pod_ready, is_terminated, is_terminating, phase
from holokube.workloads.pod_templates import scaled_value

BURST_PODS = 250


@dataclass(frozen=True, slots=True)
class DaemonState:
    """What the decisions look at. ``nodes`` says for each node: should run there, may go on there."""

    daemon_set: JsonObject
    digest: str
    nodes: Mapping[str, tuple[bool, bool]]
    pods: Mapping[str, Sequence[JsonObject]]
    """By target node, without those that are over and being deleted."""
    now: datetime

    @property
    def min_ready_s(self) -> int:
        return int(self.daemon_set["spec"].get("minReadySeconds") or 0)

    def available(self, pod: JsonObject) -> bool:
        return is_available(pod, self.min_ready_s, self.now)

    def updated(self, pod: JsonObject) -> bool:
        return is_updated(pod, self.digest, template_generation(self.daemon_set))


@dataclass(slots=True)
class DaemonChanges:
    """Nodes that get a pod, pods that go, and what users are told: type, reason, message."""

    create: list[str] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    killed_on: list[str] = field(default_factory=list)
    """Nodes whose failed pod is deleted."""
    wait_s: float | None = None
    """When the next failed pod may be deleted."""

    def within_burst(self) -> DaemonChanges:
        self.create = self.create[:BURST_PODS]
        self.delete = self.delete[:BURST_PODS]
        return self


def group_by_node(pods: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    """Pods by the node they are on or meant for; those that are over and being deleted count no more."""
    groups: dict[str, list[JsonObject]] = {}
    for pod in pods:
        node = target_node(pod)
        if node and not (is_terminated(pod) and is_terminating(pod)):
            groups.setdefault(node, []).append(pod)
    return groups


def decide_daemons(state: DaemonState, backoff_s: Mapping[str, float]) -> DaemonChanges:
    """One pod where one should be, none where none may be. ``backoff_s`` spares failed pods on some nodes."""
    changes = DaemonChanges()
    surges = _surge(state.daemon_set, 1) > 0
    for node, (should_run, may_continue) in state.nodes.items():
        pods = state.pods.get(node, ())
        if should_run and not pods:
            changes.create.append(node)
        elif may_continue:
            running = _sort_out(node, pods, backoff_s, changes)
            if not surges:
                changes.delete += running[1:]
            elif len(running) > 1:
                changes.delete += _surplus_of_surge(state, running)
            elif not running and should_run:
                changes.create.append(node)
        else:
            changes.delete += [pod for pod in pods if not is_terminating(pod)]
    for node, pods in state.pods.items():
        if node not in state.nodes:
            # Nobody will ever schedule these, nor collect them.
            changes.delete += [p for p in pods if not p["spec"].get("nodeName") and not is_terminating(p)]
    return changes.within_burst()


def _sort_out(
    node: str,
    pods: Sequence[JsonObject],
    backoff_s: Mapping[str, float],
    changes: DaemonChanges,
) -> list[JsonObject]:
    """Deletes what is over, slowly where it fails again and again; the running pods, the oldest first."""
    running = []
    for pod in pods:
        if is_terminating(pod):
            continue
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if phase(pod) == "Failed":
            wait_s = backoff_s.get(node, 0.0)
            if wait_s > 0:
                changes.wait_s = wait_s if changes.wait_s is None else min(wait_s, changes.wait_s)
                continue
            message = f"Found failed daemon pod {name} on node {node}, will try to kill it"
            changes.events.append(("Warning", "FailedDaemonPod", message))
            changes.killed_on.append(node)
            changes.delete.append(pod)
        elif phase(pod) == "Succeeded":
            message = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
            changes.events.append(("Normal", "SucceededDaemonPod", message))
            changes.delete.append(pod)
        else:
            running.append(pod)
    return sorted(running, key=_by_age)


def _surplus_of_surge(state: DaemonState, running: Sequence[JsonObject]) -> list[JsonObject]:
    """Two pods may share a node while the old one is ready and the new one is not available yet."""
    new = [pod for pod in running if state.updated(pod)]
    old = [pod for pod in running if not state.updated(pod)]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_pod_ready(old[0]) or state.available(new[0])):
        surplus.append(old[0])
    return surplus


def decide_update(state: DaemonState) -> DaemonChanges:
    """The next step of a rolling update."""
    strategy = state.daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return DaemonChanges()
    desired = sum(should_run for should_run, _ in state.nodes.values())
    surge = _surge(state.daemon_set, desired)
    unavailable = scaled_value(
        (strategy.get("rollingUpdate") or {}).get("maxUnavailable"), desired, round_up=True
    )
    if desired and not surge and not unavailable:
        unavailable = 1
    pods = {**{node: () for node, (run, _) in state.nodes.items() if run}, **state.pods}
    if surge:
        return _update_with_surge(state, pods, surge, desired).within_burst()
    return _update_in_place(state, pods, unavailable).within_burst()


def _update_in_place(
    state: DaemonState, pods: Mapping[str, Sequence[JsonObject]], unavailable_max: int
) -> DaemonChanges:
    """Old pods that are not available go at once, others as long as few enough are unavailable."""
    unavailable = 0
    replace: list[JsonObject] = []
    candidates: list[JsonObject] = []
    for on_node in pods.values():
        pair = _old_and_new(state, on_node)
        old, new = pair or (None, None)
        if (old is None) == (new is None):
            unavailable += 1
        elif new is not None:
            unavailable += not state.available(new)
        elif old is not None and not state.available(old):
            replace.append(old)
            unavailable += 1
        elif old is not None:
            candidates.append(old)
    return DaemonChanges(delete=[*replace, *candidates[: max(0, unavailable_max - unavailable)]])


def _update_with_surge(
    state: DaemonState, pods: Mapping[str, Sequence[JsonObject]], surge_max: int, desired: int
) -> DaemonChanges:
    """New pods come beside old ones, at most so many at a time; an old one goes when its new one is available."""
    changes = DaemonChanges()
    surging = available = 0
    candidates: list[str] = []
    not_wanted: list[JsonObject] = []
    for node, on_node in pods.items():
        pair = _old_and_new(state, on_node)
        if pair is None:
            surging += 1
            continue
        old, new = pair
        counted = old or new
        available += counted is not None and state.available(counted)
        if old is None:
            continue
        if new is not None:
            if state.available(new):
                changes.delete.append(old)
            else:
                surging += 1
            continue
        should_run = state.nodes.get(node, (False, False))[0]
        if state.available(old):
            if should_run:
                candidates.append(node)
            else:
                not_wanted.append(old)
        elif should_run:
            changes.create.append(node)
        else:
            changes.delete.append(old)
    # A pod on a node that is no longer wanted goes only when there are enough available elsewhere.
    changes.delete += not_wanted[: max(0, available - desired)]
    changes.create += candidates[: max(0, surge_max - surging)]
    return changes


def _old_and_new(
    state: DaemonState, pods: Sequence[JsonObject]
) -> tuple[JsonObject | None, JsonObject | None] | None:
    """The pod of an old template and that of the present one; None if there are more than one of either."""
    alive = [pod for pod in pods if not is_terminating(pod)]
    old = [pod for pod in alive if not state.updated(pod)]
    new = [pod for pod in alive if state.updated(pod)]
    if len(old) > 1 or len(new) > 1:
        return None
    return (old[0] if old else None), (new[0] if new else None)


def decide_status(state: DaemonState, *, processed: bool) -> JsonObject:
    """Counts over the nodes. ``processed`` says whether this generation has been acted upon."""
    before = state.daemon_set.get("status") or {}
    counts = dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    )
    updated = available = 0
    for node, (should_run, _) in state.nodes.items():
        pods = sorted(state.pods.get(node, ()), key=_by_age)
        if not should_run:
            counts["numberMisscheduled"] += bool(pods)
            continue
        counts["desiredNumberScheduled"] += 1
        if pods:
            counts["currentNumberScheduled"] += 1
            counts["numberReady"] += is_pod_ready(pods[0])
            available += state.available(pods[0])
            updated += state.updated(pods[0])
    status: JsonObject = dict(counts)
    generation = state.daemon_set["metadata"].get("generation") if processed else before.get("observedGeneration")
    optional = {
        "observedGeneration": generation,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": counts["desiredNumberScheduled"] - available,
        "conditions": before.get("conditions"),
    }
    status.update({name: value for name, value in optional.items() if value})
    if before.get("collisionCount") is not None:
        status["collisionCount"] = before["collisionCount"]
    return status


def _surge(daemon_set: JsonObject, desired: int) -> int:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    return scaled_value((strategy.get("rollingUpdate") or {}).get("maxSurge"), desired, round_up=True)


def _by_age(pod: JsonObject) -> tuple[bool, str, str]:
    """Sort key: bound pods first, then the oldest."""
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), meta.get("creationTimestamp") or "", meta["name"]
