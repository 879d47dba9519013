"""Leases: no read before a write, one read after a conflict, taken when they expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import LEASES, NODES
from holokube.hollow.leases import NAMESPACE, LeaseKeeper
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import ClientCarrier, WritePool
from holokube.kube.errors import TooManyRequests
from holokube.kube.timeformat import format_micro_time
from holokube.testing import Cluster
from tests.hollow.worlds import CountingTransport, fake_node


class LeaseWorld:
    """A keeper of its own, with what it was told."""

    def __init__(self, cluster: Cluster, identity: str = "me") -> None:
        self.cluster = cluster
        self.transport = CountingTransport(cluster.client.transport)
        self.pool = WritePool(workers=2, lease_workers=1)
        self.wheel: WheelDriver[Callable[[], None]] = WheelDriver(cluster.clock, lambda action: action())
        self.told: list[str] = []
        self.keeper = LeaseKeeper(
            cluster.clock, Client(self.transport), self.pool, self.wheel, identity=identity, rng=Rng(1),
            on_gained=lambda name: self.told.append(f"+{name}"), on_lost=lambda name: self.told.append(f"-{name}"),
        )  # fmt: skip
        node = cluster.run(cluster.client.create(NODES, fake_node("n")))
        self.uid = node["metadata"]["uid"]

    def start(self, *, read_all: bool = False) -> None:
        async def begin() -> None:
            self.pool.start()
            if read_all:
                await self.keeper.read_all()
            self.keeper.add("n", self.uid)

        self.cluster.run(begin)

    def lease(self) -> dict[str, Any]:
        return self.cluster.run(self.cluster.client.get(LEASES, "n", NAMESPACE))

    def write(self, holder: str, **spec: Any) -> None:
        """Somebody else writes the lease."""
        client = self.cluster.client
        renewed = {"renewTime": format_micro_time(self.cluster.clock.now()), "leaseDurationSeconds": 40}
        body = {"holderIdentity": holder, **renewed, **spec}
        if any(item["metadata"]["name"] == "n" for item in self.cluster.run(client.list(LEASES, NAMESPACE)).items):
            self.cluster.run(client.patch(LEASES, "n", {"spec": body}, namespace=NAMESPACE))
        else:
            self.cluster.run(client.create(LEASES, {"metadata": {"name": "n"}, "spec": body}, NAMESPACE))

    def close(self) -> None:
        self.cluster.run(self.pool.stop())
        self.wheel.stop()


def test_renewals_are_written_without_reading() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(100)
        calls = world.transport.calls
        assert calls["create leases"] == 1 and calls["get leases"] == 0 and 9 <= calls["update leases"] <= 10
        assert world.told == ["+n"] and world.keeper.owns("n") and world.keeper.held() == ["n"]
        world.close()


def test_a_conflict_costs_one_read() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(12)
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        cluster.run(cluster.client.patch(LEASES, "n", patch, namespace=NAMESPACE))
        cluster.pass_time(60)
        assert world.keeper.stats.conflicts == world.keeper.stats.reads == 1
        assert world.told == ["+n"] and world.keeper.stats.worst_age_s < 12
        world.close()


def test_a_deleted_lease_is_made_again() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(5)
        cluster.run(cluster.client.delete(LEASES, "n", NAMESPACE))
        cluster.pass_time(15)
        assert world.lease()["spec"]["holderIdentity"] == "me"
        assert world.transport.calls["get leases"] == 0
        world.close()


@pytest.mark.parametrize("read_all", [True, False])
def test_a_lease_of_another_is_taken_when_it_expires(read_all: bool) -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.write("other", leaseTransitions=3)
        world.start(read_all=read_all)
        cluster.pass_time(39)
        assert world.told == [] and not world.keeper.owns("n")
        world.write("other")
        cluster.pass_time(39)
        assert world.told == []
        cluster.pass_time(2)
        assert world.told == ["+n"]
        assert world.lease()["spec"]["leaseTransitions"] == 4
        assert world.keeper.stats.taken_over == 1
        world.close()


def test_a_lease_that_another_took_is_left_to_it() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(5)
        world.write("other")
        cluster.pass_time(12)
        assert world.told == ["+n", "-n"] and not world.keeper.owns("n")
        assert world.lease()["spec"]["holderIdentity"] == "other"
        world.close()


def test_a_lease_without_a_holder_is_taken_at_once() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.write("")
        world.start(read_all=True)
        cluster.pass_time(1)
        assert world.told == ["+n"] and world.transport.calls["get leases"] == 0
        world.close()


def test_released_leases_have_no_holder() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(5)
        cluster.run(world.keeper.release_all())
        assert "holderIdentity" not in world.lease()["spec"]
        cluster.pass_time(60)
        assert "holderIdentity" not in world.lease()["spec"] and len(world.keeper) == 0
        world.close()


def test_a_renewal_under_way_does_not_keep_a_lease_from_being_released() -> None:
    class Slow(CountingTransport):
        async def call(self, call: Any) -> dict[str, Any]:
            answer = await super().call(call)
            await asyncio.sleep(0.5)
            return answer

    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.keeper._carrier = ClientCarrier(cluster.clock, Slow(cluster.client.transport), world.pool)
        world.start()
        while not any(record.busy and record.held for record in world.keeper._records.values()):
            cluster.pass_time(0.1)
        cluster.run(world.keeper.release_all())
        assert "holderIdentity" not in world.lease()["spec"] and world.keeper.stats.errors == 0
        world.close()


def test_a_removed_node_is_not_renewed_any_more() -> None:
    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        world.start()
        cluster.pass_time(5)
        world.keeper.remove("n")
        before = world.transport.calls.total()
        cluster.pass_time(60)
        assert world.transport.calls.total() == before and len(world.wheel) == 0
        world.close()


def test_no_write_counts_while_the_lease_has_run_out() -> None:
    class Gate(CountingTransport):
        shut = False

        async def call(self, call: Any) -> dict[str, Any]:
            if self.shut:
                await asyncio.sleep(3600)
            return await super().call(call)

    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        gate = Gate(cluster.client.transport)
        world.keeper._client = Client(gate)
        world.keeper._carrier = ClientCarrier(cluster.clock, gate, world.pool)
        world.start()
        cluster.pass_time(5)
        gate.shut = True
        cluster.pass_time(60)
        assert not world.keeper.owns("n")
        gate.shut = False
        cluster.pass_time(20)
        assert world.keeper.owns("n") and world.told == ["+n", "+n"]
        world.close()


def test_a_renewal_that_is_told_to_wait_waits() -> None:
    class Busy(CountingTransport):
        refused_at: list[float]

        async def call(self, call: Any) -> dict[str, Any]:
            if call.verb == "update":
                self.refused_at.append(asyncio.get_running_loop().time())
                raise TooManyRequests("busy", retry_after_s=3)
            return await super().call(call)

    with Cluster() as cluster:
        world = LeaseWorld(cluster)
        busy = Busy(cluster.client.transport)
        busy.refused_at = []
        world.keeper._carrier = ClientCarrier(cluster.clock, busy, world.pool)
        world.start()
        cluster.pass_time(30)
        gaps = [b - a for a, b in pairwise(busy.refused_at)]
        assert gaps and min(gaps) >= 3.0
        assert world.keeper.stats.errors == len(busy.refused_at) and world.keeper.stats.conflicts == 0
        world.close()


def test_a_lease_must_last_long_enough_to_be_renewed() -> None:
    with Cluster() as cluster, pytest.raises(ValueError, match="at least 4 s"):
        LeaseKeeper(
            cluster.clock, cluster.client, WritePool(), WheelDriver(cluster.clock, lambda action: None),
            identity="x", rng=Rng(1), duration_s=1, on_gained=print, on_lost=print,
        )  # fmt: skip
