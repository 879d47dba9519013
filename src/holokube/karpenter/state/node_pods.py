"""The pods bound to one node, and what decisions go by about them."""

from __future__ import annotations

from typing import Final

from holokube.karpenter.scheduling.pod_facts import PodFacts
from holokube.karpenter.scheduling.state_node import Reading
from holokube.kube.types import JsonObject

_NOTHING: Final[Reading] = (), (), True


class NodePods:
    """Pods by key, in the order in which they came. What is read of them is the very same until one changes."""

    __slots__ = ("_facts", "_fresh", "_pods", "_reading", "_unusual")

    def __init__(self) -> None:
        self._pods: dict[str, JsonObject] = {}
        self._facts: dict[str, PodFacts] = {}
        """In the same order."""
        self._fresh: dict[str, JsonObject] = {}
        """Those that came or changed since somebody looked; pods change more often than they are looked at."""
        self._reading: Reading | None = _NOTHING
        self._unusual: set[str] = set()
        """Those whose facts say that they are not ordinary, as nearly all are."""

    def put(self, key: str, pod: JsonObject) -> bool:
        """A pod came, or is another object now; whether they have been read since the last change."""
        self._fresh[key] = pod
        if self._reading is None:
            return False
        self._reading = None
        return True

    def take(self, key: str) -> bool:
        """A pod is not here any more; whether it was."""
        fresh = self._fresh.pop(key, None)
        if self._pods.pop(key, None) is not None:
            del self._facts[key]
            if self._unusual:
                self._unusual.discard(key)
        elif fresh is None:
            return False
        self._reading = None
        return True

    def __len__(self) -> int:
        return len(self._pods.keys() | self._fresh.keys())

    def __bool__(self) -> bool:
        return bool(self._pods or self._fresh)

    def list(self) -> list[JsonObject]:
        """The pods."""
        return [*{**self._pods, **self._fresh}.values()]

    def read(self) -> Reading:
        """The pods and their facts; those of pods that have not changed are the same as before."""
        reading = self._reading
        if reading is None:
            pods, facts = self._pods, self._facts
            for key, pod in self._fresh.items():
                # In this order: a pod that makes no sense is left where it was.
                facts[key] = found = PodFacts(pod)
                pods[key] = pod
                if not found.is_ordinary:
                    self._unusual.add(key)
                elif self._unusual:
                    self._unusual.discard(key)
            self._fresh.clear()
            reading = self._reading = tuple(pods.values()), tuple(facts.values()), not self._unusual
        return reading
