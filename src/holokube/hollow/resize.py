"""In-place resize: resources of a running pod that were changed since its containers started.

What is in force shows in the status; what is wanted in the spec. A kubelet first looks whether the difference fits
(PodResizePending while it does not), then applies it (PodResizeInProgress), restarting containers whose resize policy
asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holokube.hollow.container_life import ContainerLife
from holokube.hollow.pod_state import NEVER_S, Phase, PodRun, Rejection, ResizeRun
from holokube.kube.types import JsonObject

DEFER_RETRY_S = 10.0
_DEFERRED = "Deferred"
_KILLED_EXIT_CODE = 137


def mind_resize(life: ContainerLife) -> None:
    """Takes the steps of a resize that are due."""
    pod, run = life.pod, life.run
    generation = int(pod["metadata"].get("generation") or 0)
    if run.resize is None and (pod.get("status") or {}).get("observedGeneration", generation) == generation:
        return
    held = _held(life)
    if not held:
        run.resize = None
        return
    state = run.resize
    if state is None or state.generation != generation:
        # Asked again for something else: what is in force is still what it was.
        state = run.resize = ResizeRun(generation, held)
    if state.due_s == NEVER_S:
        _allocate(life, state)
    if state.due_s <= life.now_s:
        _actuate(life, state)


def _held(life: ContainerLife) -> dict[str, JsonObject]:
    """What is in force, of the running containers that should have something else."""
    run = life.run
    known = dict(run.resize.held) if run.resize is not None else {}
    status = life.pod.get("status") or {}
    for key in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(key) or ():
            if "resources" in entry and entry["name"] not in known:
                known[entry["name"]] = {
                    field: entry[field] for field in ("resources", "allocatedResources") if field in entry
                }
    return {
        c.name: known[c.name]
        for c in run.containers or ()
        if c.phase is Phase.RUNNING
        and c.kind != "ephemeral"
        and c.name in known
        and known[c.name]["resources"] != (life.spec_of(c).get("resources") or {})
    }


def _allocate(life: ContainerLife, state: ResizeRun) -> None:
    refused = life.run.host.resize(life.pod)
    if refused is not None:
        state.retry_s = life.now_s + DEFER_RETRY_S
        if state.pending is None or state.pending.message != refused.message:
            state.pending = Rejection(_DEFERRED, refused.message)
            life.event("Warning", "ResizeDeferred", _message(life, "Deferred", refused.message))
        return
    state.pending, state.retry_s = None, NEVER_S
    state.due_s = life.now_s + life.delay(life.run.profile.resize, f"resize/{state.generation}")
    life.event("Normal", "ResizeStarted", _message(life, "started"))


def _actuate(life: ContainerLife, state: ResizeRun) -> None:
    life.run.resize = None
    for c in life.run.containers or ():
        if c.name in state.held and c.phase is Phase.RUNNING and _must_restart(life.spec_of(c), state.held[c.name]):
            life.event("Normal", "Killing", f"Container {c.name} resize requires restart", c)
            life.kill(c, exit_code=_KILLED_EXIT_CODE)
            life.start_again(c)
    life.event("Normal", "ResizeCompleted", _message(life, "completed"))


def _must_restart(spec: Mapping[str, Any], held: Mapping[str, Any]) -> bool:
    before, after = held["resources"], spec.get("resources") or {}
    for policy in spec.get("resizePolicy") or ():
        if policy.get("restartPolicy") != "RestartContainer":
            continue
        name = policy.get("resourceName")
        if any((before.get(k) or {}).get(name) != (after.get(k) or {}).get(name) for k in ("requests", "limits")):
            return True
    return False


def _message(life: ContainerLife, what: str, error: str = "") -> str:
    spec = life.pod["spec"]
    summary: JsonObject = {}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            summary[key] = [{"name": c["name"], "resources": c.get("resources") or {}} for c in spec[key]]
    summary["generation"] = int(life.pod["metadata"].get("generation") or 0)
    if error:
        summary["error"] = error
    return f"Pod resize {what}: {json.dumps(summary, separators=(',', ':'))}"


def resize_conditions(run: PodRun) -> list[JsonObject]:
    """The conditions of a resize under way."""
    state = run.resize
    if state is None:
        return []
    if state.pending is not None:
        pending = state.pending
        return [
            {"type": "PodResizePending", "status": "True", "reason": pending.reason, "message": pending.message}
        ]
    return [{"type": "PodResizeInProgress", "status": "True"}]


def shown_resources(run: PodRun, name: str, wanted: JsonObject) -> JsonObject:
    """``resources`` and ``allocatedResources`` of a container's status: what is in force until the resize is done."""
    state = run.resize
    if state is None or name not in state.held:
        return wanted
    held = state.held[name]
    if state.pending is not None:
        return {**wanted, **held}
    return {**wanted, "resources": held["resources"]}
