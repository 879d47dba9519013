"""What pods are told."""

from __future__ import annotations

from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport
from holokube.cluster_autoscaler.scale_up.reasons import Rejection
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import (
    Unhelped,
    failed_groups,
    triggered_message,
    verdicts_of_failure,
    verdicts_of_nodes_total,
)
from tests.cluster_autoscaler.scale_up.objects import option, pod, pods_of


def test_each_reason_is_told_with_the_number_of_groups() -> None:
    rejections = {
        "a": Rejection(("Insufficient cpu", "Insufficient memory"), "NodeResourcesFit"),
        "b": Rejection(("Insufficient cpu",), "NodeResourcesFit"),
        "gone": Rejection(("Insufficient cpu",), "NodeResourcesFit"),
        "named": Rejection((), "NodeAffinity"),
    }
    unhelped = Unhelped([pod("p")], rejections, {"c": "max node group size reached", "new": "not ready for scale-up"})
    assert unhelped.message(ScaleUpResult.NO_OPTIONS_AVAILABLE, {"a", "b", "c", "named"}) == (
        "pod didn't trigger scale-up: 2 Insufficient cpu, 1 Insufficient memory, 1 max node group size reached"
    )


def test_a_full_cluster_needs_no_further_reasons() -> None:
    verdicts = verdicts_of_nodes_total(pods_of("x", 2))
    result = ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL
    assert [one.message(result, set()) for one in verdicts.remain_unschedulable] == [
        "pod didn't trigger scale-up: max total nodes in cluster reached"
    ] * 2


def test_pods_that_triggered_learn_all_increases() -> None:
    increases = [Increase("a", 1, 3, 5), Increase("b", 0, 1, 9)]
    assert triggered_message(increases) == "pod triggered scale-up: [{a 1->3 (max: 5)} {b 0->1 (max: 9)}]"


def test_one_failure_after_the_other_stops_those_behind_it() -> None:
    increases = [Increase(name, 0, 1, 5) for name in "abc"]
    assert failed_groups(["b"], increases, parallel=False) == {"b", "c"}
    assert failed_groups(["b"], increases, parallel=True) == {"b"}
    assert failed_groups(["a", "c"], increases, parallel=False) == {"a", "c"}


def test_pods_are_unhelped_once_all_that_could_help_have_failed() -> None:
    both = PodGroupReport(pods_of("both", 1), ["a", "b"], is_schedulable=True)
    alone = PodGroupReport(pods_of("alone", 1), ["a"], {"b": Rejection(("no",))}, is_schedulable=True)
    never = PodGroupReport(pods_of("never", 1), [], {"a": Rejection(("no",))})
    verdicts = verdicts_of_failure(option("a"), [both, alone, never], {}, frozenset({"a"}))
    assert [one["metadata"]["name"] for one in verdicts.remaining_pods()] == ["alone-0", "never-0"]
    assert both.rejections == {"a": Rejection(("scale-up execution failed",))}
    verdicts = verdicts_of_failure(option("a"), [both], {})
    assert len(verdicts.remaining_pods()) == 1


def test_results_have_upstreams_names() -> None:
    assert str(ScaleUpResult.NO_OPTIONS_AVAILABLE) == "ScaleUpNoOptionsAvailable"
