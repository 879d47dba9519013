"""The usual beginning of a pod's life, taken in one stride: admitted, given an address, all containers running.

Where no time passes between these steps, and nothing about the pod asks for special care, what the state machine
of ``pod_life`` makes of a new pod is the same for all pods of a template, except for times, addresses and ids. It is
then put together from what is known of the template. Whatever is not plain goes through the machine itself.

A server that keeps what pods have in common once hands out the same list of containers with each pod of a template.
That is how a template is known again; the list is held, so that another one cannot come to lie in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.hollow.container_life import derived_id
from holokube.hollow.images import image_id
from holokube.hollow.pod_state import NEVER_S, ContainerRun, PatchStatus, Phase, PodRun, Stage, Step
from holokube.hollow.pod_status import resources_and_mounts
from holokube.hollow.profile import PodProfile
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

_KEPT: Final = 4096
_SPECIAL: Final = frozenset(
    ("initContainers", "ephemeralContainers", "readinessGates", "activeDeadlineSeconds", "hostNetwork")
)
"""Fields of a pod's spec that make its beginning a matter of several steps, or of others."""
_SPECIAL_OF_CONTAINERS: Final = frozenset(("readinessProbe", "startupProbe", "restartPolicyRules"))
_FRESH: Final = frozenset(("phase", "qosClass", "conditions"))
"""What a pod's status has before its kubelet has said anything."""
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(slots=True)
class _Container:
    """What the status of a running container says of its template."""

    name: str
    image: str
    image_id: str
    resources: JsonObject


class Openings:
    """What is known of templates; a bounded number of them."""

    def __init__(self) -> None:
        self._templates: dict[int, tuple[list[JsonObject], tuple[_Container, ...] | None]] = {}
        self._profile: PodProfile | None = None
        self._is_instant = False
        self._conditions: tuple[str, Any, list[JsonObject]] = ("", None, [])

    def take(self, pod: Mapping[str, Any], run: PodRun, now_s: float) -> Step | None:
        """The first step of a new pod, all the way to running; None, and nothing done, if it needs several."""
        spec, metadata = pod["spec"], pod["metadata"]
        if not (self._fits_profile(run.profile) and _SPECIAL.isdisjoint(spec) and is_fresh(pod)):
            return None
        if not _is_plain(metadata, run):
            return None
        containers = self._containers(spec["containers"])
        host_ips = run.host.host_ips
        if not containers or not host_ips:
            return None
        if run.profile.admission and run.host.admit(pod) is not None:
            return None
        addresses = run.host.take_addresses()
        if not addresses:
            return None
        now = format_time(now_s)
        status: JsonObject = {
            "phase": "Running",
            "hostIP": host_ips[0],
            "hostIPs": [{"ip": ip} for ip in host_ips],
            "podIP": addresses[0],
            "podIPs": [{"ip": ip} for ip in addresses],
            "startTime": now,
            "containerStatuses": [_status(each, run.uid, now) for each in containers],
        }
        generation = metadata.get("generation")
        if generation:
            status["observedGeneration"] = generation
        status["conditions"] = self._conditions_at(now, generation)
        due_s = _begin(run, containers, addresses, now_s)
        return Step((PatchStatus({"metadata": {"uid": metadata["uid"]}, "status": status}),), due_s)

    def _fits_profile(self, profile: PodProfile) -> bool:
        if profile is not self._profile:
            self._profile = profile
            delays = (profile.sandbox, profile.pull, profile.start)
            fails = profile.pull_failure_rate or profile.crash_rate
            self._is_instant = not (profile.events or fails or any(delay != 0.0 for delay in delays))
        return self._is_instant

    def _containers(self, listed: list[JsonObject]) -> tuple[_Container, ...] | None:
        """What is known of a template's containers; None if they are special."""
        known = self._templates.get(id(listed))
        if known is not None and known[0] is listed:
            return known[1]
        made = None
        if all(_SPECIAL_OF_CONTAINERS.isdisjoint(container) for container in listed):
            made = tuple(_container(container) for container in listed)
        if len(self._templates) >= _KEPT:
            self._templates.clear()
        self._templates[id(listed)] = listed, made
        return made

    def _conditions_at(self, now: str, generation: Any) -> list[JsonObject]:
        """The conditions of pods that begin to run now; the same objects for all that do so within a second."""
        at, of_generation, conditions = self._conditions
        if at != now or of_generation != generation:
            observed = {"observedGeneration": generation} if generation else {}
            conditions = [
                {"type": kind, "status": "True", **observed, "lastTransitionTime": now} for kind in _CONDITIONS
            ]
            self._conditions = now, generation, conditions
        return [*conditions]


def is_fresh(pod: Mapping[str, Any]) -> bool:
    """Whether nobody but the scheduler has said anything about a pod."""
    status = pod.get("status")
    if not status or status.get("phase") != "Pending" or not _FRESH.issuperset(status):
        return False
    conditions = status.get("conditions") or []
    if len(conditions) != 1:
        return False
    return bool(conditions[0].get("type") == "PodScheduled" and conditions[0].get("status") == "True")


def _is_plain(metadata: Mapping[str, Any], run: PodRun) -> bool:
    """Whether neither the pod's end nor its annotations make more of its beginning."""
    if metadata.get("deletionTimestamp"):
        return False
    asked = run.behaviour
    if asked.problems or asked.failure or asked.sandbox_s or asked.start_s or asked.ready_s:
        return False
    if asked.run_s is not None:
        # One that ends as soon as it runs is never seen running.
        return asked.run_s > 0
    for owner in metadata.get("ownerReferences") or ():  # noqa: SIM110 - all() with a generator costs twice as much
        if owner.get("kind") == "Job":
            return False
    return True


def _container(spec: JsonObject) -> _Container:
    image = spec.get("image", "")
    return _Container(spec["name"], image, image_id(image), resources_and_mounts(spec))


def _status(container: _Container, uid: str, now: str) -> JsonObject:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": container.image_id,
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": now}},
        "containerID": derived_id(uid, container.name, 0),
        **container.resources,
    }


def _begin(run: PodRun, containers: tuple[_Container, ...], addresses: tuple[str, ...], now_s: float) -> float:
    """Notes that all containers run, and returns when the first of them ends by itself."""
    asked = run.behaviour
    due_s, exit_code, message = NEVER_S, 0, ""
    if asked.run_s is not None:
        due_s, exit_code, message = now_s + asked.run_s, asked.exit_code, asked.termination_message
    reason = "Completed" if exit_code == 0 else "Error"
    run.containers = [
        ContainerRun(each.name, "main", Phase.RUNNING, due_s, 0, now_s, now_s, 0.0, exit_code, reason, message)
        for each in containers
    ]
    run.start_s, run.addresses, run.stage, run.due_s = now_s, addresses, Stage.ALIVE, NEVER_S
    run.initialized = True
    run.drifts, run.drift_until_s = 0, 0.0
    return due_s
