"""Which nodes are promised to which pending pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holokube.kube.types import JsonObject
from holokube.scheduler.pod_facts import nominated_node_of, priority_of, uid_of


class Nominations:
    """The pods that wait for a node which is being emptied for them.

    A promise is known here before the API server knows it, so that no other pod takes the room meanwhile.
    """

    def __init__(self) -> None:
        self.version = 0
        """Moves with every change."""
        self.promised: dict[str, str] = {}
        """The node of each pod that was promised one, by uid. For others to read: mostly there is none."""
        self._on: dict[str, dict[str, JsonObject]] = {}

    def __bool__(self) -> bool:
        return bool(self.promised)

    @property
    def nodes(self) -> Mapping[str, Mapping[str, JsonObject]]:
        """The promised nodes, each with its pods by uid."""
        return self._on

    def put(self, pod: JsonObject, node_name: str) -> None:
        """Promise a node to a pod, instead of any other; an empty name takes the promise back."""
        if not (node_name or self.promised):
            return
        uid = uid_of(pod)
        if self.promised.get(uid, "") == node_name and (not node_name or self._on[node_name][uid] is pod):
            return
        self.remove(uid)
        if node_name:
            self.promised[uid] = node_name
            self._on.setdefault(node_name, {})[uid] = pod
            self.version += 1

    def take_over(self, old: JsonObject, new: JsonObject) -> None:
        """A pod changed. What the API server says counts, unless it has not heard of the promise yet."""
        said = nominated_node_of(new)
        if not (said or self.promised):
            return
        if not said and not nominated_node_of(old):
            said = self.promised.get(uid_of(old), "")
        self.put(new, said)

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        node_name = self.promised.pop(uid, "")
        if node_name:
            pods = self._on[node_name]
            del pods[uid]
            if not pods:
                del self._on[node_name]
            self.version += 1

    def node_for(self, uid: str) -> str:
        """The node promised to a pod; empty if there is none."""
        return self.promised.get(uid, "")

    def rivals(self, pod: JsonObject) -> dict[str, list[JsonObject]]:
        """By node, the pods that a pod must leave room for: those that matter at least as much."""
        if not self.promised:
            return {}
        uid, priority = uid_of(pod), priority_of(pod)
        found = {
            node_name: [p for other, p in pods.items() if other != uid and priority_of(p) >= priority]
            for node_name, pods in self._on.items()
        }
        return {node_name: pods for node_name, pods in found.items() if pods}

    def below(self, node_name: str, priority: int) -> Iterable[JsonObject]:
        """The pods promised a node that matter less than a priority."""
        return [pod for pod in self._on.get(node_name, {}).values() if priority_of(pod) < priority]
