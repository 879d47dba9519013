"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or cannot be reached."""

from __future__ import annotations

from typing import Any, Final

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Plugin
from holokube.kube.types import JsonObject

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS: Final = 300


class DefaultTolerationSeconds(Plugin):
    resources = frozenset({PODS})
    operations = CREATE_OR_UPDATE
    only_sets_on_update = True
    looks_at = frozenset()
    goes_by_spec = True
    # What it adds is there from the first time on.
    leaves_settled_pods = True

    def mutate(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec: JsonObject = attributes.obj.setdefault("spec", {})
        tolerations: list[dict[str, Any]] | None = spec.get("tolerations")
        if not tolerations:
            spec["tolerations"] = [_toleration(NOT_READY), _toleration(UNREACHABLE)]
            return
        missing = {NOT_READY: True, UNREACHABLE: True}
        for toleration in tolerations:
            if toleration.get("effect") not in ("NoExecute", "", None):
                continue
            key = toleration.get("key")
            if key:
                missing[key] = False
            else:
                return
        spec["tolerations"] = tolerations + [
            _toleration(key) for key in (NOT_READY, UNREACHABLE) if missing[key]
        ]


def _toleration(key: str) -> JsonObject:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
