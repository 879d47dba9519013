from __future__ import annotations

import math

from holokube.kube.requirements import WELL_KNOWN_LABELS, Requirement, Requirements
from holokube.pricing.instance_types import (
    ON_DEMAND,
    RESERVATION_ID_LABEL,
    RESERVED,
    SPOT,
    Catalog,
    InstanceType,
    Offering,
    type_requirements,
)

GIB = 2**30 * 1000
ANYWHERE = Requirements()
KEYS = WELL_KNOWN_LABELS | {RESERVATION_ID_LABEL}


def instance_type(*offerings: Offering, **capacity: int) -> InstanceType:
    amounts = {"cpu": 4000, "memory": 8 * GIB, **{name.replace("_", "-"): milli for name, milli in capacity.items()}}
    requirements = type_requirements("t", "amd64", ["linux"], offerings)
    return InstanceType("t", requirements, amounts, {"cpu": 100, "memory": GIB}, offerings)


def where(key: str, *values: str) -> Requirements:
    return Requirements([Requirement.new(key, "In", values)])


def test_an_offering_knows_its_labels() -> None:
    plain = Offering("a", SPOT, 0.1)
    assert plain.requirements["topology.kubernetes.io/zone"].values == {"a"}
    assert plain.requirements["karpenter.sh/capacity-type"].values == {"spot"}
    assert RESERVATION_ID_LABEL not in plain.requirements
    reserved = Offering("a", RESERVED, 0.0, reservation_id="r-1", reservation_capacity=2, requirements=where("x", "y"))
    assert reserved.requirements[RESERVATION_ID_LABEL].values == {"r-1"}
    assert reserved.requirements["x"].values == {"y"}


def test_a_full_reservation_is_available_but_not_launchable() -> None:
    full = Offering("a", RESERVED, 0.0, reservation_id="r")
    assert full.available and not full.is_launchable
    assert Offering("a", RESERVED, 0.0, reservation_id="r", reservation_capacity=1).is_launchable
    assert Offering("a", SPOT, 0.1).is_launchable
    assert not Offering("a", SPOT, 0.1, available=False).is_launchable


def test_allocatable_is_capacity_without_overhead_and_huge_pages() -> None:
    one = instance_type(Offering("a", SPOT, 0.1), hugepages_2Mi=2 * GIB)
    assert one.allocatable == {"cpu": 3900, "memory": 5 * GIB, "hugepages-2Mi": 2 * GIB}
    assert instance_type(hugepages_1Gi=20 * GIB).allocatable["memory"] == 0
    tight = InstanceType("t", ANYWHERE, {"cpu": 50}, {"cpu": 100, "memory": GIB}, ())
    assert tight.allocatable == {"cpu": -50}, "overhead of what it does not have is nothing"


def test_offerings_with_overrides_have_room_of_their_own() -> None:
    plain, gone = Offering("a", ON_DEMAND, 0.2), Offering("d", SPOT, 0.1, available=False)
    big = Offering("b", ON_DEMAND, 0.3, capacity_override={"cpu": 8000})
    twin = Offering("c", ON_DEMAND, 0.3, capacity_override={"cpu": 8000})
    lean = Offering("b", SPOT, 0.1, overhead_override={"cpu": 0})
    groups = instance_type(plain, gone, big, lean, twin).allocatable_groups
    assert [group.offerings for group in groups] == [(plain,), (big, twin), (lean,)]
    assert [group.allocatable["cpu"] for group in groups] == [3900, 7900, 4000]
    assert instance_type(big).allocatable["cpu"] == 3900, "the first group is the plain one, even without offerings"


def test_the_cheapest_launchable_place_that_fits_is_found() -> None:
    gone = Offering("a", SPOT, 0.01, available=False)
    first, second = Offering("b", SPOT, 0.1), Offering("c", SPOT, 0.1)
    dear = Offering("a", ON_DEMAND, 0.3)
    one = instance_type(gone, dear, first, second)
    assert one.cheapest(ANYWHERE, KEYS) is first, "of equally cheap ones the first"
    assert one.cheapest(where("topology.kubernetes.io/zone", "a"), KEYS) is dear
    assert one.cheapest_price(where("topology.kubernetes.io/zone", "z"), KEYS) == math.inf
    assert one.cheapest_price(where("karpenter.sh/capacity-type", "on-demand"), KEYS) == 0.3
    assert one.offering("a", SPOT) is gone and one.offering("z", SPOT) is None


def test_the_worst_launch_price_is_that_of_the_capacity_type_that_would_be_launched() -> None:
    dear = Offering("a", ON_DEMAND, 0.9)
    spots = (Offering("a", SPOT, 0.1), Offering("b", SPOT, 0.4))
    full = Offering("a", RESERVED, 0.0, reservation_id="r")
    open_ = Offering("a", RESERVED, 0.05, reservation_id="s", reservation_capacity=1)
    assert instance_type(dear, *spots, full).worst_launch_price(ANYWHERE, KEYS) == 0.4
    assert instance_type(dear, *spots, open_).worst_launch_price(ANYWHERE, KEYS) == 0.05
    assert instance_type(dear).worst_launch_price(ANYWHERE, KEYS) == 0.9
    assert instance_type(full).worst_launch_price(ANYWHERE, KEYS) == math.inf


def test_a_type_says_everywhere_it_is_offered() -> None:
    one = instance_type(Offering("a", SPOT, 0.1), Offering("b", ON_DEMAND, 0.1, available=False))
    assert one.requirements["topology.kubernetes.io/zone"].values == {"a", "b"}
    assert one.requirements["karpenter.sh/capacity-type"].values == {"spot", "on-demand"}


def test_a_catalogue_keeps_its_order_and_knows_the_keys_of_offerings() -> None:
    types = [
        InstanceType(name, ANYWHERE, {"cpu": 1000}, {}, (Offering("a", SPOT, 0.1, requirements=where("rack", "1")),))
        for name in ("z", "a", "m")
    ]
    catalog = Catalog(types, {"own"})
    assert [one.name for one in catalog] == ["z", "a", "m"] and len(catalog) == 3
    assert catalog.by_name["a"] is types[1]
    assert catalog.well_known == WELL_KNOWN_LABELS | {"own", "rack"}
    assert catalog.with_types(types[:1]).well_known == catalog.well_known
