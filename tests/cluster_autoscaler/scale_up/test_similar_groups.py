"""Groups that may share an increase."""

from __future__ import annotations

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport
from holokube.cluster_autoscaler.scale_up.similar_groups import SimilarGroups, find_similar
from tests.cluster_autoscaler.scale_up.objects import Opinion, given, group, pods_of, template

BALANCED = AutoscalerOptions(balance_similar_node_groups=True)
ALL = frozenset("abc")


def test_a_group_shares_with_those_that_run_all_its_pods() -> None:
    told = given([group(name) for name in "abc"], {name: template(name) for name in "abc"}, [], options=BALANCED)
    reports = [PodGroupReport(pods_of("x", 1), ["a", "b", "c"]), PodGroupReport(pods_of("y", 1), ["b", "c"])]
    assert find_similar(told.groups[0], told, reports, ALL).ids == ("b", "c")
    found = find_similar(told.groups[1], told, reports, ALL)
    assert found == SimilarGroups(("c",), {"a": "it cannot run all the pods"})


def test_nothing_is_shared_unless_asked_for() -> None:
    told = given([group("a"), group("b")], {"a": template("a"), "b": template("b")}, [])
    assert find_similar(told.groups[0], told, [PodGroupReport(pods_of("x", 1), ["a", "b"])], ALL) == SimilarGroups()


def test_a_group_without_pods_shares_nothing() -> None:
    told = given([group("a"), group("b")], {"a": template("a"), "b": template("b")}, [], options=BALANCED)
    assert find_similar(told.groups[0], told, [PodGroupReport(pods_of("x", 1), ["b"])], ALL) == SimilarGroups()


def test_groups_that_do_not_exist_yet_may_share_whatever_the_registry_thinks() -> None:
    told = given([group("a"), group("b", exists=False)], {"a": template("a"), "b": template("b")}, [],
                 options=BALANCED, opinions={"b": Opinion(False, False)})
    assert find_similar(told.groups[0], told, [PodGroupReport(pods_of("x", 1), ["a", "b"])], ALL).ids == ("b",)
