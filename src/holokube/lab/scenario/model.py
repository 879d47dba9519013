"""A scenario as the runner gets it: every file is read, every duration is in seconds since the run began.

What a scenario file may say is what these types say; docs/scenario.md is made of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from holokube.base.errors import UsageError
from holokube.cluster.policies import Supply, check_flags, kinds, supply_of
from holokube.hollow.node_sets import Maker
from holokube.hollow.node_template import ZONE, NodeTemplate, ProfileTemplate
from holokube.hollow.profile import Profile
from holokube.kube.timeformat import format_duration
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Timeline
from holokube.lab.scenario.assertions import Assertion, AssertionValue, Operator
from holokube.lab.scenario.behaviour import PodBehaviour, pod_template_of
from holokube.lab.scenario.curves import ARRIVALS, CURVES, Arrivals, Curve, CurveValue
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Wrong, choose_among
from holokube.lab.scenario.fault_targets import missed_targets
from holokube.lab.scenario.faults import (
    FAULTS,
    ApiErrors,
    Fault,
    FaultArguments,
    FaultKind,
    FaultValue,
    NodeSilence,
    SlowBoot,
    SpotReclaim,
    StockOut,
    ZoneLoss,
)
from holokube.lab.scenario.file_values import CatalogValue, NodeTemplateValue, ProfileValue
from holokube.lab.scenario.manifests import Manifests
from holokube.lab.scenario.node_classes import missing_classes
from holokube.lab.scenario.node_groups import NodeGroups
from holokube.lab.scenario.shapes import Called, Shape, Tagged
from holokube.lab.scenario.traces import TraceSource, TraceValue
from holokube.lab.scenario.values import Choice, Duration, ListOf, Moment, Name, Reading, Text, Truth, Whole
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import Catalog

__all__ = [
    "API_VERSION",
    "COPY",
    "KIND",
    "ApiErrors",
    "Arrivals",
    "Assertion",
    "ClusterSpec",
    "Curve",
    "Fault",
    "FaultArguments",
    "FaultKind",
    "NodeSilence",
    "Operator",
    "PodBehaviour",
    "PolicySpec",
    "Scenario",
    "SlowBoot",
    "SpotReclaim",
    "StockOut",
    "Workload",
    "ZoneLoss",
]

API_VERSION: Final = "holokube.dev/v1alpha1"
KIND: Final = "Scenario"
DEFAULT_START_S: Final = 1_767_571_200.0
"""2026-01-05T00:00:00Z, a Monday."""
SAMPLES_MAX: Final = 1_000_000
"""Each is a row of the report; more would take all memory long before the end."""
COPY: Final = "$(copy)"
"""Stands in manifests for the number of a copy."""

POLICY_KINDS: Final = tuple(kinds())
SCALABLE_KINDS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
ARRIVING_KINDS: Final = ("Job", "Pod")


class ZonedTemplate:
    """A template whose nodes are put into zones in turn."""

    def __init__(self, template: NodeTemplate, zones: tuple[str, ...]) -> None:
        self._template = template
        self._zones = zones

    def render(self, name: str, index: int) -> JsonObject:
        node = self._template.render(name, index)
        metadata = node["metadata"]
        labels = {**(metadata.get("labels") or {}), ZONE: self._zones[index % len(self._zones)]}
        return {**node, "metadata": {**metadata, "labels": labels}}


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster at the start of the run."""

    snapshot_objects: Annotated[tuple[JsonObject, ...], Called("snapshots"), Manifests(as_new=False)] = ()
    """Output of ``holokube snapshot`` or ``kubectl get ... -o yaml``, restored as it was: with status, bindings and
    nodes."""
    manifests: Annotated[tuple[JsonObject, ...], Manifests()] = ()
    """Further objects: namespaces, priority classes, DaemonSets and so on."""
    nodes: Annotated[int, Whole(0, 100_000)] = 0
    """The number of hollow nodes that exist throughout the run."""
    zones: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Zones of these nodes, assigned in turn."""
    node_template: Annotated[NodeTemplate | None, NodeTemplateValue()] = None
    """The template of these nodes; by default they are made as the profile says."""
    profile: Annotated[Profile, ProfileValue()] = field(default_factory=Profile)
    """How hollow nodes and pods behave."""
    node_sizing: Annotated[bool, Truth()] = False
    """Whether DaemonSet pods are sized to their node, as by the webhook ``holokube node-sizing``."""

    @property
    def objects(self) -> tuple[JsonObject, ...]:
        """Of snapshots and manifests, in this order."""
        return (*self.snapshot_objects, *self.manifests)

    @property
    def profile_name(self) -> str:
        """On which the profile is based."""
        return self.profile.base

    @property
    def node_maker(self) -> Maker:
        """Makes the hollow nodes."""
        if self.node_template is None:
            return ProfileTemplate(self.profile.nodes, self.zones)
        return ZonedTemplate(self.node_template, self.zones) if self.zones else self.node_template

    def mistakes(self) -> Iterator[Wrong]:
        """Settings of nodes without any."""
        if not self.nodes:
            for name, given in (("zones", self.zones), ("nodeTemplate", self.node_template)):
                if given:
                    yield Wrong("is for nodes, and there are none", "Add `nodes: 10`, or leave it out.", name)


@dataclass(frozen=True, slots=True)
class Workload:
    """Manifests, and what happens to them over time."""

    name: Annotated[str, Name()]
    """Unique among the workloads."""
    manifests: Annotated[tuple[JsonObject, ...], Manifests()]
    """Deployments, StatefulSets, DaemonSets, Jobs, CronJobs or Pods, with whatever they need: Services,
    PodDisruptionBudgets, claims. They are created at the start of the run."""
    curve: Annotated[Curve | None, CurveValue(CURVES)] = None
    """The number of replicas of the first Deployment, StatefulSet or ReplicaSet over time; by default what its manifest
    says."""
    arrivals: Annotated[Arrivals | None, Tagged(ARRIVALS)] = None
    """When Jobs or Pods are created from the first such manifest, each with a new name. The manifest itself is not
    created at the start."""
    behaviour: Annotated[PodBehaviour, Shape(PodBehaviour)] = field(default_factory=PodBehaviour)
    """How its pods behave."""
    copies: Annotated[int, Whole(1, 10_000)] = 1
    """Create this many copies of the workload, each with its own random draws. ``$(copy)`` in the manifests stands for
    the number of the copy, starting at 0."""

    @property
    def scaled(self) -> JsonObject | None:
        """The manifest whose replicas the curve is about."""
        return next((obj for obj in self.manifests if obj["kind"] in SCALABLE_KINDS), None)

    @property
    def arriving(self) -> JsonObject | None:
        """The manifest of what arrives."""
        return next((obj for obj in self.manifests if obj["kind"] in ARRIVING_KINDS), None)

    def mistakes(self) -> Iterator[Wrong]:
        """Manifests and what is to become of them do not fit."""
        kinds = ", ".join(obj["kind"] for obj in self.manifests)
        if not self.manifests:
            yield Wrong("is empty", "Add a manifest, such as `- file: web.yaml`.", "manifests")
        elif self.curve is not None and self.scaled is None:
            yield Wrong(f"needs replicas, and has {kinds}", f"Add a {SCALABLE_KINDS[0]}, or leave it out.", "curve")
        elif self.arrivals is not None and self.arriving is None:
            yield Wrong(f"needs a Job or Pod, and has {kinds}", "Add one, or leave it out.", "arrivals")
        if self.curve is not None and self.arrivals is not None:
            yield Wrong("stands next to curve", "Make two workloads of it.", "arrivals")
        if self.arrivals is None:
            jobs = any(obj["kind"] in ("Job", "CronJob") for obj in self.manifests)
            for wrong in self.behaviour.undrawable(jobs):
                yield Wrong(wrong.what, wrong.remedy, f"behaviour.{wrong.field}")
        yield from self._manifest_mistakes()

    def _manifest_mistakes(self) -> Iterator[Wrong]:
        for obj in self.manifests:
            if obj["kind"] in (*SCALABLE_KINDS, *ARRIVING_KINDS, "DaemonSet", "CronJob"):
                template = pod_template_of(obj)
                spec = template.get("spec") if template is not None else None
                if not isinstance(spec, dict) or not spec.get("containers"):
                    what = f"{obj['kind']} {obj['metadata']['name']} has no containers"
                    yield Wrong(what, "Add spec.template.spec.containers (spec.containers for a Pod).", "manifests")
            if self.copies > 1 and COPY not in obj["metadata"]["name"]:
                what = f"{obj['kind']} {obj['metadata']['name']} would have {self.copies} copies of one name"
                yield Wrong(what, f"Put {COPY} into its name, labels and selectors: web-{COPY}.", "manifests")
        names = Counter(
            (obj["kind"], obj["metadata"].get("namespace") or "default", obj["metadata"]["name"])
            for obj in self.manifests
        )
        for (kind, namespace, name), count in names.items():
            if count > 1:
                yield Wrong(f"has {kind} {namespace}/{name} {count} times", "Give each a name of its own.", "manifests")


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Who decides how many nodes there are. A policy without settings may be written as its kind: ``- karpenter``."""

    kind: Annotated[str, Choice(words=POLICY_KINDS)]
    """``none`` leaves the nodes as they are. ``optimal`` is Karpenter with a planner that looks for the cheapest nodes;
    it needs the extra ``optimal`` (in a clone: ``pip install '.[optimal]'``)."""
    name: Annotated[str, Name()] = ""
    """Its label in tables and for ``--policy``; by default the kind."""
    flags: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Command-line flags of the autoscaler, with upstream's names."""
    node_groups: Annotated[tuple[JsonObject, ...], NodeGroups()] = ()
    """Only for ``cluster-autoscaler``. By default there are three: small, medium and large."""
    manifests: Annotated[tuple[JsonObject, ...], Manifests()] = ()
    """NodePools, node classes and other objects that exist only with this policy. Without a NodePool, Karpenter gets
    one that allows all on-demand types."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)

    def mistakes(self) -> Iterator[Wrong]:
        """Settings that are another policy's."""
        supply = supply_of(self.kind)
        if self.node_groups and supply is not Supply.NODE_GROUPS:
            remedy = "Write NodePools into manifests." if supply is Supply.NODE_POOLS else "Leave them out."
            yield Wrong(f"are not for {self.kind}", remedy, "nodeGroups")
        names = [node["metadata"]["name"] for node in self.node_groups]
        for number, name in enumerate(names):
            if names.index(name) != number:
                what = f"{name!r} is also the name of nodeGroups[{names.index(name)}]"
                yield Wrong(what, "Give each a name of its own, such as `name: spare`.", f"nodeGroups[{number}]")
        try:
            check_flags(self.kind, self.flags)
        except UsageError as error:
            yield Wrong(error.message, error.hint or "See its --help.", "flags")


@dataclass(frozen=True)
class PolicyValue(Shape):
    """A policy, or short for one without settings its kind."""

    example: ClassVar[str] = "karpenter"

    def read(self, given: Marked, path: str, reading: Reading) -> PolicySpec:
        if isinstance(given.value, str):
            return PolicySpec(Choice(words=POLICY_KINDS).read(given, path, reading))
        policy: PolicySpec = super().read(given, path, reading)
        return policy

    def shown(self, value: Any) -> str:
        return str(value.kind)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The fields of a scenario."""

    name: str
    """``metadata.name``."""
    duration_s: Annotated[float, Duration(above_zero=True)]
    """How long the run is, in virtual time."""
    description: Annotated[str, Text()] = ""
    """What the scenario is about, for readers of the report."""
    seed: Annotated[int, Whole(0, 2**53)] = 1
    """Seed of all random draws. ``--seed`` overrides it."""
    start_s: Annotated[float, Moment()] = DEFAULT_START_S
    """The virtual time at which the run starts; it matters to everything that follows the time of day. With
    ``cluster.snapshots``, by default not before the last thing that happened in them."""
    cluster: Annotated[ClusterSpec, Shape(ClusterSpec)] = field(default_factory=ClusterSpec)
    """The cluster at the start of the run."""
    catalog: Annotated[Catalog | None, CatalogValue()] = None
    """The instance types that the cloud offers, with their prices. By default the generated catalogue of Karpenter's
    kwok provider: types such as ``m-4x-amd64-linux`` in ``test-zone-a`` to ``test-zone-d``."""
    workloads: Annotated[tuple[Workload, ...], ListOf(Shape(Workload))] = ()
    """What runs in the cluster."""
    timeline: Annotated[Timeline | None, Called("trace"), TraceValue(TraceSource)] = None
    """A trace of another cluster, replayed in addition to the workloads."""
    policies: Annotated[tuple[PolicySpec, ...], ListOf(PolicyValue(PolicySpec), at_least=1)] = (PolicySpec("none"),)
    """Each policy is a run of its own; ``--policy`` selects some of them by name."""
    faults: Annotated[tuple[Fault, ...], ListOf(FaultValue(FAULTS))] = ()
    """What goes wrong, and when."""
    sampling_s: Annotated[float, Called("sampling"), Duration(above_zero=True)] = 60.0
    """How often nodes, cost, utilisation and pending pods are sampled."""
    assertions: Annotated[tuple[Assertion, ...], ListOf(AssertionValue())] = ()
    """What must hold at the end of every run; if an assertion fails, the exit code of ``holokube run`` is 3."""
    text: str = ""
    """The file as it was read, and in comments below it those that it names."""
    path: str = ""

    def mistakes(self) -> Iterator[Wrong]:
        """What of several parts does not fit together."""
        for what, names in (
            ("workloads", [one.name for one in self.workloads]),
            ("policies", [one.name for one in self.policies]),
        ):
            for number, name in enumerate(names):
                first = names.index(name)
                if first != number:
                    remedy = "Give each a name of its own."
                    yield Wrong(f"{name!r} is also the name of {what}[{first}]", remedy, f"{what}[{number}].name")
        if self.sampling_s > self.duration_s:
            yield Wrong("is longer than the run", "Let it be shorter than duration.", "sampling")
        elif self.duration_s / self.sampling_s > SAMPLES_MAX:
            least = format_duration(math.ceil(self.duration_s / SAMPLES_MAX))
            yield Wrong(f"makes more than {SAMPLES_MAX:,} samples", f"Use {least} or more.", "sampling")
        for number, fault in enumerate(self.faults):
            if fault.at_s >= self.duration_s:
                remedy = "It counts from the start of the run; let it be earlier, or duration longer."
                yield Wrong("is after the end of the run", remedy, f"faults[{number}].at")
        yield from self._zone_mistakes()
        yield from missed_targets(self)
        yield from missing_classes(self)
        yield from self._same_objects()

    def zones(self) -> set[str]:
        """All zones that nodes may be in; empty if they are not named."""
        nodes = [obj for obj in self.cluster.objects if obj["kind"] == "Node"]
        for policy in self.policies:
            nodes.extend(policy.node_groups)
        found = {*self.cluster.zones, *((node["metadata"].get("labels") or {}).get(ZONE, "") for node in nodes)}
        for policy in self.policies:
            if supply_of(policy.kind) is Supply.NODE_POOLS:
                found |= {offer.zone for one in (self.catalog or generate()).types for offer in one.offerings}
        return found - {""}

    def _zone_mistakes(self) -> Iterator[Wrong]:
        known = self.zones()
        for number, fault in enumerate(self.faults):
            zone = getattr(fault.arguments, "zone", "")
            zones = (zone,) if zone else getattr(fault.arguments, "zones", ())
            for one in zones:
                if one not in known:
                    field = "zone" if zone else "zones"
                    yield Wrong(f"no node can be in {one!r}", choose_among(one, known), f"faults[{number}].{field}")

    def _same_objects(self) -> Iterator[Wrong]:
        owners: dict[tuple[str, str, str], int] = {}
        for number, workload in enumerate(self.workloads):
            for obj in workload.manifests:
                metadata = obj["metadata"]
                key = (obj["kind"], metadata.get("namespace") or "default", metadata["name"])
                first = owners.setdefault(key, number)
                if first != number:
                    what = f"has {key[0]} {key[1]}/{key[2]}, as workloads[{first}] does"
                    yield Wrong(what, "Give each a name or namespace of its own.", f"workloads[{number}].manifests")
