"""What running containers use, summed over all of them, without looking at each one at each sample.

Containers whose use depends on the time of day alone, most of them, are counted by curve and looked at once for all.
Those whose curve follows their own age or has noise of its own are looked at one by one; of very many of these only
every so manyth, and the sum is scaled up.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.hollow.usage import ContainerUse, UsageProfile, running_containers
from holokube.hollow.usage_curves import Constant, Curve, Diurnal
from holokube.kube.types import JsonObject

_COMMON: Final = (Constant, Diurnal)
SINGLES_MAX: Final = 2_000
"""So many containers are looked at one by one in a sample."""


class UsageMeter:
    """Follows the containers of pods that are ready."""

    def __init__(self, clock: Clock, profile: UsageProfile) -> None:
        self._clock = clock
        self._profile = profile
        self._pods: dict[str, list[ContainerUse]] = {}
        self._common: dict[Curve, list[int]] = {}
        """How many containers use each curve as cpu, and as memory."""
        self._singles: dict[str, ContainerUse] = {}

    def see(self, uid: str, pod: JsonObject) -> None:
        """The containers of a pod have begun or ceased to run."""
        self.forget(uid)
        uses = running_containers(pod, self._profile)
        if uses:
            self._pods[uid] = uses
            for use in uses:
                self._count(uid, use, 1)

    def forget(self, uid: str) -> None:
        """A pod runs no more."""
        for use in self._pods.pop(uid, ()):
            self._count(uid, use, -1)

    def _count(self, uid: str, use: ContainerUse, by: int) -> None:
        if _is_common(use.cpu) and _is_common(use.memory):
            for place, curve in enumerate((use.cpu, use.memory)):
                counts = self._common.get(curve)
                if counts is None:
                    counts = self._common[curve] = [0, 0]
                counts[place] += by
                if not any(counts):
                    del self._common[curve]
        elif by > 0:
            self._singles[f"{uid}/{use.name}"] = use
        else:
            self._singles.pop(f"{uid}/{use.name}", None)

    def now(self) -> tuple[int, int]:
        """Millicores and bytes that are used at this moment."""
        now_s = self._clock.time()
        cpu, memory = 0.0, 0.0
        for curve, (as_cpu, as_memory) in self._common.items():
            value = curve.value(0.0, now_s)
            cpu += value * as_cpu
            memory += value * as_memory
        singles = [*self._singles.values()]
        step = -(-len(singles) // SINGLES_MAX) or 1
        looked = singles[::step]
        nano, held = 0, 0
        for use in looked:
            one = use.at(now_s)
            nano += one.cpu_nano
            held += one.memory_bytes
        if looked:
            cpu += nano / 1e9 * len(singles) / len(looked)
            memory += held * len(singles) / len(looked)
        return round(cpu * 1000), round(memory)


def _is_common(curve: Curve) -> bool:
    """Whether its value depends on nothing of the container itself."""
    return isinstance(curve, _COMMON)
