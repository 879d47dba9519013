"""Makes of a problem and its plan what the checker judges: from JSON files, or from the solver's own objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holokube.kube.requirements import Requirements
from holokube.kube.resources import parse_resources
from tests.karpenter.checker import check_world
from tests.karpenter.checker_world import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    ZONE,
    Choice,
    Deal,
    Kind,
    Place,
    Pod,
    Pool,
    Storage,
    Values,
    Vector,
    Violation,
    World,
    key_of,
    values_by_key,
)

if TYPE_CHECKING:
    from holokube.karpenter.scheduling.problem import Problem
    from holokube.karpenter.scheduling.results import PlannedClaim, Results
    from holokube.karpenter.scheduling.state_node import StateNode
    from holokube.pricing.instance_types import InstanceType, Offering

_OVERHEAD = {"cpu": 100, "memory": 10 * 1024 * 1024 * 1000}
_REQUIREMENT = re.compile(r"(\S+) (In|NotIn|Exists|DoesNotExist)(?: \[(.*?)\])?(?: >=(-?\d+))?(?: <=(-?\d+))?")


def check_answer(
    problem: Mapping[str, Any], answer: Mapping[str, Any], catalog: Sequence[Mapping[str, Any]]
) -> list[Violation]:
    """What is wrong with an answer to a provisioning problem, both in the shape of the recorded ones."""
    return check_world(world_of_answer(problem, answer, catalog))


def check_results(problem: Problem, results: Results) -> list[Violation]:
    """What is wrong with the results of a solve."""
    return check_placements(problem, results.new_claims, results.existing, results.errors)


def check_placements(
    problem: Problem,
    new_claims: Iterable[PlannedClaim],
    existing: Mapping[str, Sequence[Pod]],
    errors: Collection[str] = (),
) -> list[Violation]:
    """What is wrong with a plan: claims to make, and pods for nodes that are there (by the state node's name)."""
    return check_world(world_of_placements(problem, new_claims, existing, errors))


def world_of_answer(
    problem: Mapping[str, Any], answer: Mapping[str, Any], catalog: Sequence[Mapping[str, Any]]
) -> World:
    """Everything as the files tell it."""
    kinds = tuple(_kind_of_entry(entry) for entry in catalog)
    pending = {key_of(pod): pod for pod in problem.get("pods") or ()}
    pools = {pool["metadata"]["name"]: _pool_of_object(pool, kinds) for pool in problem["nodePools"]}
    by_name = {kind.name: kind for kind in kinds}
    placed = answer.get("existingNodes") or {}
    places = [
        _place_of_entry(entry, [pending[key] for key in placed.get(_node_name(entry)) or ()], pending)
        for entry in problem.get("existingNodes") or ()
    ]
    places += [
        _place_of_claim(number, claim, pools, by_name, pending)
        for number, claim in enumerate(answer.get("newNodeClaims") or ())
    ]
    return World(
        tuple(places), pools, tuple(pending.values()), tuple(problem.get("daemonSetPods") or ()),
        errors=frozenset(answer.get("podErrors") or ()))


def _kind_of_entry(entry: Mapping[str, Any]) -> Kind:
    capacity = parse_resources(entry["resources"])
    allocatable = {name: milli - _OVERHEAD.get(name, 0) for name, milli in capacity.items()}
    offerings = entry["offerings"]
    labels = {
        INSTANCE_TYPE: Values.of(entry["name"]),
        ARCH: Values.of(entry["architecture"]),
        OS: Values(frozenset(entry["operatingSystems"])),
        ZONE: Values(frozenset(offering["zone"] for offering in offerings)),
        CAPACITY_TYPE: Values(frozenset(offering["capacityType"] for offering in offerings)),
    }
    deals = tuple(
        Deal(
            {ZONE: Values.of(offering["zone"]), CAPACITY_TYPE: Values.of(offering["capacityType"])},
            offering["price"], allocatable)
        for offering in offerings
    )  # fmt: skip
    return Kind(entry["name"], labels, capacity, deals)


def _pool_of_object(obj: Mapping[str, Any], kinds: tuple[Kind, ...]) -> Pool:
    name, template = obj["metadata"]["name"], obj["spec"]["template"]
    spec = template.get("spec") or {}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), NODE_POOL: name}
    expressions = [
        *(spec.get("requirements") or ()),
        *({"key": key, "operator": "In", "values": [value]} for key, value in labels.items()),
    ]
    limits = obj["spec"].get("limits")
    return Pool(
        name, values_by_key(expressions), tuple(spec.get("taints") or ()),
        None if limits is None else parse_resources(limits), kinds,
        {one["key"]: one["minValues"] for one in spec.get("requirements") or () if one.get("minValues")})


def _node_name(entry: Mapping[str, Any]) -> str:
    return str((entry.get("node") or entry["nodeClaim"])["metadata"]["name"])


def _place_of_entry(entry: Mapping[str, Any], placed: Sequence[Pod], batch: Collection[str]) -> Place:
    node, claim = entry.get("node") or entry["nodeClaim"], entry.get("nodeClaim")
    labels = node["metadata"].get("labels") or {}
    initialized = claim is None or labels.get("karpenter.sh/initialized") == "true"
    status = node.get("status") or {}
    if claim is not None and not initialized:
        status = {
            field: {**((claim.get("status") or {}).get(field) or {}), **(status.get(field) or {})}
            for field in ("allocatable", "capacity")
        }
    return Place(
        _node_name(entry), labels.get(NODE_POOL, ""), False,
        {key: Values.of(value) for key, value in labels.items()},
        tuple((node.get("spec") or {}).get("taints") or ()),
        before=tuple(pod for pod in entry.get("pods") or () if _stays(pod) and key_of(pod) not in batch),
        placed=tuple(placed),
        allocatable=parse_resources(status.get("allocatable")), capacity=parse_resources(status.get("capacity")),
        startup_taints=tuple(((claim or {}).get("spec") or {}).get("startupTaints") or ()),
        is_initialized=initialized,
        is_leaving=bool((claim or node)["metadata"].get("deletionTimestamp")))


def _stays(pod: Pod) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _place_of_claim(
    number: int, claim: Mapping[str, Any], pools: Mapping[str, Pool], kinds: Mapping[str, Kind],
    pending: Mapping[str, Pod],
) -> Place:
    names = claim["instanceTypeOptions"]
    pool = pools.get(claim["nodePool"])
    return Place(
        f"new-{number:03d}", claim["nodePool"], True, _values_of_texts(claim["requirements"]),
        pool.taints if pool is not None else (),
        placed=tuple(pending[key] for key in claim["pods"]),
        options=tuple(kinds[name] for name in names),
        has_all_options=len(names) == claim["numInstanceTypeOptions"],
        choice=Choice(claim["instanceType"], claim["zone"], claim["capacityType"], claim["price"]))


def _values_of_texts(texts: Iterable[str]) -> dict[str, Values]:
    """Requirements as answers print them. More than five values are not all printed: such a key stays open."""
    found: dict[str, Values] = {}
    for text in texts:
        read = _REQUIREMENT.match(text)
        assert read is not None, f"{text!r} is no requirement"
        key, operator, listed, low, high = read.groups()
        values = frozenset((listed or "").split())
        if " others" in text:
            found[key] = Values(frozenset(), True)
            continue
        found[key] = Values(
            values, operator in ("NotIn", "Exists"),
            int(low) if low else None, int(high) if high else None)
    return found


def world_of_placements(
    problem: Problem,
    new_claims: Iterable[PlannedClaim],
    existing: Mapping[str, Sequence[Pod]],
    errors: Collection[str] = (),
) -> World:
    """Everything as the solver's own objects tell it."""
    kinds: dict[int, Kind] = {}
    pending = {key_of(pod): pod for pod in problem.pods}
    pools = {
        pool.name: Pool(
            pool.name, _values(pool.template_requirements), tuple(taint.to_json() for taint in pool.taints),
            pool.limits, tuple(_kind(one, kinds) for one in problem.types_of_pool.get(pool.name, ())),
            {r.key: r.min_values for r in pool.requirements.values() if r.min_values is not None})
        for pool in problem.pools
    }  # fmt: skip
    places = [_place_of_state(node, existing.get(node.name, ()), pending, problem) for node in problem.state_nodes]
    known = {place.name for place in places}
    assert known >= existing.keys(), f"pods are placed on nodes that are not there: {existing.keys() - known}"
    for number, claim in enumerate(new_claims):
        best = claim.cheapest()
        places.append(Place(
            f"new-{number:03d}", claim.pool.name, True, _values(claim.requirements),
            tuple(taint.to_json() for taint in claim.pool.taints),
            placed=tuple(_original(pod, pending) for pod in claim.pods),
            options=tuple(_kind(one, kinds) for one in claim.instance_types),
            has_all_options=not claim.min_values_relaxed,
            choice=None if best is None else Choice(
                best[0].name, best[1].zone, best[1].capacity_type, best[1].price_usd_per_hour)))
    storage = Storage(
        {(claim["metadata"].get("namespace") or "default", claim["metadata"]["name"]): claim
         for claim in problem.storage.claims.values()},
        problem.storage.volumes, problem.storage.classes)  # fmt: skip
    return World(
        tuple(places), pools, tuple(pending.values()), tuple(problem.daemon_pods), problem.namespaces, storage,
        frozenset(errors), problem.options.min_values_policy == "Strict")


def _original(pod: Pod, pending: Mapping[str, Pod]) -> Pod:
    """The pod as it was given: a solver works on copies without some preferences."""
    return pending.get(key_of(pod), pod)


def _place_of_state(node: StateNode, placed: Sequence[Pod], batch: Mapping[str, Pod], problem: Problem) -> Place:
    csi = problem.storage.csi_nodes.get(node.node_name) or {}
    limits = {
        driver["name"]: driver["allocatable"]["count"] for driver in (csi.get("spec") or {}).get("drivers") or ()
        if (driver.get("allocatable") or {}).get("count") is not None
    }  # fmt: skip
    return Place(
        node.name, node.pool_name, False, {key: Values.of(value) for key, value in node.labels.items()},
        tuple(taint.to_json() for taint in node.taints),
        before=tuple(pod for pod in node.pods if _stays(pod) and key_of(pod) not in batch),
        placed=tuple(_original(pod, batch) for pod in placed),
        allocatable=node.allocatable, capacity=node.capacity, attach_limits=limits,
        is_leaving=node.is_marked_for_deletion)


def _values(requirements: Requirements) -> dict[str, Values]:
    return {
        key: Values(one.values, one.complement, one.gte, one.lte) for key, one in requirements.items()
    }


def _kind(one: InstanceType, made: dict[int, Kind]) -> Kind:
    found = made.get(id(one))
    if found is None:
        found = made[id(one)] = Kind(
            one.name, _values(one.requirements), one.capacity,
            tuple(_deal(one, offering) for offering in one.offerings))
    return found


def _deal(one: InstanceType, offering: Offering) -> Deal:
    capacity: Vector = {**one.capacity, **(offering.capacity_override or {})}
    overhead: Vector = {**one.overhead, **(offering.overhead_override or {})}
    allocatable = {name: milli - overhead.get(name, 0) for name, milli in capacity.items()}
    pages = sum(milli for name, milli in capacity.items() if name.startswith("hugepages-"))
    if pages:
        allocatable["memory"] = max(allocatable.get("memory", 0) - pages, 0)
    return Deal(
        _values(offering.requirements), offering.price_usd_per_hour, allocatable, offering.available,
        offering.is_launchable, offering.reservation_id, offering.reservation_capacity)
