"""Upstream's published scalability scenarios at a twentieth of their size: what comes of them, not how fast."""

from __future__ import annotations

import pytest
from benchmarks.autoscaler_scenarios import (
    Unlike,
    scale_down_empty_nodes,
    scale_down_hindered_by_ports,
    scale_down_underused_nodes,
    scale_up_at_once,
    scale_up_beside_hopeless_pods,
    scale_up_in_two_waves,
    world,
)

NODES = 50


def test_pods_that_come_at_once_get_all_the_nodes_they_need() -> None:
    outcome = scale_up_at_once(NODES)
    assert (outcome.nodes, outcome.pods) == (50, 49 * 30 + 2)


def test_a_second_wave_is_handled_while_nodes_of_the_first_are_on_their_way() -> None:
    outcome = scale_up_in_two_waves(NODES)
    assert (outcome.nodes, outcome.pods) == (50, 49 * 30 + 2)


def test_pods_that_fit_nowhere_do_not_hold_up_the_others() -> None:
    outcome = scale_up_beside_hopeless_pods(NODES)
    assert (outcome.nodes, outcome.pods) == (50, 49 * 30 + 1)


def test_empty_nodes_are_removed() -> None:
    outcome = scale_down_empty_nodes(NODES)
    assert (outcome.nodes, outcome.pods) == (35, 35)


def test_underused_nodes_are_drained_down_to_the_minimum() -> None:
    outcome = scale_down_underused_nodes(NODES)
    assert (outcome.nodes, outcome.pods) == (48, 2_600)


def test_underused_nodes_stay_if_host_ports_keep_their_pods_there() -> None:
    outcome = scale_down_hindered_by_ports(NODES)
    assert (outcome.nodes, outcome.pods) == (50, 50)


def test_an_outcome_that_is_not_as_published_is_told() -> None:
    with world([], min_nodes=0, max_nodes=3) as lab:
        lab.create("some", 2, 0.5)
        with pytest.raises(Unlike, match="9 pods run, but there are 0 nodes, 2 pods, 0 of them running"):
            lab.until(lambda: lab.running() == 9, "9 pods run", within_s=30)
