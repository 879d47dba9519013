"""The status of a pod as its kubelet reports it: built whole, sent as the difference to what the server has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.hollow.container_life import (
    RESTARTING_ALL,
    container_id,
    may_restart_all,
    restarts_after,
    terminated_state,
)
from holokube.hollow.images import image_id
from holokube.hollow.pod_state import ALIVE, RUNNING, STOPPING, TERMINATED, ContainerRun, Phase, PodRun
from holokube.hollow.resize import resize_conditions, shown_resources
from holokube.kube.timeformat import format_duration, format_time
from holokube.kube.types import JsonObject

_OWN_FIELDS = (
    "phase", "reason", "message", "hostIP", "hostIPs", "podIP", "podIPs", "startTime",
    "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses", "observedGeneration",
)  # fmt: skip
_PASSING = ("PodResizePending", "PodResizeInProgress")
"""Conditions that go away again."""
TERMINAL = ("Succeeded", "Failed")


def pod_phase(pod: Mapping[str, Any], run: PodRun) -> str:
    """What the containers make of the pod's phase, by the kubelet's rules."""
    if run.ends_as:
        return run.ends_as
    spec = pod["spec"]
    running = waiting = stopped = restarting = succeeded = failed_for_good = 0
    by_name = {c["name"]: c for c in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))}
    for c in run.containers or ():
        if c.kind == "ephemeral":
            continue
        if c.kind == "init":
            done = c.phase is TERMINATED and c.exit_code == 0
            if done:
                continue
            if c.phase is TERMINATED and not restarts_after(by_name[c.name], spec, c.exit_code, c.kind):
                return "Failed"
            return "Pending"
        if c.kind == "sidecar":
            if c.phase is not RUNNING and c.last is None and c.phase is not TERMINATED:
                waiting += 1
            continue
        if c.phase is RUNNING:
            running += 1
        elif c.phase is TERMINATED:
            stopped += 1
            succeeded += c.exit_code == 0
            if restarts_after(by_name[c.name], spec, c.exit_code, c.kind):
                restarting += 1
            elif c.exit_code != 0:
                failed_for_good += 1
        elif c.last is not None or c.phase is Phase.BACKOFF:
            stopped += 1
            restarting += 1
        else:
            waiting += 1
    if waiting:
        return "Pending"
    if running or restarting:
        return "Running"
    if stopped == 0:
        return "Pending"
    return "Failed" if failed_for_good else "Succeeded"


def final_phase(run: PodRun) -> str:
    """The phase of a pod whose containers were all stopped: failed if any did not end well."""
    if run.ends_as:
        return run.ends_as
    mains = [c for c in run.containers or () if c.kind == "main"]
    if not mains or any(c.phase is not TERMINATED or c.exit_code != 0 for c in mains):
        return "Failed" if mains else "Succeeded"
    return "Succeeded"


def build_status(pod: Mapping[str, Any], run: PodRun, phase: str, now_s: float) -> JsonObject:
    """Every field of the status that a kubelet owns; ``conditions`` without transition times."""
    spec = pod["spec"]
    status: JsonObject = {"phase": phase, "startTime": format_time(run.start_s)}
    generation = pod["metadata"].get("generation")
    if generation:
        status["observedGeneration"] = generation
    if run.end_reason:
        status["reason"], status["message"] = run.end_reason, run.end_message
    if run.host.host_ips:
        status["hostIP"] = run.host.host_ips[0]
        status["hostIPs"] = [{"ip": ip} for ip in run.host.host_ips]
    if run.addresses:
        status["podIP"] = run.addresses[0]
        status["podIPs"] = [{"ip": ip} for ip in run.addresses]
    by_name: dict[str, JsonObject] = {}
    by_run = {c.name: c for c in run.containers or ()}
    if run.containers is not None:
        for key, listed in (
            ("initContainerStatuses", spec.get("initContainers")),
            ("containerStatuses", spec.get("containers")),
            ("ephemeralContainerStatuses", spec.get("ephemeralContainers")),
        ):
            if listed:
                made = [container_status(c, by_run[c["name"]], run, now_s) for c in listed if c["name"] in by_run]
                by_name.update((entry["name"], entry) for entry in made)
                status[key] = made
    status["conditions"] = pod_conditions(pod, run, phase, by_name, now_s)
    return status


def container_status(spec: Mapping[str, Any], c: ContainerRun, run: PodRun, now_s: float) -> JsonObject:
    """One entry of ``containerStatuses``."""
    running = c.phase is RUNNING
    has_run = running or c.phase in (TERMINATED, Phase.BACKOFF) or c.last is not None
    image = spec.get("image", "")
    # While it waits to be started again, the run that has just ended is the last one.
    last = terminated_state(c, run.uid) if c.phase is Phase.BACKOFF else c.last
    up = running and c.ready_s <= now_s
    ready = (c.phase is TERMINATED and c.exit_code == 0) if c.kind == "init" else up
    entry: JsonObject = {
        "name": c.name,
        "image": image,
        "imageID": image_id(image) if has_run else "",
        "lastState": {"terminated": last} if last else {},
        "ready": ready and c.kind != "ephemeral",
        "restartCount": c.restarts,
        "started": running and (up or "startupProbe" not in spec),
        "state": _state(c, run, image),
    }
    if has_run:
        if running or c.phase is TERMINATED:
            entry["containerID"] = container_id(c, run.uid)
        else:
            assert last is not None
            entry["containerID"] = last.get("containerID", "")
    if running and c.kind != "ephemeral":
        entry.update(shown_resources(run, c.name, resources_and_mounts(spec)))
    return entry


def resources_and_mounts(spec: Mapping[str, Any]) -> JsonObject:
    """What the status of a running container says of its spec."""
    fields: JsonObject = {"resources": spec.get("resources") or {}}
    requests = (spec.get("resources") or {}).get("requests")
    if requests:
        fields["allocatedResources"] = requests
    mounts = []
    for mount in spec.get("volumeMounts") or ():
        entry = {"name": mount["name"], "mountPath": mount["mountPath"]}
        if mount.get("readOnly"):
            entry.update(readOnly=True, recursiveReadOnly="Disabled")
        mounts.append(entry)
    if mounts:
        fields["volumeMounts"] = mounts
    context = spec.get("securityContext") or {}
    user, group = context.get("runAsUser", 0), context.get("runAsGroup", 0)
    fields["user"] = {"linux": {"uid": user, "gid": group, "supplementalGroups": [group]}}
    return fields


def _state(c: ContainerRun, run: PodRun, image: str) -> JsonObject:
    if c.phase is RUNNING:
        return {"running": {"startedAt": format_time(c.started_s)}}
    if c.phase is TERMINATED:
        return {"terminated": terminated_state(c, run.uid)}
    if c.phase is Phase.BACKOFF:
        return {"waiting": {"reason": "CrashLoopBackOff", "message": _backoff_text(c, run)}}
    if c.phase is Phase.PULL_FAILED:
        return {"waiting": {"reason": "ErrImagePull", "message": c.message}}
    if c.phase is Phase.PULL_BACKOFF:
        text = f'Back-off pulling image "{image}": ErrImagePull: {c.message}'
        return {"waiting": {"reason": "ImagePullBackOff", "message": text}}
    if c.last is not None and c.last.get("reason") == RESTARTING_ALL:
        return {"waiting": {"reason": RESTARTING_ALL, "message": c.last["message"]}}
    # Once a pod has init containers, everything that waits says so, until the first main container could start.
    has_init = any(other.kind in ("init", "sidecar") for other in run.containers or ())
    return {"waiting": {"reason": "PodInitializing" if has_init else "ContainerCreating"}}


def _backoff_text(c: ContainerRun, run: PodRun) -> str:
    return f"back-off {format_duration(c.backoff_s)} restarting failed container={c.name} pod={run.title}"


def pod_conditions(
    pod: Mapping[str, Any], run: PodRun, phase: str, statuses: Mapping[str, JsonObject], now_s: float
) -> list[JsonObject]:
    """The conditions, in the kubelet's order, with status, reason and message."""
    sandbox = bool(run.addresses) and phase not in TERMINAL and run.stage in (ALIVE, STOPPING)
    ready, containers_ready = _readiness(pod, phase, statuses)
    conditions: list[JsonObject] = [
        *resize_conditions(run),
        *_disruption(run),
        {"type": "PodReadyToStartContainers", "status": "True" if sandbox else "False"},
        {"type": "Initialized", **_initialized(pod, run, phase, statuses)},
        {"type": "Ready", **ready},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
        *_restarting_all(pod, run, phase, now_s),
    ]
    generation = pod["metadata"].get("generation")
    if generation:
        for condition in conditions:
            condition["observedGeneration"] = generation
    return conditions


def _restarting_all(pod: Mapping[str, Any], run: PodRun, phase: str, now_s: float) -> list[JsonObject]:
    if not may_restart_all(pod["spec"]):
        return []
    condition: JsonObject = {"type": "AllContainersRestarting", "status": "False"}
    if phase in TERMINAL:
        condition["reason"] = "PodFailed" if phase == "Failed" else "PodCompleted"
    elif run.restarts_all_s > now_s:
        text = "container exited with restart policy rule"
        condition.update(status="True", reason="RestartAllContainersStarted", message=text)
    return [condition]


def _disruption(run: PodRun) -> list[JsonObject]:
    if not run.disrupted:
        return []
    return [
        {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": run.disrupted}
    ]


def _readiness(
    pod: Mapping[str, Any], phase: str, statuses: Mapping[str, JsonObject]
) -> tuple[JsonObject, JsonObject]:
    if phase in TERMINAL:
        ended = {"status": "False", "reason": "PodFailed" if phase == "Failed" else "PodCompleted"}
        return ended, ended
    spec = pod["spec"]
    counted = [c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    counted += [c["name"] for c in spec["containers"]]
    unready = [name for name in counted if not (statuses.get(name) or {}).get("ready")]
    if unready:
        text = f"containers with unready status: [{' '.join(unready)}]"
        not_ready = {"status": "False", "reason": "ContainersNotReady", "message": text}
        return not_ready, not_ready
    problems = _gate_problems(pod)
    if problems:
        text = ", ".join(problems)
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": text}, {"status": "True"}
    return {"status": "True"}, {"status": "True"}


def _gate_problems(pod: Mapping[str, Any]) -> list[str]:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return []
    known = {c.get("type"): c.get("status") for c in (pod.get("status") or {}).get("conditions") or ()}
    problems = []
    for gate in gates:
        kind = gate["conditionType"]
        if kind not in known:
            problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif known[kind] != "True":
            problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {known[kind]}')
    return problems


def _initialized(
    pod: Mapping[str, Any], run: PodRun, phase: str, statuses: Mapping[str, JsonObject]
) -> JsonObject:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    if run.initialized:
        return {"status": "True"}
    incomplete = []
    for c in pod["spec"].get("initContainers") or ():
        entry = statuses.get(c["name"]) or {}
        sidecar = c.get("restartPolicy") == "Always"
        if not entry.get("started" if sidecar else "ready"):
            incomplete.append(c["name"])
    if not incomplete:
        return {"status": "True"}
    text = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": text}


def status_patch(pod: Mapping[str, Any], status: JsonObject, now_s: float) -> JsonObject | None:
    """The strategic merge patch that makes the server's status ours; None when it is already."""
    old = pod.get("status") or {}
    change: JsonObject = {}
    for field in _OWN_FIELDS:
        if field in status:
            if old.get(field) != status[field]:
                change[field] = status[field]
        elif field in ("reason", "message") and old.get(field):
            change[field] = None
    conditions = _condition_changes(old.get("conditions") or (), status["conditions"], format_time(now_s))
    if conditions:
        change["conditions"] = conditions
    if not change:
        return None
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": change}


def _condition_changes(old: Any, new: list[JsonObject], now: str) -> list[JsonObject]:
    known = {condition.get("type"): condition for condition in old}
    wanted = {condition["type"] for condition in new}
    changes: list[JsonObject] = [
        {"$patch": "delete", "type": kind} for kind in _PASSING if kind in known and kind not in wanted
    ]
    for condition in new:
        before = known.get(condition["type"])
        if before is None:
            changes.append({**condition, "lastTransitionTime": now})
            continue
        if condition["type"] == "PodScheduled" and before.get("status") == "True":
            # The scheduler wrote it; a kubelet only adds the generation, which is not worth a request.
            continue
        fields = ("status", "reason", "message", "observedGeneration")
        if all((before.get(field) or None) == (condition.get(field) or None) for field in fields):
            continue
        changed = dict(condition)
        for field in ("reason", "message"):
            # A strategic merge keeps what it is not told to remove.
            if before.get(field) and field not in changed:
                changed[field] = None
        moved = before.get("status") != condition["status"]
        changed["lastTransitionTime"] = now if moved else before.get("lastTransitionTime", now)
        changes.append(changed)
    return changes
