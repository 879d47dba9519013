from __future__ import annotations

import pytest

from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, NodeGroup, NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.plan.provider import GPU_LABEL, GroupSpec, PlanProvider
from holokube.testing import Cluster
from tests.cluster_autoscaler.actuation.world import node, pod


def _provider(cluster: Cluster, *specs: GroupSpec, **prices: float) -> PlanProvider:
    nodes = cluster.run(cluster.client.list(NODES)).items
    return PlanProvider(
        cluster.clock, cluster.client, specs, {specs[0].id: nodes}, limiter=ResourceLimiter(), **prices)


def _spec(**fields: object) -> GroupSpec:
    return GroupSpec("g", 1, 3, NodeInfo(node("t")), **fields)  # type: ignore[arg-type]  # by keyword


def test_it_is_a_provider_and_its_groups_are_groups() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        provider = _provider(cluster, _spec())
        assert isinstance(provider, CloudProvider)
        assert all(isinstance(group, NodeGroup) for group in provider.node_groups())


def test_the_target_is_the_number_of_nodes_unless_told() -> None:
    with Cluster(objects=[node("a"), node("b")]) as cluster:
        assert cluster.run(_provider(cluster, _spec()).groups["g"].target_size()) == 2
        assert cluster.run(_provider(cluster, _spec(target=3)).groups["g"].target_size()) == 3


def test_sizes_are_kept_within_their_limits() -> None:
    with Cluster(objects=[node("a"), node("b")]) as cluster:
        group = _provider(cluster, _spec()).groups["g"]

        async def main() -> None:
            for delta in (0, -1, 2):
                with pytest.raises(CloudError):
                    await group.increase_size(delta)
            await group.increase_size(1)
            assert await group.target_size() == 3
            with pytest.raises(CloudError, match="2 nodes exist"):
                await group.decrease_target_size(-2)
            await group.decrease_target_size(-1)
            assert await group.target_size() == 2
            nodes = (await cluster.client.list(NODES)).items
            with pytest.raises(CloudError, match="fewer than the 1 allowed"):
                await group.delete_nodes(nodes)
            await group.delete_nodes(nodes[:1])
            assert [instance.id for instance in await group.nodes()] == ["plan://g/b"]
            await group.force_delete_nodes(nodes[1:])
            assert await group.target_size() == 0
            assert (await cluster.client.list(NODES)).items == []

        cluster.run(main())


def test_nodes_are_made_from_the_template_if_told_and_are_ready_at_once() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        provider = _provider(cluster, _spec())
        provider.books.creates_nodes = True

        async def main() -> None:
            await provider.groups["g"].increase_size(1)
            made = await cluster.client.get(NODES, "g-new-1")
            assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "g-new-1"
            assert made["spec"].get("taints") is None
            assert made["status"]["conditions"][0]["status"] == "True"
            found = await provider.node_group_for_node(made)
            assert found is not None and found.id == "g"
            assert await provider.has_instance(made)

        cluster.run(main())


def test_a_node_of_nobody_has_no_group() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        provider = _provider(cluster, _spec())
        assert cluster.run(provider.node_group_for_node(node("stranger"))) is None
        assert not cluster.run(provider.has_instance(node("stranger")))


def test_a_group_without_a_template_says_so() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        provider = _provider(cluster, GroupSpec("g", 0, 3, None))
        with pytest.raises(NotImplementedByProvider):
            cluster.run(provider.groups["g"].template_node_info())
        provider.books.creates_nodes = True
        with pytest.raises(CloudError, match="no template"):
            cluster.run(provider.groups["g"].increase_size(1))


def test_prices_are_those_of_the_group_and_of_the_requests() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        provider = _provider(cluster, _spec(price_usd_per_hour=2.0), usd_per_core_hour=0.5, usd_per_gib_hour=0.25)
        pricing = provider.pricing()
        real = cluster.run(cluster.client.get(NODES, "a"))
        assert cluster.run(pricing.node_price(real, 0, 1800)) == 1.0
        assert cluster.run(pricing.node_price(node("t"), 0, 3600)) == 2.0
        asking = pod("p", "a")
        asking["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2", "memory": "4Gi"}}
        assert cluster.run(pricing.pod_price(asking, 0, 3600)) == 2.0
        with pytest.raises(CloudError, match="has no price"):
            cluster.run(pricing.node_price(node("stranger"), 0, 3600))


def test_without_prices_there_is_no_price_list() -> None:
    with Cluster(objects=[node("a")]) as cluster, pytest.raises(NotImplementedByProvider):
        _provider(cluster, _spec()).pricing()


def test_accelerators_are_told_by_label_or_by_what_a_node_offers() -> None:
    with Cluster(objects=[node("a")]) as cluster:
        labelled = node("t", labels={GPU_LABEL: "k80"})
        provider = _provider(cluster, GroupSpec("g", 0, 3, NodeInfo(labelled)))
        assert provider.available_gpu_types() == {"k80"}
        found = provider.node_gpu_config(labelled)
        assert found is not None and (found.type, found.resource_name) == ("k80", "nvidia.com/gpu")
        offering = node("o")
        offering["status"]["allocatable"] = {"amd.com/gpu": "1"}
        found = provider.node_gpu_config(offering)
        assert found is not None and found.resource_name == "amd.com/gpu"
        assert provider.node_gpu_config(node("plain")) is None
