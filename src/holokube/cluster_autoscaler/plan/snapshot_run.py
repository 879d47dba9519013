"""The dry run on a snapshot: what would be added, what would be removed, where pods would go, and why.

First turns are played until the cluster is not enlarged any more; new nodes are there at once. Then, unless told
otherwise, time passes until nodes that nobody needs may go, and turns are played until no more do: evicted pods come
back as pods that wait, and disruption budgets recover between turns and while a drain waits for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import POD_DISRUPTION_BUDGETS
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.plan.play import Player, player
from holokube.cluster_autoscaler.plan.provider import PlanProvider
from holokube.cluster_autoscaler.plan.snapshot_answer import Played, answer_of
from holokube.cluster_autoscaler.plan.snapshot_input import SnapshotInput
from holokube.cluster_autoscaler.scale_up.quotas import limiter_of
from holokube.kube.types import JsonObject

UP_TURNS_MAX = 20
DOWN_TURNS_MAX = 200


def run_snapshot(
    given: SnapshotInput, options: AutoscalerOptions, *, seed: int | str = 0, waits: bool = True,
    node_order: int | str | None = None,
) -> dict[str, Any]:
    """The plan as plain values. ``waits``: also wait until idle nodes may go."""
    clock = VirtualClock(given.now)
    order = None if node_order is None else Rng(node_order)
    return run_virtual(_run(clock, given, options, Rng(seed), order, waits=waits), clock=clock)


async def _run(
    clock: VirtualClock, given: SnapshotInput, options: AutoscalerOptions, rng: Rng, node_order: Rng | None, *,
    waits: bool,
) -> dict[str, Any]:
    def make_provider(clock: VirtualClock, client: Client, nodes: Sequence[JsonObject]) -> PlanProvider:
        nodes_of: dict[str, list[JsonObject]] = {}
        for node in nodes:
            nodes_of.setdefault(given.group_of.get(name_of(node), ""), []).append(node)
        provider = PlanProvider(clock, client, given.groups, nodes_of, limiter=limiter_of(options))
        provider.books.creates_nodes = True
        return provider

    async with player(
        clock, rng, given.objects, options, make_provider, keeps_budgets=True, recreates=True, node_order=node_order
    ) as playing:
        played = Played(given, began_s=clock.time(), first=playing.sources.observe(clock.time()))
        budgets = list(played.first.pdbs)
        playing.copy.recover_by(lambda: _restore_budgets(playing, budgets))
        await _enlarge(playing, options, played)
        if waits and options.scale_down_enabled:
            await _shrink(playing, options, played, budgets)
        played.last = playing.sources.observe(clock.time())
        return answer_of(played, playing.provider)


async def _enlarge(playing: Player, options: AutoscalerOptions, played: Played) -> None:
    for number in range(UP_TURNS_MAX):
        turn = await playing.turn(after_s=options.scan_interval_s if number else 0.0)
        played.turns.append(turn)
        if not turn.report.scale_up.increases:
            return
    played.notes.append(f"the cluster was still being enlarged after {UP_TURNS_MAX} turns; the plan stops there")


async def _shrink(
    playing: Player, options: AutoscalerOptions, played: Played, budgets: Sequence[JsonObject]
) -> None:
    ripe_s = 1.0 + max(_removal_times(playing, options))
    recheck_s = 1.0 + options.unremovable_node_recheck_timeout_s
    waits = deque([ripe_s])
    for _ in range(DOWN_TURNS_MAX):
        if not waits:
            return
        turn = await playing.turn(after_s=waits.popleft())
        played.turns.append(turn)
        if turn.report.scale_down.deleting or turn.report.scale_up.increases:
            await _restore_budgets(playing, budgets)
            # What goes may make room for more: nodes that could not go are looked at again, and may have to wait.
            waits = deque([options.scan_interval_s, recheck_s, ripe_s])
    played.notes.append(f"nodes were still being removed after {DOWN_TURNS_MAX} turns; the plan stops there")


def _removal_times(playing: Player, options: AutoscalerOptions) -> list[float]:
    """How long a node must be unneeded at most, and how long nothing goes after a scale-up."""
    own = [group.spec.options for group in playing.provider.groups.values()]
    return [
        options.scale_down_delay_after_add_s, options.scale_down_unneeded_time_s,
        *(one.scale_down_unneeded_time_s for one in own if one is not None),
    ]


async def _restore_budgets(playing: Player, budgets: Sequence[JsonObject]) -> None:
    """What the disruption controller does once the pods that were moved run elsewhere."""
    for budget in budgets:
        allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
        meta: Mapping[str, Any] = budget["metadata"]
        await playing.client.patch_status(
            POD_DISRUPTION_BUDGETS, meta["name"], {"status": {"disruptionsAllowed": allowed, "disruptedPods": None}},
            namespace=meta["namespace"])

