from __future__ import annotations

import math
from dataclasses import replace

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.disruption.prices import PriceBook
from holokube.kube.requirements import Requirement, Requirements
from holokube.pricing.instance_types import InstanceType, Offering
from tests.karpenter.disruption.objects import LARGE, MEDIUM, SMALL, instance_type, planned, pool

ANY = Requirements()
TWO_PRICES = instance_type("two", zones=()).with_offerings((
    Offering("a", "on-demand", 1.0), Offering("b", "on-demand", 3.0), Offering("a", "spot", 0.5),
    Offering("b", "spot", 0.8),
))  # fmt: skip


def only(key: str, *values: str) -> Requirements:
    return Requirements((Requirement.new(key, "In", values),))


def book() -> PriceBook:
    return PriceBook(ALL_WELL_KNOWN_LABELS)


def worst(prices: PriceBook, one: InstanceType, requirements: Requirements) -> float:
    """The least limit that the type's launch stays below, from the prices that there are."""
    limits = sorted({offering.price_usd_per_hour for offering in one.offerings})
    dearer = [limit for limit in limits if not prices.cheaper((one,), requirements, limit)]
    return max(dearer) if prices.cheaper((one,), requirements, math.inf) else math.inf


def test_the_worst_price_is_the_dearest_place_of_the_capacity_type_that_launches() -> None:
    prices = book()
    assert worst(prices, TWO_PRICES, ANY) == 0.8
    assert worst(prices, TWO_PRICES, only("karpenter.sh/capacity-type", "on-demand")) == 3.0
    assert worst(prices, TWO_PRICES, only("topology.kubernetes.io/zone", "a")) == 0.5
    assert math.isinf(worst(prices, TWO_PRICES, only("topology.kubernetes.io/zone", "z")))


def test_a_reservation_that_is_used_up_has_no_price() -> None:
    def reserved(capacity: int) -> InstanceType:
        held = Offering("a", "reserved", 0.01, reservation_id="r", reservation_capacity=capacity)
        return TWO_PRICES.with_offerings((held, *TWO_PRICES.offerings))

    assert worst(book(), reserved(1), ANY) == 0.01
    assert worst(book(), reserved(0), ANY) == 0.8


def test_only_strictly_cheaper_types_stay_and_keep_their_order() -> None:
    assert book().cheaper((LARGE, SMALL, MEDIUM), ANY, 0.4) == [SMALL, MEDIUM]
    assert book().cheaper((LARGE, SMALL, MEDIUM), ANY, 0.2) == [SMALL]


def test_a_label_met_late_does_not_mix_up_prices() -> None:
    prices = book()
    assert worst(prices, SMALL, ANY) == 0.1
    labelled = replace(
        Offering("a", "on-demand", 5.0),
        requirements=Requirements.from_labels({"karpenter.kwok.sh/instance-size": "big"}),
    )
    special = SMALL.with_offerings((labelled, Offering("a", "on-demand", 1.0)))
    size = "karpenter.kwok.sh/instance-size"
    assert worst(prices, special, only(size, "big")) == 5.0
    assert worst(prices, special, only(size, "small")) == 1.0
    assert worst(prices, special, ANY) == 5.0
    assert worst(prices, SMALL, only(size, "small")) == 0.1


def test_savings_are_counted_with_the_first_option_at_its_cheapest() -> None:
    assert book().savings(2.0, (TWO_PRICES, SMALL), ANY) == 1.5
    assert book().savings(2.0, (SMALL,), only("karpenter.sh/capacity-type", "spot")) == 2.0


def test_a_claims_types_are_ordered_as_the_claim_itself_orders_them() -> None:
    many = tuple(instance_type(f"t{i:02}", ((i * 7) % 5 + 1) / 10, spot=((i * 3) % 4 + 1) / 20) for i in range(40))
    prices = book()
    for requirement in (
        Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand",)),
        Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand", "spot")),
    ):
        claim = planned(pool(), many, requirement)
        assert prices.ordered(claim) == claim.instance_types
