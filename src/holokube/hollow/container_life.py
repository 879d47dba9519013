"""The life of one container: pulled, created, started, ended, started again.

A kubelet restarts a container at once the first time; from the second end on it waits, 10 s doubling to 5 min,
counted from the end. A run of ten minutes makes it forget.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from holokube.hollow.draws import Draw
from holokube.hollow.pod_state import (
    NEVER_S,
    RUNNING,
    TERMINATED,
    Command,
    ContainerRun,
    EmitEvent,
    Phase,
    PodRun,
)
from holokube.hollow.profile import Duration, seconds
from holokube.kube.timeformat import format_duration, format_time
from holokube.kube.types import JsonObject

# A kubelet shows ErrImagePull until its next look at the pod, and only then the back-off.
_PULL_ERROR_SHOWS_S = 2.0
_KILLED_EXIT_CODE = 137
RESTART_ALL = "RestartAllContainers"
RESTARTING_ALL = "RestartingAllContainers"
_REMOVED_MESSAGE = "The container is removed because RestartAllContainers in place"
# A kubelet removes all containers before it looks at the pod again and starts the first of them.
_RESTART_ALL_S = 1.0


class ContainerLife:
    """Moves the containers of one pod forward; the commands it gives are events only."""

    def __init__(self, pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> None:
        self.pod = pod
        self.run = run
        self.now_s = now_s
        self.draw = draw
        self.commands: list[Command] = []
        self._specs: dict[str, JsonObject] = {}
        spec = pod["spec"]
        for key in ("initContainers", "containers", "ephemeralContainers"):
            for container in spec.get(key) or ():
                self._specs[container["name"]] = container

    def spec_of(self, container: ContainerRun) -> JsonObject:
        return self._specs[container.name]

    def delay(self, duration: Duration, purpose: str) -> float:
        """A duration of the profile, stretched on a slow node."""
        return seconds(duration, self.draw, f"{self.run.uid}/{purpose}") * self.run.host.slow_factor

    def event(self, type: str, reason: str, message: str, container: ContainerRun | None = None) -> None:
        if not self.run.profile.events:
            return
        path = ""
        if container is not None:
            field = {"init": "initContainers", "sidecar": "initContainers", "ephemeral": "ephemeralContainers"}
            path = f"spec.{field.get(container.kind, 'containers')}{{{container.name}}}"
        self.commands.append(EmitEvent("Warning" if type == "Warning" else "Normal", reason, message, path))

    def advance(self, c: ContainerRun) -> None:
        """Takes every step that is due."""
        while True:
            before = (c.phase, c.restarts, c.due_s)
            if c.phase is Phase.WAITING:
                self._fetch_image(c)
            elif c.due_s > self.now_s:
                return
            elif c.phase is Phase.PULLING:
                self._pulled(c)
            elif c.phase is Phase.PULL_FAILED:
                self._back_off_pull(c)
            elif c.phase is Phase.PULL_BACKOFF:
                self._begin_pull(c)
            elif c.phase is Phase.STARTING:
                self._started(c)
            elif c.phase is RUNNING:
                self._ended(c)
            elif c.phase is Phase.BACKOFF:
                self._restart(c)
            if before == (c.phase, c.restarts, c.due_s):
                return

    def _fetch_image(self, c: ContainerRun) -> None:
        spec = self.spec_of(c)
        policy = spec.get("imagePullPolicy")
        fails = self._pull_error(c)
        if policy == "Never" and not fails:
            present = True
        else:
            present = not (fails or policy == "Always" or self.run.profile.pull_always)
        if not present:
            self._begin_pull(c)
            return
        # Since 1.35 the kubelet says that the pod's credentials were checked, unless nothing may be pulled.
        checked = "" if policy == "Never" else " and can be accessed by the pod"
        image = spec.get("image", "")
        self.event("Normal", "Pulled", f'Container image "{image}" already present on machine{checked}', c)
        self._begin_start(c)

    def _pull_error(self, c: ContainerRun) -> str:
        behaviour, profile = self.run.behaviour, self.run.profile
        if behaviour.failure == "ErrImagePull" and self._is_the_one(c):
            return behaviour.failure_message or self._not_found(c)
        if profile.pull_failure_rate and self.draw(f"{self.run.uid}/{c.name}/pull") < profile.pull_failure_rate:
            return self._not_found(c)
        return ""

    def _not_found(self, c: ContainerRun) -> str:
        image = self.spec_of(c).get("image", "")
        return (
            f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
            f'failed to resolve reference "{image}": {image}: not found'
        )

    def _is_the_one(self, c: ContainerRun) -> bool:
        """Whether a failure asked for by annotation is this container's; by default the first one's."""
        behaviour = self.run.behaviour
        if behaviour.failure_container:
            return c.name == behaviour.failure_container
        if behaviour.failure_kind:
            return c.kind == behaviour.failure_kind
        return c.name == str(self.pod["spec"]["containers"][0]["name"])

    def _begin_pull(self, c: ContainerRun) -> None:
        c.phase = Phase.PULLING
        c.due_s = self.now_s + self.delay(self.run.profile.pull, f"{c.name}/{c.restarts}/{c.pull_failures}/pull")
        self.event("Normal", "Pulling", f'Pulling image "{self.spec_of(c).get("image", "")}"', c)

    def _pulled(self, c: ContainerRun) -> None:
        image = self.spec_of(c).get("image", "")
        error = self._pull_error(c)
        if error:
            self.event("Warning", "Failed", f'Failed to pull image "{image}": {error}', c)
            self.event("Warning", "Failed", "Error: ErrImagePull", c)
            c.phase, c.due_s, c.message = Phase.PULL_FAILED, self.now_s + _PULL_ERROR_SHOWS_S, error
            c.pull_failures += 1
            return
        c.pull_failures, c.message = 0, ""
        took = self.delay(self.run.profile.pull, f"{c.name}/{c.restarts}/{c.pull_failures}/pull")
        text = format_duration(round(took, 3))
        self.event(
            "Normal", "Pulled",
            f'Successfully pulled image "{image}" in {text} ({text} including waiting). '
            f"Image size: {self.run.profile.image_bytes} bytes.", c,
        )  # fmt: skip
        self._begin_start(c)

    def _back_off_pull(self, c: ContainerRun) -> None:
        image = self.spec_of(c).get("image", "")
        c.phase = Phase.PULL_BACKOFF
        c.backoff_s = self._backoff_s(c.pull_failures)
        c.due_s = self.now_s + c.backoff_s
        self.event("Normal", "BackOff", f'Back-off pulling image "{image}"', c)
        self.event("Warning", "Failed", "Error: ImagePullBackOff", c)

    def _begin_start(self, c: ContainerRun) -> None:
        c.phase = Phase.STARTING
        wait_s = self.delay(self.run.profile.start, f"{c.name}/{c.restarts}/start")
        if c.restarts == 0 and c.kind == "main" and self.run.behaviour.start_s is not None:
            wait_s = self.run.behaviour.start_s
        elif c.restarts == 0 and c.kind in ("init", "sidecar") and self.run.behaviour.init_start_s is not None:
            wait_s = self.run.behaviour.init_start_s
        c.due_s = self.now_s + wait_s

    def _started(self, c: ContainerRun) -> None:
        c.phase, c.started_s, c.container_id = RUNNING, self.now_s, ""
        self.event("Normal", "Created", "Container created", c)
        self.event("Normal", "Started", "Container started", c)
        c.ready_s = self.now_s + self.readiness_delay_s(c)
        self.plan_end(c)

    def readiness_delay_s(self, c: ContainerRun) -> float:
        spec = self.spec_of(c)
        probes = [probe for key in ("readinessProbe", "startupProbe") if (probe := spec.get(key)) is not None]
        if self.run.behaviour.ready_s is not None and c.kind == "main":
            return self.run.behaviour.ready_s
        if not probes:
            return 0.0
        initial_s = max(float(probe.get("initialDelaySeconds") or 0) for probe in probes)
        return initial_s + self.delay(self.run.profile.ready, f"{c.name}/{c.restarts}/ready")

    def plan_end(self, c: ContainerRun) -> None:
        """Decides when and how a running container ends by itself."""
        behaviour, profile, key = self.run.behaviour, self.run.profile, f"{c.name}/{c.restarts}"
        c.due_s, c.exit_code, c.reason, c.message = NEVER_S, 0, "Completed", ""
        if c.kind == "ephemeral":
            return
        if behaviour.failure and behaviour.failure != "ErrImagePull" and self._is_the_one(c):
            after_s = behaviour.fails_after_s
            c.due_s = c.started_s + (self.delay(profile.crash_after, key + "/crash") if after_s is None else after_s)
            c.exit_code, c.reason, c.message = behaviour.exit_code, behaviour.failure, behaviour.failure_message
        elif c.kind == "init":
            run_s = behaviour.init_run_s
            c.due_s = c.started_s + (self.delay(profile.init_run, key + "/run") if run_s is None else run_s)
        elif c.kind == "main" and (run_s := self._run_s(key)) is not None:
            c.due_s = c.started_s + run_s
            c.exit_code, c.message = behaviour.exit_code, behaviour.termination_message
            c.reason = "Completed" if c.exit_code == 0 else "Error"
        elif profile.crash_rate and self.draw(f"{self.run.uid}/{c.name}/crashes") < profile.crash_rate:
            c.due_s = c.started_s + self.delay(profile.crash_after, key + "/crash")
            c.exit_code, c.reason = profile.crash_exit_code, profile.crash_reason

    def _run_s(self, key: str) -> float | None:
        behaviour = self.run.behaviour
        if behaviour.run_s is not None:
            return behaviour.run_s
        if not any(owner.get("kind") == "Job" for owner in self.pod["metadata"].get("ownerReferences") or ()):
            return None
        if behaviour.job_run_s is not None:
            return behaviour.job_run_s
        return self.delay(self.run.profile.job_run, key + "/job")

    def _ended(self, c: ContainerRun) -> None:
        c.phase, c.finished_s, c.due_s = TERMINATED, self.now_s, NEVER_S
        self.after_end(c)

    def after_end(self, c: ContainerRun) -> None:
        """Whether an ended container is started again, and when."""
        if c.kind == "ephemeral" or not restarts_after(self.spec_of(c), self.pod["spec"], c.exit_code, c.kind):
            return
        if restart_rule(self.spec_of(c), c.exit_code) == RESTART_ALL:
            self._restart(c)
            self.restart_all(c)
            return
        if c.finished_s - c.started_s > self.run.profile.backoff_reset_s:
            c.failures = 0
        c.failures += 1
        if c.failures == 1:
            self._restart(c)
            return
        c.backoff_s = self._backoff_s(c.failures - 1)
        c.phase, c.due_s = Phase.BACKOFF, c.finished_s + c.backoff_s
        self.event("Warning", "BackOff", f"Back-off restarting failed container {c.name} in pod {self.run.title}", c)

    def _restart(self, c: ContainerRun) -> None:
        c.last = terminated_state(c, self.run.uid)
        c.restarts += 1
        c.phase, c.due_s, c.message = Phase.WAITING, NEVER_S, ""

    def start_again(self, c: ContainerRun) -> None:
        """Starts a container that was ended for this purpose, whatever its restart policy says."""
        self._restart(c)

    def restart_all(self, trigger: ContainerRun) -> None:
        """All containers go, and the pod begins with its init containers again, in the same sandbox."""
        for c in self.run.containers or ():
            if c is trigger or c.kind == "ephemeral" or c.phase not in (RUNNING, TERMINATED):
                continue
            if c.phase is RUNNING:
                self.event("Normal", "Killing", f"Stopping container {c.name}", c)
                self.kill(c, exit_code=_KILLED_EXIT_CODE)
            c.exit_code, c.reason, c.message = _KILLED_EXIT_CODE, RESTARTING_ALL, _REMOVED_MESSAGE
            self._restart(c)
        self.run.initialized = False
        self.run.restarts_all_s = self.now_s + _RESTART_ALL_S

    def stop_s(self, c: ContainerRun) -> float:
        """How long a container takes to stop: its preStop hook, then the program itself."""
        asked_s = self.run.behaviour.stop_s
        hook = ((self.spec_of(c).get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {}
        stop_s = self.delay(self.run.profile.stop, "stop") if asked_s is None else asked_s
        return float(hook.get("seconds") or 0) + stop_s

    def _backoff_s(self, failures: int) -> float:
        profile = self.run.profile
        return float(min(profile.backoff_max_s, profile.backoff_base_s * 2 ** min(failures - 1, 30)))

    def kill(self, c: ContainerRun, *, exit_code: int, reason: str = "", at_s: float | None = None) -> None:
        """Ends a container for good, whatever it does; ``at_s`` if it has ended before now."""
        if c.phase is RUNNING:
            c.exit_code = exit_code
            c.reason = reason or ("Completed" if exit_code == 0 else "Error")
            c.message, c.finished_s = "", self.now_s if at_s is None else at_s
            c.phase, c.due_s = TERMINATED, NEVER_S
        else:
            c.due_s = NEVER_S


def restart_rule(spec: Mapping[str, Any], exit_code: int) -> str:
    """The action of the first of a container's rules that knows the exit code; rules need a policy of its own."""
    if spec.get("restartPolicy") is None:
        return ""
    for rule in spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In"):
            return str(rule.get("action") or "")
    return ""


def restarts_after(spec: Mapping[str, Any], pod_spec: Mapping[str, Any], exit_code: int, kind: str) -> bool:
    """Whether a container is started again after this exit code: its own rules, its own policy, the pod's."""
    if restart_rule(spec, exit_code) in ("Restart", RESTART_ALL):
        return True
    policy = spec.get("restartPolicy") or pod_spec.get("restartPolicy") or "Always"
    if kind == "init":
        # An init container that has succeeded is never run again, whatever the policy says.
        return exit_code != 0 and policy != "Never"
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def may_restart_all(pod_spec: Mapping[str, Any]) -> bool:
    """Whether one container of a pod can make all of them start again; asked for every status, so it is quick."""
    for key in ("containers", "initContainers"):
        for container in pod_spec.get(key) or ():
            rules = container.get("restartPolicyRules")
            if rules and any(rule.get("action") == RESTART_ALL for rule in rules):
                return True
    return False


def terminated_state(c: ContainerRun, uid: str) -> JsonObject:
    """``state.terminated`` of a container that has ended."""
    state: JsonObject = {
        "exitCode": c.exit_code,
        "reason": c.reason,
        "startedAt": format_time(c.started_s),
        "finishedAt": format_time(c.finished_s),
        "containerID": container_id(c, uid),
    }
    if c.message:
        state["message"] = c.message
    return state


def container_id(c: ContainerRun, uid: str) -> str:
    """The id of the present run of a container."""
    return c.container_id or derived_id(uid, c.name, c.restarts)


def derived_id(uid: str, name: str, restarts: int) -> str:
    """As ``stable_hex`` of 64 digits has it."""
    made = _unused_hash.copy()
    made.update(f"{uid}/{name}/{restarts}".encode())
    return f"containerd://{made.hexdigest()}"


_unused_hash = blake2b(digest_size=32)
"""To copy one is quicker than to make one."""


def kill_exit_code(stop_s: float, grace_s: float, exit_code: int) -> int:
    """A container that does not end within the grace period is killed."""
    return _KILLED_EXIT_CODE if stop_s > grace_s else exit_code
