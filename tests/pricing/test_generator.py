from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.pricing.generator import CatalogPlan, Family, generate
from holokube.pricing.instance_types import ON_DEMAND, SPOT
from holokube.pricing.spot import SpotModel

GIB = 2**30 * 1000


def test_the_default_is_the_hollow_providers_own_catalogue() -> None:
    catalog = generate()
    assert len(catalog) == 144 and len(catalog.by_name) == 144
    assert [one.name for one in catalog][:3] == ["c-1x-amd64-linux", "c-1x-arm64-linux", "c-1x-amd64-windows"]
    assert catalog.types[-1].name == "m-256x-arm64-windows"
    small = catalog.by_name["c-1x-amd64-linux"]
    assert small.capacity == {"cpu": 1000, "memory": 2 * GIB, "pods": 16_000, "ephemeral-storage": 20 * GIB}
    assert small.allocatable == {**small.capacity, "cpu": 900, "memory": 2 * GIB - 10 * 2**20 * 1000}
    assert [(o.zone, o.capacity_type) for o in small.offerings] == [
        (f"test-zone-{zone}", kind) for zone in "abcd" for kind in (SPOT, ON_DEMAND)
    ]
    assert catalog.by_name["s-64x-arm64-linux"].capacity["pods"] == 1_024_000
    assert catalog.by_name["s-256x-arm64-linux"].capacity["pods"] == 1_024_000


def test_the_default_is_made_once_and_is_that_of_the_default_plan() -> None:
    assert generate() is generate()
    anew = generate(CatalogPlan())
    assert anew is not generate() and anew.well_known == generate().well_known
    for one, other in zip(generate(), anew, strict=True):
        assert (one.name, one.requirements, one.capacity) == (other.name, other.requirements, other.capacity)
        assert [o.price_usd_per_hour for o in one.offerings] == [o.price_usd_per_hour for o in other.offerings]


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        # To the last bit what upstream's file has.
        ("c-1x-amd64-linux", 0.027147483648, 0.019003238553599998),
        ("s-2x-arm64-windows", 0.058589934592, 0.041012954214399995),
        ("m-256x-amd64-linux", 8.599023255552, 6.019316278886399),
    ],
)
def test_prices_are_upstreams(name: str, on_demand: float, spot: float) -> None:
    one = generate().by_name[name]
    assert {o.price_usd_per_hour for o in one.offerings if o.capacity_type == ON_DEMAND} == {on_demand}
    assert {o.price_usd_per_hour for o in one.offerings if o.capacity_type == SPOT} == {spot}


def test_labels_tell_the_size() -> None:
    one = generate().by_name["m-48x-arm64-linux"]
    labels = {key: min(one.requirements[key].values) for key in one.requirements if "kwok" in key or "/arch" in key}
    assert labels == {
        "karpenter.kwok.sh/instance-size": "48", "karpenter.kwok.sh/instance-family": "m",
        "karpenter.kwok.sh/instance-cpu": "48", "karpenter.kwok.sh/instance-memory": "384Gi",
        "kubernetes.io/arch": "arm64",
    }  # fmt: skip


def test_a_plan_is_families_times_sizes_times_zones_times_capacity_types() -> None:
    plan = CatalogPlan(
        families=(Family("std", 4), Family("gpu", 8, 2.0, devices={"nvidia.com/gpu": 1}, usd_per_device_hour=1)),
        cpus=(4, 8, 16), architectures=("amd64",), operating_systems=("linux",), zones=("x", "y"),
        zone_price_factors={"y": 1.1}, capacity_types=(ON_DEMAND,),
    )  # fmt: skip
    catalog = generate(plan)
    assert [one.name for one in catalog] == [
        f"{family}-{cpu}x-amd64-linux" for cpu in (4, 8, 16) for family in ("std", "gpu")
    ]
    gpu = catalog.by_name["gpu-16x-amd64-linux"]
    assert gpu.capacity["nvidia.com/gpu"] == 4000
    base = 0.025 * 16 + 0.001 * (16 * 8 * 2**30) / 1e9
    assert [o.price_usd_per_hour for o in gpu.offerings] == [base * 2 + 4, (base * 2 + 4) * 1.1]
    assert len(gpu.offerings) == 2


def test_spot_prices_stray_by_seed_and_stay_within_their_spread() -> None:
    plan = CatalogPlan(cpus=(1, 2), spot=SpotModel(price_factor=0.5, price_spread=0.2))

    def prices(seed: int) -> list[float]:
        return [o.price_usd_per_hour for one in generate(plan, seed) for o in one.offerings]

    assert prices(1) == prices(1) != prices(2)
    for one in generate(plan, 1):
        for offering in one.offerings:
            if offering.capacity_type == SPOT:
                on_demand = one.offering(offering.zone, ON_DEMAND)
                assert on_demand is not None
                assert 0.4 <= offering.price_usd_per_hour / on_demand.price_usd_per_hour <= 0.6


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"cpus": ()}, "no cpus"),
        ({"zones": ("a", "a")}, "zones are named twice"),
        ({"families": (Family("c", 2), Family("c", 4))}, "families are named twice"),
        ({"cpus": (0,)}, "at least one core"),
        ({"capacity_types": ("reserved",)}, "reserved cannot be generated"),
    ],
)
def test_nonsense_is_refused(plan: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CatalogPlan(**plan)  # type: ignore[arg-type] - wrong on purpose
