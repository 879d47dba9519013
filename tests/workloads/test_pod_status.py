"""Readiness, availability, and the order in which pods are given up."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.workloads import pod_status
from tests.builders import pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(
    name: str = "p", *, node: str = "n", phase: str = "Running", ready_s: float | None = 100,
    age_s: float = 1000, **meta: Any,
) -> JsonObject:  # fmt: skip
    body = pod(name, node=node)
    created = format_time(NOW - timedelta(seconds=age_s))
    body["metadata"] = {**body["metadata"], "uid": name, "creationTimestamp": created, **meta}
    conditions = []
    if ready_s is not None:
        since = format_time(NOW - timedelta(seconds=ready_s))
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    return {**body, "status": {"phase": phase, "conditions": conditions}}


def order(*pods: JsonObject, related: tuple[JsonObject, ...] = ()) -> list[str]:
    return [p["metadata"]["name"] for p in pod_status.deletion_order(pods, related, NOW)]


def test_a_pod_is_available_once_it_was_ready_for_long_enough() -> None:
    assert pod_status.is_available(made(ready_s=30), 30, NOW)
    assert not pod_status.is_available(made(ready_s=29), 30, NOW)
    assert pod_status.is_available(made(ready_s=0), 0, NOW)
    assert not pod_status.is_available(made(ready_s=None), 0, NOW)
    pods = [made(ready_s=10), made(ready_s=25), made(ready_s=31), made(ready_s=None)]
    assert pod_status.next_availability_s(pods, 30, NOW) == 5
    assert pod_status.next_availability_s([made(ready_s=None)], 30, NOW) is None


def test_what_is_missed_least_goes_first() -> None:
    cost = {pod_status.DELETION_COST: "-5"}
    pods = [
        made("plain"),
        made("cheap", annotations=cost),
        made("unready", ready_s=None),
        made("pending", phase="Pending", ready_s=None),
        made("unbound", node="", phase="Pending", ready_s=None),
    ]
    assert order(*pods) == ["unbound", "pending", "unready", "cheap", "plain"]


def test_crowded_nodes_lose_a_pod_before_others() -> None:
    lonely, crowded, mate = made("a", node="n1"), made("b", node="n2"), made("mate", node="n2")
    assert order(lonely, crowded, related=(lonely, crowded, mate)) == ["b", "a"]


def test_ages_are_compared_by_their_order_of_magnitude_only() -> None:
    assert order(made("old", ready_s=10_000), made("young", ready_s=10)) == ["young", "old"]
    # Within one power of two the uid decides, so that deletions do not all hit the youngest.
    assert order(made("b", ready_s=1_000), made("a", ready_s=1_050)) == ["a", "b"]


def test_a_deletion_cost_that_is_no_plain_number_counts_as_none() -> None:
    for text in ("+5", "05", "1.5", "x", str(2**31)):
        assert pod_status.deletion_cost(made(annotations={pod_status.DELETION_COST: text})) == 0
    assert pod_status.deletion_cost(made(annotations={pod_status.DELETION_COST: "-2147483648"})) == -(2**31)


# A busy machine is no reason to fail.
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "n1", "n2"]), st.sampled_from(["Pending", "Running"]), st.booleans())))
def test_the_order_loses_nobody_and_keeps_ready_pods_longest(specs: list[tuple[str, str, bool]]) -> None:
    pods = [
        made(f"p{i}", node=node, phase=phase, ready_s=50 if ready else None)
        for i, (node, phase, ready) in enumerate(specs)
    ]
    ordered = pod_status.deletion_order(pods, pods, NOW)
    assert sorted(p["metadata"]["name"] for p in ordered) == sorted(p["metadata"]["name"] for p in pods)
    ranks = [
        (bool(pod_status.node_of(p)), pod_status.phase(p) == "Running", pod_status.is_pod_ready(p))
        for p in ordered
    ]
    assert ranks == sorted(ranks)


MOMENTS = st.sampled_from([1, 5, 5, 100, 120, 1000, 20_000])
DRAWN = st.tuples(
    st.integers(0, 9), st.sampled_from(["", "n1", "n2"]), st.sampled_from(["Pending", "Running"]),
    st.one_of(st.none(), MOMENTS), MOMENTS,
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.lists(DRAWN, max_size=12), max_size=4))
def test_what_was_found_out_before_does_not_change_the_order(
    rounds: list[list[tuple[int, str, str, float | None, float]]],
) -> None:
    known: pod_status.Standings = {}
    pods: dict[int, JsonObject] = {}
    for drawn in rounds:
        for number, node, phase, ready_s, age_s in drawn:
            pods[number] = made(f"p{number}", node=node, phase=phase, ready_s=ready_s, age_s=age_s)
        present = list(pods.values())
        remembered = pod_status.deletion_order(present, present, NOW, known)
        fresh = pod_status.deletion_order(present, present, NOW)
        assert [pod["metadata"]["name"] for pod in remembered] == [pod["metadata"]["name"] for pod in fresh]
        assert len(known) == len(present), "who is gone is forgotten"


def magnitude(moment: datetime | None) -> int:
    return -1 if moment is None else max(0, int((NOW - moment).total_seconds() * 1e9)).bit_length()


def rank(one: JsonObject, company: dict[str, int]) -> tuple[Any, ...]:
    """What counts before two pods are compared with each other."""
    node, ready = pod_status.node_of(one), pod_status.is_pod_ready(one)
    place = {"Pending": 0, "Unknown": 1, "Running": 2}[pod_status.phase(one)]
    since = magnitude(pod_status.ready_since(one)) if ready else 0
    return bool(node), place, ready, pod_status.deletion_cost(one), -company.get(node, 0), since


def compared(mine: JsonObject, theirs: JsonObject) -> int:
    """The order of two pods of one rank: negative if the first is missed less, zero if neither is."""
    by_uid = -1 if mine["metadata"]["uid"] < theirs["metadata"]["uid"] else 1
    if pod_status.ready_since(mine) != pod_status.ready_since(theirs):
        return by_uid
    made_, other = (parse_time(one["metadata"]["creationTimestamp"]) for one in (mine, theirs))
    if made_ == other:
        return 0
    return magnitude(made_) - magnitude(other) or by_uid


@settings(deadline=None)
@given(st.lists(DRAWN, max_size=40), st.lists(DRAWN, max_size=6))
def test_the_order_is_that_of_comparing_pods_two_by_two(drawn: Any, drawn_others: Any) -> None:
    pods, others = (
        [
            made(f"{prefix}{number}-{place}", node=node, phase=phase, ready_s=ready_s, age_s=age_s)
            for place, (number, node, phase, ready_s, age_s) in enumerate(some)
        ]
        for prefix, some in (("p", drawn), ("q", drawn_others))
    )
    related = [*pods, *others]
    company = Counter(pod_status.node_of(one) for one in related)
    # Not all comparisons agree with each other, so that only the same way of sorting gives the same order.
    ranks = sorted({rank(one, company) for one in pods})
    expected = []
    for each in ranks:
        alike: list[JsonObject] = []
        for one in pods:
            if rank(one, company) == each:
                insort(alike, one, key=cmp_to_key(compared))
        expected += alike
    assert pod_status.deletion_order(pods, related, NOW) == expected
    known: pod_status.Standings = {}
    # What was known at another moment, when ages were others, is of use for all but the ages.
    pod_status.deletion_order(pods, others, NOW - timedelta(days=1), known)
    assert pod_status.deletion_order(pods, related, NOW, known) == expected


def test_where_comparisons_contradict_each_other_the_order_is_the_same_on_every_python() -> None:
    # Of the same moment are a and c, so that neither goes first; b goes by its uid. Python 3.13 sorts lists of such
    # pods otherwise than those before it.
    def alike(names: str, ready_s: float, age_s: float) -> list[JsonObject]:
        return [made(name, node="", ready_s=ready_s, age_s=age_s) for name in names]

    pods = [*alike("hgf", 100, 1000), *alike("dbe", 101, 1000), *alike("ca", 100, 1000), *alike("ijk", 101, 1000)]
    assert "".join(order(*pods)) == "dbehgfcaijk"
