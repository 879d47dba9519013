"""What the page tells of a node."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.dashboard.node_facts import State, group_of, prices_from, read_node
from holokube.pricing.generator import generate
from tests.dashboard.made import CREATED_S, ready_node


def state_of(node: dict[str, Any], *, was_ready: bool = True) -> tuple[State, str]:
    facts = read_node(node, prices_from(), was_ready=was_ready)
    return facts.state, facts.why


def test_size_place_and_age_are_read() -> None:
    labels = {"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m.large",
              "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot"}
    facts = read_node(ready_node("n1", labels=labels, cpu="3900m"), prices_from(), was_ready=False)
    assert (facts.name, facts.group, facts.zone, facts.instance_type) == ("n1", "default", "a", "m.large")
    assert (facts.capacity_type, facts.cpu_milli, facts.memory_mib, facts.pods_max) == ("spot", 3900, 8192, 110)
    assert (facts.created_s, facts.state, facts.price_micro_usd) == (CREATED_S, State.READY, None)


def test_a_node_that_never_was_ready_boots_and_one_that_was_is_broken() -> None:
    node = ready_node(ready="False")
    assert state_of(node, was_ready=False)[0] is State.BOOTING
    assert state_of(node) == (State.NOT_READY, "as the kubelet says")
    assert state_of(ready_node(ready="Unknown"), was_ready=False)[0] is State.NOT_READY


def test_a_node_without_conditions_boots() -> None:
    assert state_of({"metadata": {"name": "n"}}, was_ready=False)[0] is State.BOOTING


def test_a_ready_node_that_lets_no_pods_in_yet_still_boots() -> None:
    node = ready_node()
    node["spec"]["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert state_of(node, was_ready=False)[0] is State.BOOTING
    node["spec"]["taints"] = [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
    assert state_of(node, was_ready=False)[0] is State.BOOTING


@pytest.mark.parametrize("spec", [
    {"unschedulable": True},
    {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
    {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
])  # fmt: skip
def test_a_node_that_gets_no_more_pods_is_draining(spec: dict[str, Any]) -> None:
    assert state_of({**ready_node(), "spec": spec})[0] is State.DRAINING


def test_a_node_that_is_being_deleted_is_draining() -> None:
    assert state_of(ready_node(deletionTimestamp="2026-01-01T00:00:01Z")) == (State.DRAINING, "being deleted")


def test_a_fault_and_a_pressure_make_a_ready_node_faulty() -> None:
    assert state_of(ready_node(annotations={"holokube.dev/fault": "silent,slow"})) == (State.FAULTY, "silent, slow")
    pressed = ready_node()
    pressed["status"]["conditions"].append({"type": "DiskPressure", "status": "True"})
    assert state_of(pressed) == (State.FAULTY, "DiskPressure")


def test_a_broken_node_that_never_was_ready_does_not_pretend_to_boot() -> None:
    node = ready_node(ready="False", annotations={"holokube.dev/fault": "not-ready"})
    assert state_of(node, was_ready=False)[0] is State.NOT_READY


@pytest.mark.parametrize(("metadata", "group"), [
    ({"labels": {"karpenter.sh/nodepool": "p", "pool": "q"}}, "p"),
    ({"annotations": {"cluster-autoscaler.kwok.nodegroup/name": "g"}}, "g"),
    ({"labels": {"autoscaling.k8s.io/nodegroup": "k"}}, "k"),
    ({"labels": {"holokube.dev/node-set": "node"}}, "node"),
    ({"labels": {"eks.amazonaws.com/nodegroup": "e"}}, "e"),
    ({}, ""),
])  # fmt: skip
def test_the_group_is_found_where_clouds_and_autoscalers_write_it(metadata: dict[str, Any], group: str) -> None:
    assert group_of(ready_node(**metadata)) == group


def test_a_price_comes_from_the_node_itself_or_from_the_catalogue() -> None:
    catalog = generate()
    offered = catalog.types[0]
    offering = next(one for one in offered.offerings if one.capacity_type == "spot")
    price_of = prices_from(catalog)
    labels = {"node.kubernetes.io/instance-type": offered.name, "topology.kubernetes.io/zone": offering.zone,
              "karpenter.sh/capacity-type": "spot"}
    assert price_of(ready_node(labels=labels)) == offering.price_usd_per_hour
    assert price_of(ready_node(labels={**labels, "eks-node-viewer/instance-price": "0.5"})) == 0.5
    assert price_of(ready_node(annotations={"cluster-autoscaler.kwok.nodegroup/price-per-hour": "0.2"})) == 0.2


@pytest.mark.parametrize("text", ["cheap", "nan", "-1", ""])
def test_what_is_no_price_is_none(text: str) -> None:
    assert prices_from()(ready_node(labels={"eks-node-viewer/instance-price": text})) is None
    assert prices_from(generate())(ready_node(labels={"node.kubernetes.io/instance-type": "unheard-of"})) is None
