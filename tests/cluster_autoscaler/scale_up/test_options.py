"""All ways to enlarge the cluster."""

from __future__ import annotations

from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.options import find_options
from tests.cluster_autoscaler.scale_up.objects import Opinion, given, group, node, pod, pods_of, template

TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


def test_each_group_offers_what_it_can() -> None:
    report = find_options(given(
        [group("small"), group("large")], {"small": template("small", "2"), "large": template("large", "8")},
        [*pods_of("x", 4, "1500m"), *pods_of("y", 1, "6")],
    ))
    assert [(one.group_id, one.node_count, len(one.pods)) for one in report.options] == [
        ("small", 4, 4), ("large", 2, 5)
    ]
    assert report.pod_groups[1].rejections["small"].reasons == ("Insufficient cpu",)
    assert report.pod_groups[1].rejections["small"].predicate == "NodeResourcesFit"
    assert report.pod_groups[1].feasible_on == ["large"]
    assert report.options[0].debug == "small (0:10)"


def test_groups_that_are_skipped_are_not_asked() -> None:
    report = find_options(given(
        [group("full", target=10), group("ill"), group("well")],
        {name: template(name) for name in ("full", "ill", "well")}, pods_of("x", 1),
        opinions={"ill": Opinion(False, False)},
    ))
    assert report.skipped == {"full": "max node group size reached", "ill": "not ready for scale-up"}
    assert report.considered == ("well",)
    assert report.pod_groups[0].feasible_on == ["well"]


def test_a_group_that_can_help_nobody_says_why() -> None:
    report = find_options(given([group("a")], {"a": template("a", taints=[TAINT])}, pods_of("x", 1)))
    assert report.options == []
    assert report.fruitless == {"a": "no pod can run on its nodes"}
    assert report.pod_groups[0].rejections["a"].reasons == ("node(s) had untolerated taint(s)",)
    assert not report.pod_groups[0].is_schedulable


def test_an_option_is_no_larger_than_the_group_has_room_for() -> None:
    report = find_options(given([group("a", target=8)], {"a": template("a", "1")}, pods_of("x", 5)))
    assert (report.options[0].node_count, len(report.options[0].pods)) == (2, 2)
    assert report.limits == {"a": "limited to 2 nodes"}


def test_the_limit_of_all_nodes_counts_those_that_are_there() -> None:
    there = [node(f"n{i}", "100m") for i in range(3)]
    options = AutoscalerOptions(max_nodes_total=5)
    report = find_options(given([group("a")], {"a": template("a", "1")}, pods_of("x", 5), nodes=there, options=options))
    assert report.options[0].node_count == 2


def test_quotas_do_not_enter_the_estimate() -> None:
    report = find_options(given(
        [group("a")], {"a": template("a", "16")}, pods_of("x", 3, "16"), limiter=ResourceLimiter({}, {"cpu": 16}),
    ))
    assert report.options[0].node_count == 3


def test_a_group_that_goes_from_zero_to_maximum_offers_all_of_it() -> None:
    report = find_options(given(
        [group("a", most=6, zero_or_max=True)], {"a": template("a")}, pods_of("x", 2),
    ))
    assert (report.options[0].node_count, len(report.options[0].pods)) == (6, 2)


def test_similar_groups_lend_their_room() -> None:
    groups = [group("a", target=9), group("b", target=8), group("c")]
    templates = {"a": template("a", "1"), "b": template("b", "1"), "c": template("c", "2")}
    options = AutoscalerOptions(balance_similar_node_groups=True)
    report = find_options(given(groups, templates, pods_of("x", 9), options=options))
    assert [(one.group_id, one.node_count, one.similar) for one in report.options] == [
        ("a", 3, ("b",)), ("b", 3, ("a",)), ("c", 5, ())
    ]
    assert report.dissimilar["a"] == {"c": 'capacity resource "cpu" does not match'}


def test_groups_take_part_in_balancing_only_if_they_can() -> None:
    names = ("a", "ill", "full", "picky", "bare")
    groups = [group("a"), group("ill"), group("full", target=10), group("picky"), group("bare")]
    templates = {name: template(name) for name in names if name != "bare"}
    templates["picky"].node["spec"]["taints"] = [TAINT]
    options = AutoscalerOptions(balance_similar_node_groups=True)
    report = find_options(given(
        groups, templates, pods_of("x", 1), options=options, opinions={"ill": Opinion(False, True)},
    ))
    assert report.dissimilar["a"] == {
        "ill": "in backoff after failed scale-up", "full": "it was skipped", "picky": "it cannot run all the pods",
        "bare": "it has no template",
    }


def test_a_group_that_goes_from_zero_to_maximum_shares_nothing() -> None:
    groups = [group("a", zero_or_max=True), group("b")]
    options = AutoscalerOptions(balance_similar_node_groups=True)
    report = find_options(given(groups, {"a": template("a"), "b": template("b")}, pods_of("x", 1), options=options))
    assert report.options[0].similar == ()


def test_pods_are_judged_with_what_is_in_the_cluster() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    shy = pods_of("x", 1, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    there = node("n", labels={"zone": "z1"})
    told = given(
        [group("same"), group("other")],
        {"same": template("same", labels={"zone": "z1"}), "other": template("other", labels={"zone": "z2"})},
        shy, nodes=[there],
    )
    told.snapshot.force_add_pod(pod("old", labels={"app": "x"}), "n")
    report = find_options(told)
    assert [one.group_id for one in report.options] == ["other"]
    assert report.pod_groups[0].rejections["same"].predicate == "InterPodAffinity"


def test_the_time_for_all_groups_is_limited() -> None:
    now = iter(range(0, 100_000, 200))
    told = given(
        [group("a"), group("b"), group("c")], {name: template(name) for name in "abc"}, pods_of("x", 1),
        clock_s=lambda: float(next(now)),
        options=AutoscalerOptions(max_nodegroup_binpacking_duration_s=1e9, max_binpacking_time_s=1000),
    )
    report = find_options(told)
    assert [one.group_id for one in report.options] == ["a", "b"]
    assert report.fruitless == {"c": "the time for binpacking was up"}


def test_the_time_for_one_group_is_limited() -> None:
    now = iter(range(0, 100_000, 20))
    told = given(
        [group("a")], {"a": template("a", "1")}, [*pods_of("x", 1, "900m"), *pods_of("y", 1, "800m")],
        clock_s=lambda: float(next(now)), options=AutoscalerOptions(max_nodegroup_binpacking_duration_s=30),
    )
    report = find_options(told)
    assert (report.options[0].node_count, report.limits) == (1, {"a": "estimate took longer than 30s"})
