"""Pods and pod templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.apiserver.tables.cells import condition_status, container_cells, labels_text, name_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, Ages, Layout, column, wide
from holokube.kube.types import JsonObject

_GATED = "SchedulingGated"
_SUCCEEDED = [
    {
        "type": "Completed",
        "status": "True",
        "reason": "Succeeded",
        "message": "The pod has completed successfully.",
    }
]
_FAILED = [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]
_NOTHING: JsonObject = {}


@dataclass(slots=True)
class _Tally:
    """What the containers of a pod add up to."""

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    """Times are canonical RFC 3339 in UTC, so that the later one is the greater text."""
    sidecar_restarts: int = 0
    last_sidecar_restart: str = ""


def pod_cells(pod: JsonObject, ages: Ages) -> list[Any]:
    meta: JsonObject = pod.get("metadata") or _NOTHING
    spec: JsonObject = pod.get("spec") or _NOTHING
    status: JsonObject = pod.get("status") or _NOTHING
    conditions = status.get("conditions") or ()
    phase = status.get("phase") or ""
    tally = _Tally(status.get("reason") or phase, len(spec.get("containers") or ()))
    for condition in conditions:
        if condition.get("reason") == _GATED and condition.get("type") == "PodScheduled":
            tally.reason = _GATED
    initializing = False
    if spec.get("initContainers"):
        initializing = _count_init_containers(spec["initContainers"], status, tally)
    if not initializing or condition_status(conditions, "Initialized") == "True":
        _count_containers(status, tally)
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            tally.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            tally.reason = "Terminating"
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{tally.restarts} ({ages.since(tally.last_restart)} ago)"
    addresses = status.get("podIPs")
    address = addresses[0].get("ip") if addresses else status.get("podIP")
    return [
        meta.get("name") or "",
        f"{tally.ready}/{tally.total}",
        tally.reason,
        restarts,
        ages.since(meta.get("creationTimestamp")),
        address or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, conditions),
    ]


def _count_init_containers(init_containers: list[JsonObject], status: JsonObject, tally: _Tally) -> bool:
    """Whether the pod still initializes; sidecars count as containers once they have started."""
    sidecars = {c.get("name") for c in init_containers if c.get("restartPolicy") == "Always"}
    tally.total += len(sidecars)
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        sidecar = container.get("name") in sidecars
        count = container.get("restartCount") or 0
        finished = _last_finish(container)
        tally.restarts += count
        tally.last_restart = max(tally.last_restart, finished)
        if sidecar:
            tally.sidecar_restarts += count
            tally.last_sidecar_restart = max(tally.last_sidecar_restart, finished)
        state = container.get("state") or _NOTHING
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        waiting = (state.get("waiting") or _NOTHING).get("reason")
        if terminated is not None:
            tally.reason = f"Init:{_end(terminated)}"
        elif waiting and waiting != "PodInitializing":
            tally.reason = f"Init:{waiting}"
        else:
            tally.reason = f"Init:{index}/{len(init_containers)}"
        return True
    return False


def _count_containers(status: JsonObject, tally: _Tally) -> None:
    tally.restarts = tally.sidecar_restarts
    tally.last_restart = tally.last_sidecar_restart
    running = False
    failure = ""
    # Backwards, so that the first container has the last word.
    for container in reversed(status.get("containerStatuses") or ()):
        tally.restarts += container.get("restartCount") or 0
        if "lastState" in container:
            tally.last_restart = max(tally.last_restart, _last_finish(container))
        state = container.get("state") or _NOTHING
        waiting = (state.get("waiting") or _NOTHING).get("reason")
        terminated = state.get("terminated")
        if waiting:
            tally.reason = waiting
        elif terminated is not None:
            tally.reason = _end(terminated)
            if terminated.get("exitCode"):
                failure = tally.reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        # One container may be done while another still runs.
        if running and condition_status(status.get("conditions"), "Ready") == "True":
            tally.reason = "Running"
        elif failure:
            tally.reason = failure
        elif running:
            tally.reason = "NotReady"


def _last_finish(container: JsonObject) -> str:
    terminated = (container.get("lastState") or _NOTHING).get("terminated") or _NOTHING
    return terminated.get("finishedAt") or ""


def _end(terminated: JsonObject) -> str:
    """How a container ended: the reason it gave, else its signal or exit code."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _readiness_gates(spec: JsonObject, conditions: Sequence[JsonObject]) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    fulfilled = sum(condition_status(conditions, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{fulfilled}/{len(gates)}"


def pod_row_conditions(pod: JsonObject) -> list[JsonObject] | None:
    phase = (pod.get("status") or _NOTHING).get("phase")
    return _SUCCEEDED if phase == "Succeeded" else _FAILED if phase == "Failed" else None


def pod_template_cells(obj: JsonObject, _ages: Ages) -> list[Any]:
    template = obj.get("template") or _NOTHING
    names, images = container_cells(template.get("spec"))
    return [name_of(obj), names, images, labels_text((template.get("metadata") or _NOTHING).get("labels"))]


LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "pods"): Layout(
        (
            NAME,
            column("Ready", "Containers that are ready, of all containers."),
            column("Status", "What the containers are doing, or why they are not running."),
            column("Restarts", "How often containers were restarted, and how long ago the last time."),
            AGE,
            wide("IP", "Address of the pod."),
            wide("Node", "Node the pod is bound to."),
            wide("Nominated Node", "Node on which room is being made for the pod."),
            wide("Readiness Gates", "Readiness gates that are fulfilled, of all gates."),
        ),
        pod_cells,
        pod_row_conditions,
    ),
    ("", "podtemplates"): Layout(
        (
            NAME,
            column("Containers", "Names of the containers in the template."),
            column("Images", "Images of the containers in the template."),
            column("Pod Labels", "Labels that pods made from the template carry."),
        ),
        pod_template_cells,
    ),
}
