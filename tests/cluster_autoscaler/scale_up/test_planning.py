"""A scale-up as a whole."""

from __future__ import annotations

import asyncio
from typing import Any

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.expanders.chain import build_chain
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.planning import ScaleUpPlan, plan_scale_up
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from tests.cluster_autoscaler.scale_up.objects import JsonObject, given, group, node, pods_of, template

BALANCED = AutoscalerOptions(balance_similar_node_groups=True)
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


def planned(told: ScaleUpInput, *expanders: str) -> ScaleUpPlan:
    chain = build_chain(expanders or ("least-nodes",))
    return asyncio.run(plan_scale_up(told, chain, ExpanderContext(0.0, Rng(1), len(told.nodes))))


def sizes(plan: ScaleUpPlan) -> dict[str, tuple[int, int]]:
    return {increase.group_id: (increase.current_size, increase.new_size) for increase in plan.increases}


def owners(pods: Any) -> list[str]:
    found: list[str] = [one["metadata"]["name"].rsplit("-", 1)[0] for one in pods]
    return sorted(set(found))


def one_group(pods: list[JsonObject], **more: Any) -> ScaleUpInput:
    return given([group("a")], {"a": template("a")}, pods, **more)


def test_pods_get_the_nodes_they_need() -> None:
    plan = planned(one_group(pods_of("x", 6)))
    assert (plan.result, sizes(plan)) == (ScaleUpResult.SUCCESSFUL, {"a": (0, 2)})
    assert owners(plan.verdicts.triggered) == ["x"]
    assert (plan.verdicts.await_evaluation, plan.verdicts.remain_unschedulable) == ((), ())
    assert plan.caps == ()


def test_pods_of_other_groups_wait_for_the_next_turn_and_hopeless_ones_are_told() -> None:
    told = given(
        [group("a"), group("b")],
        {"a": template("a", "4", labels={"tier": "a"}), "b": template("b", "4", labels={"tier": "b"})},
        [*pods_of("x", 3, nodeSelector={"tier": "a"}), *pods_of("y", 1, nodeSelector={"tier": "b"}),
         *pods_of("hopeless", 1, "64")],
    )
    plan = planned(told, "most-pods")
    assert sizes(plan) == {"a": (0, 1)}
    assert owners(plan.verdicts.triggered) == ["x"]
    assert owners(plan.verdicts.await_evaluation) == ["y"]
    assert owners(plan.verdicts.remaining_pods()) == ["hopeless"]
    assert plan.choice is not None
    assert [(score.group_id, score.text) for score in plan.choice.steps[0].scores] == [("a", "3 pods"), ("b", "1 pods")]


def test_without_options_pods_learn_the_reason_of_each_group() -> None:
    groups = [group("a"), group("b"), group("full", target=10)]
    templates = {"a": template("a", taints=[TAINT]), "b": template("b", taints=[TAINT]), "full": template("full")}
    plan = planned(given(groups, templates, pods_of("x", 2)))
    assert plan.result is ScaleUpResult.NO_OPTIONS_AVAILABLE
    (unhelped,) = plan.verdicts.remain_unschedulable
    assert unhelped.message(plan.result, {"a", "b", "full"}) == (
        "pod didn't trigger scale-up: 2 node(s) had untolerated taint(s), 1 max node group size reached"
    )


def test_the_limit_of_all_nodes_caps_the_increase() -> None:
    options = AutoscalerOptions(max_nodes_total=5)
    there = [node(f"n{i}", "100m") for i in range(3)]
    plan = planned(one_group(pods_of("x", 20), nodes=there, options=options))
    assert sizes(plan) == {"a": (0, 2)}
    assert not plan.is_nodes_total_reached, "the estimate already kept to it"


def test_a_group_that_goes_from_zero_to_maximum_meets_the_limit_of_all_nodes_before_it_is_looked_at() -> None:
    options = AutoscalerOptions(max_nodes_total=5)
    told = given([group("a", most=6, zero_or_max=True)], {"a": template("a")}, pods_of("x", 1), options=options)
    assert planned(told).report.skipped == {"a": "atomic scale-up exceeds cluster node count limit"}


def test_pods_put_on_existing_nodes_make_the_option_larger_than_the_cluster_allows() -> None:
    # Nodes that exist are counted into the option, so here the cap has something to do.
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "x"}}}]
    told = one_group(pods_of("x", 4, topologySpreadConstraints=spread), nodes=[node("old", "8")],
                     options=AutoscalerOptions(max_nodes_total=2))
    plan = planned(told)
    assert plan.best is not None
    assert (plan.best.node_count, sizes(plan), plan.is_nodes_total_reached) == (2, {"a": (0, 1)}, True)
    assert plan.caps == ("max-nodes-total leaves 1 of 2 nodes",)


def test_quotas_cap_the_increase_and_say_so() -> None:
    told = given([group("a")], {"a": template("a", "16")}, pods_of("x", 3, "16"),
                 limiter=ResourceLimiter({}, {"cpu": 16}))
    plan = planned(told, "most-pods")
    assert sizes(plan) == {"a": (0, 1)}
    assert len(plan.verdicts.triggered) == 3, "all of them count as having triggered it"
    assert plan.caps == ('exceeded quota: "cluster-wide", resources: cpu: leaves 1 of 3 nodes',)


def test_an_increase_is_shared_among_similar_groups() -> None:
    groups = [group("a", target=1), group("b", target=0, most=3)]
    told = given(groups, {"a": template("a", "1"), "b": template("b", "1")}, pods_of("x", 10), options=BALANCED)
    assert sizes(planned(told)) == {"a": (1, 8), "b": (0, 3)}


def test_the_price_expander_does_not_keep_an_increase_from_being_shared() -> None:
    class Free:
        async def node_price(self, *_: Any) -> float:
            return 1.0

        async def pod_price(self, *_: Any) -> float:
            return 1.0

    told = given([group("a"), group("b")], {"a": template("a", "1"), "b": template("b", "1")}, pods_of("x", 4),
                 options=BALANCED)
    ctx = ExpanderContext(0.0, Rng(1), pricing=Free())
    plan = asyncio.run(plan_scale_up(told, build_chain(("price",)), ctx))
    assert sizes(plan) == {"a": (0, 2), "b": (0, 2)}


def test_what_a_quota_takes_from_one_group_is_not_given_to_another() -> None:
    groups = [group("a"), group("b")]
    told = given(groups, {"a": template("a", "2"), "b": template("b", "2")}, pods_of("x", 4, "2"), options=BALANCED,
                 limiter=ResourceLimiter({}, {"cpu": 6}))
    plan = planned(told)
    assert sorted(new for _, new in sizes(plan).values()) == [1, 2]


def test_an_expander_that_wants_none_leaves_the_pods_unhelped() -> None:
    class Picky:
        name = "picky"

        def best_options(self, *_: Any) -> list[Any]:
            return []

    chain = build_chain(("picky",), {"picky": Picky()})
    plan = asyncio.run(plan_scale_up(one_group(pods_of("x", 1)), chain, ExpanderContext(0.0, Rng(1))))
    assert plan.result is ScaleUpResult.NO_OPTIONS_AVAILABLE
    (unhelped,) = plan.verdicts.remain_unschedulable
    assert unhelped.message(plan.result, {"a"}) == (
        "pod didn't trigger scale-up: 1 expansion options filtered out and no longer considered"
    )


def test_a_refusal_of_the_provider_leaves_only_those_unhelped_whom_nobody_else_can_help() -> None:
    told = given(
        [group("a"), group("b")],
        {"a": template("a", labels={"tier": "a"}), "b": template("b", labels={"tier": "b"})},
        [*pods_of("any", 2), *pods_of("only-a", 3, nodeSelector={"tier": "a"})],
    )
    plan = planned(told, "most-pods")
    verdicts = plan.verdicts_if_failed(["a"], parallel=False)
    assert owners(verdicts.triggered) == ["any", "only-a"]
    assert owners(verdicts.remaining_pods()) == ["only-a"]
    assert verdicts.remain_unschedulable[0].rejections["a"].reasons == ("scale-up execution failed",)


def test_limits_that_cannot_be_counted_are_an_error() -> None:
    strange = node("n", labels={"gpu": "t4"})
    plan = planned(one_group(pods_of("x", 1), nodes=[strange], gpu_label="gpu"))
    assert plan.result is ScaleUpResult.ERROR
    assert plan.error is not None
    assert plan.error.kind is ErrorKind.INTERNAL
    assert owners(plan.verdicts.remaining_pods()) == ["x"]
