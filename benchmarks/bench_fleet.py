"""Hollow nodes on a real control plane: ``holokube fleet`` beside kwok, where kwok is on PATH.

``python benchmarks/bench_fleet.py [--quick] [--only holokube|kwok|tuned]``. Each program gets a fresh control plane
and the same load, one after the other: nodes until all are Ready, a steady minute, bound pods until all run, the
pods deleted. CPU and memory are those of its process; requests and refusals are the API server's own counters;
lease ages are sampled. "tuned" is kwok with 32 workers of each kind instead of 4.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from holokube.hollow.wire.answers import ChunkDecoder, read_head
from holokube.testing.controlplane import ControlPlane, ProgramsMissingError, find_or_build
from load_client import Target, connect, request, send_all, unpacked
from summary import header, record

STAGES = Path(__file__).with_name("kwok-fast.yaml")
KIBIBYTE = 1024
CONNECTIONS = 32
LIMIT_S = 240.0
SAMPLE_EVERY_S = 2.0
_SERIES = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
# What a fleet writes. Nobody else in the control plane writes these while all nodes are well.
WRITES = ("PUT leases", "POST leases", "PATCH nodes/status", "PATCH pods/status", "DELETE pods")


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    nodes: int
    pods: int
    settle_s: float
    steady_s: float


class Fleet:
    """The program under test, in a session of its own."""

    def __init__(self, command: list[str], log: Path) -> None:
        with open(log, "wb") as file:
            self._process = subprocess.Popen(
                command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._log = log
        self._measured = psutil.Process(self._process.pid)

    def cpu_s(self) -> float:
        self.check()
        times = self._measured.cpu_times()
        return float(times.user + times.system)

    def rss_kib(self) -> float:
        return float(self._measured.memory_info().rss) / KIBIBYTE

    def check(self) -> None:
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the fleet ended with {self._process.returncode}:\n{tail}")

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Api:
    """Asks the API server."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def get(self, path: str) -> bytes:
        async def main() -> bytes:
            connection = await connect(self.target)
            code, body = await connection.ask(request("GET", path))
            connection.close()
            assert code == 200, (path, code, body[:300])
            return unpacked(body) if path != "/metrics" else body

        return asyncio.run(main())

    def requests(self) -> Counter[tuple[str, str]]:
        """How many requests there were, by what and by code."""
        found: Counter[tuple[str, str]] = Counter()
        for labels, value in _SERIES.findall(self.get("/metrics").decode(errors="replace")):
            named = dict(_LABEL.findall(labels))
            what = f"{named['verb']} {named['resource']}"
            if named.get("subresource"):
                what += f"/{named['subresource']}"
            found[what, named["code"]] += int(float(value))
        return found

    def lease_ages_s(self) -> list[float]:
        listed = json.loads(self.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"))
        now = datetime.datetime.now(datetime.UTC)
        return [
            (now - datetime.datetime.fromisoformat(item["spec"]["renewTime"])).total_seconds()
            for item in listed["items"]
        ]


def node_name(number: int) -> str:
    return f"node-{number:05}"


def nodes(count: int) -> Iterable[bytes]:
    for number in range(count):
        name = node_name(number)
        resources = {"cpu": "32", "memory": "256Gi", "pods": "110"}
        labels = {
            "type": "kwok", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name, "kubernetes.io/role": "agent", "node-role.kubernetes.io/agent": "",
        }  # fmt: skip
        annotations = {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"}
        body = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "status": {"capacity": resources, "allocatable": resources},
        }  # fmt: skip
        yield request("POST", "/api/v1/nodes", json.dumps(body).encode())


def pods(count: int, on_nodes: int) -> Iterable[bytes]:
    for number in range(count):
        container = {
            "name": "c0", "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }  # fmt: skip
        spec = {
            "nodeName": node_name(number % on_nodes), "containers": [container], "automountServiceAccountToken": False,
        }  # fmt: skip
        body = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"pod-{number:06}", "labels": {"app": "load"}}, "spec": spec,
        }  # fmt: skip
        yield request("POST", "/api/v1/namespaces/default/pods", json.dumps(body).encode())


def deletions(count: int) -> Iterable[bytes]:
    return (request("DELETE", f"/api/v1/namespaces/default/pods/pod-{number:06}") for number in range(count))


async def load(target: Target, requests: Iterable[bytes], watched: str, event: bytes, count: int) -> float:
    """Sends everything; seconds until so many different objects were seen in events that hold ``event``."""
    _, answer = await (connection := await connect(target)).ask(request("GET", f"{watched}&limit=1"))
    connection.close()
    since = json.loads(unpacked(answer))["metadata"]["resourceVersion"]
    started = time.monotonic()
    sending = asyncio.create_task(send_all(target, requests, CONNECTIONS))
    names: set[bytes] = set()
    try:
        async with asyncio.timeout(LIMIT_S):
            while len(names) < count:
                watch = Watch(event, names, count)
                loop = asyncio.get_running_loop()
                transport, _ = await loop.create_connection(
                    functools.partial(_same, watch), target.host, target.port, ssl=target.tls
                )
                transport.write(request("GET", f"{watched}&watch=1&resourceVersion={since}"))
                # The server cuts off readers that fall behind; then it goes on from the last event.
                await watch.ended
                transport.close()
                since = watch.version or since
            await sending
    except TimeoutError:
        raise TimeoutError(f"{len(names)} of {count} after {LIMIT_S:.0f} s") from None
    return time.monotonic() - started


class Watch(asyncio.Protocol):
    """Collects the names of objects in events that hold a text, until there are enough or the watch ends."""

    def __init__(self, event: bytes, names: set[bytes], count: int) -> None:
        self._event, self._names, self._count = event, names, count
        self._head = b""
        self._chunks: ChunkDecoder | None = None
        self._rest = b""
        self.version = ""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if self._chunks is None:
            self._head += data
            begun = read_head(self._head, 0)
            if begun is None:
                return
            code, _, start = begun
            assert code == 200, self._head[:500]
            self._chunks, data = ChunkDecoder(), self._head[start:]
        *lines, self._rest = (self._rest + self._chunks.feed(data)).split(b"\n")
        for line in lines:
            at = line.find(b'"resourceVersion":"') + 19
            self.version = line[at : line.index(b'"', at)].decode()
            if self._event in line:
                start = line.find(b'"metadata":{"name":"') + 20
                self._names.add(line[start : line.find(b'"', start)])
        if len(self._names) >= self._count or self._chunks.is_complete:
            self._end()

    def connection_lost(self, _error: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _same(watch: Watch) -> Watch:
    return watch


def delta(before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Requests of a phase, and those of a fleet that were refused."""
    asked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for (what, code), number in after.items():
        more = number - before[what, code]
        asked[what] += more
        if more and what in WRITES and code.startswith(("4", "5")):
            refused[f"{what} {code}"] += more
    return {"asked": asked, "refused": refused}


def measure(name: str, command: list[str], plane: ControlPlane, size: Size) -> dict[str, Any]:
    """One program through all phases."""
    api = Api(Target(plane.kubeconfig))
    fleet = Fleet(command, plane.workdir / f"{name}.log")
    ages: list[float] = []
    refused: Counter[str] = Counter()

    def phase(requests: Iterable[bytes], watched: str, event: bytes, count: int) -> dict[str, Any]:
        before, cpu_s = api.requests(), fleet.cpu_s()
        took_s = asyncio.run(load(api.target, requests, watched, event, count))
        # What the fleet has still to read of what it did itself belongs to the phase.
        time.sleep(1.0)
        spent_s = fleet.cpu_s() - cpu_s
        found = delta(before, api.requests())
        refused.update(found["refused"])
        ages.extend(api.lease_ages_s())
        return {"wall_s": took_s, "cpu_s": spent_s, **found}

    def steady(seconds: float) -> dict[str, Any]:
        before, cpu_s, started = api.requests(), fleet.cpu_s(), time.monotonic()
        while time.monotonic() - started < seconds:
            time.sleep(SAMPLE_EVERY_S)
            ages.extend(api.lease_ages_s())
        spent_s, took_s = fleet.cpu_s() - cpu_s, time.monotonic() - started
        found = delta(before, api.requests())
        refused.update(found["refused"])
        return {"cpu_s": spent_s, "wall_s": took_s, "renewals": found["asked"]["PUT leases"], **found}

    try:
        time.sleep(5.0)
        results: dict[str, Any] = {"base_kib": fleet.rss_kib()}
        ready = b'"type":"Ready","status":"True"'
        running = b'"phase":"Running"'
        results["nodes"] = phase(nodes(size.nodes), "/api/v1/nodes?", ready, size.nodes)
        time.sleep(size.settle_s)
        results["steady"] = steady(size.steady_s)
        results["nodes_kib"] = fleet.rss_kib()
        listed = "/api/v1/namespaces/default/pods?labelSelector=app%3Dload"
        results["pods"] = phase(pods(size.pods, size.nodes), listed, running, size.pods)
        results["pods_kib"] = fleet.rss_kib()
        results["busy"] = steady(SAMPLE_EVERY_S)
        results["drain"] = phase(deletions(size.pods), listed, b'"type":"DELETED"', size.pods)
        results |= {"age_max_s": max(ages), "refused": dict(refused), "leases": len(api.lease_ages_s())}
        return results
    finally:
        fleet.stop()


def commands(plane: ControlPlane, folder: Path) -> dict[str, list[str]]:
    found = {
        "holokube": [sys.executable, "-c", "from holokube.cli.main import main; main()", "fleet",
                     f"--kubeconfig={plane.kubeconfig}"],
    }  # fmt: skip
    kwok = shutil.which("kwok")
    if kwok is not None:
        for name, workers in (("kwok", 4), ("tuned", 32)):
            options = {f"{kind}Parallelism": workers for kind in ("podPlayStage", "nodePlayStage", "nodeLease")}
            config = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
            path = folder / f"{name}.yaml"
            path.write_text(f"{json.dumps(config)}\n---\n{STAGES.read_text()}")
            found[name] = [kwok, f"--kubeconfig={plane.kubeconfig}", f"--config={path}", "--node-ip=127.0.0.1",
                           "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                           "--node-lease-duration-seconds=40"]  # fmt: skip
    return found


def run(name: str, folder: Path, size: Size) -> dict[str, Any] | None:
    """A fresh control plane with one program; None if there is no such program."""
    with ControlPlane(find_or_build(build=False), folder / f"plane-{name}") as plane:
        command = commands(plane, folder).get(name)
        return None if command is None else measure(name, command, plane, size)


def show(name: str, results: dict[str, Any], size: Size) -> None:
    steady, up, started, gone = results["steady"], results["pods"], results["nodes"], results["drain"]
    renewals = steady["renewals"]
    print(
        f"{name:>9}: {size.nodes} nodes Ready in {started['wall_s']:.1f} s with "
        f"{started['asked']['PATCH nodes/status']} status patches and {started['cpu_s']:.2f} s of CPU; "
        f"steady {steady['cpu_s'] / steady['wall_s']:.4f} core, {renewals} renewals, "
        f"{steady['cpu_s'] / max(1, renewals) * 1e6:.0f} us each; "
        f"{results['base_kib'] / KIBIBYTE:.1f} MiB empty, {results['nodes_kib'] / KIBIBYTE:.1f} MiB with nodes, "
        f"{results['pods_kib'] / KIBIBYTE:.1f} MiB with pods",
        flush=True,
    )
    print(
        f"{'':>9}  {size.pods} pods Running in {up['wall_s']:.1f} s with {up['cpu_s']:.2f} s of CPU, "
        f"{up['cpu_s'] / size.pods * 1e6:.0f} us each, {up['asked']['PATCH pods/status']} patches; deleted in "
        f"{gone['wall_s']:.1f} s with {gone['cpu_s']:.2f} s of CPU; oldest lease seen {results['age_max_s']:.1f} s; "
        f"refused {results['refused'] or 'nothing'}",
        flush=True,
    )


def report(all_results: dict[str, dict[str, Any]], size: Size) -> None:
    ours, kwok, tuned = (all_results.get(name) for name in ("holokube", "kwok", "tuned"))
    if ours is None:
        return
    header("kwok")

    def per_node_us(results: dict[str, Any]) -> float:
        return float(results["steady"]["cpu_s"] / results["steady"]["wall_s"] / size.nodes * 1e6)

    def per_node_kib(results: dict[str, Any]) -> float:
        return float((results["nodes_kib"] - results["base_kib"]) / size.nodes)

    def compare(name: str, unit: str, mine: float, anchor: float | None, most: float, goal: str) -> None:
        record(name, mine, anchor, unit, goal=goal, met=None if anchor is None else mine <= anchor * most)

    def of(results: dict[str, Any] | None, value: Any) -> float | None:
        return None if results is None else float(value(results))

    compare("steady CPU per node and second", "us", per_node_us(ours), of(kwok, per_node_us), 0.1, "<= 1/10")
    compare("CPU per renewal", "us", _per_renewal_us(ours), of(kwok, _per_renewal_us), 0.1, "<= 1/10")
    compare("memory per node", "KiB", per_node_kib(ours), of(kwok, per_node_kib), 1 / 3, "<= 1/3")
    compare(f"CPU of {size.pods:,} pods to Running", "s", ours["pods"]["cpu_s"],
            of(kwok, lambda r: r["pods"]["cpu_s"]), 0.2, "<= 1/5")  # fmt: skip
    record("CPU per pod to Running", ours["pods"]["cpu_s"] / size.pods * 1e6,
           of(kwok, lambda r: r["pods"]["cpu_s"] / size.pods * 1e6), "us")  # fmt: skip
    compare(f"{size.pods:,} pods to Running, beside tuned", "s", ours["pods"]["wall_s"],
            of(tuned, lambda r: r["pods"]["wall_s"]), 1.0, "not slower")  # fmt: skip
    compare(f"{size.nodes:,} nodes to Ready, beside tuned", "s", ours["nodes"]["wall_s"],
            of(tuned, lambda r: r["nodes"]["wall_s"]), 1.0, "not slower")  # fmt: skip
    patches = ours["nodes"]["asked"]["PATCH nodes/status"] + ours["steady"]["asked"]["PATCH nodes/status"]
    kwok_patches = of(kwok, lambda r: r["nodes"]["asked"]["PATCH nodes/status"])
    record("status patches per node", patches / size.nodes, None if kwok_patches is None else kwok_patches / size.nodes,
           "", goal="1", met=patches == size.nodes)  # fmt: skip
    record(f"CPU of {size.pods:,} pods deleted", ours["drain"]["cpu_s"], of(kwok, lambda r: r["drain"]["cpu_s"]),
           "s")  # fmt: skip
    refused = sum(ours["refused"].values())
    record("refused requests", refused, of(kwok, lambda r: sum(r["refused"].values())) or None, "", goal="0",
           met=refused == 0)  # fmt: skip
    record("oldest lease", ours["age_max_s"], of(kwok, lambda r: r["age_max_s"]), "s", goal="<= 12 s",
           met=ours["age_max_s"] <= 12.0)  # fmt: skip


def _per_renewal_us(results: dict[str, Any]) -> float:
    return float(results["steady"]["cpu_s"] / max(1, results["steady"]["renewals"]) * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the load")
    parser.add_argument("--only", action="append", choices=["holokube", "kwok", "tuned"], help="not all three")
    args = parser.parse_args()
    size = Size(200, 1_000, 8.0, 20.0) if args.quick else Size(1_000, 5_000, 20.0, 60.0)
    all_results: dict[str, dict[str, Any]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="holokube-fleet-") as folder:
            for name in args.only or ("holokube", "kwok", "tuned"):
                results = run(name, Path(folder), size)
                if results is not None:
                    all_results[name] = results
                    show(name, results, size)
    except ProgramsMissingError as error:
        print(f"NOT MEASURED: {error} {error.hint}", file=sys.stderr)
        return
    if "kwok" not in all_results and not args.only:
        print("NO RATIOS: there is no kwok on PATH", file=sys.stderr)
    report(all_results, size)


if __name__ == "__main__":
    main()
