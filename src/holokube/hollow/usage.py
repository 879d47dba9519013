"""What containers, pods and nodes use, as far as anybody who measures can tell. All pure.

What a container uses is said by the first of these that is there:

1. the pod's annotation ``holokube.dev/usage-cpu.CONTAINER`` (or ``usage-memory.CONTAINER``),
2. its annotation ``holokube.dev/usage-cpu`` (``usage-memory``), for each of its containers,
3. kwok's annotation ``kwok.x-k8s.io/usage-cpu`` (``usage-memory``), likewise for each container,
4. the profile: a curve, by default a share of the container's request.

The values are curves (``usage_syntax``); kwok's are plain quantities, which are curves too. One that cannot be
understood is passed over, and ``usage_problems`` tells of it. A container that does not run uses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from holokube.hollow.draws import KeyedDraws
from holokube.hollow.usage_curves import Curve, integral
from holokube.hollow.usage_syntax import check_curve, parse_curve
from holokube.kube.quantity import parse
from holokube.kube.timeformat import parse_time

What = Literal["cpu", "memory"]

OWN_PREFIX = "holokube.dev/usage-"
KWOK_PREFIX = "kwok.x-k8s.io/usage-"
_PREFIXES = (OWN_PREFIX, KWOK_PREFIX)
NANO = 1_000_000_000
_DRAWS = KeyedDraws("usage noise")
_EMPTY: Mapping[str, Any] = {}


class UsageProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is used where no annotation says it."""

    cpu: str = "30%"
    memory: str = "60%"
    """Curves, for containers that request something."""
    cpu_without_request: str = "1m"
    memory_without_request: str = "1Mi"
    """For containers that do not; kwok's defaults."""
    system_cpu_share: float = 0.01
    system_memory_share: float = 0.02
    """What the node itself uses of its capacity."""

    def __post_init__(self) -> None:
        for name in ("cpu", "memory", "cpu_without_request", "memory_without_request"):
            problem = check_curve(getattr(self, name))
            if problem:
                raise ValueError(f"{name}: {problem}")
        for name in ("system_cpu_share", "system_memory_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1")


DEFAULT_USAGE = UsageProfile()


@dataclass(frozen=True, slots=True)
class Usage:
    """At one moment, or on average over a while."""

    cpu_nano: int
    memory_bytes: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.cpu_nano + other.cpu_nano, self.memory_bytes + other.memory_bytes)


NOTHING = Usage(0, 0)


class ContainerUse(NamedTuple):
    """A container that runs, and its curves."""

    name: str
    start_s: float
    cpu: Curve
    memory: Curve

    def at(self, now_s: float) -> Usage:
        age_s = now_s - self.start_s
        if age_s < 0:
            return NOTHING
        cpu, memory = self.cpu.value(age_s, self.start_s), self.memory.value(age_s, self.start_s)
        return Usage(round(cpu * NANO), round(memory))

    def cpu_core_ns(self, now_s: float) -> int:
        """The counter: CPU time since the container started."""
        return int(integral(self.cpu, 0.0, now_s - self.start_s, self.start_s) * NANO)

    def average(self, begin_s: float, end_s: float) -> Usage:
        """CPU on average over a while, and memory at its end, as counters and gauges give them."""
        first_s = max(0.0, begin_s - self.start_s)
        cpu_s = integral(self.cpu, first_s, end_s - self.start_s, self.start_s)
        return Usage(round(cpu_s * NANO / (end_s - begin_s)), self.at(end_s).memory_bytes)


def running_containers(pod: Mapping[str, Any], profile: UsageProfile = DEFAULT_USAGE) -> list[ContainerUse]:
    """The containers of a pod that run, sidecars and the init container at work included."""
    return [container_use(pod, name, _unix_s(started), profile) for name, started in started_containers(pod)]


def container_use(
    pod: Mapping[str, Any], name: str, start_s: float, profile: UsageProfile = DEFAULT_USAGE
) -> ContainerUse:
    """A container that runs since ``start_s``."""
    container = _spec_of(pod, name)
    if not says_what_it_uses(pod):
        requests = (container.get("resources") or _EMPTY).get("requests") or _EMPTY
        shared = _shared_curves(requests.get("cpu"), requests.get("memory"), profile)
        if shared is not None:
            return ContainerUse(name, start_s, *shared)
    cpu, memory = curve_of(pod, container, "cpu", profile), curve_of(pod, container, "memory", profile)
    return ContainerUse(name, start_s, cpu, memory)


def says_what_it_uses(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has any annotation about what it uses; most have none."""
    for key in pod["metadata"].get("annotations") or ():  # noqa: SIM110 - any() with a generator costs twice as much
        if key.startswith(_PREFIXES):
            return True
    return False


@lru_cache(maxsize=4_096)
def _shared_curves(
    cpu: str | float | None, memory: str | float | None, profile: UsageProfile
) -> tuple[Curve, Curve] | None:
    """The curves of all containers that request so much and say nothing of their use; None if each has its own."""
    container = {"name": "", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    texts = (profile.cpu, profile.memory, profile.cpu_without_request, profile.memory_without_request)
    if any("noise" in text for text in texts):
        return None
    nobody: Mapping[str, Any] = {"metadata": {}}
    return curve_of(nobody, container, "cpu", profile), curve_of(nobody, container, "memory", profile)


def started_containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and start times of the containers that run."""
    status = pod.get("status")
    if not status or status.get("phase") in ("Succeeded", "Failed"):
        return
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(field) or ():
            running = (entry.get("state") or _EMPTY).get("running")
            started = running.get("startedAt") if running else None
            if started:
                yield entry["name"], started


def usage_of(
    pod: Mapping[str, Any], container: str, now_s: float, profile: UsageProfile = DEFAULT_USAGE
) -> Usage:
    """What one container uses now; nothing while it does not run."""
    for use in running_containers(pod, profile):
        if use.name == container:
            return use.at(now_s)
    return NOTHING


def pod_usage(pod: Mapping[str, Any], now_s: float, profile: UsageProfile = DEFAULT_USAGE) -> Usage:
    return sum((use.at(now_s) for use in running_containers(pod, profile)), NOTHING)


def system_usage(node: Mapping[str, Any], profile: UsageProfile = DEFAULT_USAGE) -> Usage:
    """What a node uses beside its pods, always the same."""
    status = node.get("status") or {}
    capacity = status.get("capacity") or status.get("allocatable") or {}
    return Usage(
        round(_number(capacity.get("cpu")) * profile.system_cpu_share * NANO),
        round(_number(capacity.get("memory")) * profile.system_memory_share),
    )


def curve_of(
    pod: Mapping[str, Any], container: Mapping[str, Any], what: What, profile: UsageProfile = DEFAULT_USAGE
) -> Curve:
    """The curve of one container of a pod."""
    name = container["name"]
    annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    request = _number(((container.get("resources") or {}).get("requests") or {}).get(what))
    for key in _keys(what, name) if annotations else ():
        text = annotations.get(key)
        if text is not None and not check_curve(text):
            return _compiled(text, request, pod, name, what)
    fallback = getattr(profile, what if request else f"{what}_without_request")
    return _compiled(fallback, request, pod, name, what)


def usage_problems(pod: Mapping[str, Any]) -> list[str]:
    """Annotations about usage that cannot be understood, each with its reason."""
    annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    names = {c["name"] for field in ("initContainers", "containers") for c in pod["spec"].get(field) or ()}
    found = []
    for key, text in annotations.items():
        if not key.startswith(_PREFIXES):
            continue
        what, _, container = key.partition("/usage-")[2].partition(".")
        if what not in ("cpu", "memory"):
            found.append(f"{key}: there is no usage of {what!r}, only of cpu and memory")
        elif container and container not in names:
            found.append(f"{key}: the pod has no container {container!r}")
        else:
            problem = check_curve(text)
            if problem:
                found.append(f"{key}: {problem}")
    return found


def _keys(what: What, container: str) -> tuple[str, ...]:
    return f"{OWN_PREFIX}{what}.{container}", f"{OWN_PREFIX}{what}", f"{KWOK_PREFIX}{what}"


def _spec_of(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    spec = pod.get("spec") or {}
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            if container["name"] == name:
                return container  # type: ignore[no-any-return]  # pods are plain JSON
    return {"name": name}


def _compiled(text: str, request: float, pod: Mapping[str, Any], container: str, what: What) -> Curve:
    """Most pods share their curve with all others of their template; noise is a container's own."""
    if "noise" not in text:
        return _parsed(text, request, "")
    meta = pod["metadata"]
    return _parsed(text, request, f"{meta.get('uid') or meta.get('name')}/{container}/{what}")


@lru_cache(maxsize=16_384)
def _parsed(text: str, request: float, seed: str) -> Curve:
    return parse_curve(
        text, request=request, phases=lambda: (_DRAWS(f"{seed}/0"), _DRAWS(f"{seed}/1"), _DRAWS(f"{seed}/2"))
    )


@lru_cache(maxsize=16_384)
def _number(quantity: str | float | None) -> float:
    return 0.0 if quantity is None else float(parse(quantity))


@lru_cache(maxsize=65_536)
def _unix_s(text: str) -> float:
    return parse_time(text).timestamp()
