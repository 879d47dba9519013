from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.pricing.generator import CatalogPlan, generate
from holokube.pricing.instance_types import ON_DEMAND, SPOT, Catalog
from holokube.pricing.spot import SpotModel

ON_DEMAND_ONLY = generate(CatalogPlan(cpus=(1, 2), zones=("a", "b"), capacity_types=(ON_DEMAND,)))


def spot_prices(catalog: Catalog) -> dict[tuple[str, str], float]:
    return {
        (one.name, offering.zone): offering.price_usd_per_hour
        for one in catalog
        for offering in one.offerings
        if offering.capacity_type == SPOT
    }


def test_spot_stands_beside_every_on_demand_offering_at_its_share() -> None:
    catalog = SpotModel(price_factor=0.4).applied(ON_DEMAND_ONLY, Rng(0))
    for one in catalog:
        assert [(o.zone, o.capacity_type) for o in one.offerings] == [
            ("a", ON_DEMAND), ("b", ON_DEMAND), ("a", SPOT), ("b", SPOT),
        ]  # fmt: skip
        assert one.requirements["karpenter.sh/capacity-type"].values == {SPOT, ON_DEMAND}
        assert one.offerings[2].price_usd_per_hour == one.offerings[0].price_usd_per_hour * 0.4


def test_spot_prices_that_were_there_are_replaced() -> None:
    before = generate(CatalogPlan(cpus=(1,)))
    after = SpotModel(price_factor=0.5).applied(before, Rng(0))
    assert [len(one.offerings) for one in after] == [len(one.offerings) for one in before]
    ratios = {round(price / spot_prices(before)[place], 9) for place, price in spot_prices(after).items()}
    assert ratios == {round(0.5 / 0.7, 9)}


def test_the_market_depends_on_seed_type_and_zone_alone() -> None:
    model = SpotModel(price_spread=0.5)
    whole = spot_prices(model.applied(ON_DEMAND_ONLY, Rng("market")))
    part = spot_prices(model.applied(ON_DEMAND_ONLY.with_types(ON_DEMAND_ONLY.types[3:]), Rng("market")))
    assert part.items() <= whole.items()
    assert len(set(whole.values())) == len(whole)
    assert spot_prices(model.applied(ON_DEMAND_ONLY, Rng("another"))) != whole


def test_interruptions_come_at_their_rate() -> None:
    rng = Rng(1)
    model = SpotModel(interruptions_per_hour=0.5)
    lifetimes = [model.lifetime_s(rng) or 0.0 for _ in range(4000)]
    assert abs(sum(lifetimes) / len(lifetimes) / 3600 - 2) < 0.1
    assert SpotModel().lifetime_s(rng) is None


@pytest.mark.parametrize(
    "wrong", [{"price_factor": 0.0}, {"price_spread": 1.0}, {"interruptions_per_hour": -1.0}, {"notice_s": -1.0}]
)
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="spot"):
        SpotModel(**wrong)
