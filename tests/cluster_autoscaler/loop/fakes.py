"""A cloud of one's own, for tests that want to say what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance, NodeInfo
from holokube.kube.types import JsonObject


@dataclass
class FakeGroup:
    """A node group that writes down what it is asked for, and refuses on demand."""

    id: str
    target: int = 0
    min_size: int = 0
    max_size: int = 10
    machines: list[Instance] = field(default_factory=list)
    own_options: GroupOptions | None = None
    refusal: str = ""
    can_force: bool = True
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def debug(self) -> str:
        return self.id

    async def target_size(self) -> int:
        return self.target

    async def increase_size(self, delta: int) -> None:
        self._called("increase", delta)
        self.target += delta

    async def atomic_increase_size(self, delta: int) -> None:
        raise NotImplementedByProvider("AtomicIncreaseSize")

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        self._called("delete", [node["metadata"]["name"] for node in nodes])
        self.target -= len(nodes)

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        if not self.can_force:
            raise NotImplementedByProvider("ForceDeleteNodes")
        self._called("force", [node["metadata"]["name"] for node in nodes])

    async def decrease_target_size(self, delta: int) -> None:
        self._called("decrease", delta)
        self.target += delta

    async def nodes(self) -> list[Instance]:
        self.calls.append(("nodes", None))
        return self.machines

    async def template_node_info(self) -> NodeInfo:
        raise NotImplementedByProvider("TemplateNodeInfo")

    async def exists(self) -> bool:
        return True

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:
        return self.own_options

    def _called(self, what: str, with_: Any) -> None:
        self.calls.append((what, with_))
        if self.refusal:
            raise CloudError(self.refusal)


@dataclass
class Told:
    """Events of the cluster as a whole."""

    events: list[tuple[str, str, str]] = field(default_factory=list)

    def __call__(self, type: str, reason: str, message: str, /) -> None:
        self.events.append((type, reason, message))

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        self.events.append((type, reason, f"{obj['metadata']['name']}: {message}"))

    def tell_each(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str, /) -> None:
        for obj, message in told:
            self.event(obj, type, reason, message)

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]
