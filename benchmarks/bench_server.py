"""The embedded API server against the real etcd and kube-apiserver, in the same run, under the same load.

``python benchmarks/bench_server.py [--quick]``. Where the real programs are missing, there are no ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from holokube.testing.controlplane import ControlPlane, ProgramsMissingError, find_or_build
from load_client import Target, body_of, collection, connect, creations, open_watch, request, send_all, unpacked
from summary import header, record

LOAD = Path(__file__).with_name("load_client.py")
MEBIBYTE = 1024 * 1024


class Server:
    """A server under test."""

    def __init__(self, name: str, kubeconfig: Path, pids: list[int], start_s: float) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        self.start_s = start_s
        self._processes = [psutil.Process(pid) for pid in pids]
        self.target = Target(kubeconfig)

    def rss_mib(self) -> float:
        return float(sum(process.memory_info().rss for process in self._processes)) / MEBIBYTE

    def cpu_s(self) -> float:
        return float(sum(sum(process.cpu_times()[:2]) for process in self._processes))

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        async def main() -> tuple[int, bytes]:
            connection = await connect(self.target)
            answer = await connection.ask(request(method, path, body))
            connection.close()
            return answer

        return asyncio.run(main())

    def make_namespace(self, name: str) -> None:
        self.ask("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": name}}).encode())
        account = json.dumps({"metadata": {"name": "default"}}).encode()
        self.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)


@contextlib.contextmanager
def embedded(folder: Path) -> Iterator[Server]:
    """``holokube up`` in a process of its own."""
    kubeconfig = folder / "embedded-kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    command = [sys.executable, "-c", "from holokube.cli.main import main; main()", "up", "--port=0",
               f"--kubeconfig-out={kubeconfig}"]  # fmt: skip
    # As an installed program runs: with its byte code cached, which a developer's environment may have switched off.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    version = [*command[:3], "version"]
    subprocess.run(version, env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-c", "import holokube.apiserver.server"], env=environment, check=True)
    started = time.monotonic()
    with open(folder / "embedded.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        start_s = _first_answer(started, lambda: Target(kubeconfig), process)
        yield Server("embedded", kubeconfig, [process.pid], start_s)
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextlib.contextmanager
def real(folder: Path) -> Iterator[Server]:
    """etcd and kube-apiserver."""
    plane = ControlPlane(find_or_build(build=False, programs=("etcd", "kube-apiserver")), folder / "real", ())
    took: list[float] = []
    started = time.monotonic()
    poll = threading.Thread(target=lambda: took.append(_first_answer(started, lambda: Target(plane.kubeconfig))))
    poll.start()
    plane.start()
    poll.join()
    try:
        yield Server("real", plane.kubeconfig, list(plane.pids.values()), took[0])
    finally:
        plane.stop()


def _first_answer(started: float, target: Any, process: subprocess.Popen[bytes] | None = None) -> float:
    """Seconds until ``GET /api/v1/nodes`` is answered with 200."""

    async def answered() -> bool:
        connection = await connect(target())
        code, _ = await connection.ask(request("GET", "/api/v1/nodes"))
        connection.close()
        return code == 200

    while time.monotonic() - started < 60:
        with contextlib.suppress(OSError, TypeError, KeyError, ValueError):
            if asyncio.run(answered()):
                return time.monotonic() - started
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the embedded server ended with {process.returncode}")
        time.sleep(0.01)
    raise TimeoutError("no answer within 60 s")


# -- the measurements: each takes a server and returns numbers -------------------------------------------------------


def bench_list(server: Server, pods: int, rounds: int) -> dict[str, float]:
    server.make_namespace("listed")
    asyncio.run(send_all(server.target, creations("pods", "listed", "pod", pods), 16))

    async def main() -> dict[str, float]:
        connection = await connect(server.target)
        times: dict[str, float] = {}
        for encoding in ("identity", "gzip"):
            data = request("GET", collection("pods", "listed"), accept=encoding)
            seconds = []
            for _ in range(rounds + 1):
                started = time.perf_counter()
                code, body = await connection.ask(data)
                seconds.append(time.perf_counter() - started)
                assert code == 200, body[:300]
            text = unpacked(body)
            assert len(json.loads(text)["items"]) == pods, f"{encoding}: the list is not whole"
            if encoding == "identity":
                times["bytes"] = float(len(text))
            # The first one warms both servers up.
            times[encoding] = min(seconds[1:])
        connection.close()
        return times

    return asyncio.run(main())


def bench_writes(server: Server, kind: str, count: int, watchers: int, connections: int) -> dict[str, float]:
    """Creations per second until the last watcher has the last event."""
    namespace = f"writes-{kind}"
    server.make_namespace(namespace)
    _, listed = server.ask("GET", collection(kind, namespace) + "?limit=1")
    since = json.loads(listed[listed.find(b"{") : listed.rfind(b"}") + 1])["metadata"]["resourceVersion"]
    common = ["--kubeconfig", str(server.kubeconfig), "--kind", kind, "--namespace", namespace]
    command = [sys.executable, str(LOAD), "watch", *common, "--watchers", str(watchers), "--events", str(count),
               "--since", since]  # fmt: skip
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    assert watching.stdout.readline() == "ready\n"
    cpu_before_s = server.cpu_s()
    written = load("create", *common, "--count", str(count), "--connections", str(connections))
    seen = json.loads(watching.stdout.readline())
    cpu_s = server.cpu_s() - cpu_before_s
    watching.wait(timeout=30)
    if "ended" not in seen:
        raise RuntimeError(f"{seen['watchers']} watchers miss {seen['missing']} events of {server.name}")
    return {
        "acknowledged": count / (written["ended"] - written["started"]),
        "watched": count / (seen["ended"] - written["started"]),
        "cpu_us": cpu_s / count * 1e6,
        "cut_off": seen["cut_off"],
    }


def bench_changes(server: Server, what: str, objects: int, count: int, connections: int) -> float:
    """PUTs of leases, or PATCHes of pod status, per second."""
    kind = "leases" if what == "renew" else "pods"
    namespace = f"changes-{kind}"
    server.make_namespace(namespace)
    common = ["--kubeconfig", str(server.kubeconfig), "--kind", kind, "--namespace", namespace]
    load("create", *common, "--count", str(objects), "--connections", str(connections))
    done = load(
        what, *common, "--count", str(count), "--objects", str(objects), "--connections", str(connections)
    )
    return float(done["count"] / (done["ended"] - done["started"]))


def load(what: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(LOAD), what, *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def bench_latency(server: Server, writes: int, every_s: float) -> dict[str, float]:
    """From sending a write to its event, on a server with little to do."""
    namespace = "latency"
    server.make_namespace(namespace)

    async def main() -> dict[str, float]:
        sent_s = 0.0
        seen: list[float] = []
        arrived = asyncio.Event()

        def on_events(_count: int, _data: bytes) -> None:
            seen.append(time.perf_counter() - sent_s)
            arrived.set()

        watcher = await open_watch(server.target, f"{collection('configmaps', namespace)}?watch=1", on_events)
        await asyncio.sleep(0.5)
        writer = await connect(server.target)
        seen.clear()
        for number in range(writes):
            arrived.clear()
            body = body_of("configmaps", f"c-{number}", namespace, number)
            sent_s = time.perf_counter()
            code, answer = await writer.ask(request("POST", collection("configmaps", namespace), body))
            assert code == 201, answer[:300]
            await asyncio.wait_for(arrived.wait(), 10)
            await asyncio.sleep(every_s)
        watcher.transport.close()
        writer.close()
        ordered = sorted(seen)
        return {"p50": statistics.median(ordered) * 1e3, "p99": ordered[int(len(ordered) * 0.99)] * 1e3}

    return asyncio.run(main())


def measure(server: Server, *, quick: bool) -> dict[str, Any]:
    results: dict[str, Any] = {"start_s": server.start_s, "rss_mib": server.rss_mib()}
    results["latency"] = bench_latency(server, 100 if quick else 500, 0.002)
    count = 1_000 if quick else 5_000
    for kind in ("configmaps", "pods"):
        results[kind] = bench_writes(server, kind, count, watchers=50, connections=32)
    for what in ("renew", "patch"):
        results[what] = bench_changes(server, what, 500, count, connections=32)
    results["list"] = bench_list(server, 1_000 if quick else 10_000, rounds=5)
    results["rss_full_mib"] = server.rss_mib()
    return results


def report(ours: dict[str, Any], theirs: dict[str, Any] | None, pods: int) -> None:
    def of(*path: str) -> tuple[float, float | None]:
        values: list[Any] = [ours, theirs]
        for key in path:
            values = [None if value is None else value[key] for value in values]
        return values[0], values[1]

    def show(name: str, unit: str, *path: str, at_least: float = 0.0, below: float = 0.0, faster: float = 0.0) -> None:
        mine, anchor = of(*path)
        if below:
            record(name, mine, anchor, unit, goal=f"< {below:g} {unit}", met=mine < below)
        elif faster:
            met = None if anchor is None else anchor / mine >= faster
            record(name, mine, anchor, unit, goal=f"<= 1/{faster:g} of the real one", met=met)
        elif at_least:
            met = None if anchor is None else mine / anchor >= at_least
            record(name, mine, anchor, unit, goal=f">= {at_least:g} x", met=met)
        else:
            record(name, mine, anchor, unit)

    header("real")
    show("start to first GET /api/v1/nodes", "s", "start_s", below=1.0)
    show("memory after the start", "MiB", "rss_mib", below=120.0)
    show(f"LIST of {pods:,} pods", "s", "list", "identity", faster=3.0)
    show(f"LIST of {pods:,} pods, gzip", "s", "list", "gzip", faster=3.0)
    for kind in ("configmaps", "pods"):
        show(f"create {kind}, 50 watchers, all events seen", "/s", kind, "watched", at_least=1.0)
        show(f"create {kind}, 50 watchers, acknowledged", "/s", kind, "acknowledged", at_least=1.0)
        show(f"create {kind}, 50 watchers, server CPU each", "us", kind, "cpu_us")
        for result, name in ((ours, "holokube"), (theirs, "the real server")):
            if result is not None and result[kind]["cut_off"]:
                print(f"  {name} cut off {result[kind]['cut_off']} watches of {kind}, which were opened again")
    show("PUT of leases", "/s", "renew", at_least=1.0)
    show("PATCH of pod status", "/s", "patch", at_least=1.0)
    show("write to watch event, p50", "ms", "latency", "p50")
    show("write to watch event, p99", "ms", "latency", "p99")
    show("memory after all that", "MiB", "rss_full_mib")
    print(f"a LIST has {ours['list']['bytes'] / MEBIBYTE:.1f} MiB, {ours['list']['bytes'] / pods:,.0f} bytes per pod")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the load")
    parser.add_argument("--embedded-only", action="store_true", help="without the real servers")
    args = parser.parse_args()
    theirs: dict[str, Any] | None = None
    with tempfile.TemporaryDirectory(prefix="holokube-bench-") as name:
        folder = Path(name)
        # One after the other: they would take the cores from each other.
        with embedded(folder) as server:
            ours = measure(server, quick=args.quick)
        if not args.embedded_only:
            try:
                with real(folder) as server:
                    theirs = measure(server, quick=args.quick)
            except ProgramsMissingError as error:
                print(f"NO RATIOS: {error} {error.hint}", file=sys.stderr)
        report(ours, theirs, 1_000 if args.quick else 10_000)


if __name__ == "__main__":
    main()
