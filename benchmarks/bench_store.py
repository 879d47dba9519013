"""How fast the store is: ``python benchmarks/bench_store.py [--quick]``.

Each line is the best of a few rounds, since the store's own cost is the floor and everything above it is
the machine. The disk part prints a bare flush of the same disk beside it: that is its anchor.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holokube.store import SqliteJournal, Store

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def best(rounds: int, run: Callable[[], float]) -> float:
    """The shortest of a few runs, in seconds."""
    times: list[float] = []
    for _ in range(rounds):
        gc.collect()
        times.append(run())
    return min(times)


def show(name: str, seconds: float, operations: int) -> None:
    each_us = seconds / operations * 1e6
    print(f"{name:<58} {operations / seconds:>12,.0f}/s {each_us:>12,.2f} us each", flush=True)


def keys_of(count: int, namespaces: int = 20) -> list[str]:
    return [f"team-{index % namespaces}/pod-{index:06}" for index in range(count)]


def filled(keys: list[str]) -> Store:
    store = Store()
    for key in keys:
        store.create("pods", key, POD)
    return store


def bench_writes(count: int, rounds: int) -> None:
    keys = keys_of(count)

    def create() -> float:
        store = Store()
        started = time.perf_counter()
        for key in keys:
            store.create("pods", key, POD)
        return time.perf_counter() - started

    def update() -> float:
        store = filled(keys)
        started = time.perf_counter()
        for key in keys:
            store.update("pods", key, POD)
        return time.perf_counter() - started

    def delete() -> float:
        store = filled(keys)
        started = time.perf_counter()
        for key in keys:
            store.delete("pods", key)
        return time.perf_counter() - started

    show("create", best(rounds, create), count)
    show("update", best(rounds, update), count)
    show("delete", best(rounds, delete), count)


def bench_reads(rounds: int) -> None:
    keys = keys_of(100_000, namespaces=10)
    store = filled(keys)
    revision = store.revision
    for key in keys[:1000]:
        store.update("pods", key, POD)

    def timed(call: Callable[[], object]) -> Callable[[], float]:
        def run() -> float:
            started = time.perf_counter()
            call()
            return time.perf_counter() - started

        return run

    def get_all() -> None:
        for key in keys:
            store.get("pods", key)

    def write_and_list() -> None:
        for number in range(100):
            store.create("pods", f"team-3/new-{number}", POD)
            store.list("pods", "team-3/", limit=1)
            store.delete("pods", f"team-3/new-{number}")

    show("get", best(rounds, timed(get_all)), len(keys))
    show(
        "list 10,000 of 100,000 keys by namespace",
        best(rounds, timed(lambda: store.list("pods", "team-3/"))),
        1,
    )
    show(
        "the same, 1,000 writes ago",
        best(rounds, timed(lambda: store.list("pods", "team-3/", at_revision=revision))),
        1,
    )
    show("create, list one, delete (100,000 keys there)", best(rounds, timed(write_and_list)), 100)


def bench_watches(watchers: int, prefixes: int, rounds: int) -> None:
    """``watchers`` spread over ``prefixes`` namespaces (0: all watch everything), one of which is written."""
    writes = 2_000

    def run() -> float:
        store = Store()
        store.create("pods", "team-0/web", POD)
        watches = [
            store.watch("pods", f"team-{number % prefixes}/" if prefixes else "", since=store.revision)
            for number in range(watchers)
        ]
        started = time.perf_counter()
        for _ in range(writes):
            store.update("pods", "team-0/web", POD)
        elapsed = time.perf_counter() - started
        assert len(watches[0].pop_all()) == writes
        return elapsed

    where = f"in {prefixes} namespaces" if prefixes else "of everything"
    show(f"update with {watchers} watches {where}", best(rounds, run), writes)


def bench_snapshot(count: int) -> None:
    store = filled(keys_of(count))
    with tempfile.TemporaryDirectory() as directory:
        for name in ("state.jsonl", "state.jsonl.gz"):
            path = Path(directory) / name
            started = time.perf_counter()
            store.save(path)
            show(f"save {name} ({path.stat().st_size / 1e6:.0f} MB)", time.perf_counter() - started, count)
            started = time.perf_counter()
            Store.load(path)
            show(f"load {name}", time.perf_counter() - started, count)


def bench_durable(writers: int, seconds: float) -> None:
    async def run(store: Store) -> int:
        deadline = time.perf_counter() + seconds
        done = 0

        async def write(writer: int) -> None:
            nonlocal done
            number = 0
            while time.perf_counter() < deadline:
                stored = store.create("pods", f"team-{writer}/pod-{number}", POD)
                await store.durable(stored.revision)
                number += 1
                done += 1

        await asyncio.gather(*(write(writer) for writer in range(writers)))
        return done

    with tempfile.TemporaryDirectory() as directory, Store(journal=SqliteJournal(directory)) as store:
        started = time.perf_counter()
        done = asyncio.run(run(store))
        show(f"durable create, {writers} concurrent writers", time.perf_counter() - started, done)


def bench_flush() -> None:
    with tempfile.NamedTemporaryFile() as file:
        started = time.perf_counter()
        for _ in range(200):
            os.write(file.fileno(), b"x" * 4096)
            os.fsync(file.fileno())
        show("anchor: write 4 KiB and flush", time.perf_counter() - started, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small round of each")
    quick = parser.parse_args().quick
    rounds = 1 if quick else 5
    count = 10_000 if quick else 100_000
    bench_writes(count, rounds)
    bench_reads(rounds)
    for watchers, prefixes in ((1, 0), (50, 0), (1000, 0), (1000, 1000)):
        bench_watches(watchers, prefixes, rounds)
    bench_snapshot(count // 5)
    bench_flush()
    for writers in (1, 16, 256):
        bench_durable(writers, seconds=0.2 if quick else 1.0)


if __name__ == "__main__":
    main()
