"""The external cluster: what was written counts before the watch tells of it, and no answer is taken for a no."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holokube.base.errors import TransportError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import NAMESPACES, REPLICATION_CONTROLLERS
from holokube.client.transport import Call
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.kubemark.external_cluster import ExternalCluster
from holokube.cluster_autoscaler.cloud.kubemark.templates import parse_templates
from holokube.kube.errors import ApiError, Forbidden, InternalError
from holokube.testing import Cluster
from tests.cluster_autoscaler.cloud.kubemark.worlds import TEMPLATE

(SHIPPED,) = parse_templates(TEMPLATE.read_text(), "test")


class Meddling:
    """A transport that passes everything on, except what it is told to answer with an error."""

    def __init__(self, client: Client) -> None:
        self._inner = client.transport
        self.before: list[tuple[str, Exception]] = []
        self.after: list[tuple[str, Exception]] = []
        """(verb, error): raised once, before or after the call took effect."""
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def call(self, call: Call) -> Any:
        self.calls.append(call)
        self._raise(self.before, call.verb)
        answer = await self._inner.call(call)
        self._raise(self.after, call.verb)
        return answer

    @staticmethod
    def _raise(planned: list[tuple[str, Exception]], verb: str) -> None:
        if planned and planned[0][0] == verb:
            raise planned.pop(0)[1]


Body = Callable[[ExternalCluster, Meddling, Cluster], Awaitable[None]]


def in_cluster(body: Body, *, seed: int = 1, namespace: bool = True) -> None:
    async def main() -> None:
        if namespace:
            await cluster.client.create(NAMESPACES, {"metadata": {"name": "kubemark"}})
        meddling = Meddling(cluster.client)
        external = ExternalCluster(cluster.clock, Client(meddling), Rng(seed))
        await external.start()
        try:
            await body(external, meddling, cluster)
        finally:
            await external.stop()

    with Cluster() as cluster:
        cluster.run(main())


async def names(cluster: Cluster) -> list[str]:
    return [rc["metadata"]["name"] for rc in (await cluster.client.list(REPLICATION_CONTROLLERS)).items]


def test_what_was_made_and_deleted_counts_at_once_and_only_once() -> None:
    async def body(external: ExternalCluster, _meddling: Meddling, cluster: Cluster) -> None:
        made = await external.create(SHIPPED, "g")
        assert len(external.controllers("g")) == 1
        await cluster.clock.sleep(1.0)
        assert len(external.controllers("g")) == 1
        await external.delete(made)
        assert external.controllers("g") == []
        await cluster.clock.sleep(1.0)
        assert external.controllers("g") == []
        second = await external.create(SHIPPED, "g")
        await external.delete(second)
        assert external.controllers("g") == [] and external.controller(second["metadata"]["name"]) is None

    in_cluster(body)


def test_a_lost_answer_does_not_make_two_of_one() -> None:
    async def body(external: ExternalCluster, meddling: Meddling, cluster: Cluster) -> None:
        meddling.after = [("create", TransportError("lost"))]
        made = await external.create(SHIPPED, "g")
        assert await names(cluster) == [made["metadata"]["name"]]
        assert len(external.controllers("g")) == 1

    in_cluster(body)


def test_a_name_that_is_taken_is_left_to_its_owner() -> None:
    async def body(external: ExternalCluster, _meddling: Meddling, cluster: Cluster) -> None:
        # The same seed draws the same names; without the label the first one is in nobody's cache.
        drawn = f"g-{Rng(1).fork('names').name_suffix(8)}"
        template = SHIPPED.controller(drawn, "g", "kubemark")
        stranger = {**template, "metadata": {"name": drawn, "namespace": "kubemark"}}
        before = await cluster.client.create(REPLICATION_CONTROLLERS, stranger)
        made = await external.create(SHIPPED, "g")
        assert made["metadata"]["name"] != drawn
        assert await cluster.client.get(REPLICATION_CONTROLLERS, drawn, "kubemark") == before

    in_cluster(body)


def test_a_repeated_seed_draws_other_names_than_those_that_there_are() -> None:
    async def body(external: ExternalCluster, meddling: Meddling, cluster: Cluster) -> None:
        for _ in range(3):
            await external.create(SHIPPED, "g")
        again = ExternalCluster(cluster.clock, Client(meddling), Rng(1))
        await again.start()
        meddling.calls.clear()
        await again.create(SHIPPED, "g")
        assert [call.verb for call in meddling.calls].count("create") == 1
        assert len(await names(cluster)) == 4
        await again.stop()

    in_cluster(body)


def test_what_does_not_pass_is_not_tried_again() -> None:
    async def body(external: ExternalCluster, meddling: Meddling, _cluster: Cluster) -> None:
        meddling.before = [("create", Forbidden("not you"))]
        meddling.calls.clear()
        with pytest.raises(CloudError, match=r"cannot create ReplicationController kubemark/g-\w+: not you"):
            await external.create(SHIPPED, "g")
        assert len(meddling.calls) == 1

    in_cluster(body)


def test_after_three_refusals_it_gives_up() -> None:
    async def body(external: ExternalCluster, meddling: Meddling, cluster: Cluster) -> None:
        meddling.before = [("delete", InternalError("broken"))] * 3
        made = await external.create(SHIPPED, "g")
        with pytest.raises(CloudError, match="cannot delete ReplicationController"):
            await external.delete(made)
        assert len(external.controllers("g")) == 1
        await external.delete(made)
        assert external.controllers("g") == []
        await cluster.clock.sleep(1.0)

    in_cluster(body)


def test_what_somebody_else_deleted_is_gone_and_its_name_may_be_anothers() -> None:
    async def body(external: ExternalCluster, _meddling: Meddling, cluster: Cluster) -> None:
        made = await external.create(SHIPPED, "g")
        name = made["metadata"]["name"]
        await cluster.client.delete(REPLICATION_CONTROLLERS, name, "kubemark", propagation="Background")
        await external.delete(made)
        successor = SHIPPED.controller(name, "g", "kubemark")
        kept = await cluster.client.create(REPLICATION_CONTROLLERS, successor)
        await external.delete(made)
        assert await cluster.client.get(REPLICATION_CONTROLLERS, name, "kubemark") == kept

    in_cluster(body)


def test_a_missing_namespace_is_said_to_be_missing() -> None:
    async def body(external: ExternalCluster, _meddling: Meddling, _cluster: Cluster) -> None:
        with pytest.raises(CloudError) as caught:
            await external.create(SHIPPED, "g")
        assert "kubectl create namespace kubemark" in caught.value.hint

    in_cluster(body, namespace=False)


@pytest.mark.parametrize("error", [Forbidden("nodes is forbidden"), ApiError.from_status({"code": 401})])
def test_a_cluster_that_refuses_is_an_error_at_the_start(error: ApiError) -> None:
    async def main() -> None:
        meddling = Meddling(cluster.client)
        meddling.before = [("list", error)]
        external = ExternalCluster(cluster.clock, Client(meddling), Rng(1))
        with pytest.raises(CloudError, match="cannot list replicationcontrollers in namespace kubemark"):
            await external.start()
        await external.stop()

    with Cluster() as cluster:
        cluster.run(main())
