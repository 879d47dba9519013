"""A solver written for being obviously right: every pod for itself, every claim and type looked at each time.

It follows the description of the behaviour step by step and shares no code with the real one beyond the algebra of
requirements and the readings of objects. Where upstream leaves a choice to chance, both take the first in the alphabet.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from holokube.base.go_sort import sort_as_go
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.state_node import StateNode, requests_of
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.resources import ResourceVector, add
from holokube.pricing.instance_types import InstanceType
from tests.karpenter.scheduling.reference_topology import (
    PREFERRED,
    REQUIRED,
    ReferenceTopology,
    affinity_of,
    spec_of,
    tolerated,
    uid,
)

Pod = dict[str, Any]


class ReservedProblem(Exception):
    pass


def fits(requests: ResourceVector, room: ResourceVector) -> bool:
    return all(v >= 0 for v in room.values()) and all(v <= room.get(n, 0) for n, v in requests.items())


def pod_requirements(pod: Pod, *, strict: bool) -> Requirements:
    found = Requirements.from_labels(spec_of(pod).get("nodeSelector"))
    affinity = affinity_of(pod, "nodeAffinity")
    wishes = affinity.get(PREFERRED) or []
    if wishes and not strict:
        heaviest = max(wishes, key=lambda wish: wish["weight"])
        found = found.merged(Requirements.from_json(heaviest["preference"].get("matchExpressions")))
    terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return found.merged(Requirements.from_json(terms[0].get("matchExpressions"))) if terms else found


def ports_of(pod: Pod) -> set[tuple[str, str, int]]:
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in spec_of(pod).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def ports_clash(one: set[tuple[str, str, int]], other: set[tuple[str, str, int]]) -> bool:
    return any(
        a[1:] == b[1:] and (a[0] == b[0] or "0.0.0.0" in (a[0], b[0])) for a in one for b in other
    )


def relax(pod: Pod, tolerate: bool) -> bool:
    """Give up one thing; the pod is changed."""
    node = affinity_of(pod, "nodeAffinity")
    terms = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if len(terms) > 1:
        del terms[0]
        return True
    for where in (affinity_of(pod, "podAffinity"), affinity_of(pod, "podAntiAffinity"), node):
        wishes = where.get(PREFERRED) or []
        if wishes:
            wishes.sort(key=lambda wish: -wish["weight"])
            del wishes[0]
            return True
    spread = spec_of(pod).get("topologySpreadConstraints") or []
    for place, constraint in enumerate(spread):
        if constraint["whenUnsatisfiable"] == "ScheduleAnyway":
            spread[place] = spread[-1]
            spread.pop()
            return True
    bearing = {"operator": "Exists", "effect": "PreferNoSchedule"}
    if tolerate and bearing not in (spec_of(pod).get("tolerations") or []):
        spec_of(pod).setdefault("tolerations", []).append(bearing)
        return True
    return False


@dataclass
class Node:
    state: StateNode
    room: ResourceVector
    requirements: Requirements
    ports: set[tuple[str, str, int]]
    volumes: dict[str, set[str]]
    limits: dict[str, int]
    pods: list[Pod] = field(default_factory=list)


@dataclass
class DaemonGroup:
    types: list[InstanceType]
    overhead: ResourceVector
    ports: set[tuple[str, str, int]]


@dataclass
class Claim:
    template: Template
    requirements: Requirements
    types: list[InstanceType]
    hostname: str
    requests: ResourceVector = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    ports: set[tuple[str, str, int]] = field(default_factory=set)
    volumes: dict[str, set[str]] = field(default_factory=dict)
    reserved: list[Any] = field(default_factory=list)
    relaxed: bool = False


@dataclass
class Template:
    pool: Any
    requirements: Requirements
    types: list[InstanceType]
    groups: list[DaemonGroup]


def unmet(types: list[InstanceType], requirements: Requirements) -> dict[str, int]:
    found = {}
    for requirement in requirements.values():
        if requirement.min_values is not None and types:
            seen = {v for t in types for v in t.requirements.of(requirement.key).values if requirement.has(v)}
            if len(seen) < requirement.min_values:
                found[requirement.key] = len(seen)
    return found


class ReferenceSolver:
    """``claims``, ``existing`` and ``failed`` after :meth:`solve`."""

    def __init__(self, problem: Problem, gone: set[str] = frozenset(), moving: list[Pod] = ()) -> None:  # type: ignore[assignment]  # read only
        self.problem, self.options = problem, problem.options
        self.pods = [copy.deepcopy(pod) for pod in (*problem.pods, *moving)]
        self.moving = {uid(pod) for pod in moving}
        self.strict = self.options.reserved_mode == "strict"
        self.well_known = problem.well_known
        nodes = [node for node in problem.state_nodes if node.name not in gone]
        self.volumes = {uid(pod): self._volumes(pod) for pod in self.pods}
        kept = [n if n.name not in gone else _going(n) for n in problem.state_nodes]
        scene = Problem(
            problem.pools, problem.types_of_pool, state_nodes=kept, namespaces=problem.namespaces
        )
        self.topology = ReferenceTopology(scene, self.pods, self.options.preference_policy == "Ignore")
        self.daemons = [copy.deepcopy(pod) for pod in problem.daemon_pods]
        self.templates = [t for pool in problem.ordered_pools if (t := self._template(pool)) is not None]
        active = sorted(
            (node for node in nodes if not node.is_marked_for_deletion), key=lambda n: (not n.is_initialized, n.name)
        )
        self.nodes = [self._node(node) for node in active]
        self.limits = {pool.name: dict(pool.limits) for pool in problem.pools if pool.limits is not None}
        for node in active:
            for name in self.limits.get(node.pool_name, ()):
                self.limits[node.pool_name][name] -= node.capacity.get(name, 0)
        self.tolerate = any(t.effect == "PreferNoSchedule" for pool in problem.pools for t in pool.taints)
        self.claims: list[Claim] = []
        self.failed: set[str] = set()
        self.slots: dict[str, int] = {}
        for types in problem.types_of_pool.values():
            for offering in (o for one in types for o in one.offerings if o.is_reserved):
                known = self.slots.get(offering.reservation_id, offering.reservation_capacity)
                self.slots[offering.reservation_id] = min(known, offering.reservation_capacity)
        self.opened = 0

    # Volumes.

    def _volumes(self, pod: Pod) -> tuple[list[Requirements], dict[str, set[str]]]:
        storage = self.problem.storage
        alternatives: list[Requirements] = []
        attached: dict[str, set[str]] = {}
        for volume in spec_of(pod).get("volumes") or ():
            if "persistentVolumeClaim" not in volume:
                continue
            key = f"{pod['metadata']['namespace']}/{volume['persistentVolumeClaim']['claimName']}"
            claim = storage.claims[key]
            if claim["spec"].get("volumeName"):
                bound = storage.volumes[claim["spec"]["volumeName"]]
                terms = ((bound["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
                own = [Requirements.from_json(term["matchExpressions"]) for term in terms]
                driver = (bound["spec"].get("csi") or {}).get("driver", "")
            else:
                storage_class = storage.classes[claim["spec"]["storageClassName"]]
                terms = storage_class.get("allowedTopologies") or ()
                own = [
                    Requirements(Requirement.new(e["key"], "In", e["values"]) for e in term["matchLabelExpressions"])
                    for term in terms
                ]
                driver = storage_class["provisioner"]
            if driver:
                attached.setdefault(driver, set()).add(key)
            if own:
                pairs = [(a, b) for a in (alternatives or [Requirements()]) for b in own]
                alternatives = [a.merged(b) for a, b in pairs if a.intersects(b)] or [a.merged(b) for a, b in pairs]
        return alternatives, attached

    # Pools and daemons.

    def _template(self, pool: Any) -> Template | None:
        up = Requirements.from_labels({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"})
        requirements = pool.template_requirements.merged(up)
        everything = DaemonGroup(list(self.problem.types_of_pool[pool.name]), {}, set())
        bare = Template(pool, requirements, everything.types, [everything])
        best_effort = self.options.min_values_policy == "BestEffort"
        types, _ = self._filter(bare, everything.types, requirements, {}, set(), best_effort)
        if not types:
            return None
        groups: dict[tuple[str, ...], DaemonGroup] = {}
        for one in types:
            running = [daemon for daemon in self.daemons if self._daemon_runs(daemon, pool, requirements, one)]
            key = tuple(sorted(pod_key(daemon) for daemon in running))
            if key not in groups:
                overhead: ResourceVector = {}
                for daemon in running:
                    overhead = add(overhead, requests_of(daemon))
                groups[key] = DaemonGroup([], overhead, set().union(*(ports_of(daemon) for daemon in running)))
            groups[key].types.append(one)
        return Template(pool, requirements, types, list(groups.values()))

    def _daemon_runs(self, daemon: Pod, pool: Any, requirements: Requirements, one: InstanceType) -> bool:
        bearing = {"operator": "Exists", "effect": "PreferNoSchedule"}
        if bearing not in (spec_of(daemon).get("tolerations") or []):
            spec_of(daemon).setdefault("tolerations", []).append(bearing)
        if not tolerated(pool.taints, spec_of(daemon)["tolerations"]):
            return False
        while True:
            wanted = pod_requirements(daemon, strict=True)
            is_open = requirements.is_compatible(wanted, allow_undefined=self.well_known)
            if is_open and one.requirements.intersects(wanted):
                return True
            terms = (affinity_of(daemon, "nodeAffinity").get(REQUIRED) or {}).get("nodeSelectorTerms") or []
            if len(terms) < 2:
                return False
            del terms[0]

    def _node(self, state: StateNode) -> Node:
        labels = Requirements.from_labels(state.labels)
        wanted: ResourceVector = {}
        for daemon in self.daemons:
            runs = tolerated(state.taints, spec_of(daemon).get("tolerations"))
            if runs and labels.is_compatible(pod_requirements(daemon, strict=True)):
                wanted = add(wanted, requests_of(daemon))
        room = {
            name: milli - max(wanted.get(name, 0) - state.daemon_requests.get(name, 0), 0)
            for name, milli in state.available.items()
        }
        held: dict[str, set[str]] = {}
        for pod in state.running_pods:
            for driver, keys in self._volumes(pod)[1].items():
                held.setdefault(driver, set()).update(keys)
        limits = dict(self.problem.volume_limits.get(state.labels.get("node.kubernetes.io/instance-type", "")) or {})
        return Node(
            state, room, labels.without(HOSTNAME_LABEL).adding(Requirement.new(HOSTNAME_LABEL, "In", [state.hostname])),
            set().union(*(ports_of(pod) for pod in state.running_pods)), held, limits,
        )  # fmt: skip

    # Checks.

    def _filter(
        self, template: Template, types: list[InstanceType], requirements: Requirements, requests: ResourceVector,
        ports: set[tuple[str, str, int]], relax_min_values: bool,
    ) -> tuple[list[InstanceType], dict[str, int]]:  # fmt: skip
        left = []
        for group in template.groups:
            if ports_clash(ports, group.ports):
                continue
            total = add(requests, group.overhead)
            for one in group.types:
                if one not in types or not one.requirements.intersects(requirements):
                    continue
                if any(
                    fits(total, rooms.allocatable)
                    and any(
                        requirements.is_compatible(offering.requirements, allow_undefined=self.well_known)
                        for offering in rooms.offerings
                    )
                    for rooms in one.allocatable_groups
                ):
                    left.append(one)
        missing = unmet(left, requirements)
        return ([], {}) if missing and not relax_min_values else (left, missing)

    def _volumes_exceed(self, held: dict[str, set[str]], more: dict[str, set[str]], limits: Any) -> bool:
        drivers = held.keys() | more.keys()
        return any(len(held.get(d, set()) | more.get(d, set())) > limits[d] for d in drivers if d in limits)

    def _alternatives(self, pod: Pod, base: Requirements, allow: Any) -> list[Requirements]:
        wanted = self.volumes[uid(pod)][0]
        if not wanted:
            return [base]
        return [base.merged(one) for one in wanted if base.is_compatible(one, allow_undefined=allow)]

    def _on_node(self, node: Node, pod: Pod, requirements: Requirements, strict: Requirements) -> Requirements | None:
        if not tolerated(node.state.taints, spec_of(pod).get("tolerations")):
            return None
        if self._volumes_exceed(node.volumes, self.volumes[uid(pod)][1], node.limits):
            return None
        if ports_clash(ports_of(pod), node.ports) or not fits(requests_of(pod), node.room):
            return None
        if not node.requirements.is_compatible(requirements):
            return None
        for base in self._alternatives(pod, node.requirements.merged(requirements), frozenset()):
            narrowed = self.topology.narrowed(pod, strict, base)
            if narrowed is not None and base.is_compatible(narrowed):
                return base.merged(narrowed)
        return None

    def _on_claim(
        self, claim: Claim, pod: Pod, requirements: Requirements, strict: Requirements, relax_min_values: bool
    ) -> tuple[Requirements, list[InstanceType], list[Any], bool] | None:
        allow = self.well_known
        if not tolerated(claim.template.pool.taints, spec_of(pod).get("tolerations")):
            return None
        if ports_clash(ports_of(pod), claim.ports):
            return None
        attached = self.volumes[uid(pod)][1]
        types = [
            one
            for one in claim.types
            if not attached
            or not self._volumes_exceed(claim.volumes, attached, self.problem.volume_limits.get(one.name) or {})
        ]
        if not types or not claim.requirements.is_compatible(requirements, allow_undefined=allow):
            return None
        reserved_problem = None
        for base in self._alternatives(pod, claim.requirements.merged(requirements), allow):
            reserved_problem = None
            narrowed = self.topology.narrowed(pod, strict, base)
            if narrowed is None or not base.is_compatible(narrowed, allow_undefined=allow):
                continue
            final = base.merged(narrowed)
            total = add(claim.requests, requests_of(pod))
            left, missing = self._filter(claim.template, types, final, total, ports_of(pod), relax_min_values)
            if not left:
                continue
            if missing:
                final = Requirements(
                    Requirement(r.key, r.complement, r.values, r.gte, r.lte, missing.get(r.key, r.min_values))
                    for r in final.values()
                )
            try:
                held = self._reserve(claim, left, final)
            except ReservedProblem as problem:
                reserved_problem = problem
                continue
            if held is not None:
                return final, left, held, bool(missing)
        if reserved_problem is not None:
            raise reserved_problem
        return None

    def _reserve(self, claim: Claim, types: list[InstanceType], requirements: Requirements) -> list[Any] | None:
        roomy = full = other = False
        found = []
        mine = {o.reservation_id for o in claim.reserved}
        for offering in (o for one in types for o in one.offerings if o.available):
            if not requirements.is_compatible(offering.requirements, allow_undefined=self.well_known):
                continue
            if not offering.is_reserved:
                other = True
            elif offering.reservation_capacity == 0:
                full = True
            else:
                roomy = True
                if offering.reservation_id in mine or self.slots[offering.reservation_id] > 0:
                    found.append(offering)
        if self.strict and roomy and not found:
            raise ReservedProblem("held by others")
        if full and not roomy and not other:
            if self.strict:
                raise ReservedProblem("full")
            return None
        if self.strict and claim.reserved and not found:
            raise ReservedProblem("would lose all")
        return found

    # Placing.

    def _commit(self, claim: Claim, pod: Pod, found: tuple[Requirements, list[InstanceType], list[Any], bool]) -> None:
        claim.requirements, claim.types, held, _ = found
        claim.pods.append(pod)
        claim.requests = add(claim.requests, requests_of(pod))
        claim.ports |= ports_of(pod)
        for driver, keys in self.volumes[uid(pod)][1].items():
            claim.volumes.setdefault(driver, set()).update(keys)
        before, after = {o.reservation_id for o in claim.reserved}, {o.reservation_id for o in held}
        for one in after - before:
            self.slots[one] -= 1
        for one in before - after:
            self.slots[one] += 1
        claim.reserved = held
        self.topology.record(pod, claim.template.pool.taints, claim.requirements)

    def _add(self, pod: Pod) -> bool:
        ignore = self.options.preference_policy == "Ignore"
        strict = pod_requirements(pod, strict=True)
        requirements = strict if ignore else pod_requirements(pod, strict=False)
        for node in self.nodes:
            found = self._on_node(node, pod, requirements, strict)
            if found is not None:
                node.pods.append(pod)
                for name, milli in requests_of(pod).items():
                    node.room[name] = node.room.get(name, 0) - milli
                node.requirements = found
                node.ports |= ports_of(pod)
                for driver, keys in self.volumes[uid(pod)][1].items():
                    node.volumes.setdefault(driver, set()).update(keys)
                self.topology.record(pod, node.state.taints, found)
                return True
        self.claims = sort_as_go(self.claims, lambda claim: len(claim.pods))
        for claim in self.claims:
            try:
                on_claim = self._on_claim(claim, pod, requirements, strict, False)
            except ReservedProblem:
                continue
            if on_claim is not None:
                self._commit(claim, pod, on_claim)
                return True
        return self._open(pod, requirements, strict)

    def _open(self, pod: Pod, requirements: Requirements, strict: Requirements) -> bool:
        for template in self.templates:
            types = template.types
            limits = self.limits.get(template.pool.name)
            if limits is not None:
                if limits.get("nodes") == 0:
                    continue
                types = [t for t in types if all(t.capacity.get(n, 0) <= left for n, left in limits.items())]
                if not types:
                    continue
            self.opened += 1
            hostname = f"a-new-node-{self.opened}"
            named = template.requirements.adding(Requirement.new(HOSTNAME_LABEL, "In", [hostname]))
            claim = Claim(template, named, types, hostname)
            best_effort = self.options.min_values_policy == "BestEffort"
            found = self._on_claim(claim, pod, requirements, strict, best_effort)
            if found is None:
                continue
            self._commit(claim, pod, found)
            claim.relaxed = found[3]
            self.claims.append(claim)
            for name in limits or ():
                limits[name] -= max(one.capacity.get(name, 0) for one in claim.types)
            return True
        return False

    def solve(self) -> None:
        """Place all pods."""
        def rank(pod: Pod) -> Any:
            requests = requests_of(pod)
            created = pod["metadata"].get("creationTimestamp") or ""
            return -requests.get("cpu", 0), -requests.get("memory", 0), created, uid(pod)

        queue = sorted(self.pods, key=rank)
        last: dict[str, int] = {}
        while queue and last.get(uid(queue[0])) != len(queue):
            original = queue.pop(0)
            pod = copy.deepcopy(original)
            placed = False
            try:
                while not (placed := self._add(pod)) and relax(pod, self.tolerate):
                    self.topology.update(pod)
            except ReservedProblem:
                placed = False
            if placed:
                self.failed.discard(pod_key(pod))
            else:
                self.failed.add(pod_key(pod))
                self.topology.update(original)
                queue.append(original)
                last[uid(original)] = len(queue)

    def answer(self) -> Any:
        """The plan in a form that can be compared."""
        claims = []
        for claim in self.claims:
            requirements = claim.requirements.without(HOSTNAME_LABEL)
            if claim.reserved:
                ids = {offering.reservation_id for offering in claim.reserved}
                requirements = requirements.without("karpenter.sh/capacity-type").adding(
                    Requirement.new("karpenter.sh/capacity-type", "In", ["reserved"]),
                    Requirement.new("karpenter.kwok.sh/reservation-id", "In", ids),
                )
            names = [one.name for one in claim.types]
            keys = [pod_key(pod) for pod in claim.pods]
            claims.append((claim.template.pool.name, keys, names, str(requirements), claim.relaxed))
        existing = {node.state.name: [pod_key(p) for p in node.pods] for node in self.nodes if node.pods}
        return claims, existing, self.failed


def _going(node: StateNode) -> StateNode:
    return StateNode(node.node, node.node_claim, node.pods, True, node.nominated_until_s)
