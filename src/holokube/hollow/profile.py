"""What hollow nodes and pods do by default: a typed YAML file in which an unknown field is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from holokube.base.errors import UsageError
from holokube.hollow.draws import Draw, exponential
from holokube.hollow.usage import DEFAULT_USAGE, UsageProfile
from holokube.kube.node_flags import DEFAULT_CAPACITY
from holokube.kube.timeformat import parse_duration


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution of durations: uniform from ``min_s`` to ``max_s``, or with ``mean_s`` exponential above ``min_s``.

    An exponential one is cut at ``max_s``, if given.
    """

    min_s: float = 0.0
    max_s: float | None = None
    mean_s: float | None = None

    def __post_init__(self) -> None:
        if self.min_s < 0:
            raise ValueError("min_s must not be negative")
        if self.max_s is not None and self.max_s < self.min_s:
            raise ValueError("max_s must not be below min_s")
        if self.mean_s is not None and self.mean_s < self.min_s:
            raise ValueError("mean_s must not be below min_s")
        if self.mean_s is None and self.max_s is None:
            raise ValueError("a spread needs max_s (uniform) or mean_s (exponential)")

    def at(self, u: float) -> float:
        """The value at a place in [0, 1)."""
        if self.mean_s is None:
            assert self.max_s is not None
            return round(self.min_s + (self.max_s - self.min_s) * u, 3)
        value = self.min_s + exponential(u, self.mean_s - self.min_s)
        return value if self.max_s is None else min(value, self.max_s)


Duration = float | str | Spread
"""Seconds, a Go duration such as ``1m30s``, or a distribution."""


def seconds(duration: Duration, draw: Draw, key: str) -> float:
    """A duration in seconds; only distributions draw."""
    if isinstance(duration, Spread):
        return duration.at(draw(key))
    return parse_duration(duration) if isinstance(duration, str) else duration


def _check_duration(name: str, duration: Duration) -> None:
    if isinstance(duration, str):
        try:
            duration = parse_duration(duration)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if not isinstance(duration, Spread) and duration < 0:
        raise ValueError(f"{name} must not be negative")


class PodProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pods live. With all times zero a pod goes to Running in one step, which is one status patch."""

    sandbox: Duration = 0.0
    """From admission to a network and an address."""
    pull: Duration = 0.0
    """Per image that has to be pulled."""
    pull_always: bool = False
    """Images count as absent for every container, not only for those with imagePullPolicy Always."""
    start: Duration = 0.0
    """From an image to a running container."""
    init_run: Duration = 0.0
    """How long an init container runs."""
    ready: Duration = 0.0
    """From running to ready, for containers with a readiness or startup probe, besides its initialDelaySeconds."""
    job_run: Duration = 1.0
    """How long the containers of a Job's pod run."""
    stop: Duration = 0.0
    """From SIGTERM to the end of a container, at most the grace period."""
    resize: Duration = 0.0
    """From a resize that fits to the containers having it."""
    stop_exit_code: int = 0
    """With which a container ends after SIGTERM."""
    final_status: bool = False
    """Whether a deleted pod shows how its containers ended before it goes."""
    image_bytes: int = 50_000_000
    events: bool = False
    admission: bool = True
    backoff_base_s: float = 10.0
    backoff_max_s: float = 300.0
    backoff_reset_s: float = 600.0
    """After so long a run the next restart waits the base time again."""
    pull_failure_rate: float = 0.0
    crash_rate: float = 0.0
    """The share of containers that fail, every time they run, after ``crash_after``."""
    crash_after: Duration = 5.0
    crash_exit_code: int = 1
    crash_reason: str = "Error"

    def __post_init__(self) -> None:
        for name in ("sandbox", "pull", "start", "init_run", "ready", "job_run", "stop", "resize", "crash_after"):
            _check_duration(name, getattr(self, name))
        for name in ("pull_failure_rate", "crash_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1")
        if not 0 < self.backoff_base_s <= self.backoff_max_s:
            raise ValueError("backoff_base_s must be above zero and at most backoff_max_s")


FAST = PodProfile()
"""One status patch per pod, no events: the least work for everybody."""

KUBELET = PodProfile(
    sandbox=Spread(min_s=0.3, max_s=1.0),
    pull=Spread(min_s=0.5, mean_s=2.0, max_s=30.0),
    start=Spread(min_s=0.2, max_s=0.6),
    init_run=Spread(min_s=0.5, max_s=2.0),
    ready=Spread(min_s=0.1, max_s=1.0),
    job_run=Spread(min_s=1.0, mean_s=10.0, max_s=60.0),
    stop=Spread(min_s=0.1, max_s=1.5),
    resize=Spread(min_s=0.5, max_s=2.0),
    final_status=True,
    events=True,
)
"""What a real kubelet sends: every phase shows, with its events."""

POD_PROFILES = {"fast": FAST, "kubelet": KUBELET}


class NodeProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What nodes are, where their Node object does not say."""

    capacity: dict[str, str] = msgspec.field(default_factory=lambda: dict(DEFAULT_CAPACITY))
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    """Empty means all of the capacity."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """For nodes that the fleet registers itself."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    taints: list[dict[str, str]] = msgspec.field(default_factory=list)
    conditions: list[dict[str, str]] = msgspec.field(default_factory=list)
    """Reported besides the kubelet's own, such as those of a problem detector: type, status, reason, message."""
    architecture: str = "amd64"
    operating_system: str = "linux"
    os_image: str = "Hollow Linux"
    kernel_version: str = "6.12.0-hollow"
    container_runtime_version: str = "containerd://2.1.4"
    kubelet_version: str = "v1.36.3"
    kubelet_port: int = 10250
    node_cidr: str = "100.64.0.0/10"
    """Internal addresses, for nodes that have none."""
    node_ip: str = ""
    """One internal address for all nodes, that of a kubelet endpoint say, instead of ``node_cidr``."""
    hostname_address: bool = True
    """Whether the name is told as an address too, as kubelets do; API servers then look it up for ``kubectl logs``."""
    pod_cidr: str = "10.128.0.0/9"
    """Split into one block per node, for nodes without spec.podCIDR."""
    pod_block_bits: int = 24
    report_every_s: float = 300.0
    """How often an unchanged status is reported; 10 gives the heartbeat of the time before leases."""
    reboot_s: float = 30.0
    slow_factor: float = 10.0
    """By how much a node with the fault ``slow`` takes longer for everything."""
    events: bool = False
    images: bool = False
    """Whether the images of its pods are told with the status."""

    def __post_init__(self) -> None:
        if self.report_every_s <= 0:
            raise ValueError("report_every_s must be above zero")
        if self.slow_factor < 1:
            raise ValueError("slow_factor must be at least 1")
        for condition in self.conditions:
            if not condition.get("type") or set(condition) - {"type", "status", "reason", "message"}:
                raise ValueError("a condition has type, status, reason and message, and needs the type")
            if condition.get("status", "True") not in ("True", "False", "Unknown"):
                raise ValueError(f"the status of condition {condition['type']} must be True, False or Unknown")


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a profile file."""

    base: Literal["fast", "kubelet"] = "fast"
    pods: PodProfile = FAST
    nodes: NodeProfile = msgspec.field(default_factory=NodeProfile)
    usage: UsageProfile = DEFAULT_USAGE


class _ProfileFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    base: Literal["fast", "kubelet"] = "fast"
    pods: dict[str, object] = msgspec.field(default_factory=dict)
    nodes: dict[str, object] = msgspec.field(default_factory=dict)
    usage: UsageProfile = DEFAULT_USAGE


def named_profile(base: Literal["fast", "kubelet"]) -> Profile:
    """``fast`` or ``kubelet``, as they are."""
    return Profile(base, POD_PROFILES[base], NodeProfile(events=base == "kubelet", images=base == "kubelet"))


def parse_profile(text: str | bytes, *, source: str = "profile") -> Profile:
    """Reads YAML; what ``pods`` and ``nodes`` leave out is taken from ``base``."""
    try:
        file = msgspec.yaml.decode(text, type=_ProfileFile)
        base = named_profile(file.base)
        pods = msgspec.convert({**msgspec.to_builtins(base.pods), **file.pods}, PodProfile)
        nodes = msgspec.convert({**msgspec.to_builtins(base.nodes), **file.nodes}, NodeProfile)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"{source}: {error}",
            hint="A profile has base (fast or kubelet), pods, nodes and usage; docs/hollow-nodes.md lists the fields.",
        ) from error
    return Profile(file.base, pods, nodes, file.usage)


def load_profile(path: Path) -> Profile:
    """Reads a profile file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the profile {path}: {error.strerror}", hint="Give the path of a readable YAML file."
        ) from error
    return parse_profile(text, source=str(path))
