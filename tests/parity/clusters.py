"""Whole random clusters from a seed. The recordings hold a digest of each, so a changed generator is noticed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import orjson

from holokube.base.rng import Rng
from tests.builders import JsonObject
from tests.parity.draws import APPS, NAMESPACES, TIERS, Draws, namespace_labels
from tests.parity.random_nodes import random_node
from tests.parity.random_pods import FOCUSES, random_pod, scored_pod
from tests.parity.random_storage import Storage, attachments


@dataclass(frozen=True)
class World:
    """What is there, and the pods that are asked about."""

    namespaces: list[JsonObject]
    nodes: list[JsonObject]
    storage: list[JsonObject]
    bound: list[JsonObject]
    """Pods with a node; those with a deletionTimestamp are on their way out."""
    pending: list[JsonObject]
    owners: list[JsonObject] = field(default_factory=list)
    """Services and ReplicaSets, by which pods without constraints are spread."""

    def digest(self) -> str:
        """Twelve hex digits over all objects."""
        parts = [self.namespaces, self.nodes, self.storage, self.bound, self.pending]
        if self.owners:
            parts.append(self.owners)
        content = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(content, digest_size=6).hexdigest()


def feasibility_world(seed: int) -> World:
    """A cluster for the filters, with ten pending pods. Every fourth seed has the same focus."""
    draws = Draws(Rng(f"feasibility-{seed}"))
    focus = FOCUSES[tuple(FOCUSES)[seed % len(FOCUSES)]]
    names = [f"n{i:02}" for i in range(draws.between(3, 12))]
    nodes = [random_node(draws.fork(f"node-{name}"), name, is_easy=focus.is_easy) for name in names]
    storage = Storage(draws.fork("storage"), names) if draws.chance(focus.volumes + 0.1) else None
    bound = []
    for i in range(draws.between(3, 14)):
        each = draws.fork(f"bound-{i}")
        # A node that is gone, or not there yet, may have pods too.
        on = each.one(names) if not each.chance(0.05) else "gone"
        pod = random_pod(each, f"s{seed}-b{i}", names, focus, node=on)
        if storage is not None and each.chance(focus.volumes):
            storage.add_volumes(pod, is_bound=True)
        _add_fate(each, pod)
        bound.append(pod)
    _part_ports(bound)
    pending = []
    for i in range(10):
        each = draws.fork(f"pending-{i}")
        pod = random_pod(each, f"s{seed}-p{i}", names, focus)
        if storage is not None and each.chance(focus.volumes):
            storage.add_volumes(pod, is_bound=False)
        pending.append(pod)
    objects = storage.objects if storage is not None else []
    objects = objects + attachments(draws.fork("attachments"), objects, names)
    return World(_namespaces(draws), nodes, objects, bound, pending)


def scores_world(seed: int) -> World:
    """A cluster for the scores, with eight pods that are placed one after the other."""
    draws = Draws(Rng(f"scores-{seed}"))
    names = [f"n{i:02}" for i in range(draws.between(3, 9))]
    nodes = [random_node(draws.fork(f"node-{name}"), name, is_scored=True) for name in names]
    bound = []
    for i in range(draws.between(2, 12)):
        each = draws.fork(f"bound-{i}")
        bound.append(scored_pod(each, f"s{seed}-b{i}", names, node=each.one(names)))
    pending = [scored_pod(draws.fork(f"pending-{i}"), f"s{seed}-p{i}", names) for i in range(8)]
    owners = _owners(draws.fork("owners"))
    for pod in pending:
        each = draws.fork(f"owner-of-{pod['metadata']['name']}")
        if each.chance(0.5):
            pod["metadata"]["ownerReferences"] = [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": each.one(("rs-0", "rs-1", "rs-none")),
                "uid": "00000000-0000-4000-8000-000000000000", "controller": True,
            }]  # fmt: skip
    return World(_namespaces(draws), nodes, [], bound, pending, owners)


def _owners(draws: Draws) -> list[JsonObject]:
    """A service and two ReplicaSets in each namespace; the latter own pods without looking at their labels."""
    found: list[JsonObject] = []
    for namespace in NAMESPACES:
        if draws.chance(0.6):
            selector = {draws.one(("app", "tier")): draws.one(("web", "db", "front"))}
            spec: JsonObject = {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]}
            metadata = {"name": "service", "namespace": namespace}
            found.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        for i in range(2):
            chosen: JsonObject = {"matchLabels": {"app": draws.one(APPS)}}
            if draws.chance(0.5):
                chosen["matchExpressions"] = [{"key": "tier", "operator": "In", "values": list(TIERS)}]
            labels = {**chosen["matchLabels"], "tier": TIERS[0]}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
            found.append({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": f"rs-{i}", "namespace": namespace},
                "spec": {"replicas": 0, "selector": chosen, "template": template},
            })  # fmt: skip
    return found


def _namespaces(draws: Draws) -> list[JsonObject]:
    return [
        {"apiVersion": "v1", "kind": "Namespace",
         "metadata": {"name": name, "labels": namespace_labels(draws.fork(name), name)}}
        for name in NAMESPACES
    ]  # fmt: skip


def _part_ports(bound: list[JsonObject]) -> None:
    """No two pods of a node have the same port.

    Upstream notes each port once: with the first of two such pods to finish, the port is free to it.
    """
    taken: set[tuple[str, int, str]] = set()
    for pod in bound:
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            for port in container.get("ports", ()):
                key = (pod["spec"]["nodeName"], port["hostPort"], port["protocol"])
                if key in taken:
                    del port["hostPort"]
                    port.pop("hostIP", None)
                taken.add(key)


def _add_fate(draws: Draws, pod: JsonObject) -> None:
    """Some bound pods are on their way out, some are finished, some are in the middle of a resize."""
    fate = draws.rng.random()
    if fate < 0.1:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    elif fate < 0.18:
        pod["status"] = {"phase": draws.one(("Succeeded", "Failed"))}
    elif fate < 0.26:
        pod["status"] = {"phase": "Running", "containerStatuses": [
            {
                "name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0,
                "allocatedResources": {"cpu": draws.one(("10m", "900m"))},
                "resources": {"requests": {"cpu": draws.one(("10m", "700m")), "memory": "200Mi"}},
            }
            for container in pod["spec"]["containers"]
        ]}  # fmt: skip
