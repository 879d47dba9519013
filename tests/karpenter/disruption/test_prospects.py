"""What is kept and counted from pass to pass decides as looking at everything anew does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.karpenter.disruption.budgets import count_nodes
from holokube.karpenter.disruption.candidate_book import CandidateBook
from holokube.karpenter.disruption.consolidation import consolidate
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.prospects import Outlook, Prospects, Standing, several
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Candidate, Command, DisruptionClass, Notice, Obstruction, Outcome
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.headroom import Foresight, Headroom, Need
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.standing_ground import StandingGround
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.kube.types import JsonObject
from tests.karpenter.disruption.clusters import NOW_S, Cluster, Shape, build
from tests.karpenter.disruption.objects import daemon, pdb, pod
from tests.karpenter.disruption.test_properties import disturbed, pool_like


def cluster_of(rng: Rng) -> Cluster:
    """Pods of few sizes, so that they stand for each other, or of many; with much room or little."""
    shape = Shape(
        nodes=3 + rng.randrange(14), types=3 + rng.randrange(20), pools=1 + rng.randrange(2), node_cpu=(2, 8),
        fill=0.2 + 0.75 * rng.random(), spot=rng.random() < 0.2,
        pod_cpu_milli=rng.choice(((500, 500), (500, 501), (300, 305), (250, 2000))),
    )  # fmt: skip
    made = build(rng.uid(), shape)
    pools = tuple(pool_like(pool, rng) for pool in made.pools)
    nodes = tuple(
        replace(disturbed(rng, node), serial=number) if rng.random() < 0.4 else replace(node, serial=number)
        for number, node in enumerate(made.nodes)
    )
    return Cluster(pools, made.types, nodes)


def spread(rng: Rng, cluster: Cluster) -> Cluster:
    """The same cluster with pods that are spread over zones or nodes, strictly or if it can be had."""
    apps = sorted({pod["metadata"]["labels"]["app"] for node in cluster.nodes for pod in node.pods})
    of_app = {
        app: {
            "maxSkew": 1 + rng.randrange(3),
            "topologyKey": rng.choice(("topology.kubernetes.io/zone", "topology.kubernetes.io/zone", HOSTNAME_LABEL)),
            "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule")),
            "labelSelector": {"matchLabels": {"app": app}},
            "nodeTaintsPolicy": rng.choice(("Honor", "Ignore")),
        }
        for app in apps
        if rng.random() < 0.7
    }

    def bound(pod: JsonObject) -> JsonObject:
        found = of_app.get(pod["metadata"]["labels"]["app"])
        return pod if found is None else {**pod, "spec": {**pod["spec"], "topologySpreadConstraints": [found]}}

    nodes = tuple(replace(node, pods=tuple(map(bound, node.pods))) for node in cluster.nodes)
    return Cluster(cluster.pools, cluster.types, nodes)


def waiting_pods(rng: Rng, cluster: Cluster) -> list[JsonObject]:
    """Pods like those that are there, which wait for a node."""
    known = [pod for node in cluster.nodes for pod in node.pods]
    found = []
    for number in range(rng.randrange(4) if known else 0):
        like = rng.choice(known)
        metadata = {**like["metadata"], "name": f"waits-{number}", "uid": rng.uid()}
        metadata["creationTimestamp"] = rng.choice(("2025-12-01T00:00:00Z", "2026-01-01T23:00:00Z"))
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        spec = {key: value for key, value in like["spec"].items() if key != "nodeName"}
        status = {"phase": "Pending", "conditions": conditions}
        found.append({**like, "metadata": metadata, "spec": spec, "status": status})
    return found


def later(rng: Rng, cluster: Cluster) -> Cluster:
    """The cluster some time after."""
    nodes = []
    for node in cluster.nodes:
        draw = rng.random()
        if draw < 0.1:
            continue
        if draw < 0.2:
            node = replace(node, is_marked=not node.is_marked)
        elif draw < 0.35:
            node = replace(node, pods=node.pods[: len(node.pods) // 2])
        elif draw < 0.45 and node.node is not None:
            labels = {**node.node["metadata"]["labels"], "karpenter.sh/initialized": rng.choice(("true", "false"))}
            node = replace(node, node={**node.node, "metadata": {**node.node["metadata"], "labels": labels}})
        elif draw < 0.5:
            node = replace(node, nominated_until_s=NOW_S + rng.randrange(2))
        nodes.append(node)
    pools = cluster.pools if rng.random() < 0.7 else tuple(pool_like(pool, rng) for pool in cluster.pools)
    return Cluster(pools, cluster.types, tuple(nodes))


class Memories:
    """What a loop keeps from pass to pass."""

    def __init__(self, quiet_until_s: float) -> None:
        self.book = CandidateBook()
        self.standing = StandingGround()
        self.prospects = Prospects(lambda: 0.0, lambda nodes: [quiet_until_s] * len(nodes))


def view_of(
    cluster: Cluster, waiting: list[JsonObject], pdbs: list[JsonObject], queued: frozenset[str], kept: Memories | None
) -> DisruptionView:
    limits = EvictionLimits(pdbs)
    leaving = [
        pod
        for node in cluster.nodes
        if node.is_marked_for_deletion
        for pod in node.pods
        if limits.is_movable(pod, NOW_S)
    ]
    problem = Problem(
        cluster.pools, cluster.types_of_pool, pods=[*waiting, *leaving], state_nodes=cluster.nodes, pdbs=pdbs,
        now_s=NOW_S, standing=kept.standing if kept is not None else None,
    )  # fmt: skip
    simulation = Simulation(problem)

    def outlook() -> Outlook | None:
        if kept is None or simulation.headroom is None:
            return None
        return Outlook(kept.prospects, simulation.headroom, simulation.ground.forms)

    return DisruptionView(
        now_s=NOW_S, nodes=cluster.nodes, pools={pool.name: pool for pool in cluster.pools},
        types_of_pool=cluster.types_of_pool, simulator=simulation, pdbs=pdbs, queued=queued,
        book=kept.book if kept is not None else None, find_outlook=outlook,
    )  # fmt: skip


def told(command: Command | None) -> tuple[Any, ...] | None:
    if command is None:
        return None
    results = command.results
    placed = {name: names(pods) for name, pods in results.existing.items()} if results is not None else {}
    claims = [
        (claim.pool.name, str(claim.requirements), [one.name for one in claim.instance_types], names(claim.pods))
        for claim in command.replacements
    ]
    return str(command), command.names, command.savings, placed, claims, dict(command.scores)


def names(pods: Sequence[JsonObject]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def words(notices: Sequence[Notice]) -> list[tuple[Any, ...]]:
    return [
        (one.kind, one.message, one.node and one.node.name, one.pool and one.pool.name, one.dedupe) for one in notices
    ]


def outcomes(view: DisruptionView) -> list[Outcome]:
    return [method.compute(view, Memory()) for method in METHODS]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_kept_or_not_the_same_is_decided_and_told(seed: int) -> None:
    rng = Rng(f"kept {seed}")
    decides_and_tells_alike(rng, cluster_of(rng))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_kept_or_not_the_same_is_decided_and_told_of_pods_that_are_spread(seed: int) -> None:
    rng = Rng(f"spread {seed}")
    decides_and_tells_alike(rng, spread(rng, cluster_of(rng)))


def decides_and_tells_alike(rng: Rng, cluster: Cluster) -> None:
    kept = Memories(-math.inf)
    for _ in range(3):
        waiting, queued = waiting_pods(rng, cluster), some_ids(rng, cluster.nodes)
        pdbs = some_pdbs(rng, cluster.nodes)
        expected = outcomes(view_of(cluster, waiting, pdbs, queued, None))
        found = outcomes(view_of(cluster, waiting, pdbs, queued, kept))
        for one, other in zip(found, expected, strict=True):
            assert told(one.command) == told(other.command)
            assert words(one.notices) == words(other.notices)
            assert one.memory == other.memory
        cluster = later(rng, cluster)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_where_nobody_has_to_be_told_the_same_is_decided(seed: int) -> None:
    rng = Rng(f"kept {seed}")
    decides_alike(rng, cluster_of(rng))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_where_nobody_has_to_be_told_the_same_is_decided_of_pods_that_are_spread(seed: int) -> None:
    rng = Rng(f"spread {seed}")
    decides_alike(rng, spread(rng, cluster_of(rng)))


def decides_alike(rng: Rng, cluster: Cluster) -> None:
    kept = Memories(math.inf)
    for _ in range(3):
        waiting, queued = waiting_pods(rng, cluster), some_ids(rng, cluster.nodes)
        expected = outcomes(view_of(cluster, waiting, [], queued, None))
        found = outcomes(view_of(cluster, waiting, [], queued, kept))
        for one, other in zip(found, expected, strict=True):
            assert told(one.command) == told(other.command)
            assert set(words(one.notices)) <= set(words(other.notices))
            assert one.memory == other.memory
        cluster = later(rng, cluster)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_book_knows_what_looking_at_every_node_finds(seed: int) -> None:
    rng = Rng(f"book {seed}")
    cluster, kept = cluster_of(rng), Memories(-math.inf)
    earlier: dict[str, Candidate] = {}
    for _ in range(4):
        queued, pdbs = some_ids(rng, cluster.nodes), some_pdbs(rng, cluster.nodes)
        anew = view_of(cluster, [], pdbs, queued, None)
        view = view_of(cluster, [], pdbs, queued, kept)
        for disruption_class in DisruptionClass:
            assert words(view.blocked_notices(disruption_class)) == words(anew.blocked_notices(disruption_class))
            one, other = view.scan(disruption_class), anew.scan(disruption_class)
            assert [c.name for c in one.candidates] == [c.name for c in other.candidates]
            assert [(n.name, why) for n, why in one.blocked] == [(n.name, why) for n, why in other.blocked]
        for method in METHODS:
            assert [c.name for c in view.candidates(method)] == [c.name for c in anew.candidates(method)]
            assert [c.rank for c in view.ranked(method)] == [c.rank for c in anew.ranked(method)]
            affordable = [c.name for c in anew.affordable(method)]
            assert [c.name for c in view.affordable(method)] == affordable
            assert [c.name for c in view.affordable(method, 2)] == affordable[:2]
            assert [c.name for c in anew.affordable(method, 2)] == affordable[:2]
            assert view.count_affordable(method) == anew.count_affordable(method) == len(affordable)
            earlier.update({c.name: c for c in anew.candidates(method)})
            some = [c for c in earlier.values() if rng.random() < 0.5]
            named = [c.name for c in anew.candidates(method) if c.name in {one.name for one in some}]
            assert [c.name for c in view.named_as(method, some)] == named
            assert [c.name for c in anew.named_as(method, some)] == named
            # Those that are candidates still are found without a look at all.
            still = [c for c in some if c.name in named]
            assert [c.name for c in view.named_as(method, still)] == named
            assert view.count(method) == anew.count(method)
            assert [(c.name, w) for c, w in view.ruled_out(method)] == [(c.name, w) for c, w in anew.ruled_out(method)]
            assert view.budget_left(method.reason) == anew.budget_left(method.reason)
        assert kept.book.counts() == count_nodes(cluster.nodes)
        cluster = later(rng, cluster)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), is_spread=st.booleans())
def test_what_counting_calls_hopeless_a_simulation_refuses(seed: int, is_spread: bool) -> None:
    rng = Rng(f"hopeless {seed}")
    cluster, kept = cluster_of(rng), Memories(math.inf)
    if is_spread:
        cluster = spread(rng, cluster)
    waiting = waiting_pods(rng, cluster)
    view = view_of(cluster, waiting, [], frozenset(), kept)
    anew = view_of(cluster, waiting, [], frozenset(), None)
    candidates = view.ranked(MultiNodeConsolidation())
    outlook = view.outlook
    assert outlook is not None
    for candidate in candidates:
        if outlook.is_hopeless(kept.prospects.of(candidate).standing):
            assert isinstance(consolidate(anew, [candidate]), Obstruction)
    for count in range(outlook.most_together(candidates) + 1, len(candidates) + 1):
        assert isinstance(consolidate(anew, candidates[:count]), Obstruction)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_one_new_node_that_is_foreseen_is_the_one_of_a_simulation(seed: int) -> None:
    rng = Rng(f"replaced {seed}")
    cluster, kept = tight_cluster(rng) if rng.random() < 0.5 else cluster_of(rng), Memories(math.inf)
    waiting = waiting_pods(rng, cluster)
    view = view_of(cluster, waiting, [], frozenset(), kept)
    candidates, outlook = view.ranked(MultiNodeConsolidation()), view.outlook
    assert outlook is not None
    for count in range(1, min(len(candidates), 8) + 1):
        row = candidates[:count]
        if outlook.cannot_go(row):
            continue
        claim = outlook.replaced_by(row)
        results = view.simulator.simulate(
            [one.name for one in row], [pod for one in row for pod in one.movable_pods], is_consolidation=True
        )
        if claim is not None:
            (planned,) = results.new_claims
            assert claim.pool is planned.pool
            assert claim.requirements == planned.requirements
            assert list(claim.candidate_types) == list(planned.candidate_types)
            assert claim.max_instance_types == planned.max_instance_types
        assert outlook.replaced_by(candidates[:count]) is None, "others were asked about"


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_who_is_looked_at_goes_by_what_was_told_before_and_by_who_is_left_out(seed: int) -> None:
    rng = Rng(f"told {seed}")
    cluster, now_s, quiet = cluster_of(rng), 0.0, dict[str, float]()
    method = SingleNodeConsolidation()

    def memories() -> Memories:
        made = Memories(0.0)
        made.prospects = Prospects(lambda: now_s, lambda nodes: [quiet.get(node.name, -math.inf) for node in nodes])
        return made

    kept = memories()
    for _ in range(6):
        waiting, queued = waiting_pods(rng, cluster), some_ids(rng, cluster.nodes)
        looked_at = []
        for memory in (kept, memories()):
            view = view_of(cluster, waiting, [], queued, memory)
            roster, outlook = view.roster(method), view.outlook
            assert roster is not None
            assert outlook is not None
            found = outlook.worth_a_look_of(roster)
            looked_at.append([(one.name, outlook.stays_as_told(one)) for one in found])
        assert looked_at[0] == looked_at[1]
        for name, _ in looked_at[0]:
            if quiet.get(name, -math.inf) <= now_s and rng.random() < 0.7:
                # What was told a short while ago is not told again.
                quiet[name] = now_s + rng.randrange(3)
        now_s += rng.randrange(2)
        cluster = later(rng, cluster)


class Refusing:
    """A simulator that must not be asked."""

    def simulate(self, *_args: Any, **_options: Any) -> Any:
        raise AssertionError("counting was enough")


def test_full_nodes_that_are_all_alike_are_not_simulated() -> None:
    cluster = build("full", Shape(nodes=40, types=3, node_cpu=(1, 1), fill=1.0, pod_cpu_milli=(300, 300)))
    cheapest = [one for one in cluster.nodes if one.labels["topology.kubernetes.io/zone"] == "zone-a"]
    nodes = tuple(replace(node, serial=number) for number, node in enumerate(cheapest) if len(node.pods) == 3)
    full = Cluster(cluster.pools, cluster.types[:1], nodes)
    assert len(nodes) > 5
    view = replace(view_of(full, [], [], frozenset(), Memories(-math.inf)), simulator=Refusing())
    for outcome in outcomes(view):
        assert outcome.command is None
    assert len(outcomes(view)[-1].notices) == len(nodes)


class WithRoomAt:
    """Counts as another does, but one row has room, so that it matters whether it goes."""

    def __init__(self, headroom: Headroom, roomy: int) -> None:
        self._headroom, self._roomy = headroom, roomy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._headroom, name)

    def are_full(self, rows: Sequence[int], _need: Need) -> bool:
        return self._roomy not in rows

    def foresee(self, _need: Need, _pods: Sequence[JsonObject], rows: Sequence[int]) -> Foresight:
        return Foresight(3 if self._roomy in rows else 2)


def test_what_holds_for_full_nodes_of_a_class_is_not_said_of_one_that_has_room() -> None:
    made = build("alike", Shape(nodes=30, types=3, node_cpu=(1, 1), fill=1.0, pod_cpu_milli=(300, 300)))
    nodes = tuple(replace(node, serial=number) for number, node in enumerate(made.nodes))
    kept = Memories(-math.inf)
    view = view_of(Cluster(made.pools, made.types, nodes), [], [], frozenset(), kept)
    simulation = view.simulator
    assert isinstance(simulation, Simulation)
    assert simulation.headroom is not None
    assert view.outlook is not None
    alike: dict[Standing, list[Candidate]] = {}
    for candidate in view.candidates(MultiNodeConsolidation()):
        alike.setdefault(kept.prospects.of(candidate).standing, []).append(candidate)
    first, roomy, last = max(alike.values(), key=len)[:3]
    row = simulation.headroom.row(roomy.node)
    assert row is not None
    headroom = cast("Headroom", WithRoomAt(simulation.headroom, row))
    outlook = Outlook(kept.prospects, headroom, simulation.ground.forms)
    assert [outlook.against(one) for one in (first, roomy, last)] == [several(2), several(3), several(2)]


def tight_cluster(rng: Rng) -> Cluster:
    """Nodes with as many pods each, and different room for more; there is hardly enough for those of one of them."""
    made = build(rng.uid(), Shape(nodes=4 + rng.randrange(4), types=1, node_cpu=(1, 1)))
    sizes = rng.choice(([100, 100, 100], [150, 150], [200, 100], [100, 200], [200, 100, 100]))
    nodes = []
    for number, node in enumerate(made.nodes):
        assert node.node is not None
        held_milli = 900 - sum(sizes) - rng.choice((0, 0, 0, 50, 100, 150, 200, 250, 300))
        pods = [
            pod(f"p-{number}-{n}", cpu=f"{milli}m", memory="1Mi", labels={"app": "a"}, nodeName=node.name)
            for n, milli in enumerate(sizes)
        ]
        pods.append(daemon(f"d-{number}", cpu=f"{held_milli}m", memory="1Mi", labels={"app": "d"}, nodeName=node.name))
        is_up = {"karpenter.sh/initialized": "true" if rng.random() < 0.8 else "false"}
        metadata = {**node.node["metadata"], "labels": {**node.node["metadata"]["labels"], **is_up}}
        nodes.append(replace(node, node={**node.node, "metadata": metadata}, pods=tuple(pods), serial=number))
    return Cluster(made.pools, made.types, tuple(nodes))


# In these clusters pods that wait take the room of one of two nodes that have as many places.
@example(seed=87)
@example(seed=738)
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_what_is_said_of_one_node_is_said_of_others_like_it_where_it_holds(seed: int) -> None:
    rng = Rng(f"alike {seed}")
    cluster = tight_cluster(rng)
    unscheduled = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    waiting = [
        pod(f"w-{n}", cpu=rng.choice(("100m", "200m")), memory="1Mi", phase="Pending", conditions=unscheduled)
        for n in range(rng.randrange(4))
    ]
    kept = Memories(-math.inf)
    view = view_of(cluster, waiting, [], frozenset(), kept)
    simulation, outlook = view.simulator, view.outlook
    assert isinstance(simulation, Simulation)
    assert simulation.headroom is not None
    assert outlook is not None
    for candidate in view.candidates(SingleNodeConsolidation()):
        alone = Outlook(kept.prospects, simulation.headroom, simulation.ground.forms)
        assert outlook.against(candidate) == alone.against(candidate)


class Tallying:
    """Counts as another does, and how often it is asked what would come of it."""

    def __init__(self, headroom: Headroom) -> None:
        self._headroom, self.asked = headroom, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._headroom, name)

    def foresee(self, need: Need, pods: Sequence[JsonObject], rows: Sequence[int]) -> Foresight | None:
        self.asked += 1
        return self._headroom.foresee(need, pods, rows)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_who_is_older_than_pods_that_wait_and_who_is_not_are_told_apart(seed: int) -> None:
    rng = Rng(f"older {seed}")
    cluster = tight_cluster(rng)
    unscheduled = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    # Of pods that were made at the same time the name decides: these are older, younger, or among those of nodes.
    waiting = [
        pod(f"{rng.choice(('a', 'p-1-1', 'p-2', 'w'))}-{n}", cpu=rng.choice(("100m", "150m", "200m")), memory="1Mi",
            phase="Pending", conditions=unscheduled)
        for n in range(1 + rng.randrange(4))
    ]  # fmt: skip
    kept = Memories(-math.inf)
    view = view_of(cluster, waiting, [], frozenset(), kept)
    simulation, outlook = view.simulator, view.outlook
    assert isinstance(simulation, Simulation)
    assert simulation.headroom is not None
    assert outlook is not None
    for candidate in view.candidates(SingleNodeConsolidation()):
        alone = Outlook(kept.prospects, simulation.headroom, simulation.ground.forms)
        assert outlook.against(candidate) == alone.against(candidate)


@pytest.mark.parametrize(("name", "is_shared"), [("w", True), ("p-5", False)])
def test_nodes_are_counted_once_where_all_their_pods_are_older_than_those_that_wait(name: str, is_shared: bool) -> None:
    made = build("alike", Shape(nodes=8, types=1, node_cpu=(1, 1)))
    nodes = tuple(
        replace(node, serial=number, pods=tuple(
            pod(f"p-{number}-{n}", cpu="300m", memory="1Mi", nodeName=node.name) for n in range(3)
        ))
        for number, node in enumerate(made.nodes)
    )  # fmt: skip
    kept = Memories(-math.inf)
    waits = pod(name, cpu="300m", memory="1Mi", phase="Pending")
    view = view_of(Cluster(made.pools, made.types, nodes), [waits], [], frozenset(), kept)
    simulation = view.simulator
    assert isinstance(simulation, Simulation)
    assert simulation.headroom is not None
    tallying = Tallying(simulation.headroom)
    outlook = Outlook(kept.prospects, cast("Headroom", tallying), simulation.ground.forms)
    candidates = view.candidates(SingleNodeConsolidation())
    for candidate in candidates:
        outlook.against(candidate)
    classes = len({one.price for one in candidates})
    assert classes < len(candidates)
    assert (tallying.asked == classes) == is_shared


def test_nodes_with_the_same_room_are_counted_once() -> None:
    made = build("alike", Shape(nodes=30, types=1, node_cpu=(1, 1)))
    nodes = tuple(
        replace(node, serial=number, pods=(pod(f"p-{number}", cpu="400m", memory="1Mi", nodeName=node.name),))
        for number, node in enumerate(made.nodes)
    )
    kept = Memories(-math.inf)
    view = view_of(Cluster(made.pools, made.types, nodes), [], [], frozenset(), kept)
    simulation = view.simulator
    assert isinstance(simulation, Simulation)
    assert simulation.headroom is not None
    assert view.outlook is not None
    tallying = Tallying(simulation.headroom)
    outlook = Outlook(kept.prospects, cast("Headroom", tallying), simulation.ground.forms)
    candidates = view.candidates(SingleNodeConsolidation())
    for candidate in candidates:
        outlook.against(candidate)
    assert tallying.asked == 1 < len(candidates)


def test_full_nodes_with_pods_that_are_spread_are_not_simulated_once_it_is_told_why_they_stay() -> None:
    made = build("full", Shape(nodes=40, types=3, node_cpu=(1, 1), fill=1.0, pod_cpu_milli=(300, 300)))
    cheapest = [one for one in made.nodes if one.labels["topology.kubernetes.io/zone"] == "zone-a"]
    nodes = tuple(replace(node, serial=number) for number, node in enumerate(cheapest) if len(node.pods) == 3)
    full = spread(Rng("full"), Cluster(made.pools, made.types[:1], nodes))
    assert any(pod["spec"].get("topologySpreadConstraints") for node in full.nodes for pod in node.pods)
    view = replace(view_of(full, [], [], frozenset(), Memories(math.inf)), simulator=Refusing())
    for outcome in outcomes(view):
        assert outcome.command is None


def some_ids(rng: Rng, nodes: Sequence[StateNode]) -> frozenset[str]:
    return frozenset(node.provider_id for node in nodes if rng.random() < 0.05)


def some_pdbs(rng: Rng, nodes: Sequence[StateNode]) -> list[JsonObject]:
    apps = sorted({pod["metadata"]["labels"]["app"] for node in nodes for pod in node.pods})
    return [pdb(f"b-{app}", app, allowed=rng.randrange(2)) for app in apps[:2]] if rng.random() < 0.3 else []
