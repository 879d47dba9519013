from __future__ import annotations

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType
from holokube.client.resources import NODES, PODS
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from tests.runtime.fakes import FakeTransport


class Counting:
    """Counts what there is."""

    def __init__(self) -> None:
        self.present = 0

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None, /) -> None:
        self.present += (new is not None) - (old is not None)


def test_all_who_ask_get_the_same_follower_of_a_resource() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        informers = InformerSet(clock, client, Rng(1))
        pods = informers.attached(PODS, Counting)
        assert informers.attached(PODS, Counting) is pods
        assert informers.attached(NODES, Counting) is not pods
        informer = informers.get(PODS)
        informer.start()
        await informer.synced()
        for name in ("a", "b"):
            await client.create(PODS, {"metadata": {"name": name}}, "shop")
        await clock.sleep(1)
        await client.delete(PODS, "a", "shop")
        await clock.sleep(1)
        assert pods.present == 1
        await informer.stop()

    run_virtual(main)
