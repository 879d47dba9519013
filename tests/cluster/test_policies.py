"""Policies by name."""

from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.client.resources import NAMESPACES
from holokube.cluster.policies import PolicyOrder, Supply, check_flags, create_all, kinds, make_policy, supply_of
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_POOLS
from holokube.testing.cluster import Cluster
from tests.builders import config_map


def test_every_kind_can_be_made() -> None:
    assert kinds()[:3] == ["none", "cluster-autoscaler", "karpenter"]
    for kind in kinds()[1:]:
        made = make_policy(PolicyOrder(kind))
        assert made is not None
        assert made.name == kind


def test_no_policy_is_none() -> None:
    assert make_policy(PolicyOrder("none")) is None
    with pytest.raises(UsageError, match="no policy to have flags"):
        make_policy(PolicyOrder("none", flags=("--x",)))


def test_an_unknown_kind_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no policy 'magic'") as caught:
        make_policy(PolicyOrder("magic"))
    assert "cluster-autoscaler, karpenter" in caught.value.hint


def test_flags_of_another_program_are_refused() -> None:
    with pytest.raises(UsageError):
        make_policy(PolicyOrder("karpenter", flags=("--scan-interval=10s",)))


def test_a_policy_that_brings_its_pools_gets_no_other() -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "mine"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
        }}},
    }  # fmt: skip
    policy = make_policy(PolicyOrder("karpenter", manifests=(pool,)))
    assert policy is not None
    with Cluster() as cluster:
        cluster.run(policy.prepare(cluster.clock, cluster.client))
        pools = cluster.run(cluster.client.list(NODE_POOLS)).items
        assert [one["metadata"]["name"] for one in pools] == ["mine"]
        assert cluster.run(cluster.client.list(KWOK_NODE_CLASSES)).items == []


def test_objects_are_created_with_their_namespaces_and_what_is_there_stays() -> None:
    with Cluster() as cluster:
        cluster.run(create_all(cluster.client, [config_map("a", "new"), config_map("a", "new", other="x")]))
        names = [one["metadata"]["name"] for one in cluster.run(cluster.client.list(NAMESPACES)).items]
        assert "new" in names


def test_a_refused_object_is_told_with_the_servers_words() -> None:
    with Cluster() as cluster, pytest.raises(UsageError, match="ConfigMap A was refused") as caught:
        cluster.run(create_all(cluster.client, [config_map("A")]))
    assert "lowercase" in caught.value.message


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "none"])
def test_what_is_to_be_known_of_a_policy_is_known_without_making_it(kind: str) -> None:
    assert supply_of(kind) in Supply
    check_flags(kind, ())
    with pytest.raises(UsageError):
        check_flags(kind, ("--no-such-flag",))


def test_no_policy_has_no_machines_and_no_flags() -> None:
    assert supply_of("none") is None
    check_flags("none", ())
    with pytest.raises(UsageError, match="none has no flags"):
        check_flags("none", ("--scan-interval=10s",))
