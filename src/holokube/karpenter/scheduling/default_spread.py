"""Spread constraints that a cluster gives to pods without constraints of their own.

They have no selector; the pods to spread among are found as the scheduler finds them, by the Services that select the
pod and by the controller that owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.karpenter.scheduling.problem import Problem
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_WITH_SELECTOR: Final = (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))


class DefaultSpread:
    """Adds the constraints to pods; without any to add it hands pods back as they are."""

    def __init__(self, problem: Problem) -> None:
        self._constraints = problem.options.default_spread_constraints
        self._owners = problem.owners
        self._services: dict[str, list[Mapping[str, str]]] = {}
        self._applied: dict[int, tuple[JsonObject, JsonObject]] = {}
        for service in problem.services if self._constraints else ():
            selector = (service.get("spec") or _EMPTY).get("selector")
            if selector is not None:
                namespace = (service.get("metadata") or _EMPTY).get("namespace") or ""
                self._services.setdefault(namespace, []).append(selector)

    def applied(self, pod: JsonObject) -> JsonObject:
        """The pod with the constraints, or the pod itself; the same object each time."""
        if not self._constraints:
            return pod
        known = self._applied.get(id(pod))
        if known is None:
            known = self._applied[id(pod)] = pod, self._with_defaults(pod)
        return known[1]

    def _with_defaults(self, pod: JsonObject) -> JsonObject:
        spec = pod.get("spec") or {}
        if spec.get("topologySpreadConstraints"):
            return pod
        selector = self._selector(pod)
        if selector is None:
            return pod
        constraints = [{**constraint, "labelSelector": selector} for constraint in self._constraints]
        return {**pod, "spec": {**spec, "topologySpreadConstraints": constraints}}

    def _selector(self, pod: JsonObject) -> JsonObject | None:
        metadata = pod["metadata"]
        labels = metadata.get("labels") or _EMPTY
        match: dict[str, str] = {}
        for selector in self._services.get(metadata.get("namespace") or "", ()):
            if all(labels.get(key) == value for key, value in selector.items()):
                match.update(selector)
        expressions: list[JsonObject] = []
        reference = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
        owner = self._owners.get(reference.get("uid", "")) if reference is not None else None
        if reference is not None and owner is not None:
            kind = reference.get("apiVersion"), reference.get("kind")
            of_owner = (owner.get("spec") or _EMPTY).get("selector") or _EMPTY
            if kind == ("v1", "ReplicationController"):
                match.update(of_owner)
            elif kind in _WITH_SELECTOR:
                expressions = [
                    {"key": key, "operator": "In", "values": [value]}
                    for key, value in (of_owner.get("matchLabels") or _EMPTY).items()
                ]
                expressions += of_owner.get("matchExpressions") or ()
        # An empty selector would spread the pod among everything in its namespace.
        if not match and not expressions:
            return None
        found: JsonObject = {"matchLabels": match} if match else {}
        return {**found, "matchExpressions": expressions} if expressions else found
