"""Makes objects complete: with the defaults, uids and times that an API server would have given them.

Whoever replays a recording of kwokctl's puts the objects into etcd as they are, so what a user wrote is not enough.
"""

from __future__ import annotations

from datetime import UTC, datetime

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.lab.formats.recording import Recording
from holokube.lab.formats.replaying import Replay
from holokube.lab.formats.timeline import Timeline
from holokube.store.store import Store


def is_complete(timeline: Timeline) -> bool:
    """Whether every object has been served by an API server already."""
    objects = (*timeline.objects, *(change.object for change in timeline.changes if change.method == "apply"))
    return all(obj["metadata"].get("uid") for obj in objects)


def completed(timeline: Timeline, *, start_s: float, seed: int = 0) -> tuple[Timeline, list[str]]:
    """The timeline as an API server without any components would have seen it, and what it refused."""
    clock = VirtualClock(datetime.fromtimestamp(start_s, UTC))
    problems: list[str] = []

    async def record(_clock: VirtualClock) -> Timeline:
        store = Store()
        registry = Registry(clock, Rng(seed), store, tracks_managed_fields=False)
        await bootstrap(registry)
        client = Client(InProcessTransport(registry))
        try:
            with Recording(clock, store) as recording:
                await Replay(clock, client, timeline, problems.append).run()
            return recording.timeline()
        finally:
            await client.close()
            await registry.close()
            store.close()

    found = run_virtual(record, clock=clock)
    return Timeline(found.objects, found.changes, timeline.lives, start_s, timeline.duration_s), problems
