"""Whether what faults name is there to be hit: a fault that misses its target would do nothing, without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from holokube.apiserver.resources import ResourceTable
from holokube.apiserver.types import TypeCatalog
from holokube.cluster.cloud import capacity_type_of
from holokube.cluster.cluster_autoscaler_policy import default_groups
from holokube.cluster_autoscaler.cloud.kwok.marks import GROUP_NAME, annotations_of
from holokube.karpenter.api.resources import ALL
from holokube.kube.requirements import INSTANCE_TYPE_LABEL
from holokube.kube.types import JsonObject
from holokube.lab.scenario.errors import Wrong, choose_among, choose_near
from holokube.lab.scenario.faults import ApiErrors, StockOut
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import ON_DEMAND, SPOT

if TYPE_CHECKING:
    from holokube.lab.scenario.model import Scenario

_DEFAULT_POOL: Final = "default"
"""The NodePool that Karpenter gets where there is none."""


def missed_targets(scenario: Scenario) -> Iterator[Wrong]:
    """What stock-outs and API errors name and nothing has."""
    for number, fault in enumerate(scenario.faults):
        what = fault.arguments
        if isinstance(what, StockOut):
            yield from _unknown(what.instance_types, _types(scenario), "type", f"faults[{number}].instanceTypes")
            yield from _unknown(what.groups, _groups(scenario), "node group or NodePool", f"faults[{number}].groups")
            yield from _unknown(
                what.capacity_types, _capacity_types(scenario), "capacity type", f"faults[{number}].capacityTypes"
            )
        elif isinstance(what, ApiErrors):
            for place, kind in enumerate(what.kinds):
                known = _kinds() | {obj["kind"] for obj in _objects(scenario)}
                if kind.lower() not in {one.lower() for one in known} | _plurals():
                    field = f"faults[{number}].kinds[{place}]"
                    yield Wrong(f"there is no kind {kind!r}", choose_near(kind, sorted(known)), field)


def _unknown(names: Sequence[str], known: set[str] | None, what: str, field: str) -> Iterator[Wrong]:
    for place, name in enumerate(names):
        if known is not None and name not in known:
            remedy = choose_among(name, known) if len(known) <= 12 else choose_near(name, sorted(known))
            yield Wrong(f"there is no {what} {name!r}", remedy, f"{field}[{place}]")


def _objects(scenario: Scenario) -> Iterator[JsonObject]:
    yield from scenario.cluster.objects
    for workload in scenario.workloads:
        yield from workload.manifests
    for policy in scenario.policies:
        yield from policy.manifests


def _templates(scenario: Scenario) -> list[JsonObject]:
    """Of all node groups."""
    return [node for policy in scenario.policies for node in policy.node_groups or default_groups()]


def _types(scenario: Scenario) -> set[str]:
    labels = [node["metadata"].get("labels") or {} for node in _templates(scenario)]
    found = {one.name for one in (scenario.catalog or generate()).types}
    return found | {str(one.get(INSTANCE_TYPE_LABEL, "")) for one in labels} - {""}


def _capacity_types(scenario: Scenario) -> set[str]:
    labels = [node["metadata"].get("labels") or {} for node in _templates(scenario)]
    offered = {offer.capacity_type for one in (scenario.catalog or generate()).types for offer in one.offerings}
    return (offered | set(map(capacity_type_of, labels)) | {ON_DEMAND, SPOT}) - {""}


def _groups(scenario: Scenario) -> set[str] | None:
    """None if templates leave it to the provider how their groups are called."""
    named = {annotations_of(node).get(GROUP_NAME, "") for node in _templates(scenario)}
    if "" in named:
        return None
    pools = {obj["metadata"]["name"] for obj in _objects(scenario) if obj["kind"] == "NodePool"}
    return named | pools | {_DEFAULT_POOL}


@cache
def _table() -> ResourceTable:
    return ResourceTable(TypeCatalog())


def _kinds() -> set[str]:
    return {one.kind for one in _table()} | {one.kind for one in ALL}


def _plurals() -> set[str]:
    return {one.plural for one in _table()} | {one.plural for one in ALL}
