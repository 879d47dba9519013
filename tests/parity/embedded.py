"""A world in the packing engine, and its verdict in the form in which the real scheduler's is recorded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from holokube.kube.affinity import apply_label_keys
from holokube.packing import ClusterState
from holokube.scheduler.messages import fit_error
from tests.builders import JsonObject
from tests.parity.clusters import World
from tests.parity.real_scheduler import REFUSED, Verdict


def state_of(world: World) -> ClusterState:
    """Everything but the pending pods."""
    state = ClusterState()
    _learn_namespaces(state, world)
    _learn_storage(state, world)
    for node in world.nodes:
        state.add_node(node)
    for pod in world.bound:
        state.add_pod(as_stored(pod))
    return state


def state_that_learned_late(world: World) -> ClusterState:
    """The same, told in another order, and asked about the pending pods all the while."""
    state = ClusterState()
    steps = [
        lambda: [state.add_pod(as_stored(pod)) for pod in world.bound[::2]],
        lambda: [state.add_node({**node, "spec": {}}) for node in world.nodes[::-1]],
        lambda: [state.add_pod(as_stored(pod)) for pod in world.bound[1::2]],
        lambda: _learn_storage(state, world),
        lambda: _learn_namespaces(state, world),
        lambda: [state.update_node(node) for node in world.nodes],
    ]
    for step in steps:
        step()
        for pod in world.pending:
            judge(state, pod)
    return state


def _learn_namespaces(state: ClusterState, world: World) -> None:
    for namespace in world.namespaces:
        state.set_namespace(namespace["metadata"]["name"], namespace["metadata"]["labels"])


def _learn_storage(state: ClusterState, world: World) -> None:
    for obj in world.storage:
        # An object with a finalizer was deleted by the recorder, and stayed.
        state.put_storage(_as_deleted(obj) if obj["metadata"].get("finalizers") else obj)


def _as_deleted(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def as_stored(pod: JsonObject) -> JsonObject:
    """A pod as an API server stores it, which writes label keys into the selectors of affinity terms."""
    affinity = pod["spec"].get("affinity")
    if not affinity:
        return pod
    labels = pod["metadata"]["labels"]
    stored = {
        kind: {name: _merged(value, labels) for name, value in terms.items()} if kind != "nodeAffinity" else terms
        for kind, terms in affinity.items()
    }
    return {**pod, "spec": {**pod["spec"], "affinity": stored}}


def _merged(terms: list[JsonObject], labels: Mapping[str, str]) -> list[JsonObject]:
    merged = []
    for term in terms:
        if "podAffinityTerm" in term:
            merged.append({**term, "podAffinityTerm": _merged([term["podAffinityTerm"]], labels)[0]})
        elif "labelSelector" in term:
            merged.append({**term, "labelSelector": apply_label_keys(term, labels)})
        else:
            merged.append(term)
    return merged


def judge(state: ClusterState, pod: JsonObject) -> Verdict:
    """What the recorder would have written had it asked the packing engine."""
    cls = state.class_of(as_stored(pod))
    feasible = sorted(state.name_of(int(row)) for row in np.flatnonzero(state.feasible(cls)))
    diagnosis = state.diagnose(cls)
    reasons = dict(diagnosis.reasons)
    if feasible:
        reasons[REFUSED] = len(feasible)
    text = fit_error(len(state.node_names), reasons, refusal=diagnosis.refusal)
    return Verdict(feasible, "Unschedulable", text)
