"""Groundwork that is carried on from solve to solve: only what has changed since the last is worked out anew.

It stands as long as the cluster is plain: no pod is to be near others or apart from them, and none has volumes to
attach. Then what a solve goes by are sums over nodes, and over domains for pods that are spread. Otherwise each solve
makes its own groundwork from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from holokube.base.identity import are_same
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.census import Census, uid_of
from holokube.karpenter.scheduling.copying import shallow
from holokube.karpenter.scheduling.existing_nodes import NodeTable
from holokube.karpenter.scheduling.glance import Glance, Glances
from holokube.karpenter.scheduling.groundwork import Groundwork, resource_names
from holokube.karpenter.scheduling.node_list import differences
from holokube.karpenter.scheduling.pod_facts import is_plain
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.templates import Template
from holokube.karpenter.scheduling.topology_specs import spread_keys
from holokube.kube.resources import is_resize_infeasible
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

_CONTAINERS: Final = ("containers", "initContainers")
_SERIAL: Final = attrgetter("serial")
_FORMS_KEPT: Final = 20_000
"""Where labels that pods are spread by tell one release from the next, forms that nobody has any more pile up."""


class _Words(NamedTuple):
    """What pods speak of."""

    resources: frozenset[str]
    watched: frozenset[str]
    """Labels that decide how they are spread."""
    is_spread: bool


class _Terms(NamedTuple):
    """What must be the same for groundwork to be carried on."""

    options: SolveOptions
    pools: tuple[JsonObject, ...]
    """Specs of the pools in their order; what else is said about a pool does not matter to a solve."""
    names: tuple[str, ...]
    types: tuple[Sequence[InstanceType], ...]
    daemons: tuple[JsonObject, ...]
    well_known: frozenset[str]

    def is_same(self, other: _Terms) -> bool:
        """Whether nothing differs; types are compared as objects, of which there are many and large ones."""
        return (
            self.names == other.names
            and are_same(self.types, other.types)
            and self.options == other.options
            and self.pools == other.pools
            and self.daemons == other.daemons
            and self.well_known == other.well_known
        )


class Given(NamedTuple):
    """The objects that terms are read from; pools are those with types, as they are tried."""

    options: SolveOptions
    well_known: frozenset[str]
    pools: Sequence[NodePool]
    types: Sequence[Sequence[InstanceType]]
    daemons: Sequence[JsonObject]

    def is_same(self, other: Given) -> bool:
        """Whether nothing is another object, so that terms need not be read again."""
        return (
            self.options is other.options
            and self.well_known is other.well_known
            and are_same(self.pools, other.pools)
            and are_same(self.types, other.types)
            and are_same(self.daemons, other.daemons)
        )


class StandingGround:
    """The groundwork of one cluster, as its nodes and pods come and go."""

    def __init__(self) -> None:
        self._terms: _Terms | None = None
        self._read: tuple[Given, _Terms] | None = None
        """What terms were read from the last time, and the terms."""
        self._pools: list[NodePool] = []
        self._templates: list[Template] = []
        """The templates with the pools that were given the last time."""
        self._base: Groundwork | None = None
        self._table: NodeTable | None = None
        self._census: Census | None = None
        """Pods by labels; not kept while none is spread."""
        self._resources: set[str] = set()
        self._watched: set[str] = set()
        self._is_spread = False
        """Whether a pod has been met that is spread over domains."""
        self._nodes: Sequence[StateNode] | None = None
        self._glances: Glances | None = None
        """How nodes have changed since then, if somebody has asked."""
        self._seen: dict[StateNode, bool] = {}
        """All nodes as they were when last looked at, and whether each is plain."""
        self._special = 0
        self._waiting: dict[int, tuple[JsonObject, _Words | None]] = {}
        """Pods that were to be placed the last time, with what they speak of; none if it is not plain."""

    def ground(self, problem: Problem) -> Groundwork | None:
        """The groundwork of a problem; None if it has to be made from nothing."""
        if problem.volume_limits or problem.options.default_spread_constraints:
            return None
        words = self._look_at(problem.pods)
        if words is None:
            return None
        changed, gone = self._differences(problem.state_nodes)
        if self._special:
            # Nodes were looked at without a table being made of them, so the next one is made from all.
            self._table = None
            return None
        pools = problem.ordered_pools
        types = [problem.types_of_pool[pool.name] for pool in pools]
        terms = self._terms_of(Given(problem.options, problem.well_known, pools, types, problem.daemon_pods))
        nodes = changed if self._table is not None else problem.state_nodes
        names = words.resources.union(*(node.pod_requests for node in nodes))
        spreading = [node for node in nodes if node.is_spread]
        watched = words.watched.union(*(node.watched for node in spreading))
        if (
            self._base is None
            or self._terms is None
            or (terms is not self._terms and not self._terms.is_same(terms))
            or not names <= self._resources
            or not watched <= self._watched
            or ((words.is_spread or spreading) and not self._is_spread)
            or len(self._base.forms.forms) > _FORMS_KEPT
        ):
            self._is_spread = self._is_spread or words.is_spread or bool(spreading)
            self._start(problem, names, watched)
        self._terms = terms
        self._advance(problem, pools, changed, gone)
        base, table = self._base, self._table
        assert base is not None
        assert table is not None
        census = base.census if self._census is None else self._census.without(map(uid_of, problem.pods))
        return base.at(problem, pools, [*problem.pods], table, census, self._templates_of(base, pools))

    def glance(self, given: Given, nodes: Sequence[StateNode], now_s: float) -> Glance | None:
        """What the last groundwork still tells about nodes that can be consolidated; None if it is to be carried on.

        ``given`` and ``nodes`` are as they would be in a problem now. Pods that wait do not matter.
        """
        base, table = self._base, self._table
        if base is None or table is None or self._terms is None or self._nodes is None:
            return None
        glances = self._glances
        if glances is None:
            glances = self._glances = Glances(base, table, self._nodes, self._is_like_known)
        if not glances.follow(nodes):
            return None
        terms = self._terms_of(given)
        if terms is not self._terms and not self._terms.is_same(terms):
            return None
        self._terms = terms
        return glances.at(now_s)

    def _is_like_known(self, node: StateNode) -> bool:
        """Whether groundwork stands with a node, and forms of its pods are those of the same book."""
        if not node.is_plain or not node.pod_requests.keys() <= self._resources:
            return False
        return not node.is_spread or (self._is_spread and node.watched <= self._watched)

    def _terms_of(self, given: Given) -> _Terms:
        if self._read is None or not self._read[0].is_same(given):
            self._read = given, _terms_of(given)
        return self._read[1]

    def _templates_of(self, base: Groundwork, pools: list[NodePool]) -> list[Template]:
        if not self._templates or not are_same(pools, self._pools):
            self._pools, self._templates = pools, _of_pools(base.templates, pools)
        return self._templates

    def _differences(self, nodes: Sequence[StateNode]) -> tuple[list[StateNode], list[StateNode]]:
        """Nodes that are not as they were, and those that were and are not any more."""
        seen, glances = self._seen, self._glances
        if glances is not None and glances.follow(nodes):
            changed, gone = sorted(glances.changed, key=_SERIAL), glances.gone
        else:
            changed, gone = differences(nodes, self._nodes, seen)
        self._nodes, self._glances = nodes, None
        for node in gone:
            self._special -= not seen.pop(node)
        for node in changed:
            seen[node] = node.is_plain
            self._special += not node.is_plain
        return changed, gone

    def _look_at(self, pods: Sequence[JsonObject]) -> _Words | None:
        """What pods speak of; None if one of them is not plain. Pods that are the same are known."""
        before, known = self._waiting, dict[int, tuple[JsonObject, _Words | None]]()
        spoken: dict[int, _Words] = {}
        last: _Words | None = None
        are_plain = True
        for pod in pods:
            identity = id(pod)
            found = before.get(identity)
            if found is None:
                found = pod, _words_of(pod) if is_plain(pod) else None
            known[identity] = found
            words = found[1]
            if words is not last:
                # Pods that speak of the same stand beside each other.
                last = words
                if words is not None:
                    spoken[id(words)] = words
            if words is None:
                are_plain = False
        self._waiting = known
        if not are_plain:
            return None
        return _Words(
            frozenset().union(*[words.resources for words in spoken.values()]),
            frozenset().union(*[words.watched for words in spoken.values()]),
            any(words.is_spread for words in spoken.values()),
        )

    def _start(self, problem: Problem, names: frozenset[str], watched: frozenset[str]) -> None:
        """Pools, types and DaemonSets are made ready; nodes come later."""
        self._resources |= names
        self._watched |= watched
        self._base = Groundwork(
            replace(problem, pods=(), state_nodes=()), resources=self._resources, watched=self._watched
        )
        self._table, self._templates = None, []

    def _advance(
        self, problem: Problem, ordered: Sequence[NodePool], changed: Sequence[StateNode], gone: Sequence[StateNode]
    ) -> None:
        base = self._base
        assert base is not None
        if self._table is not None and not changed and not gone:
            return
        pools = {pool.name: pool for pool in ordered}
        if self._table is None:
            self._table = base.table(problem.active_nodes, pools)
            self._census = base.census.carried_on(problem.state_nodes, ()) if self._is_spread else None
            return
        staying = [node for node in changed if not node.is_marked_for_deletion]
        kept = {node.name for node in staying}
        rows = self._table.rows
        leaving = {node.name for node in gone if node.name in rows and node.name not in kept}
        self._table = self._table.carried_on(staying, leaving, pools)
        if self._census is not None:
            self._census = self._census.carried_on(changed, gone)


def _words_of(pod: JsonObject) -> _Words:
    spread = (pod.get("spec") or {}).get("topologySpreadConstraints") or ()
    return _words(frozenset(resource_names(pod)), frozenset(spread_keys(spread)), bool(spread))


@lru_cache(maxsize=4096)
def _words(resources: frozenset[str], watched: frozenset[str], is_spread: bool) -> _Words:
    """Pods that speak of the same share it."""
    return _Words(resources, watched, is_spread)


def _terms_of(given: Given) -> _Terms:
    return _Terms(
        replace(given.options, reserved_mode="strict", timeout_s=None, reservation_credit={}),
        tuple(pool.object.get("spec") or {} for pool in given.pools),
        tuple(pool.name for pool in given.pools),
        tuple(given.types),
        tuple(map(_essence, given.daemons)),
        given.well_known,
    )


def _essence(daemon: JsonObject) -> JsonObject:
    """What a solve goes by about a pod of a DaemonSet: another pod of it, with volumes of its own, will do as well."""
    metadata, spec, status = daemon["metadata"], daemon.get("spec") or {}, daemon.get("status") or {}
    return {
        "namespace": metadata.get("namespace"),
        "annotations": metadata.get("annotations"),
        "spec": {key: value for key, value in spec.items() if key not in ("volumes", *_CONTAINERS)},
        "containers": [
            [{key: value for key, value in one.items() if key != "volumeMounts"} for one in spec.get(field) or ()]
            for field in _CONTAINERS
        ],
        "statuses": [
            [(one.get("name"), one.get("resources"), one.get("allocatedResources")) for one in status.get(field) or ()]
            for field in ("containerStatuses", "initContainerStatuses")
        ],
        "resize": (status.get("resources"), status.get("allocatedResources"), is_resize_infeasible(daemon)),
    }


def _of_pools(templates: list[Template], pools: Iterable[NodePool]) -> list[Template]:
    """The templates with the pools as they are now: their specs are the same, what they tell of themselves is not."""
    by_name = {pool.name: pool for pool in pools}
    found = []
    for template in templates:
        pool = by_name[template.pool.name]
        if pool is not template.pool:
            template = shallow(template)
            template.pool = pool
        found.append(template)
    return found
