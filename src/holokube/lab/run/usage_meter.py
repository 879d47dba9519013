"""What running containers use, summed over all of them, without looking at each one at each sample.

Containers whose use depends on the time of day alone, most of them, are counted by curve and looked at once for all.
Those whose curve follows their own age or has noise of its own are looked at one by one; of very many of these only
every so manyth, and the sum is scaled up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.hollow.usage import (
    ContainerUse,
    UsageProfile,
    container_use,
    running_containers,
    says_what_it_uses,
    started_containers,
)
from holokube.hollow.usage_curves import Constant, Curve, Diurnal
from holokube.kube.types import JsonObject

_COMMON: Final = (Constant, Diurnal)
SINGLES_MAX: Final = 2_000
"""So many containers are looked at one by one in a sample."""
TEMPLATES_MAX: Final = 4_096
"""So many templates are remembered before all are forgotten."""
_EMPTY: Final[Mapping[str, Any]] = {}


class _Users:
    """The containers that use a curve."""

    __slots__ = ("as_cpu", "as_memory", "curve")

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.as_cpu = 0
        self.as_memory = 0


_Pair = tuple[_Users, _Users]
"""Who uses the cpu, and who the memory, as a container does."""


class UsageMeter:
    """Follows the containers of pods that are ready."""

    def __init__(self, clock: Clock, profile: UsageProfile) -> None:
        self._clock = clock
        self._profile = profile
        self._pods: dict[str, tuple[list[_Pair], list[str]]] = {}
        """Of each pod, its containers of common curves, and the keys of its single ones."""
        self._common: dict[Curve, _Users] = {}
        """Those that are in use, in the order in which they came into it."""
        self._singles: dict[str, ContainerUse] = {}
        self._users: dict[Curve, _Users] = {}
        self._templates: dict[int, tuple[list[JsonObject], dict[str, _Pair]]] = {}
        """What the containers of a template use, by the identity of their list, which is kept alive here."""

    def see(self, uid: str, pod: JsonObject) -> None:
        """The containers of a pod have begun or ceased to run."""
        if uid in self._pods:
            self.forget(uid)
        pairs = self._known_pairs(pod)
        singles: list[str] = []
        if pairs is None:
            pairs = []
            for use in running_containers(pod, self._profile):
                pair = self._pair(use)
                if pair is not None:
                    pairs.append(pair)
                else:
                    singles.append(f"{uid}/{use.name}")
                    self._singles[singles[-1]] = use
        for cpu, memory in pairs:
            if not cpu.as_cpu and not cpu.as_memory:
                self._common[cpu.curve] = cpu
            cpu.as_cpu += 1
            if not memory.as_cpu and not memory.as_memory:
                self._common[memory.curve] = memory
            memory.as_memory += 1
        if pairs or singles:
            self._pods[uid] = pairs, singles

    def forget(self, uid: str) -> None:
        """A pod runs no more."""
        seen = self._pods.pop(uid, None)
        if seen is None:
            return
        pairs, singles = seen
        for cpu, memory in pairs:
            cpu.as_cpu -= 1
            if not cpu.as_cpu and not cpu.as_memory:
                del self._common[cpu.curve]
            memory.as_memory -= 1
            if not memory.as_cpu and not memory.as_memory:
                del self._common[memory.curve]
        for key in singles:
            self._singles.pop(key, None)

    def _known_pairs(self, pod: JsonObject) -> list[_Pair] | None:
        """Those of a plain pod, whose containers are like those of all pods of its template; None for others."""
        status = pod.get("status") or _EMPTY
        if (
            says_what_it_uses(pod)
            or status.get("initContainerStatuses")
            or status.get("ephemeralContainerStatuses")
        ):
            return None
        containers = pod["spec"]["containers"]
        known = self._templates.get(id(containers))
        if known is None:
            known = containers, {}
            for container in containers:
                pair = self._pair(container_use(pod, container["name"], 0.0, self._profile))
                if pair is not None:
                    known[1][container["name"]] = pair
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            self._templates[id(containers)] = known
        by_name = known[1]
        found = []
        for name, _ in started_containers(pod):
            pair = by_name.get(name)
            if pair is None:
                return None
            found.append(pair)
        return found

    def _pair(self, use: ContainerUse) -> _Pair | None:
        if not (_is_common(use.cpu) and _is_common(use.memory)):
            return None
        return self._users_of(use.cpu), self._users_of(use.memory)

    def _users_of(self, curve: Curve) -> _Users:
        users = self._users.get(curve)
        if users is None:
            users = self._users[curve] = _Users(curve)
        return users

    def now(self) -> tuple[int, int]:
        """Millicores and bytes that are used at this moment."""
        now_s = self._clock.time()
        cpu, memory = 0.0, 0.0
        for users in self._common.values():
            value = users.curve.value(0.0, now_s)
            cpu += value * users.as_cpu
            memory += value * users.as_memory
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
