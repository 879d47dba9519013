"""What of a turn is written down."""

from __future__ import annotations

from holokube.cluster_autoscaler.actuation.results import NodeDeleteOutcome, NodeDeleteResult, ScaledDownNode
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.loop.journaling import JournalKeeper
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason, UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import BlockingPod, HomelessPod, Unremovable, Utilization
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.runtime.journal import Journal
from tests.builders import node, pod


def kept(*reports: TurnReport) -> list[tuple[str, str, str, tuple[str, ...]]]:
    journal = Journal()
    keeper = JournalKeeper(journal)
    for report in reports:
        keeper.keep(report)
    return [(entry.kind, entry.subject, entry.decision, entry.reasons) for entry in journal]


def staying(*entries: Unremovable, now_s: float = 0.0) -> TurnReport:
    report = TurnReport(now_s)
    report.scale_down.unremovable = list(entries)
    return report


def test_a_node_that_stays_for_the_same_reason_is_written_down_once() -> None:
    first = Unremovable(node("n"), UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH, detail="for 10 s")
    later = Unremovable(node("n"), UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH, detail="for 20 s")
    other = Unremovable(node("n"), UnremovableReason.NOT_UNDERUTILIZED)
    assert [entry[2] for entry in kept(staying(first), staying(later), staying(other), staying(first))] == [
        "stays: NotUnneededLongEnough", "stays: NotUnderutilized", "stays: NotUnneededLongEnough"]


def test_a_node_that_was_away_is_written_down_again() -> None:
    stays = Unremovable(node("n"), UnremovableReason.NOT_UNDERUTILIZED)
    assert len(kept(staying(stays), staying(), staying(stays))) == 2


def test_the_pod_that_holds_a_node_is_named() -> None:
    blocked = Unremovable(node("a"), UnremovableReason.BLOCKED_BY_POD,
                          BlockingPod(pod("p"), BlockingReason.NOT_REPLICATED))
    homeless = Unremovable(node("b"), UnremovableReason.NO_PLACE_TO_MOVE_PODS, homeless_pod=HomelessPod(pod("q"), {}))
    assert [entry[3] for entry in kept(staying(blocked, homeless))] == [
        ("default/p: NotReplicated",), ("default/q finds no place",)]


def test_how_much_of_a_node_is_used_is_told_and_what_was_found_the_last_time() -> None:
    used = Unremovable(
        node("a"), UnremovableReason.NOT_UNDERUTILIZED, utilization=Utilization("cpu", 0.8437), threshold=0.5)
    blocked = Unremovable(node("b"), UnremovableReason.BLOCKED_BY_POD,
                          BlockingPod(pod("p"), BlockingReason.NOT_REPLICATED))
    again = Unremovable(node("b"), UnremovableReason.RECENTLY_UNREMOVABLE, earlier=blocked)
    assert [entry[3] for entry in kept(staying(used, again))] == [
        ("84.4% of its cpu is requested, more than 50%",),
        ("a short while ago it was BlockedByPod", "default/p: NotReplicated")]


def test_what_was_done_and_what_failed_is_written_down() -> None:
    report = TurnReport(0.0)
    report.scale_up.increases = [Increase("g", 1, 3, 5)]
    report.scale_up.failed_groups = ("h",)
    report.scale_up.error = AutoscalerError("no room")
    report.scale_down.deleting = [ScaledDownNode(node("n"), "g", (pod("p"),), True)]
    report.scale_down.results = {"old": NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_DELETE, AutoscalerError("stuck"))}
    report.removed_unregistered, report.deleted_failed, report.fixed_sizes = ["m1"], ["m2"], {"g": -1}
    report.error = AutoscalerError("broken", kind=ErrorKind.INTERNAL)
    assert kept(report) == [
        ("turn", "turn", "stopped", ("internalError: broken",)),
        ("machine", "m1", "removed", ("it has not become a node in time",)),
        ("machine", "m2", "removed", ("it could not be made",)),
        ("group", "g", "target lowered", ("fewer machines came than were asked for",)),
        ("scale-up", "g", "enlarged", ("{g 1->3 (max: 5)}",)),
        ("scale-up", "h", "failed", ("no room",)),
        ("node", "n", "removed", ("drained",)),
        ("node", "old", "removal failed", ("stuck",)),
    ]
