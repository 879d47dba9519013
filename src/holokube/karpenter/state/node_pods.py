"""The pods bound to one node, and what decisions go by about them."""

from __future__ import annotations

from typing import Any

from holokube.karpenter.scheduling.pod_facts import PodFacts
from holokube.kube.types import JsonObject

Reading = tuple[tuple[JsonObject, ...], tuple[PodFacts, ...]]
"""Pods, and the facts about them in the same order."""


class NodePods:
    """Pods by key, in the order in which they came. What is read of them is the very same until one changes."""

    __slots__ = ("_facts", "_pods", "_reading", "_unread")

    def __init__(self) -> None:
        self._pods: dict[str, JsonObject] = {}
        self._facts: dict[str, Any] = {}
        """``PodFacts`` in the same order; None while nobody has asked since the pod came."""
        self._unread: dict[str, None] = {}
        """Those of whom there are no facts, or old ones."""
        self._reading: Reading | None = None

    def put(self, key: str, pod: JsonObject) -> None:
        """A pod came, or is another object now."""
        self._pods[key] = pod
        self._facts.setdefault(key)
        self._unread[key] = None
        self._reading = None

    def take(self, key: str) -> bool:
        """A pod is not here any more; whether it was."""
        if self._pods.pop(key, None) is None:
            return False
        del self._facts[key]
        self._unread.pop(key, None)
        self._reading = None
        return True

    def __len__(self) -> int:
        return len(self._pods)

    def list(self) -> list[JsonObject]:
        """The pods."""
        return [*self._pods.values()]

    def read(self) -> Reading:
        """The pods and their facts; those of pods that have not changed are the same as before."""
        reading = self._reading
        if reading is None:
            pods, facts = self._pods, self._facts
            for key in self._unread:
                facts[key] = PodFacts(pods[key])
            self._unread.clear()
            reading = self._reading = tuple(pods.values()), tuple(facts.values())
        return reading
