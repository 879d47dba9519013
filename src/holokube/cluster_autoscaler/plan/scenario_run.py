"""Plays a scenario and answers in the form in which the real autoscaler's decisions are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.flags import parse_flags
from holokube.cluster_autoscaler.objects import name_of, pod_key
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.plan.play import Player, Turn, player
from holokube.cluster_autoscaler.plan.provider import GroupSpec, PlanProvider
from holokube.cluster_autoscaler.plan.scenario import Group, Loop, Scenario
from holokube.cluster_autoscaler.plan.scenario_objects import objects_of, template_node
from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.quotas import limiter_of
from holokube.kube.timeformat import parse_duration
from holokube.kube.types import JsonObject


def run_scenario(
    scenario: Scenario, options: AutoscalerOptions | None = None, *, seed: int | str = 0,
    node_order: int | str | None = None,
) -> dict[str, Any]:
    """``{"loops": [...]}``, one entry for each turn; ``options`` are those of the scenario's flags unless told.

    ``seed`` is that of ties. With a ``node_order``, another seed, nodes are tried for pods in any order; otherwise in
    that of the scenario.
    """
    clock = VirtualClock()
    options = parse_flags(scenario.flags).options if options is None else options
    order = None if node_order is None else Rng(node_order)
    return run_virtual(_run(clock, scenario, options, Rng(seed), order), clock=clock)


async def _run(
    clock: VirtualClock, scenario: Scenario, options: AutoscalerOptions, rng: Rng, node_order: Rng | None
) -> dict[str, Any]:
    group_of = {node.name: node.group for node in scenario.nodes}

    def make_provider(clock: VirtualClock, client: Client, nodes: Sequence[JsonObject]) -> PlanProvider:
        nodes_of: dict[str, list[JsonObject]] = {}
        for node in nodes:
            nodes_of.setdefault(group_of[name_of(node)], []).append(node)
        return PlanProvider(
            clock, client, [_spec(group) for group in scenario.node_groups], nodes_of, limiter=limiter_of(options),
            usd_per_core_hour=scenario.pod_price_per_cpu_hour, usd_per_gib_hour=scenario.pod_price_per_gib_hour)

    async with player(
        clock, rng, objects_of(scenario, clock.time()), options, make_provider, keeps_budgets=False, recreates=False,
        node_order=node_order,
    ) as playing:
        return {"loops": [
            await _play(playing, scenario, loop, number) for number, loop in enumerate(scenario.loops)]}


async def _play(playing: Player, scenario: Scenario, loop: Loop, number: int) -> dict[str, Any]:
    playing.provider.books.creates_nodes = "create" in (loop.on_increase, scenario.on_increase)
    turn = await playing.turn(after_s=parse_duration(loop.advance) if loop.advance else 0.0)
    return {"loop": number, **loop_answer(turn)}


def _spec(group: Group) -> GroupSpec:
    refusal = group.fail_increase
    if refusal is True:
        refusal = f"group {group.id} cannot be enlarged"
    return GroupSpec(
        group.id, group.min, group.max, NodeInfo(template_node(group)), target=group.target,
        price_usd_per_hour=group.price_per_hour, refuses_increase=refusal or "")


def loop_answer(turn: Turn) -> dict[str, Any]:
    """What one turn decided and did."""
    up, down = turn.report.scale_up, turn.report.scale_down
    answer: dict[str, Any] = {}
    if up.options:
        answer["options"] = [_option(option) for option in sorted(up.options, key=lambda one: one.group_id)]
    if up.best is not None:
        answer["best"] = _option(up.best)
    answer["scaleUp"] = {
        "result": up.result.value,
        "error": up.error.message if up.error is not None else "",
        "infos": [
            {"group": one.group_id, "current": one.current_size, "new": one.new_size, "max": one.max_size}
            for one in up.increases
        ],
        "triggered": _keys(up.verdicts.triggered),
        "awaitEvaluation": _keys(up.verdicts.await_evaluation),
        "remainUnschedulable": [
            {"pod": pod_key(pod), "skipped": {group_id: [why] for group_id, why in unhelped.skipped.items()},
             "rejected": {group_id: list(no.reasons) for group_id, no in unhelped.rejections.items()}}
            for unhelped in up.verdicts.remain_unschedulable for pod in unhelped.pods
        ],
    }
    answer["unneeded"] = sorted(name_of(entry.node) for entry in down.unneeded)
    answer["scaleDown"] = {
        "result": down.result.value,
        "deleting": [
            {"node": name_of(gone.node), **_utilization(down.utilization.get(name_of(gone.node))),
             "evicted": _keys(gone.evicted)}
            for gone in down.deleting
        ],
        "unremovable": [_unremovable(stays) for stays in sorted(down.unremovable, key=lambda one: one.name)],
    }
    answer["calls"] = turn.calls
    answer["evicted"] = sorted(turn.evicted)
    answer["events"] = sorted(f"{event.type} {event.reason} {event.message}" for event in turn.report.events)
    answer["targets"] = turn.targets
    return answer


def _keys(pods: Sequence[JsonObject]) -> list[str]:
    return sorted(map(pod_key, pods))


def _option(option: Option) -> dict[str, Any]:
    return {"group": option.group_id, "nodeCount": option.node_count, "pods": _keys(option.pods)}


def _unremovable(stays: Unremovable) -> dict[str, Any]:
    found: dict[str, Any] = {"node": stays.name, "reason": str(stays.reason)}
    if stays.blocking_pod is not None:
        found["blockingPod"] = pod_key(stays.blocking_pod.pod)
        found["blockingReason"] = str(stays.blocking_pod.reason)
    if stays.utilization is not None:
        found["util"] = stays.utilization.value
    return found


def _utilization(found: Utilization | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {"util": found.value, "cpuUtil": found.cpu, "memUtil": found.memory}
