"""Seeded clusters as an API server keeps them, to be put in with ``restore``, and a scheduler of one's own choice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from holokube.base.rng import Rng
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import KWOK_GROUP, KWOK_NODE_CLASS, TERMINATION_FINALIZER
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.kube.requirements import CAPACITY_TYPE_LABEL
from holokube.kube.types import JsonObject
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.scheduler import scheduler
from holokube.scheduler.profiles import Profile
from holokube.scheduler.scores import ScoreProfile
from holokube.testing import Cluster
from tests.karpenter.disruption import clusters

PACKING: Final = Profile(scores=ScoreProfile(fit_strategy="MostAllocated"))
"""Full nodes first, as clusters are run that are to be small."""
_CLASS: Final = {"group": KWOK_GROUP, "kind": KWOK_NODE_CLASS, "name": "default"}
_HOLLOW: Final = {"kwok.x-k8s.io/node": "fake"}


def objects_of(given: clusters.Cluster) -> list[JsonObject]:
    """Nodes, claims and pods, and the ReplicaSets that make a pod anew when one is evicted."""
    found: list[JsonObject] = []
    sets: dict[tuple[str, str], list[JsonObject]] = {}
    for state in given.nodes:
        node, claim = state.node, state.node_claim
        assert node is not None
        assert claim is not None
        found += [_kept(node, NODES.api_version, "Node"), _kept(_complete(claim), NODE_CLAIMS.api_version, "NodeClaim")]
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


def _complete(claim: JsonObject) -> JsonObject:
    """With its class: nobody looks after a claim without one."""
    capacity_type = claim["metadata"]["labels"][CAPACITY_TYPE_LABEL]
    requirements = [{"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": [capacity_type]}]
    return {**claim, "spec": {**claim["spec"], "nodeClassRef": _CLASS, "requirements": requirements}}


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


@asynccontextmanager
async def scheduled_by(cluster: Cluster, profile: Profile) -> AsyncIterator[None]:
    """A scheduler with that profile, for a cluster that was made without one."""
    rng = Rng(f"scheduler of {cluster.seed}")
    informers = InformerSet(cluster.clock, cluster.client, rng.fork("informers"))
    recorder = EventRecorder(cluster.clock, cluster.client, "default-scheduler", rng=rng.fork("events"))
    made = scheduler.build(
        cluster.clock, cluster.client, informers, recorder, rng.fork("scheduler"), profiles=(profile,)
    )
    app = App(cluster.clock)
    for component in (recorder, informers.runner(), made):
        app.add(component)
    running = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        await running
