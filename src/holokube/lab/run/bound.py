"""What a run must have cost at least: no way to place its pods on the nodes that could be bought is cheaper.

The run is cut into intervals. In each, only pods count that had a node from its beginning to its end, so that at every
moment at least these were somewhere, and what they cost at least in an hour holds for the whole interval. Nodes that
nobody has bought cost what they cost, and pods on them ask for nothing more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Final

from holokube.cluster.cloud import capacity_type_of
from holokube.cluster.cluster_autoscaler_policy import default_groups
from holokube.cluster.policies import Supply, supply_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import NODE_POOLS
from holokube.karpenter.optimal.solver_library import is_installed
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.kube.requirements import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, WELL_KNOWN_LABELS, ZONE_LABEL
from holokube.kube.resources import parse_resources
from holokube.kube.types import JsonObject
from holokube.lab.run.amounts import HOUR_MS
from holokube.lab.run.node_meter import GROUP_ANNOTATION, NodeRecord
from holokube.lab.run.pod_meter import PodRecord
from holokube.lab.run.prices import PRICE_ANNOTATION, price_usd_per_hour
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import ON_DEMAND, InstanceType, Offering, type_requirements

INTERVALS_MAX: Final = 48
_DIGITS: Final = 6
_UID: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Offers:
    """What could be bought."""

    pools: Sequence[NodePool]
    types_of_pool: Mapping[str, Sequence[InstanceType]]
    well_known: frozenset[str]


def lower_bound_usd(
    scenario: Scenario, policy: PolicySpec, pods: Sequence[PodRecord], examples: Sequence[JsonObject],
    nodes: Sequence[NodeRecord], daemon_pods: Sequence[JsonObject], end_ms: int,
) -> float | None:  # fmt: skip
    """USD of the whole run; None where it cannot be told: without the solver, or with offers that have no price."""
    offers = offers_of(scenario, policy)
    if offers is None or not is_installed() or not end_ms:
        return None
    count = min(INTERVALS_MAX, max(1, round(end_ms / (scenario.sampling_s * 1000))))
    borders_ms = [end_ms * number // count for number in range(count + 1)]
    mixtures = there_throughout(pods, borders_ms)
    problem = Problem(
        pools=offers.pools, types_of_pool=offers.types_of_pool, pods=_waiting(examples), daemon_pods=daemon_pods,
        options=SolveOptions(preference_policy="Ignore", size_daemons=scenario.cluster.node_sizing),
        now_s=scenario.start_s, well_known=offers.well_known,
    )  # fmt: skip
    usd = _given_usd(nodes, end_ms)
    for price, (begin_ms, until_ms) in zip(_prices(problem, mixtures), pairwise(borders_ms), strict=True):
        usd += price * (until_ms - begin_ms) / HOUR_MS
    return round(usd, _DIGITS)


def _prices(problem: Problem, mixtures: Sequence[Mapping[int, int]]) -> list[float]:
    # Imported here: whoever has not installed the extra can run scenarios all the same.
    from holokube.karpenter.optimal.planning import mixture_bounds
    from holokube.karpenter.optimal.search import Effort

    # What patterns and a search for whole nodes would add is a hundredth, and costs thirty times as much.
    effort = Effort(improvement_rounds=0, column_rounds=0, whole_nodes=0, pattern_work=0)
    return mixture_bounds(problem, mixtures, effort=effort)


def _given_usd(nodes: Sequence[NodeRecord], end_ms: int) -> float:
    """What nodes cost that no policy has bought, and none can give back."""
    return fsum(
        node.price_usd_per_hour * ((end_ms if node.removed_ms is None else node.removed_ms) - node.created_ms) / HOUR_MS
        for node in nodes
        if not node.group
    )


def there_throughout(pods: Sequence[PodRecord], borders_ms: Sequence[int]) -> list[Counter[int]]:
    """For each interval between two borders, how many pods of each shape were on bought nodes from end to end."""
    # What changes from an interval to the next: each pod comes once and goes once.
    changes: list[Counter[int]] = [Counter() for _ in borders_ms]
    for pod in pods:
        node = pod.node
        if pod.shape < 0 or node is None or pod.bound_ms is None or not node.group:
            continue
        first = bisect_left(borders_ms, pod.bound_ms)
        ends_ms = [at_ms for at_ms in (pod.ended_ms, node.removed_ms) if at_ms is not None]
        after = bisect_right(borders_ms, min(ends_ms, default=borders_ms[-1])) - 1
        if first < after:
            changes[first][pod.shape] += 1
            changes[after][pod.shape] -= 1
    found, now = [], Counter[int]()
    for change in changes[:-1]:
        now.update(change)
        found.append(+now)
    return found


def _waiting(examples: Sequence[JsonObject]) -> list[JsonObject]:
    """One pod of each shape, looking for a node."""
    return [
        {
            **pod,
            "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{shape}", "uid": str(shape)},
            "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"},
            "status": {"phase": "Pending"},
        }
        for shape, pod in enumerate(examples)
    ]


# What could be bought


def offers_of(scenario: Scenario, policy: PolicySpec) -> Offers | None:
    """The policy's pools, or its groups as pools of one type each; None if some have no price."""
    if supply_of(policy.kind) is Supply.NODE_GROUPS:
        return _of_groups(policy.node_groups or default_groups())
    # Imported here: runs with another policy need not wait for all of Karpenter.
    from holokube.cluster.karpenter_policy import default_node_pool

    catalog = scenario.catalog or generate()
    given = [*policy.manifests, *scenario.cluster.objects]
    pools = [obj for obj in given if obj.get("kind") == NODE_POOLS.kind] or [default_node_pool()]
    views = [NodePool.of(_with_uid(pool)) for pool in pools]
    return Offers(views, {view.name: catalog.types for view in views}, catalog.well_known)


def _of_groups(templates: Sequence[JsonObject]) -> Offers | None:
    pools, types, keys = [], {}, set(WELL_KNOWN_LABELS)
    for template in templates:
        meta = template["metadata"]
        annotations, labels = meta.get("annotations") or {}, dict(meta.get("labels") or {})
        if PRICE_ANNOTATION not in annotations:
            return None
        name = annotations.get(GROUP_ANNOTATION) or meta["name"]
        offering = Offering(
            labels.get(ZONE_LABEL, ""), capacity_type_of(labels) or ON_DEMAND, price_usd_per_hour(template, None)
        )
        rest = {
            key: value for key, value in labels.items()
            if key not in (INSTANCE_TYPE_LABEL, ZONE_LABEL, ARCH_LABEL, OS_LABEL)
        }  # fmt: skip
        keys.update(rest)
        requirements = type_requirements(
            labels.get(INSTANCE_TYPE_LABEL, name), labels.get(ARCH_LABEL, "amd64"), (labels.get(OS_LABEL, "linux"),),
            (offering,), rest,
        )  # fmt: skip
        status = template.get("status") or {}
        capacity = parse_resources(status.get("allocatable") or status.get("capacity"))
        types[name] = (InstanceType(name, requirements, capacity, {}, (offering,)),)
        spec: JsonObject = {"requirements": [], "nodeClassRef": {"group": "", "kind": "", "name": ""}}
        taints = (template.get("spec") or {}).get("taints")
        if taints:
            spec["taints"] = taints
        pools.append(NodePool.of({
            "apiVersion": NODE_POOLS.api_version, "kind": NODE_POOLS.kind,
            "metadata": {"name": name, "uid": _UID}, "spec": {"template": {"spec": spec}},
        }))  # fmt: skip
    return Offers(pools, types, frozenset(keys))


def _with_uid(pool: JsonObject) -> JsonObject:
    return {**pool, "metadata": {"uid": _UID, **pool["metadata"]}}
