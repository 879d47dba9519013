from __future__ import annotations

from dataclasses import replace

from holokube.report.labels import labels_of
from tests.report.samples import run_result

RUN = run_result("none", nodes=2, hours=0.25)


def test_policies_are_enough_where_they_differ() -> None:
    assert labels_of([RUN, replace(RUN, policy="karpenter", seed=8)]) == ["none", "karpenter"]


def test_the_same_policy_is_told_apart_by_scenario_then_seed() -> None:
    assert labels_of([RUN, replace(RUN, scenario="other")]) == ["none, shop-day", "none, other"]
    assert labels_of([RUN, replace(RUN, seed=8)]) == ["none, seed 7", "none, seed 8"]


def test_runs_that_nothing_tells_apart_are_numbered() -> None:
    assert labels_of([RUN, RUN, replace(RUN, policy="none #2")]) == ["none", "none #3", "none #2"]
    assert labels_of([replace(RUN, policy="")]) == ["run"]
    assert labels_of([]) == []
