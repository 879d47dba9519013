"""NodeDeclaredFeatureValidator: some changes of a running pod need a node that says it can do them."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.admission.base import PODS, UPDATE_ONLY, Attributes, Plugin, refuse
from holokube.kube.types import JsonObject

_POD_LEVEL_RESIZE: Final = "InPlacePodLevelResourcesVerticalScaling"
_INIT_CONTAINER_RESIZE: Final = "InPlacePodVerticalScalingInitContainers"


class NodeDeclaredFeatureValidator(Plugin):
    resources = frozenset({PODS})
    operations = UPDATE_ONLY
    subresources = frozenset({"", "resize"})
    leaves_settled_pods = True

    def validate(self, attributes: Attributes) -> None:
        pod, old = attributes.obj, attributes.old
        if (
            pod is None
            or old is None
            or old["metadata"].get("generation") == pod["metadata"].get("generation")
        ):
            return
        spec = pod.get("spec") or {}
        node_name: str = spec.get("nodeName") or ""
        needed = _needed(spec, old.get("spec") or {}) if node_name else []
        if not needed:
            return
        node = attributes.lookup.find("", "nodes", "", node_name)
        if node is None:
            raise refuse(attributes, f'node "{node_name}" not found')
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        missing = [feature for feature in needed if feature not in declared]
        if missing:
            raise refuse(
                attributes,
                f"pod update requires features {', '.join(missing)} which are not available on node "
                f'"{node_name}"',
            )


def _needed(new: JsonObject, old: JsonObject) -> list[str]:
    needed = []
    if new.get("resources") != old.get("resources"):
        needed.append(_POD_LEVEL_RESIZE)
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    if any(
        before.get("restartPolicy") != "Always" and before.get("resources") != after.get("resources")
        for before, after in pairs
    ):
        needed.append(_INIT_CONTAINER_RESIZE)
    return needed
