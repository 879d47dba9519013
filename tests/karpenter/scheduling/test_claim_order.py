from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.go_sort import sort_as_go
from holokube.karpenter.scheduling.claim_order import ClaimOrder


class _Naive:
    """Sorts the whole list each time."""

    def __init__(self) -> None:
        self.claims: list[int] = []
        self.counts: dict[int, int] = {}

    def append(self, claim: int) -> None:
        self.claims.append(claim)
        self.counts[claim] = 1

    def count(self, place: int) -> None:
        self.counts[self.claims[place]] += 1

    def sort(self) -> None:
        self.claims = sort_as_go(self.claims, self.counts.__getitem__)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 10**6)), max_size=400))
def test_claims_stand_as_if_the_whole_list_were_sorted_before_every_pod(steps: list[int | None]) -> None:
    order, naive = ClaimOrder(), _Naive()
    for step in steps:
        order.sort()
        naive.sort()
        if step is None or not naive.claims:
            order.append(len(naive.claims))
            naive.append(len(naive.claims))
        else:
            place = step % len(naive.claims)
            order.count(place)
            naive.count(place)
        assert order.claims.tolist() == naive.claims
    order.sort()
    naive.sort()
    assert order.claims.tolist() == naive.claims
    assert len(order) == len(naive.claims)


def test_many_claims_stand_as_if_the_whole_list_were_sorted() -> None:
    order, naive = ClaimOrder(), _Naive()
    draw = 7
    for step in range(1500):
        order.sort()
        naive.sort()
        draw = draw * 1103515245 + 12345 & 0x7FFFFFFF
        if step < 150 or draw % 5 == 0:
            order.append(len(naive.claims))
            naive.append(len(naive.claims))
        else:
            place = (draw >> 8) % len(naive.claims)
            order.count(place)
            naive.count(place)
        assert order.claims.tolist() == naive.claims


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 10**6), st.integers(0, 30)), max_size=80))
def test_a_claim_that_gets_more_pods_stands_as_if_each_had_been_counted(steps: list[tuple[int, int]]) -> None:
    order, naive = ClaimOrder(), _Naive()
    for step, more in steps:
        order.sort()
        naive.sort()
        place = step % len(naive.claims) if naive.claims and step >= 0 else len(naive.claims)
        claim = naive.claims[place] if place < len(naive.claims) else place
        for both in (order, naive):
            if place < len(order) and claim in naive.counts:
                both.count(place)
            else:
                both.append(claim)
        order.count_more(more)
        for _ in range(more):
            naive.sort()
            naive.count(naive.claims.index(claim))
        assert order.claims.tolist() == naive.claims


def test_sorting_twice_changes_nothing() -> None:
    order = ClaimOrder()
    for claim in range(3):
        order.append(claim)
        order.sort()
    order.count(0)
    order.sort()
    once = order.claims.tolist()
    order.sort()
    assert order.claims.tolist() == once == [1, 2, 0]
