"""An acknowledged write survives ``kill -9``: a child writes under load, dies, and its directory is checked.

The child says ``did`` right after each write, before the disk can know of it, and ``ack`` once the write is
durable. What it did, up to the revision found on disk, must be exactly what is there; and that revision
must not be older than any that was acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from holokube.base.rng import Rng
from holokube.store import SqliteJournal, Store, Stored

WRITERS = 8
KILLS = 20


def say(*words: object) -> None:
    # Straight to the pipe: a buffer in this process would die with it.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write_for_ever(store: Store, writer: int) -> None:
    async def acknowledge(verb: str, bucket: str, key: str, stored: Stored) -> None:
        say("did", stored.revision, verb, bucket, key)
        await store.durable(stored.revision)
        say("ack", stored.revision)

    for number in range(1_000_000):
        key = f"team-{writer}/pod-{store.revision}-{number}"
        await acknowledge("put", "pods", key, store.create("pods", key, {"pad": "x" * 500}))
        shared = store.update("counters", "shared", {"by": writer})
        await acknowledge("put", "counters", "shared", shared)
        if number % 3:
            await acknowledge("delete", "pods", key, store.delete("pods", key))


async def write_until_killed(data_dir: str) -> None:
    store = Store(journal=SqliteJournal(data_dir))
    if store.get("counters", "shared") is None:
        store.create("counters", "shared", {})
        say("did", store.revision, "put", "counters", "shared")
    await asyncio.gather(*(write_for_ever(store, writer) for writer in range(WRITERS)))


def run_and_kill(data_dir: Path, lines_before_kill: int) -> list[list[str]]:
    """All that the child has said; it is killed when it has said the given number of lines."""
    child = subprocess.Popen([sys.executable, __file__, str(data_dir)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as out:
        said = [out.readline() for _ in range(lines_before_kill)]
        child.kill()
        said.extend(out)
    assert child.wait() == -9
    return [line.decode().split() for line in said if line.endswith(b"\n")]


def test_every_acknowledged_write_survives_kill_9(tmp_path: Path) -> None:
    seed = 20260101
    rng = Rng(seed)
    state: dict[tuple[str, str], int] = {}
    revision = 1
    lost = 0
    for kill in range(KILLS):
        lines = run_and_kill(tmp_path, rng.randrange(600) + 1)
        done = [(int(line[1]), line[2], (line[3], line[4])) for line in lines if line[0] == "did"]
        acknowledged = [int(line[1]) for line in lines if line[0] == "ack"]
        where = f"seed {seed}, kill {kill}"
        assert [at for at, _, _ in done] == list(range(revision + 1, revision + 1 + len(done))), where
        with Store(journal=SqliteJournal(tmp_path)) as store:
            assert store.revision >= max(acknowledged, default=revision), where
            for at, verb, place in done:
                if at > store.revision:
                    lost += 1
                elif verb == "put":
                    state[place] = at
                else:
                    del state[place]
            revision = store.revision
            found = {
                (bucket, key): stored.revision
                for bucket in store.buckets()
                for key, stored in store.list(bucket).items
            }
            assert found == state, where
    # Otherwise the disk was never behind and the test has not seen what it is about.
    assert lost > 0
    assert revision > 1000


if __name__ == "__main__":
    asyncio.run(write_until_killed(sys.argv[1]))
