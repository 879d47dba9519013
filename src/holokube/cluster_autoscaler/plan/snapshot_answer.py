"""What a dry run found, as plain values with every reason in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from holokube.cluster_autoscaler.objects import is_finished, name_of, node_name_of, pod_key
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.plan.play import Turn
from holokube.cluster_autoscaler.plan.provider import PlanProvider
from holokube.cluster_autoscaler.plan.snapshot_input import SnapshotInput
from holokube.cluster_autoscaler.plan.waste import waste_of
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.cluster_autoscaler.scale_up.planning import ScaleUpPlan
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

HOURS_PER_MONTH = 730


@dataclass(slots=True)
class Played:
    """A dry run from its start to its end."""

    given: SnapshotInput
    began_s: float
    first: Observation
    last: Observation | None = None
    turns: list[Turn] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def answer_of(played: Played, provider: PlanProvider) -> dict[str, Any]:
    """The whole plan."""
    placed = _placements(played)
    nodes = _nodes(played, provider, placed)
    return {
        "policy": "cluster-autoscaler",
        "time": format_time(played.began_s),
        "groups": [_group(played, provider, group_id) for group_id in provider.groups],
        "scaleUp": [_scale_up(turn, played.began_s) for turn in played.turns if turn.report.scale_up.plans],
        "pods": {
            "pending": played.turns[0].report.pending,
            "placed": [{"pod": pod, "node": node} for pod, node in placed.items()],
            "unplaced": _unplaced(played.turns[-1]),
            "tooYoung": [pod_key(pod) for pod in played.turns[-1].report.young],
        },
        "scaleDown": [
            _removal(turn, played.began_s) for turn in played.turns if turn.report.scale_down.deleting],
        "nodes": nodes,
        **_price(nodes),
        "turns": [_turn(turn, played.began_s) for turn in played.turns],
        "notes": [*played.given.notes, *played.notes, *_troubles(played.turns)],
    }


def _placements(played: Played) -> dict[str, str]:
    """Where the pods that wait would go, by the last turn: pod -> node."""
    return {pod_key(status.pod): status.node_name for status in played.turns[-1].report.schedulable}


def _group(played: Played, provider: PlanProvider, group_id: str) -> dict[str, Any]:
    group = provider.groups[group_id]
    before = sum(1 for name in played.given.group_of.values() if name == group_id)
    template = group.spec.template
    allocatable: Mapping[str, Any] = template.node["status"]["allocatable"] if template is not None else {}
    found: dict[str, Any] = {
        "id": group_id, "min": group.min_size, "max": group.max_size, "before": before, "after": group.target,
        "template": dict(allocatable), "source": played.given.sources.get(group_id, ""),
    }
    if group.spec.price_usd_per_hour is not None:
        found["pricePerHour"] = group.spec.price_usd_per_hour
    return found


def _scale_up(turn: Turn, began_s: float) -> dict[str, Any]:
    up = turn.report.scale_up
    return {
        "afterSeconds": round(turn.report.now_s - began_s, 3),
        "result": up.result.value,
        "error": up.error.message if up.error is not None else "",
        "increases": [
            {"group": one.group_id, "current": one.current_size, "new": one.new_size, "max": one.max_size}
            for one in up.increases
        ],
        "choices": [_choice(plan) for plan in up.plans],
        "triggered": sorted(pod_key(pod) for pod in up.verdicts.triggered),
    }


def _choice(plan: ScaleUpPlan) -> dict[str, Any]:
    """What there was to choose from, what was chosen, and why."""
    report = plan.report
    steps = plan.choice.steps if plan.choice is not None else ()
    return {
        "chosen": plan.best.group_id if plan.best is not None else None,
        "options": [
            {"group": option.group_id, "nodeCount": option.node_count, "pods": len(option.pods),
             "similar": list(option.similar)}
            for option in report.options
        ],
        "expanders": [
            {"name": step.expander, "kept": list(step.kept),
             "scores": {score.group_id: score.text for score in step.scores}}
            for step in steps
        ],
        "caps": list(plan.caps),
        "skippedGroups": dict(report.skipped),
        "groupsWithoutOption": dict(report.fruitless),
        "estimateLimits": dict(report.limits),
    }


def _unplaced(turn: Turn) -> list[dict[str, Any]]:
    """Pods that nothing can be done for, those that are alike together, with what every group has against them."""
    up = turn.report.scale_up
    found = []
    for unhelped in up.verdicts.remain_unschedulable:
        reasons = {group_id: list(no.reasons) or [no.predicate] for group_id, no in unhelped.rejections.items()}
        reasons |= {group_id: [why] for group_id, why in unhelped.skipped.items()}
        found.append({
            "pods": [pod_key(pod) for pod in unhelped.pods],
            "reasons": reasons,
            "message": unhelped.message(up.result, up.considered or tuple(reasons)),
        })
    waiting = [pod_key(pod) for pod in up.verdicts.await_evaluation]
    if waiting:
        found.append({"pods": waiting, "reasons": {}, "message": "another group can help in a later turn"})
    return found


def _removal(turn: Turn, began_s: float) -> dict[str, Any]:
    down = turn.report.scale_down
    failed = {event.name: event.message for event in turn.report.events
              if event.reason == "ScaleDownFailed" and event.kind == "Node"}
    return {
        "afterSeconds": round(turn.report.now_s - began_s, 3),
        "nodes": [
            {"node": name_of(gone.node), "group": gone.group_id, "drained": gone.drain,
             "evicted": sorted(pod_key(pod) for pod in gone.evicted),
             "utilization": _utilization(down.utilization, name_of(gone.node)),
             **({"failed": failed[name_of(gone.node)]} if name_of(gone.node) in failed else {})}
            for gone in down.deleting
        ],
    }


def _utilization(known: Mapping[str, Any], name: str) -> Any:
    found = known.get(name)
    return None if found is None else found.as_json()


def _nodes(played: Played, provider: PlanProvider, placed: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every node there was or will be: whether it stays, goes or comes, why, and what of it is not used."""
    assert played.last is not None, "the plan was played to its end"
    pods: dict[str, list[JsonObject]] = {}
    for pod in played.last.pods:
        where = node_name_of(pod) or placed.get(pod_key(pod), "")
        if where and not is_finished(pod):
            pods.setdefault(where, []).append(pod)
    before = {name_of(node) for node in played.first.nodes}
    after = {name_of(node): node for node in played.last.nodes}
    stays = {found.name: found for found in _why_they_stay(played.turns)}
    rows: list[dict[str, Any]] = [
        {"node": name, "group": played.given.group_of.get(name), "verdict": "goes",
         "pricePerHour": _price_of(played, provider, name)}
        for name in before if name not in after
    ]
    for name, node in after.items():
        rows.append({
            "node": name,
            "group": provider.books.group_of.get(node["spec"].get("providerID", "")),
            "verdict": "stays" if name in before else "comes",
            "pricePerHour": provider.price_of_node(node),
            "pods": len(pods.get(name, ())),
            "why": _why(stays.get(name), is_managed=name in played.given.group_of, is_new=name not in before),
            **waste_of(node, pods.get(name, ())).as_json(),
        })
    return sorted(rows, key=lambda row: str(row["node"]))


def _price_of(played: Played, provider: PlanProvider, node_name: str) -> float | None:
    group_id = played.given.group_of.get(node_name)
    return None if group_id is None else provider.groups[group_id].spec.price_usd_per_hour


def _why_they_stay(turns: Sequence[Turn]) -> list[Unremovable]:
    """What the last turn that looked at the nodes has to say."""
    for turn in reversed(turns):
        down = turn.report.scale_down
        if down.planner is not None:
            listed = {found.name for found in down.unremovable}
            return [*down.unremovable, *(one for one in down.planner.not_candidates if one.name not in listed)]
    return []


def _why(found: Unremovable | None, *, is_managed: bool, is_new: bool) -> dict[str, Any]:
    if found is not None:
        return {key: value for key, value in found.as_json().items() if key != "node"}
    if is_new:
        return {"reason": "New"}
    return {"reason": "Unneeded" if is_managed else "NotAutoscaled"}


def _price(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cluster costs before and after, if the price of any node is known."""
    known = [row for row in nodes if row["pricePerHour"] is not None]
    if not known:
        return {}
    before = fsum(row["pricePerHour"] for row in known if row["verdict"] != "comes")
    after = fsum(row["pricePerHour"] for row in known if row["verdict"] != "goes")
    return {"price": {
        "perHourBefore": round(before, 6), "perHourAfter": round(after, 6),
        "perMonthBefore": round(before * HOURS_PER_MONTH, 2), "perMonthAfter": round(after * HOURS_PER_MONTH, 2),
        "nodesWithoutPrice": len(nodes) - len(known),
    }}


def _turn(turn: Turn, began_s: float) -> dict[str, Any]:
    report = turn.report
    found: dict[str, Any] = {
        "afterSeconds": round(report.now_s - began_s, 3), "scaleUp": report.scale_up.result.value,
        "scaleDown": report.scale_down.result.value,
        "unneeded": sorted(name_of(entry.node) for entry in report.scale_down.unneeded),
        "calls": turn.calls,
        "events": [
            {"object": f"{event.kind} {event.name}", "type": event.type, "reason": event.reason,
             "message": event.message}
            for event in report.events
        ],
    }
    if report.scale_down.cooldown:
        found["cooldown"] = report.scale_down.cooldown
    return found


def _troubles(turns: Sequence[Turn]) -> list[str]:
    """What kept a turn from being played to its end."""
    found: dict[str, None] = {}
    for turn in turns:
        if turn.report.error is not None:
            found[f"a turn failed: {turn.report.error.message}"] = None
        if turn.report.stopped:
            found[f"a turn stopped: {turn.report.stopped}"] = None
    return list(found)
