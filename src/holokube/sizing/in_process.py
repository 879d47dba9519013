"""Sizing inside an embedded API server, without a webhook: for clusters on virtual time.

A webhook is a program of its own with certificates and sockets. In a laboratory whose time jumps, and in tests, the
same function is called where the API server admits pods.
"""

from __future__ import annotations

from holokube.apiserver.admission.base import CREATE_ONLY, PODS, Attributes, Plugin, refuse
from holokube.apiserver.registry import Registry
from holokube.kube.sizing import SizingProblem, is_enabled, node_name_of, size
from holokube.sizing.review import OnError, unknown_node


class NodeSizing(Plugin):
    """An admission plugin that does what the webhook does."""

    resources = frozenset({PODS})
    operations = CREATE_ONLY

    def __init__(self, on_error: OnError = "allow") -> None:
        self._on_error = on_error

    def mutate(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not is_enabled(pod):
            return
        try:
            name = node_name_of(pod)
            node = attributes.lookup.find("", "nodes", "", name) if name else None
            if node is None:
                raise unknown_node(name)
            sizing = size(pod, node)
        except SizingProblem as problem:
            if self._on_error == "deny":
                raise refuse(attributes, problem.text) from problem
            attributes.warnings.append(f"pod not sized: {problem.text}")
            return
        attributes.warnings.extend(sizing.notes)
        attributes.obj = sizing.apply(pod)


def install(registry: Registry, on_error: OnError = "allow") -> None:
    """Size pods that opt in from now on."""
    registry.admission.add(NodeSizing(on_error))
