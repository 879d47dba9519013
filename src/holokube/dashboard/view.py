"""What the page shows: the cluster as rows and sums, kept true by events, handed out as snapshots and deltas.

A view belongs to the thread of the cluster's loop and takes no time of its own: events mark what has changed, and only
``drain`` and ``snapshot``, which somebody has to ask for, make rows of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.dashboard.decisions import DecisionLog
from holokube.dashboard.history import History
from holokube.dashboard.node_facts import MICRO, NodeFacts, PriceOf, State, is_ready, prices_from, read_node
from holokube.dashboard.pod_facts import POD_STATES, RUNNING, PodFacts, read_pod
from holokube.kube.types import JsonObject
from holokube.runtime.journal import Entry

COLUMNS: Final = (
    "name", "group", "zone", "type", "capacityType", "state", "why", "faults", "cpu", "memory", "podsMax", "price",
    "created", "cpuUsed", "memoryUsed", "pods", "blocks",
)  # fmt: skip
"""Of the row of a node. ``cpu`` is in thousandths of a core, ``memory`` in MiB, ``price`` in USD per hour or null;
``blocks`` are its pods, those alike together: workload, state, how many, cpu and memory of each."""

SERIES: Final = ("nodes", "pending", "cost", "cpuShare", "memoryShare", "running")
"""Of the history, after the time."""

ROWS_MAX: Final = 2000
"""Of one delta; what is beyond that comes with the next."""
PENDING_SHOWN: Final = 100
PODS_SHOWN: Final = 500
"""Of one node."""


class _Load:
    """The pods of a node, whether it is there or not, and those alike counted together."""

    __slots__ = ("blocks", "cpu_milli", "memory_mib", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, PodFacts] = {}
        self.blocks: dict[tuple[str, int, int, int], int] = {}
        self.cpu_milli = 0
        self.memory_mib = 0

    def count(self, pod: PodFacts, sign: int) -> None:
        self.cpu_milli += sign * pod.cpu_milli
        self.memory_mib += sign * pod.memory_mib
        alike = (pod.workload, pod.state, pod.cpu_milli, pod.memory_mib)
        number = self.blocks.get(alike, 0) + sign
        if number:
            self.blocks[alike] = number
        else:
            del self.blocks[alike]


@dataclass(slots=True)
class _Tile:
    """A node that is there."""

    facts: NodeFacts
    uid: str
    was_ready: bool
    load: _Load

    def row(self) -> list[Any]:
        facts, load = self.facts, self.load
        price = facts.price_micro_usd
        return [
            facts.name, facts.group, facts.zone, facts.instance_type, facts.capacity_type, facts.state.value, facts.why,
            facts.faults, facts.cpu_milli, facts.memory_mib, facts.pods_max, None if price is None else price / MICRO,
            facts.created_s, load.cpu_milli, load.memory_mib, len(load.pods),
            [(alike[0], alike[1], load.blocks[alike], alike[2], alike[3]) for alike in sorted(load.blocks)],
        ]  # fmt: skip


@dataclass(slots=True)
class _Totals:
    """Integers only, so that adding and taking away always comes out even."""

    states: Counter[State] = field(default_factory=Counter)
    cpu_milli: int = 0
    memory_mib: int = 0
    cpu_used: int = 0
    memory_used: int = 0
    price_micro_usd: int = 0
    unpriced: int = 0

    def add(self, facts: NodeFacts, sign: int) -> None:
        self.states[facts.state] += sign
        self.cpu_milli += sign * facts.cpu_milli
        self.memory_mib += sign * facts.memory_mib
        if facts.price_micro_usd is None:
            self.unpriced += sign
        else:
            self.price_micro_usd += sign * facts.price_micro_usd

    def use(self, cpu_milli: int, memory_mib: int) -> None:
        self.cpu_used += cpu_milli
        self.memory_used += memory_mib


class ClusterView:
    """Nodes, pods, pending pods, decisions and a short history; see the module."""

    def __init__(
        self, clock: Clock, *, price_of: PriceOf | None = None, history_window_s: float | None = 1800.0,
    ) -> None:  # fmt: skip
        self.clock = clock
        self._price_of = price_of if price_of is not None else prices_from()
        self._tiles: dict[str, _Tile] = {}
        self._pods: dict[str, PodFacts] = {}
        self._loads: dict[str, _Load] = {}
        self._pending: dict[str, PodFacts] = {}
        self._pod_states: Counter[int] = Counter()
        self._totals = _Totals()
        # Dictionaries, for they keep the order in which things changed.
        self._changed: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        self._pending_changed = True
        self.decisions = DecisionLog()
        self.history = History(window_s=history_window_s)
        self._compactions_told = 0
        self._has_begun = False

    # -- what happens ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        """What was there is known; from here on nodes that come and go are told of."""
        self._has_begun = True

    def on_node(self, _type: str, old: JsonObject | None, new: JsonObject | None) -> None:
        """A handler for informers."""
        before = self._tiles.get((new or old or {})["metadata"]["name"])
        if new is None:
            if before is not None:
                self._drop(before)
            return
        uid = new["metadata"].get("uid", "")
        if before is not None and before.uid != uid:
            self._drop(before)
            before = None
        was_ready = before is not None and before.was_ready
        facts = read_node(new, self._price_of, was_ready=was_ready)
        # A node is up once pods may come, or a condition of the past would make it look broken while it boots.
        was_ready = was_ready or (is_ready(new) and facts.state is not State.BOOTING)
        if before is None:
            self._add(facts, uid, was_ready)
        elif before.facts != facts or before.was_ready != was_ready:
            self._totals.add(before.facts, -1)
            self._totals.add(facts, 1)
            before.facts, before.was_ready = facts, was_ready
            self._changed[facts.name] = None

    def _add(self, facts: NodeFacts, uid: str, was_ready: bool) -> None:
        load = self._loads.setdefault(facts.name, _Load())
        self._tiles[facts.name] = _Tile(facts, uid, was_ready, load)
        self._totals.add(facts, 1)
        self._totals.use(load.cpu_milli, load.memory_mib)
        self._changed[facts.name] = None
        self._gone.pop(facts.name, None)
        self._tell(facts, "joined")

    def _drop(self, tile: _Tile) -> None:
        name = tile.facts.name
        del self._tiles[name]
        if not tile.load.pods:
            del self._loads[name]
        self._totals.add(tile.facts, -1)
        self._totals.use(-tile.load.cpu_milli, -tile.load.memory_mib)
        self._changed.pop(name, None)
        self._gone[name] = None
        self._tell(tile.facts, "left")

    def _tell(self, facts: NodeFacts, decision: str) -> None:
        if self._has_begun:
            # A group is often named after the type of its nodes.
            why = " ".join(dict.fromkeys(filter(None, (facts.group, facts.instance_type, facts.zone))))
            self.decisions.note(self.clock.time(), "node", facts.name, decision, [why] if why else [])

    def on_pod(self, _type: str, old: JsonObject | None, new: JsonObject | None) -> None:
        """A handler for informers."""
        meta = (new or old or {})["metadata"]
        key = f"{meta.get('namespace', '')}/{meta['name']}"
        before = self._pods.get(key)
        facts = None if new is None else read_pod(new, old, before)
        if facts == before:
            return
        if before is not None:
            self._take_out(before)
        if facts is not None:
            self._put_in(facts)

    def _put_in(self, pod: PodFacts) -> None:
        self._pods[pod.key] = pod
        if not pod.node:
            self._pending[pod.key] = pod
            self._pending_changed = True
            return
        load = self._loads.get(pod.node)
        if load is None:
            load = self._loads[pod.node] = _Load()
        load.pods[pod.key] = pod
        self._count(load, pod, 1)

    def _take_out(self, pod: PodFacts) -> None:
        del self._pods[pod.key]
        if not pod.node:
            del self._pending[pod.key]
            self._pending_changed = True
            return
        load = self._loads[pod.node]
        del load.pods[pod.key]
        self._count(load, pod, -1)
        if not load.pods and pod.node not in self._tiles:
            # Nobody else would: the node is gone.
            del self._loads[pod.node]

    def _count(self, load: _Load, pod: PodFacts, sign: int) -> None:
        load.count(pod, sign)
        self._pod_states[pod.state] += sign
        if pod.node in self._tiles:
            self._totals.use(sign * pod.cpu_milli, sign * pod.memory_mib)
            self._changed[pod.node] = None

    def on_decision(self, entry: Entry) -> None:
        """A subscriber for journals."""
        self.decisions.note(entry.now_s, entry.kind, entry.subject, entry.decision, entry.reasons)

    # -- what is told ---------------------------------------------------------------------------------------

    def sample(self) -> None:
        """Take a point of the history."""
        totals = self._totals
        self.history.add((
            self.clock.time(), len(self._tiles), len(self._pending), totals.price_micro_usd / MICRO,
            _share(totals.cpu_used, totals.cpu_milli), _share(totals.memory_used, totals.memory_mib),
            self._pod_states[RUNNING],
        ))  # fmt: skip

    def drain(self) -> dict[str, Any]:
        """What has changed since the last time; at most ``ROWS_MAX`` rows."""
        names = list(islice(self._changed, ROWS_MAX))
        for name in names:
            del self._changed[name]
        delta: dict[str, Any] = {"now": self.clock.time(), "totals": self.totals()}
        if names:
            delta["rows"] = [self._tiles[name].row() for name in names]
        if self._gone:
            delta["gone"] = list(self._gone)
            self._gone.clear()
        if self._pending_changed:
            self._pending_changed = False
            delta["pending"] = self.pending()
        lines = self.decisions.drain()
        if lines:
            delta["decisions"] = lines
        if self.history.compactions != self._compactions_told:
            self._compactions_told = self.history.compactions
            delta["history"] = self.history.points()
        elif self.history.last is not None:
            delta["point"] = self.history.last
        return delta

    def forget_changes(self) -> None:
        """Nobody looks on, and whoever comes gets a snapshot: names of nodes that went need not be kept for him."""
        self._changed.clear()
        self._gone.clear()

    def snapshot(self) -> dict[str, Any]:
        """Everything. Deltas that are drained from now on go on from here."""
        return {
            "now": self.clock.time(),
            "columns": COLUMNS,
            "podStates": POD_STATES,
            "series": SERIES,
            "rows": [tile.row() for tile in self._tiles.values()],
            "totals": self.totals(),
            "pending": self.pending(),
            "decisions": self.decisions.lines(),
            "history": self.history.points(),
        }

    def totals(self) -> dict[str, Any]:
        """Counts and sums over the cluster; ``cost`` is null while no node has a price."""
        totals, states = self._totals, self._totals.states
        nodes = len(self._tiles)
        return {
            "nodes": nodes,
            "states": {state.value: states[state] for state in State},
            "pods": {word: self._pod_states[code] for code, word in enumerate(POD_STATES)},
            "pending": len(self._pending),
            "cpu": totals.cpu_milli, "cpuUsed": totals.cpu_used,
            "memory": totals.memory_mib, "memoryUsed": totals.memory_used,
            "cost": totals.price_micro_usd / MICRO if nodes > totals.unpriced else None,
            "unpriced": totals.unpriced,
        }  # fmt: skip

    def pending(self) -> list[dict[str, Any]]:
        """Pending pods by workload, those that wait longest first, with the reason of the oldest."""
        groups: dict[str, tuple[PodFacts, int]] = {}
        for pod in self._pending.values():
            oldest, count = groups.get(pod.workload, (pod, 0))
            groups[pod.workload] = (pod if pod.created_s < oldest.created_s else oldest, count + 1)
        ordered = sorted(groups.items(), key=lambda item: (item[1][0].created_s, item[0]))
        return [
            {"workload": workload, "count": count, "since": oldest.created_s, "reason": oldest.reason,
             "cpu": oldest.cpu_milli, "memory": oldest.memory_mib}
            for workload, (oldest, count) in ordered[:PENDING_SHOWN]
        ]  # fmt: skip

    def node_pods(self, name: str) -> dict[str, Any] | None:
        """The pods of a node, for those who look closer; None if there is no such node."""
        tile = self._tiles.get(name)
        if tile is None:
            return None
        pods = sorted(tile.load.pods.values())
        shown = [
            {"name": pod.key, "state": POD_STATES[pod.state], "cpu": pod.cpu_milli, "memory": pod.memory_mib}
            for pod in pods[:PODS_SHOWN]
        ]
        return {"node": name, "count": len(pods), "pods": shown}

    def names(self, *, zone: str | None = None, group: str | None = None) -> list[str]:
        """The nodes of a zone or group, or all."""
        return [
            name for name, tile in self._tiles.items()
            if (zone is None or tile.facts.zone == zone) and (group is None or tile.facts.group == group)
        ]  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether there is such a node."""
        return name in self._tiles


def _share(used: int, available: int) -> float:
    return round(used / available, 4) if available else 0.0
