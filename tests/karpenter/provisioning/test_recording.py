from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.provisioning.recording import PoolCheck, can_launch
from holokube.karpenter.scheduling.problem import Problem
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, small_catalog, workload
from tests.karpenter.objects import pool

CATALOG = small_catalog()


def wants(key: str, *values: str) -> NodePool:
    return NodePool.of(pool(requirements=[{"key": key, "operator": "In", "values": list(values)}]))


def test_a_pool_can_launch_what_meets_its_requirements_somewhere() -> None:
    def is_possible(template: NodePool) -> bool:
        return can_launch(template, CATALOG.types, CATALOG.well_known)

    assert is_possible(wants("topology.kubernetes.io/zone", "zone-a", "nowhere"))
    assert is_possible(wants("team", "blue"))
    assert not is_possible(wants("topology.kubernetes.io/zone", "nowhere"))
    assert not is_possible(wants("node.kubernetes.io/instance-type", "huge"))
    assert not is_possible(wants("kubernetes.io/arch", "arm64"))


def test_a_pool_is_looked_at_anew_when_its_spec_or_its_types_are_others() -> None:
    told: list[str] = []
    publisher: Any = SimpleNamespace(warning=lambda obj, *_words, **_more: told.append(obj["metadata"]["name"]))
    check = PoolCheck(publisher)
    usable, empty = wants("kubernetes.io/arch", "amd64"), wants("kubernetes.io/arch", "arm64")
    for of_pool, types in (
        (usable, CATALOG.types), (usable, []), (usable, CATALOG.types), (empty, CATALOG.types), (empty, CATALOG.types),
        (usable, CATALOG.types),
    ):  # fmt: skip
        count = len(told)
        check.look_at(Problem([of_pool], {of_pool.name: types}, [], well_known=CATALOG.well_known))
        assert (len(told) == count) == can_launch(of_pool, types, CATALOG.well_known)
    assert len(told) == 3


def test_a_pool_from_which_nothing_can_be_launched_is_told() -> None:
    async def scenario() -> None:
        nowhere = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}]
        async with lab(cluster, node_pool(requirements=nowhere), workload("web", 1)) as here:
            await cluster.clock.sleep(30)
            assert await here.reasons("NodePool") == ["NoCompatibleInstanceTypes"]
            assert await here.claims() == []

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario)
