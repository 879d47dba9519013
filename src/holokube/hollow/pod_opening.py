"""The usual beginning of a pod's life, taken in one stride: admitted, given an address, all containers running.

Where no time passes between these steps, and nothing about the pod asks for special care, what the state machine
of ``pod_life`` makes of a new pod is the same for all pods of a template, except for times, addresses and ids. It is
then put together from what is known of the template. Whatever is not plain goes through the machine itself.

A server that keeps what pods have in common once hands out the same list of containers with each pod of a template.
That is how a template is known again; the list is held, so that another one cannot come to lie in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.hollow.container_life import derived_id
from holokube.hollow.images import image_id
from holokube.hollow.pod_state import (
    ALIVE,
    NEVER_S,
    RUNNING,
    ContainerRun,
    PatchStatus,
    PlainContainer,
    PodRun,
    Step,
    Template,
)
from holokube.hollow.pod_status import resources_and_mounts
from holokube.hollow.profile import PodProfile
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

_KEPT: Final = 4096
SPECIAL: Final = frozenset(
    ("initContainers", "ephemeralContainers", "readinessGates", "activeDeadlineSeconds", "hostNetwork")
)
"""Fields of a pod's spec that make its beginning a matter of several steps, or of others."""
_SPECIAL_OF_CONTAINERS: Final = frozenset(("readinessProbe", "startupProbe", "restartPolicyRules"))
_FRESH: Final = frozenset(("phase", "qosClass", "conditions"))
"""What a pod's status has before its kubelet has said anything."""
CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class Openings:
    """What is known of templates; a bounded number of them."""

    def __init__(self) -> None:
        self._templates: dict[int, tuple[list[JsonObject], Template | None]] = {}
        self._profile: PodProfile | None = None
        self._is_instant = False
        self._moment: tuple[str, Any, list[JsonObject], JsonObject] = ("", None, [], {})

    def take(self, pod: Mapping[str, Any], run: PodRun, now_s: float) -> Step | None:
        """The first step of a new pod, all the way to running; None, and nothing done, if it needs several."""
        profile, host = run.profile, run.host
        if profile is not self._profile:
            self._meet(profile)
        spec, metadata = pod["spec"], pod["metadata"]
        if not self._is_instant or not spec.keys().isdisjoint(SPECIAL):
            return None
        if not is_fresh(pod) or not _is_plain(metadata, run):
            return None
        template, host_ips = self._template(spec["containers"]), host.host_ips
        if template is None or not host_ips:
            return None
        if profile.admission and host.admit(pod) is not None:
            return None
        addresses = host.take_addresses()
        if not addresses:
            return None
        now, generation = format_time(now_s), metadata.get("generation")
        conditions, running = self._at(now, generation)
        statuses = []
        for each in template.containers:
            entry = each.running.copy()
            entry["state"] = running
            entry["containerID"] = derived_id(run.uid, each.name, 0)
            statuses.append(entry)
        status: JsonObject = {
            "phase": "Running",
            "hostIP": host_ips[0],
            "hostIPs": [{"ip": host_ips[0]}] if len(host_ips) == 1 else [{"ip": ip} for ip in host_ips],
            "podIP": addresses[0],
            "podIPs": [{"ip": addresses[0]}] if len(addresses) == 1 else [{"ip": ip} for ip in addresses],
            "startTime": now,
            "containerStatuses": statuses,
        }
        if generation:
            status["observedGeneration"] = generation
        status["conditions"] = conditions
        due_s = _begin(run, template, addresses, now_s)
        return Step((PatchStatus({"metadata": {"uid": metadata["uid"]}, "status": status}),), due_s)

    def _meet(self, profile: PodProfile) -> None:
        self._profile = profile
        delays = (profile.sandbox, profile.pull, profile.start)
        fails = profile.pull_failure_rate or profile.crash_rate
        self._is_instant = not (profile.events or fails or any(delay != 0.0 for delay in delays))

    def _template(self, listed: list[JsonObject]) -> Template | None:
        """What is known of a template's containers; None if they are special."""
        known = self._templates.get(id(listed))
        if known is not None and known[0] is listed:
            return known[1]
        made = None
        if listed and all(_SPECIAL_OF_CONTAINERS.isdisjoint(container) for container in listed):
            made = Template(
                listed,
                tuple(_container(container) for container in listed),
                any(container.get("lifecycle") for container in listed),
                any(container.get("restartPolicy") for container in listed),
            )
        if len(self._templates) >= _KEPT:
            self._templates.clear()
        self._templates[id(listed)] = listed, made
        return made

    def _at(self, now: str, generation: Any) -> tuple[list[JsonObject], JsonObject]:
        """The conditions of pods that begin to run now, and the state of their containers; the same objects for all
        that do so within a second."""
        at, of_generation, conditions, running = self._moment
        if at != now or of_generation != generation:
            observed = {"observedGeneration": generation} if generation else {}
            conditions = [
                {"type": kind, "status": "True", **observed, "lastTransitionTime": now} for kind in CONDITIONS
            ]
            running = {"running": {"startedAt": now}}
            self._moment = now, generation, conditions, running
        return [*conditions], running


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


def _container(spec: JsonObject) -> PlainContainer:
    name, image = spec["name"], spec.get("image", "")
    id_of_image = image_id(image)
    running: JsonObject = {
        "name": name,
        "image": image,
        "imageID": id_of_image,
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {},
        "containerID": "",
        **resources_and_mounts(spec),
    }
    return PlainContainer(name, image, id_of_image, running)


def _begin(run: PodRun, template: Template, addresses: tuple[str, ...], now_s: float) -> float:
    """Notes that all containers run, and returns when they end by themselves."""
    asked = run.behaviour
    due_s, exit_code, message = NEVER_S, 0, ""
    if asked.run_s is not None:
        due_s, exit_code, message = now_s + asked.run_s, asked.exit_code, asked.termination_message
    reason = "Completed" if exit_code == 0 else "Error"
    run.containers = [
        ContainerRun(each.name, "main", RUNNING, due_s, 0, now_s, now_s, 0.0, exit_code, reason, message)
        for each in template.containers
    ]
    run.start_s, run.addresses, run.stage, run.due_s = now_s, addresses, ALIVE, NEVER_S
    run.initialized = True
    run.drifts, run.drift_until_s = 0, 0.0
    run.opened = template
    return due_s
