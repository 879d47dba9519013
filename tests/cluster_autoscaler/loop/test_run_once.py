"""Single turns: what goes wrong, what is asked for how, and what is told."""

from __future__ import annotations

from typing import Any

from holokube.base.errors import TransportError
from holokube.client.resources import CONFIG_MAPS, EVENTS
from holokube.cluster_autoscaler.actuation.results import ScaleDownResult
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.testing import Cluster
from tests.builders import config_map
from tests.cluster_autoscaler.loop.lab import Lab, lab, template, workload


def metric(found: Lab, name: str, **labels: str) -> float | None:
    value: float | None = found.autoscaler.metrics.registry.get_sample_value(f"cluster_autoscaler_{name}", labels)
    return value


def group_of(found: Lab, group_id: str) -> Any:
    assert found.provider is not None
    return next(group for group in found.provider.node_groups() if group.id == group_id)


def first(found: Lab, result: ScaleUpResult) -> TurnReport:
    return next(turn for turn in found.turns if turn.scale_up.result is result)


def test_a_provider_that_cannot_refresh_ends_the_turn_and_not_the_loop() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")]) as found:
                await found.clock.sleep(15)
                assert found.provider is not None
                good = found.provider.refresh

                async def bad() -> None:
                    raise CloudError("the cloud is away")

                found.provider.refresh = bad  # type: ignore[method-assign]  # for a while
                await found.apply(workload("web", 2))
                await found.clock.sleep(30)
                error = found.turns[-1].error
                assert error is not None and error.message == "the cloud is away"
                assert metric(found, "errors_total", type="cloudProviderError") >= 2  # type: ignore[operator]  # it is there
                found.provider.refresh = good  # type: ignore[method-assign]  # it is back
                await found.until_nodes(1, within_s=20)
                assert found.turns[-1].error is None

        cluster.run(main())


def test_a_server_that_does_not_answer_is_another_kind_of_error() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")]) as found:
                await found.clock.sleep(15)
                assert found.provider is not None

                async def bad() -> None:
                    raise TransportError("connection refused")

                found.provider.refresh = bad  # type: ignore[method-assign]  # for good
                await found.clock.sleep(10)
                error = found.turns[-1].error
                assert error is not None and error.kind is ErrorKind.CLOUD_PROVIDER

        cluster.run(main())


def test_a_group_that_does_not_tell_its_size_ends_the_turn_and_all_patience_with_nodes() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")]) as found:
                await found.apply(workload("web", 4))
                await found.until_nodes(1)
                await found.scale("web", 0)
                await found.clock.sleep(30)
                assert len(found.turns[-1].scale_down.unneeded) == 1
                group = group_of(found, "small")
                good = group.target_size

                async def bad() -> int:
                    raise CloudError("who knows")

                group.target_size = bad
                await found.clock.sleep(10)
                assert found.turns[-1].error is not None
                group.target_size = good
                await found.clock.sleep(10)
                (entry,) = found.turns[-1].scale_down.unneeded
                assert entry.since_s == found.turns[-1].now_s, "its time begins anew"

        cluster.run(main())


def test_similar_groups_are_asked_at_the_same_time_if_that_is_wanted() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(balance_similar_node_groups=True, parallel_scale_up=True)
            async with lab(cluster, [template("a"), template("b")], options) as found:
                await found.apply(workload("web", 16))
                await found.until_nodes(4)
                (turn,) = [turn for turn in found.turns if turn.scale_up.increases]
                assert {increase.group_id: increase.delta for increase in turn.scale_up.increases} == {"a": 2, "b": 2}
                reasons = [event.reason for event in turn.events]
                assert reasons.count("ScaledUpGroup") == 4 and reasons.count("TriggeredScaleUp") == 16

        cluster.run(main())


def test_a_salvo_helps_pods_of_different_groups_in_one_turn() -> None:
    def main_with(options: AutoscalerOptions) -> int:
        with Cluster(nodes=0) as cluster:

            async def main() -> int:
                blue = template("blue")
                blue["metadata"]["labels"] = {"color": "blue"}
                red = template("red")
                red["metadata"]["labels"] = {"color": "red"}
                async with lab(cluster, [blue, red], options) as found:
                    await found.apply(workload("b", 4, nodeSelector={"color": "blue"}),
                                      workload("r", 4, nodeSelector={"color": "red"}))
                    await found.until_nodes(2)
                    helped = [turn for turn in found.turns if turn.scale_up.increases]
                    assert all(turn.scale_up.result is ScaleUpResult.SUCCESSFUL for turn in helped)
                    return len(helped)

            return cluster.run(main())

    assert main_with(AutoscalerOptions()) == 2
    assert main_with(AutoscalerOptions(salvo_scale_up=True)) == 1


def test_pods_that_no_group_can_help_are_told_why() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small"), template("full", max_count="0")]) as found:
                await found.apply(workload("huge", 2, cpu="64"))
                await found.clock.sleep(25)
                turn = first(found, ScaleUpResult.NO_OPTIONS_AVAILABLE)
                messages = {event.message for event in turn.events if event.reason == "NotTriggerScaleUp"}
                assert messages == {"pod didn't trigger scale-up: 1 Insufficient cpu, 1 max node group size reached"}
                told = [entry for entry in found.autoscaler.journal if entry.kind == "pod"]
                assert len(told) == 1, "the same verdict in the next turn is no new decision"
                assert told[0].reasons == ("small: Insufficient cpu", "full: max node group size reached")

        cluster.run(main())


def test_the_cluster_has_no_more_nodes_than_it_may_have() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")], AutoscalerOptions(max_nodes_total=2)) as found:
                await found.apply(workload("web", 20))
                await found.clock.sleep(40)
                assert len(await found.nodes()) == 2
                capped = next(turn for turn in found.turns if turn.scale_up.increases)
                assert list(capped.scale_up.plans[0].report.limits) == ["small"], "the estimate itself knows the limit"
                turn = first(found, ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL)
                assert {event.message for event in turn.events if event.kind == "Pod"} == {
                    "pod didn't trigger scale-up: max total nodes in cluster reached"}
                assert "MaxNodesTotalReached" in await found.reasons()

        cluster.run(main())


def test_young_pods_wait_and_keep_nodes_from_going() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")], AutoscalerOptions(scan_interval_s=1.0)) as found:
                await found.clock.sleep(5)
                await found.apply(workload("web", 2))
                await found.clock.sleep(4)
                turn = first(found, ScaleUpResult.IN_COOLDOWN)
                assert turn.scale_down.result is ScaleDownResult.IN_COOLDOWN
                assert turn.scale_down.cooldown == "pending pods are too new to be helped yet"

        cluster.run(main())


def test_priorities_are_read_anew_and_mistakes_in_them_told() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            name = "cluster-autoscaler-priority-expander"
            await cluster.client.create(CONFIG_MAPS, config_map(name, "kube-system", priorities="10: [never]\n"))
            options = AutoscalerOptions(expander=("priority",))
            async with lab(cluster, [template("a"), template("b")], options) as found:
                await found.apply(workload("web", 4))
                await found.until_nodes(1)
                events = (await found.client.list_all(EVENTS)).items
                told = [one for one in events if one["involvedObject"].get("name") == name]
                assert told and all(one["type"] == "Warning" for one in told)
                current = await found.client.get(CONFIG_MAPS, name, "kube-system")
                await found.client.update(CONFIG_MAPS, {**current, "data": {"priorities": "10: [b]\n"}}, "kube-system")
                before = await found.names()
                await found.apply(workload("more", 4))
                await found.until_nodes(2)
                (new,) = await found.names() - before
                assert new.startswith("b-")

        cluster.run(main())


def test_metrics_tell_what_happened() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(
                emit_per_nodegroup_metrics=True, scale_down_unneeded_time_s=60.0, scale_down_delay_after_add_s=30.0,
                node_removal_latency_tracking_enabled=True)
            async with lab(cluster, [template("small")], options) as found:
                await found.apply(workload("web", 10))
                await found.until_nodes(3)
                await found.clock.sleep(11)
                none = {"gpu_resource_name": "", "gpu_name": "", "dra_drivers": ""}
                assert metric(found, "scaled_up_nodes_total", **none) == 3
                assert metric(found, "nodes_count", state="ready") == 3
                assert metric(found, "cluster_cpu_current_cores") == 12
                assert metric(found, "node_group_target_count", node_group="small") == 3
                assert metric(found, "node_group_healthiness", node_group="small") == 1
                assert metric(found, "scale_down_in_cooldown") == 1
                assert metric(found, "cluster_safe_to_autoscale") == 1
                await found.scale("web", 0)
                await found.until_nodes(0)
                assert metric(found, "scaled_down_nodes_total", reason="empty", **none) == 3
                gone = {"deleted": "true", "delay_reason": "none"}
                assert metric(found, "node_removal_latency_seconds_count", **gone) == 3
                assert metric(found, "function_duration_seconds_count", function="main") == len(found.turns)
                assert metric(found, "last_activity", activity="mainSuccessful")

        cluster.run(main())
