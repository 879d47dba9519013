"""Nodes and pods that live by Stages instead of by the built-in machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from holokube import __version__
from holokube.client.resources import Resource
from holokube.hollow.behaviour import DEFAULT
from holokube.hollow.draws import Draw
from holokube.hollow.pod_state import NEVER_S, DeletePod, Host, PodRun, Step
from holokube.hollow.profile import PodProfile
from holokube.hollow.stages import playing
from holokube.hollow.stages.errors import StageError, TemplateError
from holokube.hollow.stages.loading import StageSet, read_stage
from holokube.hollow.stages.playing import DeleteObject, StageCommand, StageRun, general_functions
from holokube.hollow.stages.stage import Kind, Stage

STAGES = Resource("kwok.x-k8s.io", "v1alpha1", "stages", "Stage", False)
"""Stage objects in a cluster that has kwok's CRD."""
ADDRESS_RETRY_S = 10.0


class StageBook:
    """The stages in force: those of files, and those of the cluster, which win where both have a name."""

    def __init__(self, files: StageSet | None = None) -> None:
        self._files = files or StageSet()
        self._cluster: dict[str, Stage] = {}
        self._by_kind: dict[Kind, list[Stage]] = {}
        self.generation = 0
        """Moves whenever the stages change, so that objects are planned anew."""
        self._renew()

    def of_kind(self, kind: Kind) -> list[Stage]:
        return self._by_kind[kind]

    def see(self, obj: Mapping[str, Any]) -> str:
        """A Stage of the cluster is new or changed; returns why it cannot be used, empty if it can.

        One that has become unusable no longer counts: going on with its former self would hide the mistake.
        """
        name, problem = str(obj["metadata"]["name"]), ""
        try:
            stage = read_stage(obj, "cluster")
        except StageError as error:
            stage, problem = None, f"{error.message} {error.hint}".rstrip()
        if stage is None:
            self._cluster.pop(name, None)
        else:
            self._cluster[name] = stage
        self._renew()
        return problem

    def gone(self, name: str) -> None:
        if self._cluster.pop(name, None) is not None:
            self._renew()

    def _renew(self) -> None:
        known = {**self._files.stages, **self._cluster}
        self._by_kind = {
            "Node": [stage for stage in known.values() if stage.kind == "Node"],
            "Pod": [stage for stage in known.values() if stage.kind == "Pod"],
        }
        self.generation += 1


class StagedPodRun(PodRun):
    """A pod that lives by Stages; of the built-in machine's state it uses the addresses only."""

    stages: StageRun = msgspec.field(default_factory=StageRun)
    short_of_addresses: bool = False


class StagedPodLife:
    """Stands in for ``holokube.hollow.pod_life``."""

    looks_after_writes: bool = True

    def __init__(self, book: StageBook, *, start_s: float) -> None:
        self._book = book
        self._start_s = start_s

    def begin(
        self, pod: Mapping[str, Any], profile: PodProfile, host: Host, now_s: float, draw: Draw  # noqa: ARG002 - as pod_life.begin
    ) -> StagedPodRun:
        status = pod.get("status") or {}
        run = StagedPodRun(str(pod["metadata"]["uid"]), profile, host, DEFAULT)
        run.addresses = tuple(entry["ip"] for entry in status.get("podIPs") or ())
        if not run.addresses and status.get("podIP"):
            run.addresses = (status["podIP"],)
        # Not None: from the first moment on the pod counts on its node, as nobody refuses it.
        run.containers = []
        return run

    def step(self, pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> Step:
        assert isinstance(run, StagedPodRun)
        functions = {**general_functions(now_s, self._start_s, __version__), **_pod_functions(run)}
        run.short_of_addresses = False
        commands, due_s = playing.advance(
            run.stages, self._book.of_kind("Pod"), self._book.generation, pod, now_s, draw, functions
        )
        if run.short_of_addresses:
            playing.failed(run.stages)
            due_s = now_s + ADDRESS_RETRY_S
        made = [DeletePod(command.uid) if isinstance(command, DeleteObject) else command for command in commands]
        return Step(tuple(made), due_s)

    def reboot(self, pod: Mapping[str, Any], run: PodRun, now_s: float, draw: Draw) -> None:
        """Stages know of no reboot; whatever they do to a running pod they do anyway."""

    def failed(self, run: PodRun) -> None:
        """What was decided last could not be written."""
        assert isinstance(run, StagedPodRun)
        playing.failed(run.stages)


def _pod_functions(run: StagedPodRun) -> dict[str, Callable[..., Any]]:
    host_ips = list(run.host.host_ips)

    def pod_ips(_node: str = "", host_network: bool = False, *_pod: str) -> list[str]:
        if host_network:
            return host_ips
        if not run.addresses:
            taken = run.host.take_addresses()
            if taken is None:
                run.short_of_addresses = True
                raise TemplateError("no IP addresses are left in the range of the node")
            run.addresses = taken
        return list(run.addresses)

    def node_ip(_node: str = "") -> str:
        return host_ips[0] if host_ips else ""

    return {
        "NodeIP": node_ip,
        "NodeIPWith": node_ip,
        "NodeIPsWith": lambda _node="": host_ips,
        "PodIP": lambda: pod_ips()[0],
        "PodIPWith": lambda *about: (pod_ips(*about) or [""])[0],
        "PodIPsWith": pod_ips,
    }


@dataclass(frozen=True, slots=True)
class NodeStep:
    """What to do for a node now, in this order, and when to look again."""

    commands: tuple[StageCommand, ...]
    next_due_s: float = NEVER_S


class StagedNodeLife:
    """Stands in for the reports of ``holokube.hollow.node_life``."""

    def __init__(self, book: StageBook, *, start_s: float) -> None:
        self._book = book
        self._start_s = start_s

    def step(
        self,
        node: Mapping[str, Any],
        run: StageRun,
        now_s: float,
        draw: Draw,
        *,
        addresses: Sequence[str],
        port: int,
    ) -> NodeStep:
        """``addresses`` are the node's own, ``port`` its kubelet's."""
        name = str(node["metadata"]["name"])
        functions = {
            **general_functions(now_s, self._start_s, __version__),
            "NodeIP": lambda: addresses[0] if addresses else "",
            "NodeName": lambda: name,
            "NodePort": lambda: port,
        }
        commands, due_s = playing.advance(
            run, self._book.of_kind("Node"), self._book.generation, node, now_s, draw, functions
        )
        return NodeStep(tuple(commands), due_s)
