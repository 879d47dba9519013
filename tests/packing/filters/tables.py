"""What table tests of filters share: a state, and the question which nodes say what."""

from __future__ import annotations

from typing import Any

from holokube.packing import ClusterState

JsonObject = dict[str, Any]


def state_of(
    *nodes: JsonObject, pods: tuple[JsonObject, ...] = (), storage: tuple[JsonObject, ...] = ()
) -> ClusterState:
    state = ClusterState()
    for node in nodes:
        state.add_node(node)
    for pod in pods:
        state.add_pod(pod)
    for obj in storage:
        state.put_storage(obj)
    return state


def feasible(state: ClusterState, pod: JsonObject) -> set[str]:
    mask = state.feasible(state.class_of(pod))
    return {name for name, row in state.node_names.items() if mask[row]}


def why(state: ClusterState, pod: JsonObject, node: str) -> tuple[str, ...]:
    return state.why(state.class_of(pod), state.node_names[node])
