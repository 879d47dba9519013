"""Node objects in numbers: one manifest, written plainly or as a template, made into many nodes.

A template has the functions of Stages and besides ``Name``, ``Index``, ``AddIP`` and ``AddCIDR``, as the templates of
``kwokctl scale`` do; parameters are fields of the dot. A plain manifest gets the name and the host name of each node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holokube.base.errors import UsageError
from holokube.hollow.node_life import registration
from holokube.hollow.profile import NodeProfile
from holokube.hollow.stages.errors import TemplateError
from holokube.hollow.stages.template import Template
from holokube.kube.types import JsonObject

NODE_SET = "holokube.dev/node-set"
"""Label of nodes that were made together: whoever scales a set touches no others."""
ADOPTION = ("kwok.x-k8s.io/node", "fake")
"""Annotation by which fleets, and kwok, take a node as theirs."""
ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_FUNCTIONS = ("Name", "Index", "AddIP", "AddCIDR")
_HINT = "A template is one v1 Node manifest; {{ Name }}, {{ Index }}, {{ AddIP }} and {{ AddCIDR }} are the node's."


class NodeTemplate:
    """Makes the manifest of the node with a given number."""

    def __init__(self, text: str, source: str, parameters: Mapping[str, str] | None = None) -> None:
        self._source = source
        self._parameters = dict(parameters or {})
        self._templated = "{{" in text
        try:
            self._template = Template(text, functions=_FUNCTIONS)
        except TemplateError as error:
            more = f" Supported: {error.supported}." if error.supported else ""
            raise UsageError(f"{source}: {error}", hint=_HINT + more) from error
        # Every mistake that does not depend on the number is found before the first node is made.
        self.render("name", 0)

    @classmethod
    def load(cls, path: Path, parameters: Mapping[str, str] | None = None) -> NodeTemplate:
        """Reads a file."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UsageError(f"cannot read the template {path}: {why}", hint=_HINT) from error
        return cls(text, str(path), parameters)

    def render(self, name: str, index: int) -> JsonObject:
        """The Node; marks are not on it yet."""
        functions: dict[str, Callable[..., Any]] = {
            "Name": lambda: name,
            "Index": lambda: index,
            "AddIP": lambda address, by=index: str(ipaddress.ip_address(address) + int(by)),
            "AddCIDR": lambda cidr, by=index: _next_range(cidr, int(by)),
        }
        try:
            node = self._template.render_yaml(self._parameters, functions)
        except TemplateError as error:
            raise UsageError(f"{self._source}: {error}", hint=_HINT) from error
        return self._checked(node, name)

    def _checked(self, node: Any, name: str) -> JsonObject:
        if not isinstance(node, dict) or (node.get("apiVersion"), node.get("kind")) != ("v1", "Node"):
            what = f"{node.get('apiVersion')} {node.get('kind')}" if isinstance(node, dict) else "no object"
            raise UsageError(f"{self._source}: is {what}, not a v1 Node", hint=_HINT)
        meta = node.setdefault("metadata", {}) or {}
        if not isinstance(meta, dict) or not all(
            isinstance(meta.get(field) or {}, dict) for field in ("labels", "annotations")
        ):
            raise UsageError(f"{self._source}: metadata, its labels and annotations must be objects", hint=_HINT)
        given = meta.get("name")
        if self._templated and given not in (None, name):
            raise UsageError(
                f"{self._source}: the name of node {name} would be {given!r}", hint="Write `name: {{ Name }}`, or none."
            )
        labels = dict(meta.get("labels") or {})
        if given is not None and labels.get(_HOSTNAME) == given:
            labels[_HOSTNAME] = name
        # What belongs to one object only cannot be the template of many.
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName"):
            meta.pop(field, None)
        return {**node, "metadata": {**meta, "name": name, "labels": labels}}


def _next_range(cidr: str, index: int) -> str:
    network = ipaddress.ip_network(cidr, strict=False)
    base = int(network.network_address) + index * network.num_addresses
    return f"{ipaddress.ip_address(base) if network.version == 4 else ipaddress.IPv6Address(base)}/{network.prefixlen}"


class ProfileTemplate:
    """Nodes without a template file: as a fleet would register them, spread over zones in turn."""

    def __init__(self, profile: NodeProfile, zones: Sequence[str] = ()) -> None:
        self._profile = profile
        self._zones = tuple(zones)

    def render(self, name: str, index: int) -> JsonObject:
        node = registration(name, self._profile)
        if self._zones:
            node["metadata"]["labels"][ZONE] = self._zones[index % len(self._zones)]
        return node


def marked(node: JsonObject, node_set: str) -> JsonObject:
    """The node as one of a set, and for a fleet to adopt."""
    meta = node["metadata"]
    labels = {**(meta.get("labels") or {}), NODE_SET: node_set}
    annotations = {**(meta.get("annotations") or {})}
    annotations.setdefault(*ADOPTION)
    return {**node, "metadata": {**meta, "labels": labels, "annotations": annotations}}


def index_of(name: str, node_set: str) -> int:
    """The number in the name of a node of a set; -1 for a name of another kind."""
    number = name.removeprefix(f"{node_set}-")
    return int(number) if number != name and number.isdecimal() and number.isascii() else -1


def missing_indexes(owned: Sequence[str], taken: Sequence[str], node_set: str, count: int) -> list[int]:
    """The numbers of ``count`` new nodes: the lowest that neither the set nor a stranger's node has."""
    used = {index_of(name, node_set) for name in (*owned, *taken)}
    found: list[int] = []
    index = 0
    while len(found) < count:
        if index not in used:
            found.append(index)
        index += 1
    return found


def newest_first(nodes: Sequence[JsonObject], node_set: str) -> list[JsonObject]:
    """The order in which nodes of a set go."""
    return sorted(
        nodes,
        key=lambda node: (
            node["metadata"].get("creationTimestamp", ""),
            index_of(node["metadata"]["name"], node_set),
            node["metadata"]["name"],
        ),
        reverse=True,
    )
