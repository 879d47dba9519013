from __future__ import annotations

import pytest

from holokube.base.errors import ConfigError
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from holokube.karpenter.api.install import SPEC_HASH, definition_files, definitions, install
from holokube.karpenter.api.resources import ALL, NODE_POOLS
from holokube.testing import Cluster
from tests.karpenter.api.pools import node_pool


def test_every_kind_has_a_definition() -> None:
    assert {one["metadata"]["name"] for one in definitions()} == {resource.qualified_name for resource in ALL}
    assert len(definition_files()) == len(ALL)


def test_definitions_are_installed_once_and_served_then() -> None:
    with Cluster() as cluster:
        written = cluster.run(install(cluster.clock, cluster.client))
        assert set(written) == {resource.qualified_name for resource in ALL}
        cluster.run(cluster.client.create(NODE_POOLS, node_pool()))
        assert cluster.run(install(cluster.clock, cluster.client)) == []


def test_an_older_definition_of_ours_is_brought_up_to_date_and_a_foreign_one_is_not() -> None:
    name = NODE_POOLS.qualified_name
    ours = next(one for one in definitions() if one["metadata"]["name"] == name)
    older = {**ours, "spec": {**ours["spec"], "names": {**ours["spec"]["names"], "shortNames": ["np"]}}}
    for marks, updated in (({SPEC_HASH: "older"}, True), ({}, False)):
        with Cluster() as cluster:
            given = {**older, "metadata": {"name": name, "annotations": marks}}
            cluster.run(cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, given))
            assert (name in cluster.run(install(cluster.clock, cluster.client))) is updated
            found = cluster.run(cluster.client.get(CUSTOM_RESOURCE_DEFINITIONS, name))
            assert ("shortNames" in found["spec"]["names"]) is not updated


def test_a_definition_that_is_never_served_is_told() -> None:
    name = NODE_POOLS.qualified_name
    ours = next(one for one in definitions() if one["metadata"]["name"] == name)
    rival = {
        "metadata": {"name": "rivals.karpenter.sh"},
        "spec": {**ours["spec"], "names": {"plural": "rivals", "singular": "nodepool", "kind": "Rival"}},
    }
    with Cluster() as cluster:
        cluster.run(cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, rival))
        with pytest.raises(ConfigError, match=r"does not serve nodepools\.v1\.karpenter\.sh"):
            cluster.run(install(cluster.clock, cluster.client))
