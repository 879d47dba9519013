"""What an earlier outlook still tells decides and says what looking at everything anew does, and asks for nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.lazy import lazy
from holokube.base.rng import Rng
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.consolidation import consolidate
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.disruption.prospects import Glimpse, Outlook, not_cheaper
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Obstruction
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.node_list import NodeList
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.standing_ground import Given
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from tests.karpenter.disruption.clusters import NOW_S, Cluster, Shape, build
from tests.karpenter.disruption.test_prospects import (
    Memories,
    cluster_of,
    outcomes,
    spread,
    tight_cluster,
    told,
    waiting_pods,
    words,
)

ANTI_AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


class Late:
    """A simulation that is made when it is asked for, as the loop does it."""

    def __init__(self, problem: Problem, kept: Memories | None) -> None:
        self._problem, self._kept = problem, kept
        self.was_made = False

    @lazy
    def simulation(self) -> Simulation:
        self.was_made = True
        return Simulation(self._problem)

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        return self.simulation.simulate(gone, pods, is_consolidation=is_consolidation)

    def outlook(self) -> Outlook | None:
        if self._kept is None or self.simulation.headroom is None:
            return None
        return Outlook(self._kept.prospects, self.simulation.headroom, self.simulation.ground.forms)

    def glimpse(self) -> Glimpse | None:
        problem, kept = self._problem, self._kept
        if kept is None:
            return None
        pools = problem.ordered_pools
        types = [problem.types_of_pool[pool.name] for pool in pools]
        asked = Given(problem.options, problem.well_known, pools, types, problem.daemon_pods)
        found = kept.standing.glance(asked, problem.state_nodes, problem.now_s)
        if found is None or not kept.prospects.knows(found.book):
            return None
        return Glimpse(kept.prospects, found, lambda: bool(problem.pods))


def view_of(
    cluster: Cluster, waiting: Sequence[JsonObject], now_s: float, kept: Memories | None
) -> tuple[DisruptionView, Late]:
    leaving = [pod for node in cluster.nodes if node.is_marked_for_deletion for pod in node.pods]
    problem = Problem(
        cluster.pools, cluster.types_of_pool, pods=[*waiting, *leaving], state_nodes=cluster.nodes, now_s=now_s,
        standing=kept.standing if kept is not None else None,
    )  # fmt: skip
    late = Late(problem, kept)
    view = DisruptionView(
        now_s=now_s, nodes=cluster.nodes, pools={pool.name: pool for pool in cluster.pools},
        types_of_pool=cluster.types_of_pool, simulator=late, book=kept.book if kept is not None else None,
        find_outlook=late.outlook, find_glimpse=late.glimpse,
    )  # fmt: skip
    return view, late


def settling(pool: NodePool) -> NodePool:
    disruption = {**pool.object["spec"]["disruption"], "consolidateAfter": "60s"}
    return NodePool.of({**pool.object, "spec": {**pool.object["spec"], "disruption": disruption}})


def with_pod_event(node: StateNode, now_s: float) -> StateNode:
    assert node.node_claim is not None
    at = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    claim = {**node.node_claim, "status": {**node.node_claim["status"], "lastPodEventTime": at}}
    return replace(node, node_claim=claim)


def with_pod_spec(node: StateNode, **spec: Any) -> StateNode:
    first, *others = node.pods
    return replace(node, pods=({**first, "spec": {**first["spec"], **spec}}, *others))


def asking_for_more(node: StateNode) -> StateNode:
    """Its first pod speaks of a resource that no node has."""
    containers = [
        {**one, "resources": {"requests": {**one["resources"]["requests"], "example.com/gpu": "1"}}}
        for one in node.pods[0]["spec"]["containers"]
    ]
    return with_pod_spec(node, containers=containers)


def changed(rng: Rng, node: StateNode, now_s: float) -> StateNode:
    """The node after something has happened to it."""
    assert node.node is not None
    metadata, draw = node.node["metadata"], rng.randrange(9)
    if draw < 2:
        return with_pod_event(replace(node, pods=node.pods[: len(node.pods) // 2]), now_s)
    if draw < 4:
        return with_pod_event(node, now_s - rng.randrange(120))
    if draw == 4:
        return replace(node, is_marked=not node.is_marked)
    if draw == 5:
        labels = {**metadata["labels"], "karpenter.sh/initialized": rng.choice(("true", "false"))}
        return replace(node, node={**node.node, "metadata": {**metadata, "labels": labels}})
    if draw == 6:
        taints = rng.choice(([], [{"key": "a", "value": "b", "effect": "NoSchedule"}]))
        return replace(node, node={**node.node, "spec": {**node.node["spec"], "taints": taints}})
    if draw == 7 and node.pods and rng.random() < 0.3:
        return asking_for_more(node) if rng.random() < 0.5 else with_pod_spec(node, affinity=ANTI_AFFINITY)
    return replace(node)


def moments(rng: Rng, cluster: Cluster, count: int) -> list[tuple[Cluster, float]]:
    """The cluster as time goes by."""
    found, now_s = [], NOW_S
    away: list[StateNode] = []
    serial = len(cluster.nodes) + 1
    for _ in range(count):
        before = cluster.nodes
        after = [changed(rng, node, now_s) if rng.random() < 0.15 else node for node in before]
        new = [one for one, other in zip(after, before, strict=True) if one is not other]
        old = [other for one, other in zip(after, before, strict=True) if one is not other]
        if isinstance(before, NodeList) and rng.random() < 0.3:
            # Some go, and others come that have the names of some that have gone.
            coming = [replace(one, serial=serial + place) for place, one in enumerate(away) if rng.random() < 0.5]
            serial += len(away)
            names = {one.name for one in coming}
            going = [one for one in after if rng.random() < 0.1]
            away = [one for one in away if one.name not in names] + going
            nodes = before.replaced_by([*(one for one in after if one not in going), *coming])
        elif isinstance(before, NodeList) and rng.random() < 0.9:
            nodes = before.followed_by(after, new, old)
        else:
            nodes = NodeList(after)
        pools = cluster.pools if rng.random() < 0.9 else tuple(map(settling, cluster.pools))
        cluster = Cluster(pools, cluster.types, nodes)
        found.append((cluster, now_s))
        now_s += rng.randrange(40)
    return found


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**9), kind=st.sampled_from(("any", "spread", "tight")), is_quiet=st.booleans())
def test_the_same_is_decided_and_told_as_looking_at_everything_anew_does(
    seed: int, kind: str, is_quiet: bool
) -> None:
    rng = Rng(f"glimpse {seed}")
    cluster = tight_cluster(rng) if kind == "tight" else cluster_of(rng)
    if kind == "spread":
        cluster = spread(rng, cluster)
    kept = Memories(math.inf if is_quiet else -math.inf)
    for now, now_s in moments(rng, cluster, 6):
        waiting = list(filter(is_provisionable, waiting_pods(rng, now))) if rng.random() < 0.3 else []
        expected = outcomes(view_of(now, waiting, now_s, None)[0])
        found = outcomes(view_of(now, waiting, now_s, kept)[0])
        for one, other in zip(found, expected, strict=True):
            assert told(one.command) == told(other.command)
            assert one.memory == other.memory
            if is_quiet:
                assert set(words(one.notices)) <= set(words(other.notices))
            else:
                assert words(one.notices) == words(other.notices)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9), is_tight=st.booleans())
def test_what_a_glimpse_calls_hopeless_a_simulation_refuses(seed: int, is_tight: bool) -> None:
    rng = Rng(f"glimpse {seed}")
    kept = Memories(-math.inf)
    for now, now_s in moments(rng, tight_cluster(rng) if is_tight else cluster_of(rng), 5):
        view, late = view_of(now, [], now_s, kept)
        anew, _ = view_of(now, [], now_s, None)
        glimpse, candidates = view.glimpse, view.ranked(MultiNodeConsolidation())
        for candidate in candidates if glimpse is not None else ():
            assert glimpse is not None
            standing = kept.prospects.of(candidate).standing
            if standing.is_hopeless_to(glimpse):
                assert isinstance(consolidate(anew, [candidate]), Obstruction)
                against = glimpse.against(candidate)
                assert against is None or against == consolidate(anew, [candidate])
        if glimpse is not None and len(candidates) > 1 and not glimpse.can_go_together(candidates[:2]):
            assert isinstance(consolidate(anew, candidates[:2]), Obstruction)
        for count in range(2, len(candidates) + 1) if glimpse is not None else ():
            assert glimpse is not None
            if glimpse.cannot_go(candidates[:count]):
                assert isinstance(consolidate(anew, candidates[:count]), Obstruction)
        if rng.random() < 0.5:
            # Another outlook is made now and then.
            late.outlook()


def full_cluster() -> Cluster:
    made = build("full", Shape(nodes=40, types=1, node_cpu=(1, 1), fill=1.0, pod_cpu_milli=(300, 300)))
    cheapest = [one for one in made.nodes if one.labels["topology.kubernetes.io/zone"] == "zone-a"]
    nodes = NodeList(replace(node, serial=number) for number, node in enumerate(cheapest) if len(node.pods) == 3)
    assert len(nodes) > 5
    return Cluster(made.pools, made.types, nodes)


def after(cluster: Cluster, place: int, node: StateNode) -> Cluster:
    before = cluster.nodes
    assert isinstance(before, NodeList)
    nodes = before.followed_by([*before[:place], node, *before[place + 1 :]], [node], [before[place]])
    return Cluster(cluster.pools, cluster.types, nodes)


def test_full_nodes_need_no_second_outlook_for_words_or_decisions() -> None:
    cluster, kept = full_cluster(), Memories(-math.inf)
    view, late = view_of(cluster, [], NOW_S, kept)
    assert [outcome.command for outcome in outcomes(view)] == [None] * 4
    assert late.was_made
    cluster = after(cluster, 2, replace(cluster.nodes[2]))
    view, late = view_of(cluster, [], NOW_S + 10, kept)
    found = outcomes(view)
    assert [outcome.command for outcome in found] == [None] * 4
    assert [notice.obstruction for notice in found[-1].notices] == [not_cheaper()] * len(cluster.nodes)
    assert not late.was_made


def test_room_on_a_node_that_has_changed_is_seen() -> None:
    cluster, kept = full_cluster(), Memories(-math.inf)
    outcomes(view_of(cluster, [], NOW_S, kept)[0])
    for place in range(3):
        cluster = after(cluster, place, replace(cluster.nodes[place], pods=cluster.nodes[place].pods[:1]))
    view, late = view_of(cluster, [], NOW_S + 10, kept)
    assert view.glimpse is not None
    anew, _ = view_of(cluster, [], NOW_S + 10, None)
    commands = [outcome.command for outcome in outcomes(view)]
    assert any(commands)
    assert list(map(told, commands)) == [told(outcome.command) for outcome in outcomes(anew)]
    assert late.was_made


def test_a_node_on_its_way_or_a_pod_that_waits_calls_for_an_outlook() -> None:
    cluster, kept = full_cluster(), Memories(-math.inf)
    outcomes(view_of(cluster, [], NOW_S, kept)[0])
    candidate = view_of(cluster, [], NOW_S, kept)[0].candidates(SingleNodeConsolidation())[-1]
    node = cluster.nodes[0].node
    assert node is not None
    labels = {**node["metadata"]["labels"], "karpenter.sh/initialized": "false"}
    coming = replace(cluster.nodes[0], node={**node, "metadata": {**node["metadata"], "labels": labels}})
    waiting = waiting_pods(Rng("some wait"), cluster)
    assert waiting
    for now, pods, is_told in (
        (cluster, [], True), (cluster, waiting, False), (after(cluster, 0, coming), [], False),
    ):  # fmt: skip
        glimpse = view_of(now, pods, NOW_S, kept)[0].glimpse
        assert glimpse is not None
        standing = kept.prospects.of(candidate).standing
        assert standing.is_hopeless_to(glimpse)
        assert (glimpse.against(candidate) is not None) == is_told


def test_other_pools_or_types_or_nodes_that_came_from_nowhere_call_for_an_outlook() -> None:
    cluster, kept = full_cluster(), Memories(-math.inf)
    assert view_of(cluster, [], NOW_S, kept)[0].glimpse is None
    outcomes(view_of(cluster, [], NOW_S, kept)[0])
    for now, is_known in (
        (cluster, True),
        (Cluster(tuple(map(settling, cluster.pools)), cluster.types, cluster.nodes), False),
        (Cluster(cluster.pools, tuple(map(replace, cluster.types)), cluster.nodes), False),
        (Cluster(tuple(NodePool.of({**pool.object}) for pool in cluster.pools), cluster.types, cluster.nodes), True),
        (Cluster(cluster.pools, cluster.types, NodeList(cluster.nodes)), False),
    ):
        assert (view_of(now, [], NOW_S, kept)[0].glimpse is not None) == is_known


def test_of_a_moment_that_is_over_nothing_more_is_told() -> None:
    cluster, kept = full_cluster(), Memories(-math.inf)
    outcomes(view_of(cluster, [], NOW_S, kept)[0])
    candidates = view_of(cluster, [], NOW_S, kept)[0].candidates(SingleNodeConsolidation())[-2:]
    now, later = (view_of(cluster, [], NOW_S, kept)[0].glimpse for _ in range(2))
    assert now is not None
    assert later is not None
    assert not now.can_go_together(candidates)
    assert view_of(after(cluster, 0, replace(cluster.nodes[0])), [], NOW_S, kept)[0].glimpse is not None
    assert later.can_go_together(candidates)
    assert not kept.prospects.of(candidates[0]).standing.is_hopeless_to(later)
    assert kept.prospects.of(candidates[0]).standing.is_hopeless_to(now)
    assert now.against(candidates[0]) is None
