"""A cluster on virtual time that is larger than it needs to be, and Karpenter, until it finds nothing more to do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tests.karpenter.disruption import clusters
from tests.karpenter.lab import Lab, lab

from holokube.apiserver.restore import restore
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import TERMINATION_FINALIZER
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.scheduling.problem import Problem
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import Catalog
from holokube.testing import Cluster

LOOK_EVERY_S = 30.0
QUIET_S = 900.0
"""For so long nothing may change; consolidation looks again at least every five minutes."""
LIMIT_S = 48 * 3600.0
_HOLLOW = {"kwok.x-k8s.io/node": "fake"}


@dataclass(frozen=True)
class Shrunk:
    """What became of a cluster."""

    nodes_before: int
    nodes_after: int
    price_before: float
    price_after: float
    pods: int
    pending: int
    hours: float
    """Virtual ones, until the last change."""
    wall_s: float
    for_pods: int
    """Claims made for pods that found no place."""
    as_replacements: int
    """Claims made by consolidation."""
    problem: Problem
    """All pods that run in the end, and no nodes: what the bound is for."""


def shrink(shape: clusters.Shape, seed: int) -> Shrunk:
    """Put the cluster of that seed onto an API server, and let time pass until nothing changes any more."""
    started_s = time.perf_counter()
    given = clusters.build(seed, shape)
    catalog = Catalog(given.types)
    with Cluster(nodes=0, seed=seed) as cluster:
        return cluster.run(_shrink, cluster, given, catalog, started_s)


async def _shrink(cluster: Cluster, given: clusters.Cluster, catalog: Catalog, started_s: float) -> Shrunk:
    async with lab(cluster, *(_applicable(pool.object) for pool in given.pools), catalog=catalog) as here:
        assert here.controllers is not None
        await here.controllers.stop()
        report = await restore(cluster.registry, _objects(given))
        if report.left_out:
            raise RuntimeError(f"not everything could be put in: {report.left_out[:3]}")
        here.start()
        before = await here.nodes()
        begun_s = changed_s = here.clock.monotonic()
        last: tuple[str, ...] = ()
        while here.clock.monotonic() - changed_s < QUIET_S:
            await here.clock.sleep(LOOK_EVERY_S)
            now = _names(await here.claims())
            if now != last:
                last, changed_s = now, here.clock.monotonic()
            if here.clock.monotonic() - begun_s > LIMIT_S:
                raise RuntimeError(f"still changing after {LIMIT_S / 3600:g} h: {len(now)} claims")
        return await _outcome(here, given, catalog, before, changed_s - begun_s, time.perf_counter() - started_s)


def _names(claims: list[JsonObject]) -> tuple[str, ...]:
    return tuple(sorted(claim["metadata"]["name"] for claim in claims))


async def _outcome(
    here: Lab, given: clusters.Cluster, catalog: Catalog, before: list[JsonObject], changed_s: float, wall_s: float
) -> Shrunk:
    after, pods = await here.nodes(), await here.pods()
    problem = Problem(
        pools=[NodePool.of(pool.object) for pool in given.pools], types_of_pool=given.types_of_pool,
        pods=[_unbound(pod) for pod in pods], well_known=catalog.well_known, now_s=here.clock.time(),
    )  # fmt: skip
    return Shrunk(
        len(before), len(after), price_of(before, catalog), price_of(after, catalog), len(pods),
        sum((pod.get("status") or {}).get("phase") != "Running" for pod in pods), changed_s / 3600, wall_s,
        _made(here, "provisioned"), _made(here, "underutilized"), problem)


def _made(here: Lab, reason: str) -> int:
    return round(here.running.value("karpenter_nodeclaims_created_total", reason=reason))


def price_of(nodes: list[JsonObject], catalog: Catalog) -> float:
    """What nodes cost per hour."""
    total = 0.0
    for node in nodes:
        labels = node["metadata"]["labels"]
        one = catalog.by_name[labels["node.kubernetes.io/instance-type"]]
        place = one.offering(labels["topology.kubernetes.io/zone"], labels["karpenter.sh/capacity-type"])
        assert place is not None
        total += place.price_usd_per_hour
    return total


def _applicable(pool: JsonObject) -> JsonObject:
    return {name: value for name, value in pool.items() if name != "status"}


def _objects(given: clusters.Cluster) -> list[JsonObject]:
    """The cluster as a server keeps it, with the ReplicaSets that make a pod anew when one is evicted."""
    found: list[JsonObject] = []
    sets: dict[tuple[str, str], list[JsonObject]] = {}
    for state in given.nodes:
        node, claim = state.node, state.node_claim
        assert node is not None
        assert claim is not None
        found += [_kept(node, NODES.api_version, "Node"), _kept(claim, NODE_CLAIMS.api_version, "NodeClaim")]
        for pod in state.pods:
            owner = pod["metadata"]["ownerReferences"][0]
            sets.setdefault((owner["name"], owner["uid"]), []).append(pod)
            found.append({"apiVersion": PODS.api_version, "kind": "Pod", **pod})
    return [*(_replica_set(name, uid, pods) for (name, uid), pods in sets.items()), *found]


def _kept(obj: JsonObject, api_version: str, kind: str) -> JsonObject:
    meta = {
        **obj["metadata"], "finalizers": [TERMINATION_FINALIZER],
        "annotations": {**(obj["metadata"].get("annotations") or {}), **_HOLLOW},
        "labels": {**obj["metadata"]["labels"], **_HOLLOW},
    }  # fmt: skip
    return {"apiVersion": api_version, "kind": kind, **obj, "metadata": meta}


def _replica_set(name: str, uid: str, pods: list[JsonObject]) -> JsonObject:
    first: dict[str, Any] = pods[0]
    labels = first["metadata"]["labels"]
    spec = {key: value for key, value in first["spec"].items() if key != "nodeName"}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"replicas": len(pods), "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": spec}},
    }  # fmt: skip


def _unbound(pod: JsonObject) -> JsonObject:
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
