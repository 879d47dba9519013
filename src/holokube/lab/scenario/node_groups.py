"""Node groups of the Cluster Autoscaler: templates of the kwok provider, or short for one: a type of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from holokube.cluster_autoscaler.cloud.kwok.faults import BOOT_DELAY
from holokube.cluster_autoscaler.cloud.kwok.marks import GROUP_NAME, PREFIX
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.kwok.settings import (
    DESIRED_COUNT,
    MAX_COUNT,
    MIN_COUNT,
    PRICE,
    read_settings,
)
from holokube.hollow.profile import Spread
from holokube.kube.requirements import INSTANCE_TYPE_LABEL, Requirement
from holokube.kube.resources import to_json
from holokube.kube.timeformat import format_duration
from holokube.kube.types import JsonObject
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Told, Wrong, choose_among, choose_near
from holokube.lab.scenario.manifests import Manifests, file_name, object_problem, objects_of_file
from holokube.lab.scenario.shapes import Shape
from holokube.lab.scenario.values import Name, Reading, Text, Times, Whole
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import ON_DEMAND, Catalog, InstanceType, Offering

_INSTANCE_TYPE: Final = "instanceType"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A node group of machines from the catalogue, so that all policies buy at the same prices."""

    instance_type: Annotated[str, Text()]
    """The name of a type in the catalogue."""
    name: Annotated[str, Name()] = ""
    """By default made from the instance type, zone and capacity type."""
    zone: Annotated[str, Text()] = ""
    """The zone of its machines; by default the first zone in which the type is offered."""
    capacity_type: Annotated[str, Text()] = ON_DEMAND
    """``on-demand``, ``spot`` or whatever else the catalogue offers."""
    min: Annotated[int, Whole(0)] = 0
    """The minimum size of the group."""
    max: Annotated[int, Whole(1)] = 200
    """The maximum size of the group."""
    initial: Annotated[int | None, Whole(0)] = None
    """The size of the group at the start of the run, when these machines have already booted; by default ``min``."""
    boot: Annotated[Spread | None, Times()] = None
    """Time from the request for a machine to its Node; by default none. Fixed or uniform, not exponential."""

    def mistakes(self) -> Iterable[Wrong]:
        """Numbers that contradict each other."""
        if self.min > self.max:
            yield Wrong(f"{self.min} is above max, {self.max}", "Let min be at most max.", "min")
        elif self.initial is not None and not self.min <= self.initial <= self.max:
            remedy = f"Use a number from {self.min} to {self.max}."
            yield Wrong(f"{self.initial} is not between min and max", remedy, "initial")
        if self.boot is not None and self.boot.mean_s is not None:
            yield Wrong("has a mean", "Give min and max: machines of a group boot in a uniform time.", "boot")

    def template(self, catalog: Catalog) -> JsonObject:
        """The template of the kwok provider; Wrong if the catalogue does not have it."""
        one = next((known for known in catalog.types if known.name == self.instance_type), None)
        if one is None:
            names = [known.name for known in catalog.types]
            near = choose_among(self.instance_type, names) if len(names) <= 12 else ""
            remedy = near or f"{choose_near(self.instance_type, names)} It has {len(names)} types."
            raise Wrong(f"the catalogue has no type {self.instance_type!r}", remedy, _INSTANCE_TYPE)
        offering = self._offering(one)
        name = self.name or "-".join(filter(None, (one.name, offering.zone, self.capacity_type)))
        counts = {MIN_COUNT: self.min, MAX_COUNT: self.max}
        if self.initial is not None:
            counts[DESIRED_COUNT] = self.initial
        annotations = {GROUP_NAME: name, PREFIX + PRICE: f"{offering.price_usd_per_hour:.10g}"}
        annotations |= {PREFIX + key: str(count) for key, count in counts.items()}
        if self.boot is not None:
            low, high = format_duration(self.boot.min_s), format_duration(self.boot.max_s or self.boot.min_s)
            annotations[PREFIX + BOOT_DELAY] = low if low == high else f"{low}..{high}"
        labels = {
            INSTANCE_TYPE_LABEL: one.name,
            **_single_values(one.requirements.values()),
            **_single_values(offering.requirements.values()),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "status": {"capacity": to_json(one.capacity), "allocatable": to_json(one.allocatable)},
        }

    def _offering(self, one: InstanceType) -> Offering:
        of_kind = [offering for offering in one.offerings if offering.capacity_type == self.capacity_type]
        if not of_kind:
            remedy = choose_among(self.capacity_type, {offering.capacity_type for offering in one.offerings})
            raise Wrong(f"{one.name} is not offered as {self.capacity_type!r}", remedy, "capacityType")
        found = next((offering for offering in of_kind if offering.zone == self.zone or not self.zone), None)
        if found is None:
            remedy = choose_among(self.zone, {offering.zone for offering in of_kind})
            raise Wrong(f"{one.name} is not offered in zone {self.zone!r}", remedy, "zone")
        return found


def _single_values(requirements: Iterable[Requirement]) -> dict[str, str]:
    return {one.key: next(iter(one.values)) for one in requirements if one.operator == "In" and len(one.values) == 1}


@dataclass(frozen=True)
class NodeGroups(Manifests):
    """Node groups."""

    title: ClassVar[str] = "list: [NodeGroup](#nodegroup), or v1 Node [manifests](#manifests) of the kwok provider"
    example: ClassVar[str] = "[{instanceType: m-4x-amd64-linux, max: 50}]"

    def _one(self, given: Marked, path: str, reading: Reading) -> list[JsonObject]:
        if isinstance(given.value, dict) and "kind" not in given.value and "file" not in given.value:
            group: NodeGroup = Shape(NodeGroup).read(given, path, reading)
            if reading.has_wrong_catalog:
                # Whether the type is there cannot be known, and what is wrong with the catalogue is told.
                raise Told
            return [group.template(reading.catalog or generate())]
        name = file_name(given, path, reading)
        objects: list[Any] = objects_of_file(name, given, reading) if name else [given.plain]
        for obj in objects:
            problem = object_problem(obj)
            if problem is not None:
                raise problem
            if obj["kind"] != "Node":
                raise Wrong(f"is a {obj['kind']}, not a Node", "Node groups are v1 Nodes; others go to manifests.")
        problems = Problems()
        for obj in objects:
            read_settings(obj, obj["metadata"]["name"], problems)
        told = [*problems.errors, *problems.warnings]
        for what in told:
            reading.problem(given.mark, path, what, f"Annotations begin with {PREFIX}; docs/cluster-autoscaler.md.")
        if told:
            raise Told
        return objects
