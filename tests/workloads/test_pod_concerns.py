"""Controllers that are told of fewer changes do just what those would that are told of all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.audience import EVERYTHING
from holokube.client.cache import Cache, object_key
from holokube.client.client import Client
from holokube.client.resources import (
    DEPLOYMENTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from holokube.client.transport import WatchEvent
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource
from holokube.workloads import (
    daemon_set_controller,
    deployment_controller,
    disruption_controller,
    endpoint_controller,
    ephemeral_volume_controller,
    job_controller,
    node_lifecycle_controller,
    quota_controller,
    replica_set_controller,
    stateful_set_controller,
    taint_eviction_controller,
    volume_controller,
)
from holokube.workloads.daemon_set_pods import DAEMON_NODE_INDEX, daemon_node_index
from holokube.workloads.job_controller import TRACKED_INDEX, tracked_index
from holokube.workloads.ownership import CONTROLLER_INDEX, controller_index
from holokube.workloads.pod_indexes import (
    ENDING_INDEX,
    LABEL_INDEX,
    NODE_INDEX,
    by_ending,
    by_label,
    by_node,
    pods_by_ending,
)
from holokube.workloads.volume_controller import CLAIM_INDEX
from holokube.workloads.volume_decisions import claims_of
from tests.runtime.fakes import FakeTransport

BUILDS: tuple[Callable[..., Any], ...] = (
    node_lifecycle_controller.build, taint_eviction_controller.build, deployment_controller.build,
    replica_set_controller.build, replica_set_controller.build_replication_controller,
    stateful_set_controller.build, daemon_set_controller.build, job_controller.build, disruption_controller.build,
    disruption_controller.build_stale, endpoint_controller.build, endpoint_controller.build_endpoints,
    ephemeral_volume_controller.build, volume_controller.build, quota_controller.build,
)  # fmt: skip
INDEXES = {
    NODE_INDEX: by_node, ENDING_INDEX: by_ending, CONTROLLER_INDEX: controller_index, TRACKED_INDEX: tracked_index,
    DAEMON_NODE_INDEX: daemon_node_index, CLAIM_INDEX: claims_of,
}  # fmt: skip


def _reference(kind: str, group: str, name: str) -> JsonObject:
    return {"apiVersion": f"{group}/v1", "kind": kind, "name": name, "uid": f"uid-{kind}", "controller": True}


OWNERS: tuple[list[JsonObject] | None, ...] = (
    None, [_reference("ReplicaSet", "apps", "web")], [_reference("Job", "batch", "run")],
    [_reference("DaemonSet", "apps", "agent")], [_reference("ReplicaSet", "example.com", "web")],
    [{"apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": "uid-friend"}],
)  # fmt: skip
CONDITIONS: tuple[list[JsonObject], ...] = (
    [], [{"type": "Ready", "status": "True"}], [{"type": "DisruptionTarget", "status": "True"}],
)  # fmt: skip
VOLUMES: tuple[list[JsonObject], ...] = (
    [], [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], [{"name": "v", "ephemeral": {}}],
)  # fmt: skip
PARTS = st.fixed_dictionaries({
    "owners": st.sampled_from(OWNERS), "labels": st.sampled_from(({}, {"app": "a"}, {"app": "b"})),
    "finalizers": st.sampled_from((None, ["batch.kubernetes.io/job-tracking"])), "leaving": st.booleans(),
    "note": st.sampled_from("xy"), "node": st.sampled_from(("", "n1", "n2")),
    "phase": st.sampled_from(("Pending", "Running", "Succeeded")), "conditions": st.sampled_from(CONDITIONS),
})  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 2), st.none() | PARTS, st.booleans()),
        st.tuples(st.sampled_from(("service", "budget", "quota", "silence", "recreate")), st.booleans()),
    ),
    max_size=25,
)


def _pod(number: int, parts: Mapping[str, Any], before: JsonObject | None, *, is_fresh: bool) -> JsonObject:
    """A pod of which, as after a write in process, what is as before is the very same object, or a copy."""
    meta: JsonObject = {
        "name": f"p{number}", "namespace": "default", "uid": f"uid-p{number}", "labels": parts["labels"],
        "annotations": {"note": parts["note"]},
    }  # fmt: skip
    for field, value in (("ownerReferences", parts["owners"]), ("finalizers", parts["finalizers"])):
        if value is not None:
            meta[field] = value
    if parts["leaving"]:
        meta["deletionTimestamp"] = "2026-01-05T08:30:00Z"
    spec: JsonObject = {"containers": [{"name": "c"}], "volumes": VOLUMES[number]}
    if parts["node"]:
        spec["nodeName"] = parts["node"]
    status: JsonObject = {"phase": parts["phase"], "conditions": parts["conditions"]}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
    if is_fresh:
        return copy.deepcopy(pod)
    if before is not None:
        for part in ("spec", "status"):
            if before[part] == pod[part]:
                pod[part] = before[part]
    return pod


class World:
    """Controllers on informers that are told what a test thinks up."""

    def __init__(self, clock: VirtualClock, *, hears_all: bool) -> None:
        client = Client(FakeTransport(clock))
        self.informers = InformerSet(clock, client, Rng("concerns"))
        pods_by_ending(self.informers)
        self.fed: list[tuple[str, Any]] = []
        self._version = 0
        recorder = EventRecorder(clock, client, "test", rng=Rng("recorder"))
        for build in BUILDS:
            built = build(clock, client, self.informers, recorder, Rng("concerns"))
            controller = built if isinstance(built, Controller) else built._controller
            for source in controller._sources:
                if isinstance(source, InformerSource):
                    if hears_all:
                        source._heeds, source._controlled_by, source._needs = EVERYTHING, None, None
                    # Sources that feed a little later would do so in a queue of their own.
                    InformerSource.start(source, partial(self._feed, controller.name))
        replica_set = _made("ReplicaSet", "web")
        replica_set["metadata"]["ownerReferences"] = [_reference("Deployment", "apps", "web")]
        self.tell(REPLICA_SETS, "ADDED", replica_set)
        self.tell(DEPLOYMENTS, "ADDED", _deployment(recreates=True))
        taint = {"key": "bad", "effect": "NoExecute"}
        self.tell(NODES, "ADDED", _made("Node", "n1", spec={"taints": [taint]}, namespace=""))
        self.tell(NODES, "ADDED", _made("Node", "n2", namespace=""))

    def _feed(self, name: str, key: Any) -> None:
        self.fed.append((name, key))

    def tell(self, resource: Resource, type: str, obj: JsonObject) -> None:
        self._version += 1
        new = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self.informers.get(resource)._on_events([WatchEvent(type, new)])

    def known(self, resource: Resource, key: str) -> JsonObject | None:
        return self.informers.get(resource).lister.by_key(key)

    def put(self, resource: Resource, obj: JsonObject | None, key: str) -> None:
        before = self.known(resource, key)
        if obj is not None:
            self.tell(resource, "ADDED" if before is None else "MODIFIED", obj)
        elif before is not None:
            self.tell(resource, "DELETED", before)


def _made(kind: str, name: str, *, namespace: str = "default", **more: Any) -> JsonObject:
    meta: JsonObject = {"name": name, "uid": f"uid-{kind}-{name}"}
    if namespace:
        meta["namespace"] = namespace
    return {"kind": kind, "apiVersion": "v1", "metadata": meta, "spec": {}, **more}


def _deployment(*, recreates: bool) -> JsonObject:
    strategy = {"type": "Recreate" if recreates else "RollingUpdate"}
    return _made("Deployment", "web", spec={"strategy": strategy, "selector": None})


def _silent(*, is_silent: bool) -> JsonObject:
    condition = {"type": "Ready", "status": "Unknown" if is_silent else "True"}
    return _made("Node", "n2", namespace="", status={"conditions": [condition]})


def _step(world: World, step: tuple[Any, ...]) -> None:
    what, *drawn = step
    if what == "pod":
        number, parts, is_fresh = drawn
        key = f"default/p{number}"
        pod = None if parts is None else _pod(number, parts, world.known(PODS, key), is_fresh=is_fresh)
        world.put(PODS, pod, key)
        return
    is_there = drawn[0]
    if what == "silence":
        world.put(NODES, _silent(is_silent=is_there), "n2")
        return
    if what == "recreate":
        world.put(DEPLOYMENTS, _deployment(recreates=is_there), "default/web")
        return
    resource, obj = {
        "service": (SERVICES, _made("Service", "s", spec={"selector": {"app": "a"}})),
        "budget": (POD_DISRUPTION_BUDGETS, _made("PodDisruptionBudget", "b", spec={"selector": {}})),
        "quota": (RESOURCE_QUOTAS, _made("ResourceQuota", "q")),
    }[what]
    world.put(resource, obj if is_there else None, object_key(obj))


@settings(deadline=None)
@given(STEPS)
def test_controllers_are_woken_as_if_they_heard_of_everything(steps: list[tuple[Any, ...]]) -> None:
    async def main(clock: VirtualClock) -> None:
        picky, patient = World(clock, hears_all=False), World(clock, hears_all=True)
        for step in steps:
            for world in (picky, patient):
                world.fed.clear()
                _step(world, step)
            assert picky.fed == patient.fed
        _check_indexes(picky)

    run_virtual(main)


def _check_indexes(world: World) -> None:
    lister = world.informers.get(PODS).lister
    scratch = Cache({**INDEXES, LABEL_INDEX: by_label})
    for pod in lister:
        scratch.put(object_key(pod), pod)
    for name in (*INDEXES, LABEL_INDEX):
        assert sorted(lister.index_values(name)) == sorted(scratch.index_values(name))
        for value in scratch.index_values(name):
            keys = sorted(map(object_key, lister.by_index(name, value)))
            assert keys == sorted(map(object_key, scratch.by_index(name, value)))
