"""What a new hollow node is made from, and what it will look like. All pure.

For a group there may be a template of its own (a ReplicationController with the group's label), a ReplicationController
that it has already (one with no replicas serves as well, and keeps an empty group's template in the cluster), a
template for all groups (one without the label), or a ReplicationController of another group, which is the only source
that upstream knows. The first of these is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL, NAME_LABEL, group_of, instance_id
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.kube.node_flags import DEFAULT_CAPACITY, KUBEMARK_CAPACITY, NodeFlags, flags_of_pod
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import YamlError, load_documents

_HINT = (
    "A template is a v1 ReplicationController whose pod runs `holokube fleet --node-name=$(NODE_NAME) "
    "--provider-id=kubemark://$(NODE_NAME)`, or kubemark's hollow node; see deploy/kubemark."
)
_BUILT_IN_PROFILES = ("", "fast", "kubelet")


@dataclass(frozen=True, slots=True)
class HollowTemplate:
    """A pod that becomes a node."""

    group: str
    """Empty of a template for all groups."""
    source: str
    metadata: JsonObject
    spec: JsonObject

    @classmethod
    def of_controller(cls, controller: Mapping[str, Any], source: str) -> HollowTemplate:
        """The pod template of a ReplicationController."""
        template = (controller.get("spec") or {}).get("template") or {}
        return cls(group_of(controller), source, template.get("metadata") or {}, template.get("spec") or {})

    def controller(self, name: str, group: str, namespace: str) -> JsonObject:
        """The ReplicationController of one new node."""
        ours = {GROUP_LABEL: group, NAME_LABEL: name}
        meta: JsonObject = {"labels": {**(self.metadata.get("labels") or {}), **ours}}
        if self.metadata.get("annotations"):
            meta["annotations"] = self.metadata["annotations"]
        return {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": name, "namespace": namespace, "labels": ours},
            "spec": {"replicas": 1, "selector": ours, "template": {"metadata": meta, "spec": self.spec}},
        }

    def flags(self, machine: str, group: str) -> NodeFlags | None:
        """What the kubelet of a machine of that name would be told."""
        labels = {**(self.metadata.get("labels") or {}), GROUP_LABEL: group, NAME_LABEL: machine}
        return flags_of_pod({**self.metadata, "name": machine, "labels": labels}, self.spec)

    def check(self, group: str) -> None:
        """Refuses a pod whose node the provider would not know again."""
        machine = f"{group}-machine"
        try:
            flags = self.flags(machine, group)
        except UsageError as error:
            raise self._refusal(error.message) from error
        if flags is None:
            raise self._refusal("no container has a node's name among its arguments")
        if flags.name != machine:
            raise self._refusal(f"a pod {machine} would be a node of the name {flags.name!r}")
        if not flags.is_kubemark and flags.provider_id != instance_id(machine):
            raise self._refusal(f"a pod {machine} would be a node with the provider id {flags.provider_id!r}")
        if flags.labels.get(GROUP_LABEL) != group:
            raise self._refusal(f"its node would not carry the label {GROUP_LABEL}={group}")

    def _refusal(self, why: str) -> CloudError:
        return CloudError(f"{self.source} is no template: {why}", kind=ErrorKind.CONFIGURATION, hint=_HINT)

    def node_info(self, group: str) -> NodeInfo:
        """A node of the group as it would be just after its start; nothing else runs on it."""
        name = f"{group}-template"
        flags = self.flags(name, group)
        if flags is None:
            raise NotImplementedByProvider(f"a template of group {group}: {self.source} has no hollow kubelet")
        otherwise = KUBEMARK_CAPACITY if flags.is_kubemark else DEFAULT_CAPACITY
        if flags.profile not in _BUILT_IN_PROFILES and not {"cpu", "memory"} <= set(flags.capacity):
            raise NotImplementedByProvider(
                f"a template of group {group}: the size of its nodes is in the profile {flags.profile}, out of reach; "
                "add --node-capacity=cpu=...,memory=..."
            )
        node: JsonObject = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": _labels(name, flags)},
            "spec": {"providerID": instance_id(name)},
            "status": {
                "capacity": flags.capacity_over(otherwise),
                "allocatable": flags.allocatable_over(otherwise),
                "conditions": [
                    {"type": "Ready", "status": "True"},
                    *({"type": f"{kind}Pressure", "status": "False"} for kind in ("Memory", "Disk", "PID")),
                    {"type": "NetworkUnavailable", "status": "False"},
                ],
            },
        }
        if flags.taints:
            node["spec"]["taints"] = [taint.to_json() for taint in flags.taints]
        return NodeInfo(node)


def _labels(name: str, flags: NodeFlags) -> dict[str, str]:
    """What every kubelet says of its machine, and what this one is told besides."""
    said = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    beta = {f"beta.{key}": value for key, value in said.items()}
    return {"kubernetes.io/hostname": name, **said, **beta, **flags.labels}


def parse_templates(text: str | bytes, source: str) -> list[HollowTemplate]:
    """The templates in a file or a value of a ConfigMap: one or more documents, Lists included."""
    try:
        documents = load_documents(text.encode() if isinstance(text, str) else text)
    except YamlError as error:
        raise CloudError(f"{source}: {error}", kind=ErrorKind.CONFIGURATION, hint=_HINT) from error
    templates: list[HollowTemplate] = []
    for document in _objects(documents):
        kind = f"{document.get('apiVersion')} {document.get('kind')}" if isinstance(document, dict) else "no object"
        if kind != "v1 ReplicationController" or not isinstance(document.get("metadata"), dict):
            raise CloudError(
                f"{source}: holds {kind}, not a v1 ReplicationController", kind=ErrorKind.CONFIGURATION, hint=_HINT
            )
        template = HollowTemplate.of_controller(document, source)
        if any(template.group == other.group for other in templates):
            what = f"group {template.group}" if template.group else "all groups"
            raise CloudError(f"{source}: has two templates for {what}", kind=ErrorKind.CONFIGURATION, hint=_HINT)
        templates.append(template)
    if not templates:
        raise CloudError(f"{source}: is empty", kind=ErrorKind.CONFIGURATION, hint=_HINT)
    return templates


def _objects(documents: Iterable[Any]) -> Iterable[Any]:
    for document in documents:
        if isinstance(document, dict) and document.get("kind") in ("List", "ReplicationControllerList"):
            yield from document.get("items") or ()
        elif document is not None:
            yield document


def choose(
    group: str, given: Sequence[HollowTemplate], controllers: Sequence[JsonObject]
) -> HollowTemplate | None:
    """The template for a group; ``controllers`` are all ReplicationControllers that there are, of every group."""
    for template in given:
        if template.group == group:
            return template
    oldest_first = sorted(controllers, key=lambda rc: (rc["metadata"].get("creationTimestamp") or "", _name(rc)))
    for controller in oldest_first:
        if group_of(controller) == group:
            return HollowTemplate.of_controller(controller, f"ReplicationController {_name(controller)}")
    for template in given:
        if not template.group:
            return template
    for controller in oldest_first:
        return HollowTemplate.of_controller(controller, f"ReplicationController {_name(controller)}")
    return None


def _name(controller: Mapping[str, Any]) -> str:
    return str(controller["metadata"]["name"])
