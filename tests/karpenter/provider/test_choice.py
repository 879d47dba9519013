from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.provider.choice import cheapest, instance_of, instance_of_node, node_name, node_object
from holokube.karpenter.provider.faults import Fate, Faults, Place, fate_of
from holokube.karpenter.provider.hollow import HollowProvider
from holokube.karpenter.provider.protocol import LaunchFailed
from holokube.kube.types import JsonObject
from tests.karpenter.lab import small_catalog
from tests.karpenter.objects import claim

CATALOG = small_catalog()


def wanted(types: list[str], *more: JsonObject, **parts: object) -> NodeClaim:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}, *more]
    return NodeClaim.of(claim(requirements=requirements, **parts))  # type: ignore[arg-type] # fields of the spec


def choose(one: NodeClaim, seed: int = 0) -> tuple[str, str, str] | None:
    found = cheapest(one, CATALOG.by_name, CATALOG.well_known, Rng(seed))
    return None if found is None else (found.instance_type.name, found.offering.zone, found.offering.capacity_type)


def test_the_cheapest_offering_wins_whatever_the_order_of_types() -> None:
    for types in (["large", "small", "medium"], ["small", "large"]):
        found = choose(wanted(types))
        assert found is not None
        assert (found[0], found[2]) == ("small", "spot")


def test_requirements_of_the_claim_narrow_the_choice() -> None:
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    zone = {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["zone-a"]}
    assert choose(wanted(["small", "large"], on_demand, zone)) == ("small", "zone-b", "on-demand")
    assert choose(wanted(["small"], {**zone, "values": ["zone-a", "zone-b"]})) is None


def test_equally_cheap_places_are_drawn_from() -> None:
    assert {(choose(wanted(["small"]), seed) or ("", "", ""))[1] for seed in range(20)} == {"zone-a", "zone-b"}


def test_a_launch_that_was_half_written_ends_with_the_same_machine() -> None:
    labels = {"node.kubernetes.io/instance-type": "large", "topology.kubernetes.io/zone": "zone-b",
              "karpenter.sh/capacity-type": "on-demand"}  # fmt: skip
    assert choose(wanted(["small", "large"], labels=labels)) == ("large", "zone-b", "on-demand")


def test_types_that_nobody_knows_are_left_out_and_told_when_none_is_left() -> None:
    assert (choose(wanted(["lost", "small"])) or ("",))[0] == "small"
    with pytest.raises(LaunchFailed, match="instance type not found: lost"):
        choose(wanted(["lost"]))
    with pytest.raises(LaunchFailed, match="does not say which instance types"):
        choose(NodeClaim.of(claim()))


def test_the_machine_carries_the_labels_of_claim_type_and_place() -> None:
    one = wanted(["medium"], {"key": "team", "operator": "In", "values": ["blue"]}, labels={"own": "1"},
                 resources={"requests": {"cpu": "1", "example.com/gpu": "2"}})  # fmt: skip
    found = cheapest(one, CATALOG.by_name, CATALOG.well_known, Rng(0))
    assert found is not None
    made = instance_of(one, found, "n", "a")
    assert made.labels.items() >= {
        "own": "1", "team": "blue", "node.kubernetes.io/instance-type": "medium", "kubernetes.io/os": "linux",
        "karpenter.sh/capacity-type": "spot", "kubernetes.io/hostname": "c", "kwok.x-k8s.io/node": "fake",
        "eks-node-viewer/instance-price": "0.133000", "kwok-partition": "a",
    }.items()  # fmt: skip
    assert made.capacity == {"cpu": "4", "example.com/gpu": "2", "memory": "16Gi", "pods": "110"}
    assert made.allocatable["cpu"] == "3900m"


def test_a_node_tells_what_its_claim_tells_and_can_be_read_back() -> None:
    launched = NodeClaim.of(claim(labels={"zone": "a"}, annotations={"n": "1"}, status={
        "providerID": "kwok://kwok-c", "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}))  # fmt: skip
    node = node_object(launched)
    assert node["metadata"]["name"] == "kwok-c"
    assert node["spec"]["taints"] == [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
    found = instance_of_node(node)
    assert (found.provider_id, found.capacity, found.labels["zone"]) == ("kwok://kwok-c", {"cpu": "4"}, "a")
    assert found.annotations == {"n": "1", "kwok.x-k8s.io/node": "fake"}


def test_names_and_fates_follow_from_the_seed_and_the_uid_alone() -> None:
    one = NodeClaim.of(claim())
    assert node_name(one, Rng("a")) == node_name(one, Rng("a"))
    assert node_name(one, Rng("a")) != node_name(one, Rng("b"))
    faults = Faults(never_registers=0.25, slow=0.25)
    fates = [fate_of(faults, Rng("cloud"), str(number)) for number in range(2000)]
    assert fates == [fate_of(faults, Rng("cloud"), str(number)) for number in range(2000)]
    assert 400 < fates.count(Fate.NEVER_COMES) < 600
    assert 400 < fates.count(Fate.COMES_LATE) < 600


def test_where_nothing_goes_wrong_machines_are_chosen_as_where_next_to_nothing_does() -> None:
    empty: Any = SimpleNamespace(add_handler=lambda _handler: None, lister=SimpleNamespace(list=list))
    informers: Any = SimpleNamespace(indexed=lambda *_index: empty, get=lambda _kind: empty)
    elsewhere, unheard_of = {Place("none", "zone-a", "spot"): 0}, 1e-300

    def provider(faults: Faults) -> HollowProvider:
        return HollowProvider(VirtualClock(), cast("Any", None), informers, Rng("cloud"), CATALOG, faults)

    sound = provider(Faults())
    others = [
        provider(Faults(stock=elsewhere)), provider(Faults(launch_failure=unheard_of)),
        provider(Faults(insufficient_capacity=unheard_of, stock=elsewhere)),
    ]  # fmt: skip
    for seed in range(20):
        one = wanted(["large", "small", "medium"])
        choice = sound._choose(one, Rng(seed))
        assert all(other._choose(one, Rng(seed)) == choice for other in others)
        assert fate_of(Faults(), Rng(seed), one.uid) is fate_of(Faults(slow=unheard_of), Rng(seed), one.uid)
