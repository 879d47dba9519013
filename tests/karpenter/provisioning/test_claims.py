from __future__ import annotations

import pytest

from holokube.base.rng import Rng
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.provisioning.claims import claim_object
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.kube.requirements import Requirement, Requirements
from holokube.kube.types import JsonObject
from tests.karpenter.lab import small_catalog
from tests.karpenter.objects import pool

CATALOG = small_catalog()


def planned(
    template: NodePool, *more: Requirement, types: tuple[str, ...] = ("large", "small"), relaxed: bool = False
) -> PlannedClaim:
    requirements = template.template_requirements.adding(
        Requirement.new("karpenter.sh/registered", "In", ("true",)),
        Requirement.new("karpenter.sh/initialized", "In", ("true",)), *more,
    )  # fmt: skip
    return PlannedClaim(
        template, requirements, [CATALOG.by_name[name] for name in types], (), {"cpu": 1500, "pods": 2000},
        CATALOG.well_known, relaxed,
    )  # fmt: skip


def by_key(claim: JsonObject) -> dict[str, JsonObject]:
    return {entry["key"]: entry for entry in claim["spec"]["requirements"]}


def test_a_claim_is_the_pools_template_narrowed_to_the_plan() -> None:
    template = NodePool.of(pool(
        expireAfter="24h", terminationGracePeriod="5m", taints=[{"key": "a", "effect": "NoSchedule"}],
        startupTaints=[{"key": "b", "effect": "NoExecute"}],
    ))  # fmt: skip
    made = claim_object(planned(template), Rng(0))
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["generateName"] == "default-"
    assert metadata["labels"] == {"karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "default"}
    assert metadata["annotations"]["karpenter.sh/nodepool-hash"] == template.hash
    assert metadata["ownerReferences"][0].items() >= {"uid": "uid-default", "blockOwnerDeletion": True}.items()
    assert (spec["expireAfter"], spec["terminationGracePeriod"]) == ("24h", "5m")
    assert spec["taints"] == [{"key": "a", "effect": "NoSchedule"}]
    assert spec["startupTaints"] == [{"key": "b", "effect": "NoExecute"}]
    assert spec["resources"] == {"requests": {"cpu": "1500m", "pods": "2"}}


def test_instance_types_are_listed_by_price_and_capacity_types_as_they_can_be_launched() -> None:
    found = by_key(claim_object(planned(NodePool.of(pool())), Rng(0)))
    assert found["node.kubernetes.io/instance-type"]["values"] == ["small", "large"]
    assert found["karpenter.sh/capacity-type"]["values"] == ["on-demand", "spot"]
    spot = Requirement.new("karpenter.sh/capacity-type", "In", ("spot",))
    narrowed = by_key(claim_object(planned(NodePool.of(pool()), spot), Rng(0)))
    assert narrowed["karpenter.sh/capacity-type"]["values"] == ["spot"]


def test_what_only_simulations_need_is_left_out() -> None:
    found = by_key(claim_object(planned(NodePool.of(pool())), Rng(0)))
    assert not any(key.endswith(("registered", "initialized")) for key in found)


def test_a_custom_label_gets_one_value_and_a_well_known_one_none() -> None:
    made = claim_object(planned(
        NodePool.of(pool()), Requirement.new("team", "In", ("blue", "red")), Requirement.new("size", "Gt", ("5",)),
        Requirement.new("absent", "DoesNotExist"), Requirement.new("topology.kubernetes.io/zone", "In", ("zone-a",)),
    ), Rng(0))  # fmt: skip
    labels = made["metadata"]["labels"]
    assert labels["team"] in ("blue", "red")
    assert int(labels["size"]) > 5
    assert not labels.keys() & {"absent", "topology.kubernetes.io/zone"}


@pytest.mark.parametrize("relaxed", [True, False])
def test_relaxed_minimums_are_told(relaxed: bool) -> None:
    annotations = claim_object(planned(NodePool.of(pool()), relaxed=relaxed), Rng(0))["metadata"]["annotations"]
    assert ("karpenter.sh/nodeclaim-min-values-relaxed" in annotations) is relaxed


def test_minimum_values_stay_in_the_requirement() -> None:
    least = Requirements([Requirement.new("node.kubernetes.io/instance-type", "Exists", (), 2)])
    made = claim_object(planned(NodePool.of(pool()), *least.values()), Rng(0))
    assert by_key(made)["node.kubernetes.io/instance-type"]["minValues"] == 2
