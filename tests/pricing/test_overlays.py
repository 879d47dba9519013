from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.kube.requirements import Requirement, Requirements
from holokube.pricing.generator import CatalogPlan, generate
from holokube.pricing.instance_types import ON_DEMAND, SPOT, Catalog
from holokube.pricing.overlays import Overlay, apply_overlays

CATALOG = generate(CatalogPlan(cpus=(1, 2), zones=("a", "b"), architectures=("amd64",), operating_systems=("linux",)))
NAME = "c-1x-amd64-linux"


def overlay(name: str, *requirements: tuple[str, str], **more: Any) -> Overlay:
    return Overlay(name, Requirements(Requirement.new(key, "In", (value,)) for key, value in requirements), **more)


def price(catalog: Catalog, zone: str = "a", capacity_type: str = ON_DEMAND, name: str = NAME) -> float:
    offering = catalog.by_name[name].offering(zone, capacity_type)
    assert offering is not None
    return offering.price_usd_per_hour


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ({"price": "0.25"}, 4.0, 0.25), ({"price_adjustment": "+0.5"}, 4.0, 4.5),
        ({"price_adjustment": "-.5"}, 4.0, 3.5),
        ({"price_adjustment": "-10"}, 4.0, 0.0), ({"price_adjustment": "+50%"}, 4.0, 6.0),
        ({"price_adjustment": "-12.5%"}, 4.0, 3.5), ({"price_adjustment": "-100%"}, 4.0, 0.0), ({}, 4.0, 4.0),
    ],
)  # fmt: skip
def test_a_price_is_set_moved_or_scaled_but_never_negative(change: dict[str, str], before: float, after: float) -> None:
    assert Overlay("o", Requirements(), **change).adjusted(before) == after


def test_only_selected_offerings_change() -> None:
    spot_in_a = overlay("o", ("karpenter.sh/capacity-type", SPOT), ("topology.kubernetes.io/zone", "a"), price="1")
    under = apply_overlays(CATALOG, [spot_in_a])
    assert under.conflicts == () and price(under.catalog, "a", SPOT) == 1
    for place in (("b", SPOT), ("a", ON_DEMAND)):
        assert price(under.catalog, *place) == price(CATALOG, *place)
    changed = under.catalog.by_name[NAME].offering("a", SPOT)
    assert changed is not None and changed.is_price_overlaid
    assert under.catalog.well_known == CATALOG.well_known


def test_types_that_no_overlay_touches_stay_the_very_same() -> None:
    under = apply_overlays(CATALOG, [overlay("o", ("node.kubernetes.io/instance-type", NAME), price="1")]).catalog
    assert [one is other for one, other in zip(under, CATALOG, strict=True)].count(False) == 1


def test_the_heaviest_overlay_wins_for_each_offering() -> None:
    light = overlay("light", price="1", weight=1)
    heavy = overlay("heavy", ("topology.kubernetes.io/zone", "a"), price="2", weight=2)
    under = apply_overlays(CATALOG, [light, heavy])
    assert under.conflicts == ()
    assert price(under.catalog, "a") == 2 and price(under.catalog, "b") == 1


def test_of_equal_weight_the_later_name_wins_and_the_other_conflicts_as_a_whole() -> None:
    one = overlay("a", price="1")
    other = overlay("b", ("topology.kubernetes.io/zone", "a"), price="2")
    under = apply_overlays(CATALOG, [one, other])
    assert under.conflicts == ("a",)
    assert price(under.catalog, "a") == 2 and price(under.catalog, "b") == price(CATALOG, "b")
    apart = overlay("c", ("topology.kubernetes.io/zone", "b"), price="3")
    assert apply_overlays(CATALOG, [other, apart]).conflicts == (), "they do not meet"


def test_extended_resources_are_added_to_types() -> None:
    smart = overlay("o", ("karpenter.kwok.sh/instance-family", "c"), capacity={"smarter-devices/fuse": 5000})
    other = overlay("p", capacity={"smarter-devices/fuse": 9000, "x.io/y": 1000}, weight=1)
    under = apply_overlays(CATALOG, [smart]).catalog
    assert under.by_name[NAME].allocatable["smarter-devices/fuse"] == 5000
    assert "smarter-devices/fuse" not in under.by_name["m-1x-amd64-linux"].capacity
    both = apply_overlays(CATALOG, [smart, other]).catalog.by_name[NAME].capacity
    assert both["smarter-devices/fuse"] == 9000 and both["x.io/y"] == 1000
    clash = overlay("q", capacity={"smarter-devices/fuse": 1000})
    assert apply_overlays(CATALOG, [smart, clash]).conflicts == ("o",)


def test_labels_of_a_pool_count() -> None:
    for_team = overlay("o", ("team", "blue"), price="1")
    assert price(apply_overlays(CATALOG, [for_team], {"team": "blue"}).catalog) == 1
    assert price(apply_overlays(CATALOG, [for_team], {"team": "red"}).catalog) == price(CATALOG)
    assert price(apply_overlays(CATALOG, [for_team]).catalog) == price(CATALOG), "a label that no node has"


def test_an_overlay_is_read_from_its_object() -> None:
    obj = {
        "metadata": {"name": "o"},
        "spec": {
            "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]}],
            "priceAdjustment": "-10%", "capacity": {"x.io/y": "2"}, "weight": 7,
        },
    }  # fmt: skip
    read = Overlay.from_json(obj)
    assert (read.name, read.price_adjustment, read.capacity, read.weight) == ("o", "-10%", {"x.io/y": 2000}, 7)
    under = apply_overlays(CATALOG, [read]).catalog
    assert price(under, "b") == price(CATALOG, "b") * (1 - 10 / 100) and price(under, "a") == price(CATALOG, "a")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "cannot set both"), ({"price": "-1"}, "price '-1'"),
        ({"priceAdjustment": "10%"}, "'10%' is no change"), ({"priceAdjustment": "-101%"}, "'-101%' is no change"),
        ({"capacity": {"cpu": "1"}}, "capacity cpu is restricted"), ({"weight": 10_001}, "weight 10001"),
        ({"requirements": [{"key": "a", "operator": "Like"}]}, "'Like' is no operator"),
        ({"capacity": {"x.io/y": "many"}}, "overlay o: "),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_the_name_of_the_overlay(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"overlay o: .*{words}" if not words.startswith("overlay") else words):
        Overlay.from_json({"metadata": {"name": "o"}, "spec": spec})
