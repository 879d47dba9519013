"""PodResizeValidator: a running pod cannot be resized beyond what its node has."""

from __future__ import annotations

from holokube.apiserver.admission.base import PODS, UPDATE_ONLY, Attributes, Plugin, refuse
from holokube.kube.errors import Cause
from holokube.kube.resources import parse_resources, pod_requests
from holokube.kube.types import JsonObject


class PodResizeValidator(Plugin):
    resources = frozenset({PODS})
    operations = UPDATE_ONLY
    subresources = frozenset({"resize"})

    def validate(self, attributes: Attributes) -> None:
        pod, old = attributes.obj, attributes.old
        if (
            pod is None
            or old is None
            or old["metadata"].get("generation") == pod["metadata"].get("generation")
        ):
            return
        node_name = (pod.get("spec") or {}).get("nodeName")
        if not node_name:
            return
        node = attributes.lookup.find("", "nodes", "", node_name)
        if node is None:
            raise refuse(attributes, f'node "{node_name}" not found')
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            raise refuse(
                attributes,
                f'pod resize is only supported on linux nodes, node "{node_name}" is "{system}"',
                [Cause("UnsupportedPlatform", "")],
            )
        lacking = _lacking(pod, node)
        if lacking:
            raise refuse(
                attributes,
                f"node didn't have enough allocatable resources: {'; '.join(lacking)}",
                [Cause("NodeCapacity", "")],
            )


def _lacking(pod: JsonObject, node: JsonObject) -> list[str]:
    requests = pod_requests(pod)
    allocatable = parse_resources((node.get("status") or {}).get("allocatable"))
    found = []
    for name, unit_milli in (("cpu", 1), ("memory", 1000)):
        wanted, there = requests.get(name, 0), allocatable.get(name, 0)
        if wanted > there:
            found.append(
                f"{name}, requested: {-(-wanted // unit_milli)}, allocatable: {-(-there // unit_milli)}"
            )
    return found
