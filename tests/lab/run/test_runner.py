"""Whole runs of small scenarios."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.client.resources import LEASES
from holokube.kube.timeformat import format_time
from holokube.lab.results import MEASURE_BY_NAME, RunResult
from holokube.lab.run.runner import Progress, RunningLab, run_scenario
from holokube.lab.scenario.behaviour import PodBehaviour
from holokube.lab.scenario.curves import Constant, Row, Step, Steps, TraceArrivals
from holokube.lab.scenario.model import Assertion, ClusterSpec, PolicySpec, Workload
from holokube.lab.scenario.values import Spread
from holokube.pricing.cost_meter import IDLE
from tests.lab.run.small_scenarios import GROUP, KARPENTER, NO_POLICY, autoscaled, groups, job, scenario, web

GROWING = Workload("web", (web(),), curve=Steps((Step(0.0, 3), Step(120.0, 9), Step(300.0, 2))))


def events_of(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_curve_is_followed_and_the_autoscaler_makes_nodes_for_it() -> None:
    result = run_scenario(scenario(GROWING), autoscaled())
    assert result.summary["pods_created"] == 9
    assert result.summary["pods_pending_end"] == 0
    # Four cores each, and each pod asks for one: nine pods need three.
    assert result.summary["nodes_max"] == 3
    assert [node.group for node in result.nodes] == ["workers"] * 3
    assert result.summary["node_launches"] == 3
    ends = [pod.end for pod in result.pods]
    assert ends.count("deleted") == 7
    # The machine takes half a minute, and a turn of the autoscaler ten seconds.
    assert 30 <= (result.summary["pending_max_s"] or 0) <= 45


def test_cost_is_price_times_time_and_is_shared_out_by_requests() -> None:
    result = run_scenario(scenario(GROWING), autoscaled())
    lived_s = sum((node.removed_s or 600.0) - node.created_s for node in result.nodes)
    assert result.summary["cost_usd"] == pytest.approx(lived_s * 0.40 / 3600, abs=1e-6)
    assert result.summary["node_hours"] == pytest.approx(lived_s / 3600, abs=1e-6)
    shares = dict(result.cost_by_workload_usd)
    assert sum(shares.values()) == pytest.approx(result.summary["cost_usd"], abs=1e-5)
    assert shares[IDLE] == result.summary["waste_usd"]
    expected = sum(
        0.40 * (1000 / 4000 + 1 / 16) / 2 * ((pod.ended_s or 600.0) - (pod.bound_s or 0.0)) / 3600
        for pod in result.pods
        if pod.bound_s is not None
    )
    assert shares["default/Deployment/web"] == pytest.approx(expected, abs=1e-6)


def test_karpenter_makes_nodes_too_and_tells_why() -> None:
    result = run_scenario(scenario(GROWING), KARPENTER)
    assert result.summary["pods_pending_end"] == 0
    assert all(node.group == "default" and node.price_usd_per_hour > 0 for node in result.nodes)
    made = [one for one in result.decisions if (one.kind, one.decision) == ("claim", "made")]
    assert len(made) >= 1
    assert made[0].component == "karpenter"
    assert all("provisioned" in node.why_added or "underutilized" in node.why_added for node in result.nodes)
    gone = [node for node in result.nodes if node.removed_s is not None]
    assert all(node.why_removed for node in gone)


def test_without_a_policy_pods_wait_and_the_journal_tells_why() -> None:
    result = run_scenario(scenario(GROWING, cluster=ClusterSpec(nodes=0)), NO_POLICY)
    assert result.summary["pods_pending_end"] == 2
    assert result.summary["cost_usd"] == 0
    assert result.summary["cpu_allocated_share"] is None
    waiting = [one for one in result.decisions if one.decision == "pending"]
    assert len(waiting) == 9
    assert {one.component for one in waiting} == {"scheduler"}
    assert waiting[0].reasons == ("no nodes available to schedule pods",)


def test_pods_that_are_taken_away_while_they_wait_have_waited_until_then() -> None:
    result = run_scenario(scenario(GROWING, cluster=ClusterSpec(nodes=0)), NO_POLICY)
    # Nobody ever got a node: one of three waited to 300 s, six from 120 s to 300 s, and two to the end.
    assert [pod.end for pod in result.pods].count("deleted") == 7
    assert result.summary["pending_p50_s"] == 180
    assert result.summary["pending_max_s"] == 600


def test_nodes_of_the_cluster_are_there_from_the_start_and_launched_by_nobody() -> None:
    cluster = ClusterSpec(nodes=3, zones=("a", "b"))
    result = run_scenario(scenario(GROWING, cluster=cluster), NO_POLICY)
    assert [(node.zone, node.group) for node in result.nodes] == [("a", ""), ("b", ""), ("a", "")]
    assert result.summary["node_launches"] == 0
    assert result.summary["pods_pending_end"] == 0
    assert result.series.columns["nodes"] == (3,) * 10


def test_no_machine_is_bought_in_place_of_one_that_a_group_begins_with() -> None:
    (group,) = groups(boot="5m")
    group["metadata"]["annotations"][f"{GROUP}/desired-count"] = "1"
    policy = PolicySpec("cluster-autoscaler", node_groups=(group,))
    result = run_scenario(scenario(Workload("web", (web(replicas=3),))), policy)
    assert [node.created_s for node in result.nodes] == [0.0]
    assert result.summary["pending_max_s"] == 0


def test_jobs_arrive_with_a_life_of_their_own() -> None:
    behaviour = PodBehaviour(run_time=Spread(min_s=20.0, max_s=40.0))
    arrivals = TraceArrivals((Row(5.0, 2), Row(60.0, 1)))
    work = Workload("batch", (job(),), arrivals=arrivals, behaviour=behaviour)
    result = run_scenario(scenario(work, cluster=ClusterSpec(nodes=1)), NO_POLICY)
    assert [pod.created_s for pod in result.pods] == [5.0, 5.0, 60.0]
    assert [pod.workload for pod in result.pods] == [f"default/Job/batch-0000{number}" for number in range(3)]
    assert {pod.end for pod in result.pods} == {"done"}
    lives = [round(pod.ended_s - pod.bound_s, 1) for pod in result.pods if pod.ended_s and pod.bound_s is not None]
    assert len(set(lives)) == 3
    assert all(20 <= life_s <= 41 for life_s in lives)


def test_the_clock_shows_the_scenarios_start() -> None:
    seen: list[RunningLab] = []
    start_s = 1_780_000_000.0
    made = scenario(Workload("web", (web(),)), cluster=ClusterSpec(nodes=1), start_s=start_s)
    times: list[float] = []

    def observe(lab: RunningLab) -> None:
        seen.append(lab)
        times.append(lab.clock.time())

    result = run_scenario(made, NO_POLICY, observe=observe)
    assert result.start == format_time(start_s)
    assert start_s <= times[0] < start_s + 2
    assert seen[0].nodes.nodes.amount == 1
    assert seen[0].policy is NO_POLICY


def test_samples_have_a_fixed_distance_and_equal_length() -> None:
    result = run_scenario(scenario(GROWING, sampling_s=30.0), autoscaled())
    assert result.series.times_s == tuple(30.0 * number for number in range(20))
    assert {len(column) for column in result.series.columns.values()} == {20}
    assert result.series.columns["pods_pending"][0] == 0
    assert max(result.series.columns["nodes"]) == max(result.series.nodes_by_group["workers"]) == 3
    assert result.series.columns["cost_usd_per_hour"][-1] == pytest.approx(0.4 * result.series.columns["nodes"][-1])


def test_use_follows_the_curves_of_containers() -> None:
    behaviour = PodBehaviour(cpu_usage="50%", memory_usage="25%")
    work = Workload("web", (web(cpu="2", memory="8Gi"),), curve=Constant(2), behaviour=behaviour)
    result = run_scenario(scenario(work), autoscaled(boot="0s"))
    series = result.series.columns
    assert series["cpu_allocated_share"][-1] == 1.0
    assert series["cpu_used_share"][-1] == 0.5
    assert series["memory_used_share"][-1] == 0.25


def test_assertions_are_looked_at() -> None:
    assertions = (
        Assertion("pods_pending_end", "==", 0.0, "pods_pending_end == 0"),
        Assertion("nodes_max", "<", 3.0, "nodes_max < 3"),
    )
    result = run_scenario(scenario(GROWING, assertions=assertions), autoscaled())
    assert [(one.holds, one.measured) for one in result.outcomes] == [(True, 0), (False, 3)]


def test_every_measure_is_in_the_summary_and_a_bound_is_not_above_the_cost() -> None:
    result = run_scenario(scenario(GROWING), autoscaled())
    assert list(result.summary) == list(MEASURE_BY_NAME)
    bound, cost = result.summary["lower_bound_usd"], result.summary["cost_usd"]
    assert bound is not None
    assert cost is not None
    assert 0 < bound <= cost
    assert result.summary["above_bound_share"] == pytest.approx(cost / bound - 1, abs=1e-5)


def test_the_event_log_tells_lives_and_decisions_in_order() -> None:
    log = io.StringIO()
    result = run_scenario(scenario(GROWING), autoscaled(), event_log=log)
    events = events_of(log)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    pod = result.pods[0].name
    lives = [event["what"] for event in events if event["kind"] == "Pod" and event["name"] == pod]
    assert lives[:3] == ["created", "bound", "ready"]
    scaled = [(event["at"], event["replicas"]) for event in events if event["what"] == "scaled"]
    assert scaled == [(120.0, 9), (300.0, 2)]
    assert any(event["kind"] == "Decision" and event["what"] == "enlarged" for event in events)
    assert not any(event["what"] == "not ready" for event in events)


def test_the_same_seed_gives_the_same_and_another_seed_another_run() -> None:
    def outcome(seed: int) -> tuple[RunResult, str]:
        log = io.StringIO()
        return run_scenario(scenario(GROWING), KARPENTER, seed=seed, event_log=log), log.getvalue()

    assert outcome(1) == outcome(1)
    assert outcome(1)[1] != outcome(2)[1]


def test_progress_is_told_to_the_end() -> None:
    told: list[Progress] = []

    class Ticking:
        """A clock on which every look takes a second."""

        now_s = 0.0

        def monotonic(self) -> float:
            self.now_s += 1.0
            return self.now_s

    wall: Any = Ticking()
    run_scenario(scenario(GROWING), autoscaled(), on_progress=told.append, wall=wall)
    assert len(told) == 11
    assert told[-1].done_s == told[-1].duration_s == 600.0
    assert told[-1].speed_up > 1
    assert max(progress.nodes for progress in told) == 3


def test_heartbeats_are_not_written() -> None:
    labs: list[RunningLab] = []
    made = scenario(cluster=ClusterSpec(nodes=5), minutes=60.0)
    result = run_scenario(made, NO_POLICY, observe=labs.append)
    # One write makes each lease and one each status; an hour of heartbeats would be some 1,800 more.
    assert result.api_calls.get("update", 0) < 20
    assert result.api_calls["patch"] < 20
    assert result.summary["nodes_max"] == 5
    assert set(result.series.columns["nodes_ready"]) == {5}


def test_a_manifest_that_the_server_refuses_ends_the_run_with_its_words() -> None:
    broken = web()
    broken["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    with pytest.raises(UsageError, match="Deployment default/web of the scenario was refused") as caught:
        run_scenario(scenario(Workload("web", (broken,))), NO_POLICY)
    assert "selector" in caught.value.message


def test_an_interrupted_run_takes_everything_down_and_gives_no_result() -> None:
    def stop(_progress: Progress) -> None:
        raise KeyboardInterrupt

    class Jumping:
        """A clock that is always later."""

        now_s = 0.0

        def monotonic(self) -> float:
            self.now_s += 10.0
            return self.now_s

    wall: Any = Jumping()
    with pytest.raises(KeyboardInterrupt):
        run_scenario(scenario(GROWING), autoscaled(), on_progress=stop, wall=wall)


def test_leases_stand_for_all_their_renewals() -> None:
    labs: list[RunningLab] = []

    def observe(lab: RunningLab) -> None:
        labs.append(lab)
        held = lab.living.informers.get(LEASES).lister.list()
        assert all("holokube.dev/renewed-continuously" in one["metadata"]["annotations"] for one in held)
        assert len(held) == 2

    run_scenario(scenario(cluster=ClusterSpec(nodes=2), minutes=1.0), NO_POLICY, observe=observe)
    assert labs


def test_the_result_of_a_run_is_not_written_out_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[RunResult] = []

    def note(result: RunResult) -> str:
        written.append(result)
        return "a result"

    monkeypatch.setattr(RunResult, "__repr__", note)
    assert run_scenario(scenario(GROWING), NO_POLICY).summary["pods_created"] == 9
    assert written == []
