from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.pricing.cost_meter import IDLE, CostMeter, PodShare, workload_fractions

NODE = {"cpu": 4000, "memory": 8000}


def test_a_node_costs_its_price_for_the_time_it_lives() -> None:
    meter = CostMeter()
    meter.start("a", 0.5, 0, "pool-1")
    meter.start("b", 1.0, 1800, "pool-2")
    assert meter.usd_per_hour == 1.5
    assert meter.stop("a", 7200) == 1.0
    bill = meter.bill(9000)
    assert bill.total_usd == 3.0 and bill.usd_per_hour == 1.0 and bill.nodes == 1
    assert bill.by_group == {"pool-1": 1.0, "pool-2": 2.0}
    assert bill.node_hours == 4.0
    assert meter.bill(9000) == bill, "a bill changes nothing"


def test_a_new_price_counts_from_when_it_came() -> None:
    meter = CostMeter()
    meter.start("a", 1.0, 0)
    meter.set_pods("a", {"web": 1.0}, 0)
    meter.start("a", 3.0, 3600)
    bill = meter.bill(7200)
    assert bill.total_usd == 4.0 and bill.nodes == 1 and bill.by_workload["web"] == 4.0


def test_nodes_that_never_started_cost_nothing() -> None:
    meter = CostMeter(10)
    assert meter.stop("a", 10) == 0
    meter.set_pods("a", {"web": 1.0}, 10)
    assert meter.bill(20).total_usd == 0 and meter.bill(20).by_workload == {}


def test_time_does_not_go_back_and_a_price_is_a_price() -> None:
    meter = CostMeter(100)
    with pytest.raises(ValueError, match="cannot go back"):
        meter.start("a", 1, 99)
    for price in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="no price"):
            meter.start("a", price, 100)


def test_cpu_and_memory_count_half_each() -> None:
    pods = [
        PodShare("web", {"cpu": 1000, "memory": 2000}), PodShare("job", {"cpu": 2000}),
        PodShare("web", {"memory": 2000}),
    ]  # fmt: skip
    assert workload_fractions(NODE, pods) == {"web": 0.375, "job": 0.25, IDLE: 0.375}
    assert workload_fractions(NODE, []) == {IDLE: 1.0}


def test_on_an_overcommitted_node_all_shrink_alike() -> None:
    pods = [PodShare("web", {"cpu": 4000, "memory": 8000}), PodShare("job", {"cpu": 4000, "memory": 8000})]
    assert workload_fractions(NODE, pods) == {"web": 0.5, "job": 0.5}


def test_workloads_pay_for_the_time_their_pods_were_there() -> None:
    meter = CostMeter()
    meter.start("a", 1.0, 0)
    meter.set_pods("a", workload_fractions(NODE, [PodShare("web", {"cpu": 2000, "memory": 4000})]), 3600)
    meter.set_pods("a", {IDLE: 1.0}, 3600 * 3)
    meter.stop("a", 3600 * 4)
    bill = meter.bill(3600 * 5)
    assert bill.by_workload == {IDLE: 3.0, "web": 1.0} and bill.total_usd == 4.0


SPANS = st.lists(st.tuples(st.integers(0, 5), st.floats(0, 100), st.integers(0, 10_000), st.booleans()), max_size=30)


@given(SPANS)
def test_the_bill_is_the_sum_of_prices_over_lifetimes(events: list[tuple[int, float, int, bool]]) -> None:
    meter = CostMeter()
    now, running, expected = 0.0, dict[str, tuple[float, float]](), 0.0
    for node, price, wait_s, starts in events:
        now += wait_s
        name = f"node-{node}"
        if name in running:
            before, since = running.pop(name)
            expected += before * (now - since) / 3600
        if starts:
            meter.start(name, price, now, f"pool-{node % 2}")
            meter.set_pods(name, {"web": 0.25, IDLE: 0.75}, now)
            running[name] = (price, now)
        else:
            meter.stop(name, now)
    now += 60
    expected += sum(price * (now - since) / 3600 for price, since in running.values())
    bill = meter.bill(now)
    assert bill.total_usd == pytest.approx(expected)
    assert sum(bill.by_group.values()) == pytest.approx(bill.total_usd)
    assert sum(bill.by_workload.values()) == pytest.approx(bill.total_usd)
    assert bill.by_workload.get("web", 0.0) == pytest.approx(bill.total_usd / 4)
    assert bill.nodes == len(running)
