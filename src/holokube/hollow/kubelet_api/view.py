"""What the hollow kubelets of one process see: their nodes, the pods on them, and what these use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holokube.base.clock import Clock
from holokube.client.audience import EXISTENCE, SPEC, STATUS
from holokube.client.informer import EventType, Informer
from holokube.hollow.node_life import internal_addresses
from holokube.hollow.usage import (
    DEFAULT_USAGE,
    NANO,
    ContainerUse,
    Usage,
    UsageProfile,
    container_use,
    pod_usage,
    running_containers,
    started_containers,
    system_usage,
)
from holokube.kube.errors import NotFound, ServiceUnavailable
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.hollow.fleet import Fleet


def _everything(_node: str) -> bool:
    return True


class KubeletView:
    """Reads informers that are run by somebody else, the fleet say.

    It changes nothing, with one exception: a node's CPU counter must not fall when a container ends, so what ended
    containers have used is kept, one number per node. A process that starts anew counts anew, as after a reboot.
    """

    def __init__(
        self,
        clock: Clock,
        nodes: Informer,
        pods: Informer,
        *,
        usage: UsageProfile = DEFAULT_USAGE,
        speaks_for: Callable[[str], bool] = _everything,
        name: str = "kubelet-api",
        by_node: str = "",
        counts_when_asked: bool = False,
    ) -> None:
        """``speaks_for`` tells whether the kubelet of a node lives in this process and answers now.

        ``by_node`` names an index of the pods that is there already; indexes of its own begin with ``name``. With
        ``counts_when_asked``, what ended containers have used is kept only once somebody has looked at a node's
        counter: it still never falls for whoever looks, and costs nothing where nobody does.
        """
        self._clock = clock
        self._usage = usage
        self._speaks_for = speaks_for
        self._nodes = nodes.lister
        self._pods = pods.lister
        self._by_node, self._by_address = by_node or f"{name}/node", f"{name}/address"
        if not by_node:
            pods.add_index(self._by_node, _node_of, heeds=SPEC)
        nodes.add_index(self._by_address, internal_addresses)
        self._ended_core_ns: dict[str, int] = {}
        self._pod_informer = pods
        self._counts = False
        self._remove = [nodes.add_handler(self._on_node, heeds=EXISTENCE)]
        if not counts_when_asked:
            self._begin_to_count()

    def _begin_to_count(self) -> None:
        self._counts = True
        self._remove.append(self._pod_informer.add_handler(self._on_pod, heeds=STATUS))

    @classmethod
    def of_fleet(cls, clock: Clock, fleet: Fleet, *, counts_when_asked: bool = False) -> KubeletView:
        """The view of a fleet, on its own informers: a kubelet answers while the fleet speaks for its node."""

        def speaks_for(node: str) -> bool:
            record = fleet.nodes.get(node)
            return record is not None and record.speaks and not record.is_silent

        return cls(
            clock, fleet.node_informer, fleet.pod_informer, usage=fleet.usage, speaks_for=speaks_for,
            # A second index of all pods would cost the fleet a good part of what it saves elsewhere.
            name=f"kubelet-api/{fleet.identity}", by_node=fleet.by_node, counts_when_asked=counts_when_asked,
        )  # fmt: skip

    def close(self) -> None:
        """Stops listening to the informers."""
        for remove in self._remove:
            remove()
        self._remove = []

    @property
    def now_s(self) -> float:
        return self._clock.time()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    # What there is

    def answers(self, node: str) -> bool:
        """Whether somebody who asks this node's kubelet gets an answer."""
        return self._speaks_for(node)

    def node(self, name: str) -> JsonObject:
        """A node whose kubelet answers."""
        found = self._nodes.get(name)
        if found is None:
            raise NotFound(f'the fleet has no node "{name}"')
        if not self.answers(name):
            raise ServiceUnavailable(f'the kubelet of node "{name}" does not answer in this process')
        return found

    def node_at(self, address: str) -> str | None:
        """The one node that has this address; None if there are none, or several."""
        found = self._nodes.by_index(self._by_address, address)
        return str(found[0]["metadata"]["name"]) if len(found) == 1 else None

    def pods_on(self, node: str) -> list[JsonObject]:
        found = self._pods.by_index(self._by_node, node)
        return sorted(found, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def pod(self, namespace: str, name: str) -> JsonObject | None:
        return self._pods.get(name, namespace)

    # What is used

    def containers(self, pod: JsonObject) -> list[ContainerUse]:
        return running_containers(pod, self._usage)

    def use_of(self, pod: JsonObject, container: str, start_s: float) -> ContainerUse:
        """What a container uses if it runs since a given time, whether it does or not."""
        return container_use(pod, container, start_s, self._usage)

    def node_usage(self, node: JsonObject) -> Usage:
        """Now: that of its pods, and its own."""
        total = system_usage(node, self._usage)
        now_s = self.now_s
        for pod in self._pods.by_index(self._by_node, node["metadata"]["name"]):
            total += pod_usage(pod, now_s, self._usage)
        return total

    def node_average(self, node: JsonObject, begin_s: float, end_s: float) -> Usage:
        """On average over a while, of the containers that run."""
        total = system_usage(node, self._usage)
        for pod in self._pods.by_index(self._by_node, node["metadata"]["name"]):
            for use in self.containers(pod):
                if use.start_s < end_s:
                    total += use.average(begin_s, end_s)
        return total

    def node_core_ns(self, node: JsonObject) -> int:
        """The node's CPU counter."""
        if not self._counts:
            self._begin_to_count()
        now_s = self.now_s
        name = node["metadata"]["name"]
        own_s = max(0.0, now_s - node_start_s(node))
        total = int(system_usage(node, self._usage).cpu_nano * own_s) + self._ended_core_ns.get(name, 0)
        for pod in self._pods.by_index(self._by_node, name):
            total += sum(use.cpu_core_ns(now_s) for use in self.containers(pod))
        return total

    # What ends

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None and old is not None:
            self._ended_core_ns.pop(old["metadata"]["name"], None)

    def _on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None:
            return
        status = old.get("status")
        if not status or not (status.get("containerStatuses") or status.get("initContainerStatuses")
                              or status.get("ephemeralContainerStatuses")):  # fmt: skip
            # Nothing has run yet, and so nothing ends.
            return
        node = (old.get("spec") or {}).get("nodeName")
        if not node or self._nodes.get(node) is None:
            return
        same = new is not None and new["metadata"].get("uid") == old["metadata"].get("uid")
        if new is not None and same and new.get("status") is status:
            return
        if new is None or not same:
            # All that ran have ended now, as a rule on the pod's way out.
            now_s, spent = self.now_s, 0
            for use in self.containers(old):
                spent += use.cpu_core_ns(now_s)
        else:
            spent = self._spent_by_ended(old, new)
        if spent:
            self._ended_core_ns[node] = self._ended_core_ns.get(node, 0) + spent

    def _spent_by_ended(self, old: JsonObject, new: JsonObject) -> int:
        """What the containers have used that ran in one state of a pod and do not in the next."""
        if _has_the_same_containers(old["status"], new.get("status") or {}):
            return 0
        alive = set(started_containers(new))
        ended = {name for name, started in started_containers(old) if (name, started) not in alive}
        if not ended:
            return 0
        return sum(
            use.cpu_core_ns(_end_s(new, use.name) or self.now_s) for use in self.containers(old) if use.name in ended
        )


def _has_the_same_containers(old: JsonObject, new: JsonObject) -> bool:
    """Whether a change was about something else, conditions say: then the very same lists are there, in process."""
    if old.get("phase") != new.get("phase"):
        return False
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        if old.get(field) is not new.get(field):
            return False
    return True


def node_start_s(node: JsonObject) -> float:
    return parse_time(node["metadata"]["creationTimestamp"]).timestamp()


def core_seconds(core_ns: int) -> float:
    return core_ns / NANO


def _end_s(pod: JsonObject, container: str) -> float | None:
    """When the last run of a container ended, by the pod's own account."""
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(field) or ():
            if entry["name"] == container:
                for state in (entry.get("state") or {}, entry.get("lastState") or {}):
                    finished = (state.get("terminated") or {}).get("finishedAt")
                    if finished:
                        return parse_time(finished).timestamp()
    return None


def _node_of(pod: JsonObject) -> list[str]:
    node = (pod.get("spec") or {}).get("nodeName")
    return [node] if node else []
