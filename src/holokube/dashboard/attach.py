"""From a cluster to a scene: informers and journal feed the view, a client carries out what is clicked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from holokube.base.clock import Clock, VirtualClock
from holokube.base.pace import Pace
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.dashboard.node_facts import PriceOf
from holokube.dashboard.scene import Outcome, Scene
from holokube.dashboard.view import ClusterView
from holokube.hollow.fault_writes import break_node, heal_node
from holokube.kube.errors import ApiError
from holokube.kube.timeformat import format_micro_time
from holokube.runtime.journal import Journal

PROBLEMS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FaultWrites:
    """Breaks and heals nodes as ``holokube fault`` and ``holokube heal`` do, and says so in the journal."""

    clock: Clock
    client: Client
    journal: Journal | None = None

    async def break_nodes(self, names: Sequence[str], kinds: Sequence[str]) -> Outcome:
        """Bring these faults upon all nodes."""
        now_s = self.clock.time()
        done, problems = 0, []
        for name in names:
            try:
                await break_node(self.client, name, kinds, format_micro_time(now_s))
            except ApiError as error:
                problems.append(f"{name}: {error.message}")
                continue
            done += 1
            self._note(now_s, name, f"broken by hand: {', '.join(kinds)}")
        return Outcome(done, tuple(problems[:PROBLEMS_SHOWN]))

    async def heal_nodes(self, names: Sequence[str], kinds: Sequence[str]) -> Outcome:
        """Take these faults, or all, away from all nodes."""
        now_s = self.clock.time()
        done, problems = 0, []
        for name in names:
            try:
                healed = await heal_node(self.client, name, kinds)
            except ApiError as error:
                problems.append(f"{name}: {error.message}")
                continue
            if healed:
                done += 1
                self._note(now_s, name, "healed by hand")
        return Outcome(done, tuple(problems[:PROBLEMS_SHOWN]))

    def _note(self, now_s: float, name: str, decision: str) -> None:
        if self.journal is not None:
            self.journal.note(now_s, "fault", name, decision)


def attach(
    clock: Clock,
    nodes: Informer,
    pods: Informer,
    *,
    journal: Journal | None = None,
    client: Client | None = None,
    pace: Pace | None = None,
    price_of: PriceOf | None = None,
    title: str = "",
) -> Scene:
    """A scene of the cluster that these informers follow; to be called on its loop.

    With a ``client``, nodes may be broken and healed from the page. On virtual time the history shows the whole run.
    """
    is_virtual = isinstance(clock, VirtualClock)
    view = ClusterView(clock, price_of=price_of, **({"history_window_s": None} if is_virtual else {}))
    nodes.add_handler(view.on_node)
    pods.add_handler(view.on_pod)
    view.begin()
    if journal is not None:
        for entry in journal:
            view.on_decision(entry)
        journal.subscribe(view.on_decision)
    writes = None if client is None else FaultWrites(clock, client, journal)
    return Scene(
        view, asyncio.get_running_loop(), title=title, is_virtual=is_virtual, pace=pace,
        break_nodes=None if writes is None else writes.break_nodes,
        heal_nodes=None if writes is None else writes.heal_nodes,
    )  # fmt: skip
