"""Claims and Nodes keep the label of their class, and those that have it are not looked at."""

from __future__ import annotations

from typing import Any

from holokube.client.resources import NODES
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.lifecycle.consistency import Consistency
from holokube.karpenter.lifecycle.hydration import Hydration
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, workload

LABEL = "karpenter.kwok.sh/kwoknodeclass"


def test_a_label_that_was_taken_away_is_put_back_on_claim_and_node() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            await cluster.clock.sleep(60)
            for resource, found in ((NODE_CLAIMS, await here.claims()), (NODES, await here.nodes())):
                name, had = found[0]["metadata"]["name"], found[0]["metadata"]["labels"][LABEL]
                for value in (None, "another"):
                    await here.client.patch(resource, name, {"metadata": {"labels": {LABEL: value}}})
                    await cluster.clock.sleep(5)
                    assert (await here.client.get(resource, name))["metadata"]["labels"][LABEL] == had

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_what_is_labelled_or_has_no_instance_concerns_nobody() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"budgets": [{"nodes": "0"}]}), workload("web", 1)) as here:
            await here.until_nodes(1)
            await cluster.clock.sleep(60)
            (claim,), (node,) = await here.claims(), await here.nodes()
            hydration = here.running.parts["nodeclaim.hydration"]
            assert isinstance(hydration, Hydration)
            bare: dict[str, Any] = {**claim, "metadata": {**claim["metadata"], "labels": {}}}
            assert not hydration._concerns(None, claim) and not hydration._concerns(claim, None)
            assert not hydration._concerns(bare, claim) and hydration._concerns(claim, bare)
            assert hydration._concerns(None, bare) and not hydration._concerns(bare, bare)
            assert hydration._claims_of(node) == []
            consistency = here.running.parts["nodeclaim.consistency"]
            assert isinstance(consistency, Consistency)
            unlaunched = {**claim, "status": {"conditions": []}}
            assert consistency._concerns(None, claim) and not consistency._concerns(None, unlaunched)
            assert consistency._concerns(claim, None)

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)
