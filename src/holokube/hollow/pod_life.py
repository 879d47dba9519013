"""The life of a pod on a hollow node, as a state machine without I/O.

``step`` is called whenever the pod object changed or ``next_due_s`` has come. It takes every transition that is
due, then compares the status that follows with the one in the object. So with all times zero a pod is Running
after one step and one patch, and with a real kubelet's times each phase shows on its own; it is the same machine.
Being level-triggered, it also puts back what others changed: pods that a node controller marked un-Ready while the
node was away become Ready again.

``run`` belongs to the machine and is changed by it; nothing else is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.hollow.admission import NODE_AFFINITY, TAINT_TOLERATION
from holokube.hollow.behaviour import behaviour_of
from holokube.hollow.container_life import ContainerLife, derived_id, kill_exit_code
from holokube.hollow.draws import Draw
from holokube.hollow.pod_course import plain_step
from holokube.hollow.pod_opening import Openings
from holokube.hollow.pod_state import (
    ALIVE,
    ENDED,
    NEVER_S,
    NEW,
    RUNNING,
    SANDBOX,
    STOPPING,
    TERMINATED,
    Command,
    ContainerRun,
    DeletePod,
    EmitEvent,
    Host,
    Kind,
    PatchStatus,
    Phase,
    PodRun,
    Rejection,
    Step,
)  # fmt: skip
from holokube.hollow.pod_status import TERMINAL, build_status, final_phase, pod_phase, status_patch
from holokube.hollow.profile import PodProfile
from holokube.hollow.resize import mind_resize
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
PREEMPTED_REASON = "Preempting"
PREEMPTED_MESSAGE = "Preempted in order to admit critical pod"
ADDRESS_RETRY_S = 10.0
LOOK_AGAIN_S = 1.0
DRIFT_BASE_S = 10.0
DRIFT_MAX_S = 300.0
_NODE_LOST_EXIT_CODE = 255
_BY_NODE = (NODE_AFFINITY, TAINT_TOLERATION)

_openings = Openings()

looks_after_writes: bool = False
"""What a write of ours makes of a pod is known before: only others' changes call for another step."""


def begin(pod: Mapping[str, Any], profile: PodProfile, host: Host, now_s: float, draw: Draw) -> PodRun:
    """The state of a pod that this process sees for the first time, read from its status if it has run before."""
    meta = pod["metadata"]
    run = PodRun(
        str(meta["uid"]), profile, host, behaviour_of(pod, now_s, draw), meta["name"], meta.get("namespace", "")
    )
    status = pod.get("status") or {}
    if status.get("phase") in TERMINAL:
        run.stage = ENDED
        return run
    if not status.get("startTime"):
        return run
    run.start_s = parse_time(status["startTime"]).timestamp()
    run.addresses = tuple(entry["ip"] for entry in status.get("podIPs") or ())
    run.containers = _containers_of(pod)
    if run.addresses:
        run.stage = ALIVE
        _resume(pod, run, now_s, draw)
    else:
        run.stage, run.due_s = SANDBOX, now_s
    return run


def step(pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> Step:
    """Everything that is due now."""
    if (pod.get("status") or {}).get("phase") in TERMINAL:
        # Terminal phases never change back; until the server shows one, ours is reported again.
        run.stage, run.opened = ENDED, None
        return Step(_removal(pod, run))
    if run.opened is not None:
        if (plain := plain_step(pod, run, run.opened, now_s)) is not None:
            return plain
        run.opened = None
    elif run.stage is NEW and (opened := _openings.take(pod, run, now_s)) is not None:
        return opened
    # One that goes without a word has no status to report, so that it does not matter who has changed it.
    goes = bool(pod["metadata"].get("deletionTimestamp")) and not run.profile.final_status
    if goes and run.stage is ENDED:
        return Step(_removal(pod, run))
    before = () if goes else _progress(run)
    life = ContainerLife(pod, run, now_s, draw)
    if run.stage is NEW:
        _admit(life)
        if run.stage is NEW and run.containers is None:
            # It is not sure yet whether the node takes it.
            return Step((), run.doubted_until_s)
    if run.stage is not ENDED:
        _mind_the_end(life)
    if run.stage is SANDBOX:
        _make_sandbox(life)
    if run.stage is ALIVE:
        mind_resize(life)
        _run_containers(life)
    if run.stage is STOPPING and run.due_s <= now_s:
        _stopped(life)
    return _report(life, moved=not goes and _progress(run) != before)


def reboot(pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> None:
    """The node went down and is back: every container has ended, nobody knows how."""
    if run.stage is not ALIVE:
        return
    run.opened = None
    life = ContainerLife(pod, run, now_s, draw)
    for c in run.containers or ():
        if c.phase is RUNNING:
            life.kill(c, exit_code=_NODE_LOST_EXIT_CODE, reason="Unknown")
            life.after_end(c)


def _progress(run: PodRun) -> tuple[Any, ...]:
    """What tells that the machine itself has moved, as opposed to somebody else having changed the status."""
    return (
        run.stage,
        run.addresses,
        run.initialized,
        run.restarts_all_s,
        tuple((c.phase, c.restarts, c.ready_s, c.due_s) for c in run.containers or ()),
        (run.resize.pending, run.resize.due_s, run.resize.generation) if run.resize is not None else None,
    )


def _containers_of(pod: Mapping[str, Any]) -> list[ContainerRun]:
    spec = pod["spec"]
    made = [
        ContainerRun(c["name"], "sidecar" if c.get("restartPolicy") == "Always" else "init")
        for c in spec.get("initContainers") or ()
    ]
    for key, kind in (("containers", "main"), ("ephemeralContainers", "ephemeral")):
        for c in spec.get(key) or ():
            listed: Kind = "main" if kind == "main" else "ephemeral"
            made.append(ContainerRun(c["name"], listed))
    return made


def _resume(pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> None:
    """Takes over containers as their status shows them."""
    life = ContainerLife(pod, run, now_s, draw)
    status = pod.get("status") or {}
    listed = [
        entry
        for key in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for entry in status.get(key) or ()
    ]
    by_name = {entry["name"]: entry for entry in listed}
    for c in run.containers or ():
        entry = by_name.get(c.name)
        if entry is None:
            continue
        c.restarts = int(entry.get("restartCount") or 0)
        c.last = (entry.get("lastState") or {}).get("terminated")
        c.failures = min(c.restarts, 10)
        state = entry.get("state") or {}
        known_id = str(entry.get("containerID") or "")
        if known_id and known_id != derived_id(run.uid, c.name, c.restarts):
            c.container_id = known_id
        if "running" in state:
            c.phase = RUNNING
            c.started_s = parse_time(state["running"]["startedAt"]).timestamp()
            c.ready_s = c.started_s + life.readiness_delay_s(c)
            life.plan_end(c)
        elif "terminated" in state:
            _resume_ended(c, state["terminated"])
            life.after_end(c)
        elif (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" and c.last is not None:
            _resume_ended(c, c.last)
            c.failures = max(1, c.restarts)
            life.after_end(c)
    run.initialized = all(_is_initialized(c) for c in run.containers or () if c.kind in ("init", "sidecar"))


def _resume_ended(c: ContainerRun, ended: JsonObject) -> None:
    c.phase, c.due_s = TERMINATED, NEVER_S
    c.exit_code, c.reason = int(ended.get("exitCode") or 0), str(ended.get("reason") or "")
    c.message = str(ended.get("message") or "")
    if ended.get("startedAt"):
        c.started_s = parse_time(ended["startedAt"]).timestamp()
    if ended.get("finishedAt"):
        c.finished_s = parse_time(ended["finishedAt"]).timestamp()


def _admit(life: ContainerLife) -> None:
    pod, run = life.pod, life.run
    is_going = bool(pod["metadata"].get("deletionTimestamp"))
    rejection = run.host.admit(pod) if run.profile.admission and not is_going else None
    if rejection is not None and _is_in_doubt(rejection, run, life.now_s):
        return
    run.start_s = life.now_s
    for problem in run.behaviour.problems:
        life.commands.append(EmitEvent("Warning", "HollowAnnotationIgnored", problem))
    if is_going:
        run.containers = _containers_of(pod)
        return
    if rejection is not None:
        # A refusal is never silent, not even with the profile that sends no events.
        life.commands.append(EmitEvent("Warning", rejection.reason, rejection.message))
        run.stage, run.ends_as = ENDED, "Failed"
        run.end_reason, run.end_message = rejection.reason, f"Pod was rejected: {rejection.message}"
        return
    run.containers = _containers_of(pod)
    run.stage = SANDBOX
    asked_s = run.behaviour.sandbox_s
    run.due_s = life.now_s + (life.delay(run.profile.sandbox, "sandbox") if asked_s is None else asked_s)


def _is_in_doubt(rejection: Rejection, run: PodRun, now_s: float) -> bool:
    """Whether a refusal may come from an old state of the node, so that another look has to come first.

    Nodes and pods come by two watches. A scheduler that has seen a taint go binds pods at once, and with thousands of
    nodes here one watch may be a moment behind the other. Upstream's kubelet asks the server for its node again, too,
    before labels make it refuse a pod.
    """
    if rejection.reason not in _BY_NODE:
        return False
    if not run.doubted_until_s:
        run.doubted_until_s = now_s + LOOK_AGAIN_S
    return now_s < run.doubted_until_s


def _mind_the_end(life: ContainerLife) -> None:
    """Deletion and the active deadline, which end a pod from outside."""
    pod, run, now_s = life.pod, life.run, life.now_s
    if run.stage is STOPPING:
        return
    if pod["metadata"].get("deletionTimestamp"):
        _begin_stop(life, float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
        return
    deadline_s = pod["spec"].get("activeDeadlineSeconds")
    if deadline_s is not None and now_s >= run.start_s + deadline_s:
        run.ends_as, run.end_reason, run.end_message = "Failed", "DeadlineExceeded", DEADLINE_MESSAGE
        life.event("Normal", run.end_reason, run.end_message)
        _begin_stop(life, float(pod["spec"].get("terminationGracePeriodSeconds") or 0))


def _begin_stop(life: ContainerLife, grace_s: float) -> None:
    """Main containers stop together; the sidecars after them, the last first, with what is left of the grace."""
    run = life.run
    running = [c for c in run.containers or () if c.phase is RUNNING]
    sidecars = [c for c in reversed(running) if c.kind == "sidecar"]
    done_s = 0.0
    for c in (*(c for c in running if c.kind != "sidecar"), *sidecars):
        life.event("Normal", "Killing", f"Stopping container {c.name}", c)
        begins_s = done_s if c.kind == "sidecar" else 0.0
        ends_s = begins_s + life.stop_s(c)
        c.due_s = NEVER_S
        c.exit_code = kill_exit_code(ends_s, grace_s, run.profile.stop_exit_code)
        c.finished_s = life.now_s + min(ends_s, grace_s)
        done_s = max(done_s, min(ends_s, grace_s))
    run.stage = STOPPING
    run.due_s = life.now_s + done_s


def _stopped(life: ContainerLife) -> None:
    run = life.run
    for c in run.containers or ():
        life.kill(c, exit_code=c.exit_code, at_s=c.finished_s)
    run.ends_as = final_phase(run)
    run.stage = ENDED


def preempt(pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> tuple[Command, ...]:
    """The pod makes room for a critical one: it is stopped and fails; the next ``step`` goes on from there.

    A kubelet waits until the containers are gone before it starts the critical pod; the caller may not.
    """
    if run.stage in (STOPPING, ENDED):
        return ()
    run.opened = None
    life = ContainerLife(pod, run, now_s, draw)
    run.ends_as, run.end_reason, run.end_message = "Failed", PREEMPTED_REASON, PREEMPTED_MESSAGE
    run.disrupted = "Pod was preempted by Kubelet to accommodate a critical pod."
    if run.containers is None:
        run.containers, run.start_s = _containers_of(pod), now_s
    life.event("Warning", PREEMPTED_REASON, PREEMPTED_MESSAGE)
    _begin_stop(life, float(pod["spec"].get("terminationGracePeriodSeconds") or 0))
    return tuple(life.commands)


def failed(run: PodRun) -> None:
    """What was decided last could not be written: nobody else's change, and a deletion is to be sent again."""
    run.delete_sent = False
    run.drifts, run.drift_until_s = 0, 0.0


def _make_sandbox(life: ContainerLife) -> None:
    run = life.run
    if run.due_s > life.now_s:
        return
    if not run.addresses:
        if life.pod["spec"].get("hostNetwork"):
            addresses: tuple[str, ...] | None = tuple(run.host.host_ips)
        else:
            addresses = run.host.take_addresses()
        if not addresses:
            run.due_s = life.now_s + ADDRESS_RETRY_S
            life.commands.append(
                EmitEvent(
                    "Warning", "FailedCreatePodSandBox",
                    "Failed to create pod sandbox: no IP addresses are left in the range of the node",
                )
            )  # fmt: skip
            return
        run.addresses = addresses
    run.stage, run.due_s = ALIVE, NEVER_S


def _is_initialized(c: ContainerRun) -> bool:
    if c.kind == "sidecar":
        return c.phase is RUNNING
    return c.phase is TERMINATED and c.exit_code == 0


def _run_containers(life: ContainerLife) -> None:
    run = life.run
    assert run.containers is not None
    _add_ephemeral(life)
    if run.restarts_all_s > life.now_s:
        return
    blocked = False
    for c in run.containers:
        if run.restarts_all_s > life.now_s:
            return
        if c.kind == "init":
            if not blocked and not run.initialized:
                life.advance(c)
                blocked = not _is_initialized(c)
        elif c.kind == "sidecar" and (not blocked or c.phase is not Phase.WAITING):
            life.advance(c)
            blocked = blocked or (not run.initialized and not _has_started(life, c))
    if not blocked or run.initialized:
        run.initialized = True
        _run_main(life, run.containers)
    phase = pod_phase(life.pod, run)
    if phase in TERMINAL:
        _end_sidecars(life)
        run.ends_as, run.stage = phase, ENDED


def _run_main(life: ContainerLife, containers: list[ContainerRun]) -> None:
    """A kubelet starts the containers of a pod one after the other."""
    starting = False
    for c in containers:
        if life.run.restarts_all_s > life.now_s:
            return
        if c.kind in ("main", "ephemeral") and not (starting and c.phase is Phase.WAITING):
            life.advance(c)
            starting = starting or c.phase in (Phase.PULLING, Phase.STARTING)


def _has_started(life: ContainerLife, c: ContainerRun) -> bool:
    if c.phase is not RUNNING:
        return False
    return "startupProbe" not in life.spec_of(c) or c.ready_s <= life.now_s


def _end_sidecars(life: ContainerLife) -> None:
    """When the last main container is done the sidecars are stopped too."""
    for c in life.run.containers or ():
        if c.kind in ("sidecar", "ephemeral") and c.phase is RUNNING:
            life.event("Normal", "Killing", f"Stopping container {c.name}", c)
            life.kill(c, exit_code=life.run.profile.stop_exit_code)


def _add_ephemeral(life: ContainerLife) -> None:
    """Containers that ``kubectl debug`` put into the pod since."""
    listed = life.pod["spec"].get("ephemeralContainers")
    if listed:
        containers = life.run.containers
        assert containers is not None
        known = {c.name for c in containers}
        containers.extend(ContainerRun(c["name"], "ephemeral") for c in listed if c["name"] not in known)


def _removal(pod: Mapping[str, Any], run: PodRun) -> tuple[Command, ...]:
    """A pod that has ended goes as soon as somebody asked for it; finalizers are for others to remove."""
    if not pod["metadata"].get("deletionTimestamp") or run.delete_sent:
        return ()
    run.delete_sent = True
    return (DeletePod(run.uid),)


def _report(life: ContainerLife, *, moved: bool) -> Step:
    pod, run, now_s = life.pod, life.run, life.now_s
    ended = run.stage is ENDED
    due_s = _next_due_s(life)
    deleting = bool(pod["metadata"].get("deletionTimestamp"))
    if run.stage is STOPPING or (ended and deleting and not run.profile.final_status):
        # Until its containers have stopped a deleted pod looks as before; without a final status it just goes.
        return Step((*life.commands, *(_removal(pod, run) if ended else ())), due_s)
    phase = run.ends_as or pod_phase(pod, run)
    patch = status_patch(pod, build_status(pod, run, phase, now_s), now_s)
    if patch is None:
        return Step((*life.commands, *(_removal(pod, run) if ended else ())), due_s)
    if moved:
        run.drifts, run.drift_until_s = 0, 0.0
    elif now_s < run.drift_until_s:
        # Two writers that disagree must not chase each other as fast as the server can answer.
        return Step(tuple(life.commands), min(due_s, run.drift_until_s))
    else:
        run.drift_until_s = now_s + min(DRIFT_MAX_S, DRIFT_BASE_S * 2 ** min(run.drifts, 8))
        run.drifts += 1
    return Step((*life.commands, PatchStatus(patch), *(_removal(pod, run) if ended else ())), due_s)


def _next_due_s(life: ContainerLife) -> float:
    run, now_s = life.run, life.now_s
    if run.stage is ENDED:
        return NEVER_S
    due_s = run.due_s
    deadline_s = life.pod["spec"].get("activeDeadlineSeconds")
    if deadline_s is not None and run.stage is not STOPPING:
        due_s = min(due_s, run.start_s + deadline_s)
    if run.stage is ALIVE:
        if run.restarts_all_s > now_s:
            due_s = min(due_s, run.restarts_all_s)
        if run.resize is not None:
            due_s = min(due_s, run.resize.due_s, run.resize.retry_s)
        for c in run.containers or ():
            due_s = min(due_s, c.due_s)
            if c.phase is RUNNING and c.ready_s > now_s:
                due_s = min(due_s, c.ready_s)
    return due_s
