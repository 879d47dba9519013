"""From meters to a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

from holokube.client.resources import DAEMON_SETS
from holokube.karpenter.provisioning.daemons import daemon_pod
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.lab.results import Outcome, RunResult
from holokube.lab.run.amounts import HOUR_MS, milliseconds, nearest_rank
from holokube.lab.run.bound import lower_bound_usd
from holokube.lab.run.decisions import DecisionBook
from holokube.lab.run.node_meter import NodeMeter
from holokube.lab.run.pod_meter import PodMeter
from holokube.lab.run.sampling import Sampler, share
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.pricing.cost_meter import IDLE
from holokube.runtime.informers import InformerSet

_DIGITS = 6
_SETTLED_S = 60.0
"""DaemonSets that are there by then have a pod on every node of the run, as good as."""


@dataclass(slots=True)
class Findings:
    """All that was measured."""

    scenario: Scenario
    policy: PolicySpec
    seed: int
    nodes: NodeMeter
    pods: PodMeter
    sampler: Sampler
    book: DecisionBook
    calls: dict[str, int]
    informers: InformerSet

    def result(self, end_s: float) -> RunResult:
        """The result of a run that ended so many seconds after its begin."""
        end_ms = milliseconds(end_s)
        self.book.explain_ends(self.nodes.records)
        by_workload = self.pods.cost_by_workload(end_ms)
        total = self.nodes.cost_usd(end_ms)
        waste = max(0.0, total - fsum(by_workload.values()))
        by_workload[IDLE] = waste
        summary = self._summary(end_ms, total, waste)
        scenario = self.scenario
        return RunResult(
            scenario=scenario.name,
            policy=self.policy.name,
            seed=self.seed,
            start=format_time(scenario.start_s),
            duration_s=end_s,
            summary=summary,
            cost_by_workload_usd={name: round(by_workload[name], _DIGITS) for name in sorted(by_workload)},
            node_hours_by_type=self.nodes.hours_by_type(end_ms),
            api_calls={verb: self.calls[verb] for verb in sorted(self.calls)},
            series=self.sampler.series(),
            nodes=tuple(record.span() for record in self.nodes.records),
            pods=tuple(record.span() for record in self.pods.records),
            decisions=self.book.decisions(),
            outcomes=tuple(
                Outcome(one.text, one.holds(summary.get(one.measure)), summary.get(one.measure))
                for one in scenario.assertions
            ),
            scenario_text=scenario.text,
        )

    def _summary(self, end_ms: int, total: float, waste: float) -> dict[str, float | None]:
        nodes, pods, sampler = self.nodes, self.pods, self.sampler
        bound = lower_bound_usd(
            self.scenario, self.policy, pods.records, pods.shapes.examples, nodes.records, self._daemon_pods(), end_ms
        )
        waits, starts = pods.waits_ms(end_ms), pods.starts_ms()

        def of(values: list[int], percent: int) -> float | None:
            found = nearest_rank(values, percent)
            return None if found is None else found / 1000

        node_area = nodes.nodes.until(end_ms)
        return {
            "cost_usd": round(total, _DIGITS),
            "cost_usd_per_hour": round(total * HOUR_MS / end_ms, _DIGITS) if end_ms else None,
            "lower_bound_usd": bound,
            "above_bound_share": round(total / bound - 1, _DIGITS) if bound else None,
            "waste_usd": round(waste, _DIGITS),
            "node_hours": round(nodes.node_hours(end_ms), _DIGITS),
            "nodes_mean": round(node_area / end_ms, _DIGITS) if end_ms else None,
            "nodes_max": nodes.most,
            "cpu_allocated_share": share(pods.cpu_milli.until(end_ms), nodes.cpu_milli.until(end_ms)),
            "memory_allocated_share": share(pods.memory_bytes.until(end_ms), nodes.memory_bytes.until(end_ms)),
            "cpu_used_share": share(sampler.used_cpu_milli, sampler.held_cpu_milli),
            "memory_used_share": share(sampler.used_memory_bytes, sampler.held_memory_bytes),
            "pending_p50_s": of(waits, 50),
            "pending_p90_s": of(waits, 90),
            "pending_p99_s": of(waits, 99),
            "pending_max_s": of(waits, 100),
            "ready_p50_s": of(starts, 50),
            "ready_p99_s": of(starts, 99),
            "pods_created": pods.created,
            "pods_pending_end": pods.pending.amount,
            "evictions": pods.evictions,
            "node_launches": nodes.launches,
            "node_removals": nodes.removals,
            "failed_scale_ups": self.book.failed_scale_ups,
            "api_calls_total": sum(self.calls.values()),
        }

    def _daemon_pods(self) -> list[JsonObject]:
        """Of DaemonSets that were there all the time."""
        listed: Callable[[], list[JsonObject]] = self.informers.get(DAEMON_SETS).lister.list
        latest_s = self.scenario.start_s + _SETTLED_S
        return [
            daemon_pod(one, ())
            for one in listed()
            if parse_time(one["metadata"]["creationTimestamp"]).timestamp() <= latest_s
        ]
