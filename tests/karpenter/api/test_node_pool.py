from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holokube.karpenter.api.budgets import Budget
from holokube.karpenter.api.node_pool import NodePool, in_order
from holokube.kube.taints import Taint
from tests.karpenter.api.pools import WITH_EVERYTHING, labelled, node_pool, requirement, static_pool, yaml_of


def test_a_pool_with_everything_is_read() -> None:
    pool = NodePool.of(yaml_of(WITH_EVERYTHING))
    assert (pool.name, pool.weight, pool.consolidation_policy) == ("with-everything", 10, "Balanced")
    assert pool.template_labels == {"billing-team": "my-team"}
    assert pool.template_annotations == {"example.com/owner": "my-team"}
    assert pool.taints == (Taint("example.com/special-taint", "", "NoSchedule"),)
    assert pool.startup_taints == (Taint("example.com/another-taint", "yes", "NoExecute"),)
    assert pool.expire_after_s == 5400 and pool.termination_grace_period_s == 48 * 3600
    assert pool.limits == {"cpu": 1_000_000, "memory": 1000 * 2**30 * 1000, "nodes": 50_000}
    assert pool.consolidate_after_s == 60
    assert pool.budgets[1] == Budget("0", frozenset({"Drifted", "Underutilized"}), "0 9 * * mon-fri", "8h")
    cpu = pool.requirements["karpenter.kwok.sh/instance-cpu"]
    assert (cpu.gte, cpu.lte) == (3, 64), "two requirements on a key are one"
    assert pool.requirements["karpenter.kwok.sh/instance-family"].min_values == 2
    assert not pool.is_static and not pool.is_ready and not pool.is_deleting


def test_what_is_not_written_has_the_defaults_of_the_api() -> None:
    pool = NodePool.of(node_pool())
    assert pool.weight == 0 and pool.limits is None and pool.replicas is None
    assert pool.expire_after_s == 720 * 3600 and pool.termination_grace_period_s is None
    assert pool.consolidation_policy == "WhenEmptyOrUnderutilized" and pool.consolidate_after_s == 0
    assert pool.budgets == (Budget("10%"),)
    assert NodePool.of(node_pool(spec={"disruption": {"budgets": []}})).budgets == ()


def test_never_is_none() -> None:
    pool = NodePool.of(node_pool(expireAfter="Never", spec={"disruption": {"consolidateAfter": "Never"}}))
    assert pool.expire_after_s is None and pool.consolidate_after_s is None


def test_nodes_carry_labels_of_template_pool_and_class() -> None:
    pool = NodePool.of(labelled({"team": "blue"}))
    assert pool.node_labels == {
        "team": "blue", "karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "default",
    }  # fmt: skip
    assert pool.template_requirements["team"].values == {"blue"}
    assert "team" not in pool.requirements


def test_heavier_pools_come_first_and_of_equal_weight_the_later_name() -> None:
    pools = [NodePool.of(node_pool(name, spec=spec)) for name, spec in [
        ("a", {}), ("b", {"weight": 10}), ("ba", {"weight": 10}), ("c", {}), ("d", {"weight": 100}),
    ]]  # fmt: skip
    assert [pool.name for pool in in_order(pools)] == ["d", "ba", "b", "c", "a"]


def test_a_limit_is_exceeded_only_by_more_than_it() -> None:
    pool = NodePool.of(node_pool(spec={"limits": {"cpu": "10", "nodes": 2}}))
    assert pool.exceeded_limit({"cpu": 10_000, "memory": 10**15, "nodes": 2000}) == ""
    assert pool.exceeded_limit({"cpu": 10_001, "nodes": 2000}) == "cpu"
    assert pool.exceeded_limit({"nodes": 3000}) == "nodes"
    assert NodePool.of(node_pool()).exceeded_limit({"cpu": 10**9}) == ""


def test_a_pool_with_replicas_is_static_even_with_none() -> None:
    assert NodePool.of(static_pool()).is_static
    assert NodePool.of(node_pool(spec={"replicas": 0})).is_static


def test_disruptions_are_allowed_by_its_budgets() -> None:
    pool = NodePool.of(yaml_of(WITH_EVERYTHING))
    monday = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
    assert pool.allowed_disruptions(monday, 35, "Empty") == 4
    assert pool.allowed_disruptions(monday, 35, "Drifted") == 0
    midnight = datetime(2026, 3, 3, 0, 5, tzinfo=UTC).timestamp()
    assert pool.allowed_disruptions(midnight, 100, "Empty") == 5


def test_readiness_and_deletion_are_read_from_status_and_metadata() -> None:
    pool = node_pool()
    pool["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    pool["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 4, "uid": "u"}
    pool["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    read = NodePool.of(pool)
    assert read.is_ready and read.is_deleting and read.generation == 4 and read.uid == "u"
    assert read.created_s == 1767225600


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (node_pool("p", expireAfter="soon"), "NodePool p: expireAfter"),
        (node_pool("p", requirements=[requirement("a", "Like")]), "NodePool p: requirement on a"),
        (node_pool("p", spec={"limits": {"cpu": "many"}}), "NodePool p: "),
    ],
)
def test_nonsense_is_refused_with_the_name_of_the_pool(pool: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NodePool.of(pool)
