"""TaintNodesByCondition: a new node takes no pods until somebody has seen it ready."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.admission.base import NODES, Attributes, Plugin
from holokube.kube.types import JsonObject

_KEY: Final = "node.kubernetes.io/not-ready"
_EFFECT: Final = "NoSchedule"


class TaintNodesByCondition(Plugin):
    resources = frozenset({NODES})
    sets_what_is_settled = True

    def mutate(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec: JsonObject = attributes.obj.setdefault("spec", {})
        taints = spec.get("taints") or []
        if any(taint.get("key") == _KEY and taint.get("effect") == _EFFECT for taint in taints):
            return
        spec["taints"] = [*taints, {"key": _KEY, "effect": _EFFECT}]
