"""Which pods of a StatefulSet come, go and wait, in the order that it promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holokube.kube.types import JsonObject
from holokube.workloads.controller_history import REVISION_HASH
from holokube.workloads.pod_status import is_available, is_pod_ready, is_terminated, is_terminating, phase
from holokube.workloads.pod_templates import scaled_value
from holokube.workloads.replica_set_decisions import replicas_of
from holokube.workloads.stateful_set_pods import first_ordinal, is_in_range, ordinal_of, stateful_pod


@dataclass(frozen=True, slots=True)
class StatefulState:
    """``current`` and ``update`` are ControllerRevisions; ``pods`` are all of the set's."""

    stateful_set: JsonObject
    current: JsonObject
    update: JsonObject
    pods: Sequence[JsonObject]
    now: datetime

    @property
    def min_ready_s(self) -> int:
        return int(self.stateful_set["spec"].get("minReadySeconds") or 0)

    def available(self, pod: JsonObject) -> bool:
        """Running, ready for long enough, and not on its way out."""
        return (
            phase(pod) == "Running"
            and is_available(pod, self.min_ready_s, self.now)
            and not is_terminating(pod)
        )


@dataclass(slots=True)
class StatefulPlan:
    """Pods to create and to delete, and pods whose claims must be there."""

    create: list[JsonObject] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)
    claims_for: list[JsonObject] = field(default_factory=list)


def decide(state: StatefulState) -> StatefulPlan:
    """The next step. In order, each pod waits for its predecessors; in parallel nobody waits for anybody."""
    plan = StatefulPlan()
    stateful_set = state.stateful_set
    if stateful_set["metadata"].get("deletionTimestamp"):
        return plan
    name = stateful_set["metadata"]["name"]
    ordered = stateful_set["spec"].get("podManagementPolicy") != "Parallel"
    by_ordinal: dict[int, JsonObject] = {}
    for pod in state.pods:
        ordinal = ordinal_of(name, pod)
        if ordinal is not None:
            by_ordinal[ordinal] = pod
    start = first_ordinal(stateful_set)
    wanted = range(start, start + replicas_of(stateful_set))
    if _fill(state, plan, by_ordinal, wanted, ordered=ordered):
        return plan
    condemned = [by_ordinal[o] for o in sorted(by_ordinal, reverse=True) if not is_in_range(stateful_set, o)]
    plan.claims_for += condemned
    if _shrink(state, plan, by_ordinal, condemned, wanted, ordered=ordered):
        return plan
    if all(ordinal in by_ordinal for ordinal in wanted):
        _update(state, plan, [by_ordinal[ordinal] for ordinal in wanted])
    return plan


def _fill(
    state: StatefulState,
    plan: StatefulPlan,
    by_ordinal: dict[int, JsonObject],
    wanted: range,
    *,
    ordered: bool,
) -> bool:
    """Creates what is missing and deletes what is over; True if everything else has to wait."""
    for ordinal in wanted:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            plan.create.append(_new_pod(state, ordinal))
            if ordered:
                return True
            continue
        if is_terminated(pod):
            if not is_terminating(pod):
                plan.delete.append(pod)
            if ordered:
                return True
            continue
        plan.claims_for.append(pod)
        if ordered and not state.available(pod):
            return True
    return False


def _shrink(
    state: StatefulState,
    plan: StatefulPlan,
    by_ordinal: dict[int, JsonObject],
    condemned: Sequence[JsonObject],
    wanted: range,
    *,
    ordered: bool,
) -> bool:
    """Deletes pods beyond the wanted ones, the highest first; True if everything else has to wait."""
    if not ordered:
        plan.delete += [pod for pod in condemned if not is_terminating(pod)]
        return False
    if not condemned:
        return False
    pod = condemned[0]
    if is_terminating(pod):
        return True
    candidates = [*(by_ordinal[o] for o in wanted if o in by_ordinal), *reversed(condemned)]
    first_sick = next((p for p in candidates if not state.available(p)), None)
    # A sick pod may go only if no healthier order is possible: else one waits for it to get well.
    if state.available(pod) or pod is first_sick:
        plan.delete.append(pod)
    return True


def _update(state: StatefulState, plan: StatefulPlan, replicas: Sequence[JsonObject]) -> None:
    """Replaces outdated pods from the highest ordinal down to the partition."""
    strategy = state.stateful_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    rolling = strategy.get("rollingUpdate") or {}
    partition = int(rolling.get("partition") or 0)
    revision = state.update["metadata"]["name"]
    limit = rolling.get("maxUnavailable")
    if limit is not None:
        room = max(1, scaled_value(limit, len(replicas), round_up=False))
        room -= sum(not state.available(pod) for pod in replicas)
        outdated = [
            pod for pod in reversed(replicas[partition:])
            if revision_of(pod) != revision and not is_terminating(pod)
        ]  # fmt: skip
        plan.delete += outdated[: max(0, room)]
        return
    for pod in reversed(replicas[partition:]):
        if revision_of(pod) != revision and not is_terminating(pod):
            plan.delete.append(pod)
            return
        if not state.available(pod):
            return


def _new_pod(state: StatefulState, ordinal: int) -> JsonObject:
    """Below the partition pods are made from the current revision, so that an update stays partial."""
    stateful_set = state.stateful_set
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    revision = state.update
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        status = stateful_set.get("status") or {}
        below = status.get("currentReplicas") if rolling is None else rolling.get("partition")
        if ordinal < first_ordinal(stateful_set) + int(below or 0):
            revision = state.current
    template = {k: v for k, v in revision["data"]["spec"]["template"].items() if k != "$patch"}
    return stateful_pod(stateful_set, ordinal, template, revision["metadata"]["name"])


def revision_of(pod: JsonObject) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_HASH) or "")


def decide_status(state: StatefulState, plan: StatefulPlan) -> JsonObject:
    """Counts of the pods as they are, deletions of this step taken off; an update that is through is noted."""
    stateful_set = state.stateful_set
    current, update = state.current["metadata"]["name"], state.update["metadata"]["name"]
    leaving = {pod["metadata"]["uid"] for pod in plan.delete}
    ready = [pod for pod in state.pods if phase(pod) == "Running" and is_pod_ready(pod)]
    staying = [
        pod for pod in state.pods if not is_terminating(pod) and pod["metadata"]["uid"] not in leaving
    ]
    counts = {
        "observedGeneration": int(stateful_set["metadata"].get("generation") or 0),
        "readyReplicas": len(ready),
        "currentReplicas": sum(revision_of(pod) == current for pod in staying),
        "updatedReplicas": sum(revision_of(pod) == update for pod in staying),
    }
    available = sum(is_available(pod, state.min_ready_s, state.now) for pod in ready)
    wanted = replicas_of(stateful_set)
    strategy = (stateful_set["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
    through = counts["updatedReplicas"] == len(ready) == len(state.pods) == wanted
    if strategy == "RollingUpdate" and through:
        counts["currentReplicas"] = counts["updatedReplicas"]
        current = update
    before = stateful_set.get("status") or {}
    status: JsonObject = {
        "replicas": len(state.pods), "availableReplicas": available,
        "currentRevision": current, "updateRevision": update,
        "collisionCount": int(before.get("collisionCount") or 0),
    }  # fmt: skip
    status.update({name: count for name, count in counts.items() if count})
    if before.get("conditions"):
        status["conditions"] = before["conditions"]
    return status
