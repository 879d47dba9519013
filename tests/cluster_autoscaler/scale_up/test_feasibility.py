"""Which pods could run on a new node of which group."""

from __future__ import annotations

from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport, try_group
from holokube.cluster_autoscaler.scale_up.reasons import Rejection
from tests.cluster_autoscaler.scale_up.objects import node, pods_of, snapshot, template


def test_one_pod_speaks_for_all_and_the_node_is_taken_back() -> None:
    cluster = snapshot(node("n"))
    reports = [PodGroupReport(pods_of("fits", 3)), PodGroupReport(pods_of("large", 2, "5"))]
    assert try_group("a", template("a", "4"), reports, cluster) == [reports[0]]
    assert try_group("b", template("b", "8"), reports, cluster) == reports
    assert [report.feasible_on for report in reports] == [["a", "b"], ["b"]]
    assert reports[1].rejections == {"a": Rejection(("Insufficient cpu",), "NodeResourcesFit")}
    assert all(report.is_schedulable for report in reports)
    assert list(cluster.node_names) == ["n"]


def test_giving_up_names_the_groups_that_failed() -> None:
    report = PodGroupReport(pods_of("x", 1), ["a", "b"], is_schedulable=True)
    report.give_up("no", frozenset({"b"}))
    assert (report.is_schedulable, set(report.rejections)) == (True, {"b"})
    report.give_up("no")
    assert (report.is_schedulable, set(report.rejections)) == (False, {"a", "b"})


def test_pods_that_nobody_could_help_have_nothing_to_give_up() -> None:
    report = PodGroupReport(pods_of("x", 1), [], {"a": Rejection(("too small",))})
    report.give_up("no")
    assert report.rejections == {"a": Rejection(("too small",))}
