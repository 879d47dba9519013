"""The calls of a run are all counted when they are told of, also those that were counted late."""

from __future__ import annotations

import pytest

from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.curves import Diurnal
from holokube.lab.scenario.faults import ApiErrors, Fault
from holokube.lab.scenario.model import ClusterSpec, PolicySpec, Workload
from holokube.runtime import events
from tests.lab.run.small_scenarios import KARPENTER, autoscaled, scenario, web


@pytest.mark.parametrize("policy", [autoscaled(), KARPENTER], ids=lambda policy: policy.kind)
def test_a_run_tells_the_same_whether_events_are_counted_one_at_a_time_or_many(
    policy: PolicySpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve = Diurnal(low=3, high=20, noise=0.2, every_s=60.0, period_s=600.0)
    made = scenario(
        Workload("web", (web(),), curve=curve),
        cluster=ClusterSpec(nodes=1), faults=(Fault(200.0, ApiErrors(share=0.1), until_s=300.0),), minutes=12.0,
    )  # fmt: skip
    many = run_scenario(made, policy).as_json()
    monkeypatch.setattr(events, "MAX_TOLD", 1)
    assert run_scenario(made, policy).as_json() == many
