"""Viewers: nobody is sent the wrong thing, and nobody who does not read takes up memory."""

from __future__ import annotations

import asyncio

from holokube.dashboard.viewers import Viewer, Viewers


def test_a_viewer_begins_with_a_snapshot() -> None:
    async def main() -> None:
        viewers = Viewers()
        viewer = viewers.join()
        assert not viewers.want_snapshot, "he does not read yet"
        reading = asyncio.create_task(viewer.take())
        await asyncio.sleep(0)
        assert viewers.want_snapshot
        viewers.send(b"too early", None)
        viewers.send(b"delta 1", b"snapshot 1")
        viewers.send(b"delta 2", None)
        assert [await reading, await viewer.take()] == [b"snapshot 1", b"delta 2"]

    asyncio.run(main())


def test_each_gets_what_he_needs() -> None:
    async def main() -> None:
        viewers = Viewers()
        old, new = viewers.join(), viewers.join()
        old.begin(b"snapshot 1")
        assert await old.take() == b"snapshot 1"
        reading = asyncio.create_task(new.take())
        await asyncio.sleep(0)
        viewers.send(b"delta", b"snapshot 2")
        assert (await old.take(), await reading) == (b"delta", b"snapshot 2")
        viewers.leave(old)
        assert len(viewers) == 1

    asyncio.run(main())


def test_whoever_falls_behind_loses_the_deltas_and_begins_anew() -> None:
    async def main() -> None:
        viewer = Viewer(batches_max=3, bytes_max=1000)
        viewer.begin(b"snapshot")
        for number in range(50):
            viewer.offer(b"delta %d" % number)
            assert viewer.queued_bytes <= 1000
        assert viewer.resets == 1 and viewer.queued_bytes == 0
        assert not viewer.wants_snapshot, "nothing is made for one who does not read"
        reading = asyncio.create_task(viewer.take())
        await asyncio.sleep(0)
        assert viewer.wants_snapshot
        viewer.begin(b"snapshot again")
        assert await reading == b"snapshot again" and not viewer.wants_snapshot

    asyncio.run(main())


def test_few_large_deltas_are_as_bad_as_many() -> None:
    viewer = Viewer(batches_max=1000, bytes_max=100)
    viewer.begin(b"s")
    viewer.offer(b"x" * 60)
    viewer.offer(b"x" * 60)
    assert viewer.resets == 1 and viewer.queued_bytes == 0


def test_another_cluster_makes_everybody_begin_anew() -> None:
    async def main() -> None:
        viewers = Viewers()
        viewer = viewers.join()
        viewer.begin(b"of the old one")
        viewers.lose()
        reading = asyncio.create_task(viewer.take())
        await asyncio.sleep(0)
        viewers.send(b"", b"of the new one")
        assert await reading == b"of the new one"

    asyncio.run(main())
