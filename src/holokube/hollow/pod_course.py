"""The usual course of a pod's life after its opening: it runs, and then it is deleted or ends by itself.

As long as nothing has happened to a pod since all of its containers began to run at once, what the state machine of
``pod_life`` would make of it is known without going through it: nothing at all, if its status still says what was
said at the opening; its removal, if it is deleted and stops at once; its end, if its time is over and nothing starts
it again. Whatever is not plain any more goes through the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.hollow.container_life import derived_id
from holokube.hollow.pod_opening import CONDITIONS, SPECIAL
from holokube.hollow.pod_state import (
    ENDED,
    NEVER_S,
    TERMINATED,
    DeletePod,
    PatchStatus,
    PlainContainer,
    PodRun,
    Step,
    Template,
)
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

_BITS: Final = {kind: 1 << number for number, kind in enumerate((*CONDITIONS, "PodScheduled"))}
_ALL: Final = sum(_BITS.values())
_RESIZES: Final = frozenset(("PodResizePending", "PodResizeInProgress"))
_NOTHING: Final = Step(())


def plain_step(pod: Mapping[str, Any], run: PodRun, template: Template, now_s: float) -> Step | None:
    """The next step of a pod that was opened by this template; None, and nothing done, if the machine has to say."""
    spec, metadata = pod["spec"], pod["metadata"]
    if spec["containers"] is not template.listed or not spec.keys().isdisjoint(SPECIAL) or not run.containers:
        return None
    if metadata.get("deletionTimestamp"):
        return _removed(run, template)
    first = run.containers[0]
    due_s = first.due_s
    if now_s >= due_s:
        policy = spec.get("restartPolicy") or "Always"
        starts_again = policy == "Always" or (policy == "OnFailure" and first.exit_code != 0)
        if starts_again or template.has_policies:
            return None
    elif now_s < run.start_s:
        # The clock was put back.
        return None
    if not _stands(pod, run, template):
        return None
    if now_s < due_s:
        return _NOTHING if due_s == NEVER_S else Step((), due_s)
    return _ended(pod, run, template, now_s)


def _removed(run: PodRun, template: Template) -> Step | None:
    """A pod that stops at once, and of which nobody is told how, just goes."""
    profile = run.profile
    if profile.final_status or profile.stop != 0.0 or run.behaviour.stop_s or template.has_hooks:
        return None
    run.opened, run.stage, run.delete_sent = None, ENDED, True
    return Step((DeletePod(run.uid),))


def _stands(pod: Mapping[str, Any], run: PodRun, template: Template) -> bool:
    """Whether the status is what was said of the pod at its opening, apart from what is others' to say."""
    status, generation, host_ips = pod.get("status"), pod["metadata"].get("generation"), run.host.host_ips
    if not status or not host_ips:
        return False
    get, addresses, started = status.get, run.addresses, format_time(run.start_s)
    if get("phase") != "Running" or get("reason") or get("message") or get("startTime") != started:
        return False
    if get("observedGeneration") != (generation or None):
        return False
    if get("hostIP") != host_ips[0] or get("podIP") != addresses[0]:
        return False
    if get("hostIPs") != [{"ip": ip} for ip in host_ips] or get("podIPs") != [{"ip": ip} for ip in addresses]:
        return False
    entries = get("containerStatuses") or ()
    if len(entries) != len(template.containers):
        return False
    for entry, each in zip(entries, template.containers, strict=True):
        own = each.running.copy()
        own["state"] = {"running": {"startedAt": started}}
        own["containerID"] = derived_id(run.uid, each.name, 0)
        if entry != own:
            return False
    return _conditions_stand(get("conditions") or (), generation or None)


def _conditions_stand(conditions: Any, generation: Any) -> bool:
    found = 0
    for condition in conditions:
        kind = condition.get("type")
        bit = _BITS.get(kind)
        if bit is None:
            if kind in _RESIZES:
                return False
            continue
        if condition.get("status") != "True":
            return False
        if kind != "PodScheduled" and (
            condition.get("reason")
            or condition.get("message")
            or (condition.get("observedGeneration") or None) != generation
        ):
            return False
        found |= bit
    return found == _ALL


def _ended(pod: Mapping[str, Any], run: PodRun, template: Template, now_s: float) -> Step:
    """All containers have ended by themselves, for good; the status still says of each that it runs."""
    assert run.containers
    first, metadata, known = run.containers[0], pod["metadata"], pod["status"]
    failed, now = first.exit_code != 0, format_time(now_s)
    ended: JsonObject = {
        "exitCode": first.exit_code, "reason": first.reason, "startedAt": format_time(run.start_s), "finishedAt": now,
    }  # fmt: skip
    for c in run.containers:
        c.phase, c.finished_s, c.due_s = TERMINATED, now_s, NEVER_S
    run.opened, run.stage = None, ENDED
    run.ends_as = "Failed" if failed else "Succeeded"
    run.drifts, run.drift_until_s = 0, 0.0
    status: JsonObject = {
        "phase": run.ends_as,
        "containerStatuses": [
            _ended_entry(each, entry["containerID"], ended, first.message)
            for each, entry in zip(template.containers, known["containerStatuses"], strict=True)
        ],
        "conditions": _ended_conditions(known["conditions"], metadata.get("generation"), now, failed=failed),
    }
    return Step((PatchStatus({"metadata": {"uid": metadata["uid"]}, "status": status}),))


def _ended_entry(container: PlainContainer, own_id: str, ended: JsonObject, message: str) -> JsonObject:
    terminated = {**ended, "containerID": own_id}
    if message:
        terminated["message"] = message
    return {
        "name": container.name,
        "image": container.image,
        "imageID": container.image_id,
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "started": False,
        "state": {"terminated": terminated},
        "containerID": own_id,
    }


def _ended_conditions(known: Any, generation: Any, now: str, *, failed: bool) -> list[JsonObject]:
    observed = {"observedGeneration": generation} if generation else {}
    reason = "PodFailed" if failed else "PodCompleted"
    changed: list[JsonObject] = []
    for kind in CONDITIONS:
        if kind == "PodReadyToStartContainers":
            changed.append({"type": kind, "status": "False", **observed, "lastTransitionTime": now})
        elif kind != "Initialized":
            changed.append({"type": kind, "status": "False", "reason": reason, **observed, "lastTransitionTime": now})
        elif not failed:
            # It was initialized before; only the reason is new.
            since = next(one.get("lastTransitionTime", now) for one in reversed(known) if one.get("type") == kind)
            changed.append(
                {"type": kind, "status": "True", "reason": reason, **observed, "lastTransitionTime": since}
            )
    return changed
