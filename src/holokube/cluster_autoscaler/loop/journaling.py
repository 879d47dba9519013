"""What of a turn goes into the decision journal: everything that is decided otherwise than the last time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from operator import is_not
from typing import Any

from holokube.cluster_autoscaler.loop.report import ScaleUpReport, TurnReport
from holokube.cluster_autoscaler.objects import name_of, pod_key
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.cluster_autoscaler.scale_up.planning import ScaleUpPlan
from holokube.runtime.journal import Journal


class JournalKeeper:
    """Writes down decisions. One that is repeated turn after turn is written once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[tuple[str, str], str] = {}
        self._seen: set[tuple[str, str]] = set()
        """What this turn has decided upon besides nodes that stay."""
        self._seen_before: set[tuple[str, str]] = set()
        self._stays: dict[str, Unremovable] = {}
        """The nodes that stayed in the turn before."""
        self._listed: Sequence[Unremovable] = ()

    def keep(self, report: TurnReport) -> None:
        """Write down a turn."""
        self._seen_before, self._seen = self._seen, set()
        now_s = report.now_s
        if report.stopped or report.error is not None:
            why = [report.stopped] if report.stopped else []
            if report.error is not None:
                why.append(f"{report.error.kind.value}: {report.error.message}")
            self._note(now_s, "turn", "turn", "stopped", why)
        for machine in report.removed_unregistered:
            self._note(now_s, "machine", machine, "removed", ["it has not become a node in time"])
        for machine in report.deleted_failed:
            self._note(now_s, "machine", machine, "removed", ["it could not be made"])
        for group_id, delta in report.fixed_sizes.items():
            self._note(now_s, "group", group_id, "target lowered", ["fewer machines came than were asked for"],
                       delta=delta)
        self._keep_scale_up(now_s, report.scale_up)
        staying = self._keep_scale_down(now_s, report)
        # What was not decided again is forgotten.
        for key in self._seen_before - self._seen:
            if key[0] != "node" or key[1] not in staying:
                self._known.pop(key, None)

    def _keep_scale_up(self, now_s: float, up: ScaleUpReport) -> None:
        for plan in up.plans:
            self._keep_plan(now_s, plan)
        for increase in up.increases:
            best = up.best
            self._note(now_s, "scale-up", increase.group_id, "enlarged", [str(increase)], **_weighed(up),
                       pods=len(best.pods) if best is not None else 0)
        for group_id in up.failed_groups:
            self._note(now_s, "scale-up", group_id, "failed", [up.error.message] if up.error is not None else [])
        if up.minimum is not None:
            for group_id, why in up.minimum.skipped.items():
                self._note(now_s, "group", group_id, "stays below its minimum", [why])
        for unhelped in up.verdicts.remain_unschedulable:
            reasons = {
                **{group_id: ", ".join(no.reasons) or no.predicate for group_id, no in unhelped.rejections.items()},
                **unhelped.skipped,
            }
            self._note(now_s, "pod", pod_key(unhelped.pods[0]), f"not helped ({up.result.value})",
                       [f"{group_id}: {why}" for group_id, why in reasons.items()], alike=len(unhelped.pods))

    def _keep_plan(self, now_s: float, plan: ScaleUpPlan) -> None:
        for group_id, why in plan.report.skipped.items():
            self._note(now_s, "group", group_id, "skipped", [why])
        for group_id, why in plan.report.fruitless.items():
            self._note(now_s, "group", group_id, "no option", [why])
        for group_id, why in plan.report.limits.items():
            self._note(now_s, "group", group_id, "estimate limited", [why])
        if plan.best is not None:
            self._note(now_s, "scale-up", "cluster", f"chose {plan.best.group_id}", plan.caps,
                       options={option.group_id: option.node_count for option in plan.report.options})

    def _keep_scale_down(self, now_s: float, report: TurnReport) -> Collection[str]:
        """Write down what becomes of nodes; the names of those that stay."""
        down = report.scale_down
        if down.cooldown:
            self._note(now_s, "scale-down", "cluster", "in cooldown", [down.cooldown])
        for gone in down.deleting:
            self._note(now_s, "node", name_of(gone.node), "removed", ["drained" if gone.drain else "empty"],
                       group=gone.group_id, evicted=[pod_key(pod) for pod in gone.evicted])
        for name, result in down.results.items():
            if result.error is not None:
                self._note(now_s, "node", name, "removal failed", [str(result.error)], outcome=result.outcome.name)
        staying = self._keep_staying(now_s, down.unremovable)
        leaving = {name_of(one.node) for one in down.deleting}
        for entry in down.unneeded:
            name = name_of(entry.node)
            if name not in staying and name not in leaving:
                self._note(now_s, "node", name, "unneeded", [], since=entry.since_s)
        return staying

    def _keep_staying(self, now_s: float, stays: Sequence[Unremovable]) -> Collection[str]:
        """The nodes that stay; their names. Nearly all are the same objects as in the turn before."""
        decided = {subject for kind, subject in self._seen if kind == "node"}
        before, self._listed = self._listed, stays
        if len(before) == len(stays) and decided.isdisjoint(self._stays):
            news = list(compress(range(len(stays)), map(is_not, stays, before)))
            if all(stays[i].name == before[i].name for i in news):
                for i in news:
                    one = self._stays[stays[i].name] = stays[i]
                    self._decide(now_s, "node", one.name, f"stays: {one.reason}", _why(one))
                return self._stays.keys()
        was, is_ = dict(zip(map(id, before), before, strict=True)), dict(zip(map(id, stays), stays, strict=True))
        told = list(compress(stays, map((is_.keys() - was.keys()).__contains__, is_)))
        left = [one.name for one in compress(before, map((was.keys() - is_.keys()).__contains__, was))]
        for name in left:
            del self._stays[name]
        self._stays.update([(one.name, one) for one in told])
        if not decided.isdisjoint(self._stays):
            again = {id(one) for one in told} | {id(self._stays[name]) for name in decided if name in self._stays}
            told = [one for one in stays if id(one) in again]
        for one in told:
            self._decide(now_s, "node", one.name, f"stays: {one.reason}", _why(one))
        for name in left:
            if name not in self._stays and name not in decided:
                self._known.pop(("node", name), None)
        return self._stays.keys()

    def _note(self, now_s: float, kind: str, subject: str, decision: str, reasons: list[str] | tuple[str, ...],
              **facts: Any) -> None:
        self._seen.add((kind, subject))
        self._decide(now_s, kind, subject, decision, reasons, **facts)

    def _decide(self, now_s: float, kind: str, subject: str, decision: str, reasons: list[str] | tuple[str, ...],
                **facts: Any) -> None:
        key = (kind, subject)
        # Reasons tell of seconds that have passed and pods that have come and gone: that is no new decision.
        if self._known.get(key) != decision or kind == "scale-up":
            self._known[key] = decision
            self._journal.note(now_s, kind, subject, decision, reasons, **facts)


def _weighed(up: ScaleUpReport) -> dict[str, Any]:
    """What expanders thought of the options."""
    choice = up.plans[-1].choice if up.plans else None
    if choice is None:
        return {}
    return {"expanders": [
        {"expander": step.expander, "kept": list(step.kept), "scores": {one.group_id: one.text for one in step.scores}}
        for step in choice.steps
    ]}


def _why(stays: Unremovable) -> list[str]:
    if stays.blocking_pod is not None:
        return [f"{pod_key(stays.blocking_pod.pod)}: {stays.blocking_pod.reason}"]
    if stays.homeless_pod is not None:
        return [f"{pod_key(stays.homeless_pod.pod)} finds no place"]
    if stays.utilization is not None and stays.threshold is not None:
        used = stays.utilization
        return [f"{used.value:.1%} of its {used.resource} is requested, more than {stays.threshold * 100:g}%"]
    if stays.earlier is not None:
        return [f"a short while ago it was {stays.earlier.reason}", *_why(stays.earlier)]
    return [stays.detail] if stays.detail else []
