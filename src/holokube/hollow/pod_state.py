"""What a hollow kubelet remembers of a pod, and what it can decide to do.

The state is small and bounded: one record per container of the pod. Everything in it can be read back from the
status of the pod, so that another process can go on where this one stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Protocol

import msgspec

from holokube.hollow.behaviour import Behaviour
from holokube.hollow.draws import Draw
from holokube.hollow.profile import PodProfile
from holokube.kube.types import JsonObject

NEVER_S = float("inf")


# Commands and steps come and go with each event of each pod, and records with each pod: as structs they are made at a
# fraction of the cost of dataclasses.


class PatchStatus(msgspec.Struct, frozen=True):
    """Strategic merge patch of the status; ``metadata.uid`` in it guards against an object made anew.

    Stages may ask for other patches too, of the object itself say; the built-in machines never do.
    """

    patch: JsonObject | list[JsonObject]
    type: Literal["json", "merge", "strategic"] = "strategic"
    subresource: str = "status"
    username: str = ""
    """As whom to send it; empty means as oneself."""


class DeletePod(msgspec.Struct, frozen=True):
    """Remove the object: no grace, and only if it is still this pod."""

    uid: str


class EmitEvent(msgspec.Struct, frozen=True):
    """Something to tell about the pod, or about one of its containers (``field_path``)."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    field_path: str = ""


Command = PatchStatus | DeletePod | EmitEvent


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node does not take a pod."""

    reason: str
    message: str


class Host(Protocol):
    """What a pod's life depends on at its node."""

    @property
    def host_ips(self) -> Sequence[str]: ...

    @property
    def slow_factor(self) -> float: ...

    def admit(self, pod: Mapping[str, Any]) -> Rejection | None:
        """Whether the node takes the pod."""

    def resize(self, pod: Mapping[str, Any]) -> Rejection | None:
        """Counts a pod that runs here with what it asks for now, if that fits beside the others."""

    def take_addresses(self) -> tuple[str, ...] | None:
        """Pod addresses, None when there are none left."""


class Stage(Enum):
    """How far a pod has come."""

    NEW = "new"
    SANDBOX = "sandbox"
    ALIVE = "alive"
    STOPPING = "stopping"
    ENDED = "ended"


class Phase(Enum):
    """What a container does."""

    WAITING = "waiting"
    PULLING = "pulling"
    PULL_FAILED = "pull failed"
    PULL_BACKOFF = "pull back-off"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "back-off"
    TERMINATED = "terminated"


# To look a member of an enumeration up takes a function of Python, longer than what is done with it then. What is
# asked of each pod with each of its events goes by these names.
NEW: Final = Stage.NEW
SANDBOX: Final = Stage.SANDBOX
ALIVE: Final = Stage.ALIVE
STOPPING: Final = Stage.STOPPING
ENDED: Final = Stage.ENDED
RUNNING: Final = Phase.RUNNING
TERMINATED: Final = Phase.TERMINATED

Kind = Literal["init", "sidecar", "main", "ephemeral"]


class ContainerRun(msgspec.Struct):
    """One container."""

    name: str
    kind: Kind
    phase: Phase = Phase.WAITING
    due_s: float = NEVER_S
    """When the phase ends, in Unix seconds."""
    restarts: int = 0
    started_s: float = 0.0
    ready_s: float = 0.0
    """From when on a running container counts as ready."""
    finished_s: float = 0.0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    last: JsonObject | None = None
    """``lastState.terminated``."""
    failures: int = 0
    """Ends in a row without a long run between them: the exponent of the back-off."""
    pull_failures: int = 0
    backoff_s: float = 0.0
    container_id: str = ""
    """Only of a container that somebody else started; ours are derived."""


@dataclass(slots=True)
class ResizeRun:
    """A change of resources on its way."""

    generation: int
    held: dict[str, JsonObject]
    """What is in force until then, by container."""
    pending: Rejection | None = None
    retry_s: float = NEVER_S
    due_s: float = NEVER_S
    """When it is applied; NEVER_S before it was found to fit."""


@dataclass(frozen=True, slots=True)
class PlainContainer:
    """A container of a template."""

    name: str
    image: str
    image_id: str
    running: JsonObject
    """The entry of ``containerStatuses`` while it runs; what is each pod's own is left empty."""


@dataclass(frozen=True, slots=True)
class Template:
    """What pods whose beginning is plain have in common; they all have the same list of containers."""

    listed: list[JsonObject]
    containers: tuple[PlainContainer, ...]
    has_hooks: bool
    """Whether a container asks for anything at its end."""
    has_policies: bool
    """Whether a container has a restart policy of its own."""


class PodRun(msgspec.Struct):
    """One pod."""

    uid: str
    profile: PodProfile
    host: Host
    behaviour: Behaviour
    name: str = ""
    namespace: str = ""
    stage: Stage = NEW
    doubted_until_s: float = 0.0
    """Set when its node seemed to refuse it by what may be an old state of the node: until then it is not refused."""
    due_s: float = NEVER_S
    start_s: float = 0.0
    addresses: tuple[str, ...] = ()
    containers: list[ContainerRun] | None = None
    initialized: bool = False
    end_reason: str = ""
    """``status.reason`` of a pod that the kubelet itself has ended."""
    end_message: str = ""
    ends_as: str = ""
    """The phase it is ended with; empty when the containers decide."""
    disrupted: str = ""
    """Message of the condition DisruptionTarget, when the kubelet itself ends a pod for others' sake."""
    resize: ResizeRun | None = None
    restarts_all_s: float = 0.0
    """Until when all containers are gone because one of them asked for it."""
    delete_sent: bool = False
    drifts: int = 0
    """How often in a row somebody else changed what we had reported."""
    drift_until_s: float = 0.0
    opened: Template | None = None
    """Set as long as nothing has happened to the pod since all of its containers began to run at once."""

    @property
    def title(self) -> str:
        """``name_namespace(uid)``, as kubelets write it."""
        return f"{self.name}_{self.namespace}({self.uid})"


class Step(msgspec.Struct, frozen=True):
    """What to do now, in this order, and when to look again (Unix seconds)."""

    commands: tuple[Command, ...]
    next_due_s: float = NEVER_S


class PodLife(Protocol):
    """What leads pods through their lives: the module ``pod_life``, or Stages."""

    looks_after_writes: bool
    """Whether a pod has to be stepped again after every write of ours, not only when others change it."""

    def begin(self, pod: Mapping[str, Any], profile: PodProfile, host: Host, now_s: float, draw: Draw) -> PodRun:
        """The state of a pod that is seen for the first time."""

    def step(self, pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> Step:
        """Everything that is due now."""

    def reboot(self, pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> None:
        """The node went down and is back."""

    def failed(self, run: PodRun) -> None:
        """What was decided last could not be written."""
