"""Scenarios: a small cluster with its node groups, written by hand, and the turns of the autoscaler to be played.

A scenario is terse where Kubernetes objects are not: ``cpu: "4"`` instead of a container with its resources.
``scenario_objects`` makes complete objects of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holokube.base.errors import UsageError
from holokube.kube import quantity
from holokube.kube.timeformat import parse_duration

Quantity = str | int | float

LONG_AGO_S = 24 * 3600.0
"""How long nodes have been there, unless told otherwise."""
POD_AGE_S = 600.0
"""How old pods are: too old to be overlooked, too young for the rules that forgive old ones."""
_QUANTITY_HINT = "Write quantities and durations as Kubernetes and Go do: 500m, 8Gi, 10m."


class Template(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """What a new node of a group looks like; all of its capacity can be allocated."""

    cpu: Quantity
    memory: Quantity
    pods: Quantity = "110"
    labels: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    extra: dict[str, Quantity] = {}


class Group(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """A node group."""

    id: str
    min: int
    max: int
    template: Template
    target: int | None = None
    """As many as it has nodes, unless told."""
    price_per_hour: float | None = None
    fail_increase: bool | str = False
    """The provider refuses to make nodes; a text is its error message."""


class Node(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """A node that exists."""

    name: str
    cpu: Quantity
    memory: Quantity
    group: str = ""
    """Nobody's, unless told."""
    pods: Quantity = "110"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    extra: dict[str, Quantity] = {}
    ready: bool = True
    age_seconds: float = LONG_AGO_S


class Pod(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """A pod, or several alike."""

    name: str
    count: int = 1
    """If more than one, the pods are ``name-0``, ``name-1`` and so on."""
    namespace: str = "default"
    cpu: Quantity = 0
    memory: Quantity = 0
    extra: dict[str, Quantity] = {}
    node: str = ""
    """Where it runs; without, it waits and the scheduler has found no place."""
    owner_kind: str = ""
    owner_name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    affinity: dict[str, Any] = {}
    topology_spread_constraints: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []
    age_seconds: float = POD_AGE_S

    @property
    def names(self) -> list[str]:
        """The names of the pods."""
        return [f"{self.name}-{index}" for index in range(self.count)] if self.count > 1 else [self.name]


class Loop(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """One turn of the autoscaler."""

    advance: str = ""
    """How long to wait before it."""
    on_increase: str = ""


class Scenario(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """A cluster, its node groups, and what is to be played."""

    node_groups: list[Group]
    flags: list[str] = []
    nodes: list[Node] = []
    pods: list[Pod] = []
    daemon_sets: list[dict[str, Any]] = []
    pdbs: list[dict[str, Any]] = []
    config_maps: list[dict[str, Any]] = []
    pod_price_per_cpu_hour: float = msgspec.field(default=0.0, name="podPricePerCPUHour")
    pod_price_per_gib_hour: float = msgspec.field(default=0.0, name="podPricePerGiBHour")
    loops: list[Loop] = msgspec.field(default_factory=lambda: [Loop()])
    on_increase: str = ""
    """``create``: nodes that were asked for are there in the next turn. Otherwise they never come."""


def is_scenario(value: Any) -> bool:
    """Whether a document is a scenario, not Kubernetes objects."""
    return isinstance(value, Mapping) and "nodeGroups" in value and "kind" not in value


def read_scenario(value: Any, where: str) -> Scenario:
    """The scenario in a document; UsageError says which field of which file is wrong."""
    try:
        scenario = msgspec.convert(value, Scenario)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}", hint=_fields_hint(str(error))) from error
    for index, loop in enumerate(scenario.loops):
        if loop.advance:
            _check(lambda text=loop.advance: parse_duration(text), where, f"loops[{index}].advance")
        if loop.on_increase not in ("", "create"):
            raise UsageError(f"{where}: loops[{index}].onIncrease: {loop.on_increase!r} is not known",
                             hint='Use "create", or leave it out.')
    if scenario.on_increase not in ("", "create"):
        raise UsageError(f"{where}: onIncrease: {scenario.on_increase!r} is not known",
                         hint='Use "create", or leave it out.')
    _check_groups(scenario, where)
    _check_quantities(scenario, where)
    return scenario


def _fields_hint(message: str) -> str:
    """The fields that may stand where the fault is."""
    places = (
        (".template", Template), ("$.nodeGroups[", Group), ("$.nodes[", Node), ("$.pods[", Pod), ("$.loops[", Loop))
    kind = next((kind for mark, kind in places if mark in message), Scenario)
    names = ", ".join(one.encode_name for one in msgspec.structs.fields(kind))
    return f"A {kind.__name__.lower()} may have {names}."


def _check_groups(scenario: Scenario, where: str) -> None:
    ids = [group.id for group in scenario.node_groups]
    for index, group in enumerate(scenario.node_groups):
        if ids.index(group.id) != index:
            raise UsageError(f"{where}: nodeGroups[{index}].id: {group.id!r} is taken by another group",
                             hint="Give every group an id of its own.")
        if not 0 <= group.min <= group.max:
            raise UsageError(f"{where}: nodeGroups[{index}]: min {group.min} and max {group.max} do not go together",
                             hint="min must be 0 or more, and max not less than min.")
    names = {node.name for node in scenario.nodes}
    for index, node in enumerate(scenario.nodes):
        if node.group and node.group not in ids:
            raise UsageError(f"{where}: nodes[{index}].group: there is no group {node.group!r}",
                             hint=f"Use one of {', '.join(ids)}, or leave it out for a node that is not autoscaled.")
    for index, pod in enumerate(scenario.pods):
        if pod.node and pod.node not in names:
            raise UsageError(f"{where}: pods[{index}].node: there is no node {pod.node!r}",
                             hint="Name one of the nodes, or leave it out for a pod that waits.")
        if bool(pod.owner_kind) != bool(pod.owner_name):
            raise UsageError(f"{where}: pods[{index}]: ownerKind and ownerName belong together",
                             hint="Give both or neither.")


def _check_quantities(scenario: Scenario, where: str) -> None:
    items: list[tuple[str, Template | Node | Pod]] = [
        *((f"nodeGroups[{index}].template", group.template) for index, group in enumerate(scenario.node_groups)),
        *((f"nodes[{index}]", node) for index, node in enumerate(scenario.nodes)),
        *((f"pods[{index}]", pod) for index, pod in enumerate(scenario.pods)),
    ]
    for path, item in items:
        given = {"cpu": item.cpu, "memory": item.memory}
        given |= {f"extra.{key}": amount for key, amount in item.extra.items()}
        if not isinstance(item, Pod):
            given["pods"] = item.pods
        for name, amount in given.items():
            _check(lambda amount=amount: quantity.parse(amount), where, f"{path}.{name}")


def _check(read: Any, where: str, field: str) -> None:
    try:
        read()
    except ValueError as error:
        raise UsageError(f"{where}: {field}: {error}", hint=_QUANTITY_HINT) from error
