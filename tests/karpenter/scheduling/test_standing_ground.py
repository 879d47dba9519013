"""Groundwork that is carried on gives the answers of groundwork that is made from nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling import standing_ground
from holokube.karpenter.scheduling.existing_nodes import NodeTable, is_settling
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.solver import Solver
from holokube.karpenter.scheduling.standing_ground import StandingGround
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from tests.karpenter.scheduling import builders, random_problems


def told(results: Results) -> tuple[Any, ...]:
    claims = [
        (
            claim.pool.name, str(claim.requirements), [one.name for one in claim.instance_types], claim.requests,
            [pod["metadata"]["name"] for pod in claim.pods],
        )
        for claim in results.new_claims
    ]  # fmt: skip
    existing = {name: [pod["metadata"]["name"] for pod in pods] for name, pods in results.existing.items()}
    return claims, existing, results.errors


def made_plain(pod: JsonObject) -> JsonObject:
    """The pod without what keeps it near to other pods or apart from them, and without volumes; it may be spread."""
    spec = {key: value for key, value in pod["spec"].items() if key != "volumes"}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    spec.pop("affinity", None)
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return {**pod, "spec": spec}


def plain(given: Problem) -> Problem:
    nodes = [replace(node, pods=tuple(map(made_plain, node.pods))) for node in given.state_nodes]
    return replace(given, pods=list(map(made_plain, given.pods)), state_nodes=nodes, volume_limits={})


def counted(ground: Groundwork, problem: Problem) -> list[tuple[Any, ...]]:
    """Where the pods are that others go by, as each pod that waits sees it."""
    found = []
    for pod in problem.pods:
        form = ground.form_of(pod)
        for spec in form.specs if not isinstance(form, str) else ():
            base = ground.census.base(spec, inverse=False)
            counts = {domain: pods for domain, pods in base.counts.items() if pods}
            found.append((pod["metadata"]["name"], spec.key, counts, base.known, dict(base.nodes)))
    return found


def later(rng: Random, before: Problem) -> Problem:
    """The problem some time after: nodes have come, gone, changed their pods or come up."""
    types, pools = next(iter(before.types_of_pool.values())), list(before.pools)
    nodes: list[StateNode] = []
    for node in before.state_nodes:
        draw = rng.random()
        if draw < 0.15:
            continue
        if draw < 0.3:
            node = replace(node, is_marked=not node.is_marked)
        elif draw < 0.5:
            node = node.with_pods(node.pods[1:])
        elif draw < 0.6 and node.node is not None:
            labels = {**node.node["metadata"]["labels"], "karpenter.sh/initialized": rng.choice(("true", "false"))}
            metadata = {**node.node["metadata"], "labels": labels}
            node = replace(node, node={**node.node, "metadata": metadata})
        nodes.append(node)
    for _ in range(rng.randint(0, 2)):
        made = random_problems.node(rng, rng.randint(100, 10**6), list(types), pools)
        nodes.append(replace(made, pods=tuple(map(made_plain, made.pods))))
    rng.shuffle(nodes)
    waiting = [pod for pod in before.pods if rng.random() < 0.7]
    waiting += map(made_plain, random_problems.pods(rng, f"late-{rng.randint(0, 10**6)}-", 4))
    return replace(before, state_nodes=nodes, pods=waiting)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_solving_on_standing_ground_gives_what_solving_anew_gives(seed: int) -> None:
    rng = Random(seed)
    problem = plain(random_problems.problem(rng))
    standing = StandingGround()
    for _ in range(4):
        ground = standing.ground(problem)
        assert ground is not None
        assert counted(ground, problem) == counted(Groundwork(problem), problem)
        carried = Solver(replace(problem, standing=standing)).solve()
        assert told(carried) == told(Solver(problem).solve())
        problem = later(rng, problem)
        if rng.random() < 0.5:
            leaving = [pod for node in problem.leaving_nodes for pod in node.pods if pod not in problem.pods]
            problem = replace(problem, pods=[*problem.pods, *leaving])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_simulating_on_standing_ground_gives_what_simulating_anew_gives(seed: int) -> None:
    rng = Random(seed)
    problem = plain(random_problems.problem(rng))
    standing = StandingGround()
    for _ in range(3):
        carried, anew = Simulation(replace(problem, standing=standing)), Simulation(problem)
        for node in problem.active_nodes:
            pods = [pod for pod in node.pods if pod["status"]["phase"] == "Running"]
            assert told(carried.simulate([node.name], pods)) == told(anew.simulate([node.name], pods))
        problem = later(rng, problem)


@pytest.mark.parametrize("has_selector", [True, False])
def test_ground_stands_while_pods_are_spread_and_counts_them_where_they_are(has_selector: bool) -> None:
    strict = [builders.spread("topology.kubernetes.io/zone", "web")]
    if not has_selector:
        # Then no label matters, but every pod that is there counts.
        del strict[0]["labelSelector"]
    web = [builders.pod(f"web-{number}", app="web", topologySpreadConstraints=strict) for number in range(6)]
    nodes = [builders.state_node(f"n{number}", zone=f"zone-{'abc'[number]}") for number in range(3)]
    standing = StandingGround()
    for bound in ((), web[:1], web[:3], web[1:3], ()):
        problem = replace(builders.problem(web[3:]), state_nodes=[nodes[0].with_pods(tuple(bound)), *nodes[1:]])
        assert standing.ground(problem) is not None
        carried = Solver(replace(problem, standing=standing)).solve()
        assert told(carried) == told(Solver(problem).solve())


def test_forms_that_pile_up_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_ground, "_FORMS_KEPT", 3)
    standing = StandingGround()
    for number in range(6):
        app = f"web-{number}"
        spread = builders.spread("topology.kubernetes.io/zone", app)
        web = builders.pod(app, app=app, topologySpreadConstraints=[spread])
        problem = replace(builders.problem([web]), state_nodes=[builders.state_node("n")])
        carried = Solver(replace(problem, standing=standing)).solve()
        assert told(carried) == told(Solver(problem).solve())
        found = standing.ground(problem)
        assert found is not None
        assert len(found.forms.forms) <= 4


def test_ground_does_not_stand_while_a_pod_cares_about_others() -> None:
    apart = builders.pod("apart", affinity=builders.required_pods("podAntiAffinity", "kubernetes.io/hostname", "web"))
    near = builders.pod("near", affinity=builders.required_pods("podAffinity", "topology.kubernetes.io/zone", "web"))
    lone, bound = builders.problem([builders.pod("lone")]), builders.state_node("n", bound=(near,))
    standing = StandingGround()
    assert standing.ground(lone) is not None
    assert standing.ground(builders.problem([apart])) is None
    assert standing.ground(replace(lone, state_nodes=[bound])) is None
    found = standing.ground(replace(lone, state_nodes=[bound.with_pods(())]))
    assert found is not None
    assert len(found.nodes) == 1


def test_a_resource_that_nobody_wanted_before_counts_from_then_on() -> None:
    plain_pod, greedy = builders.pod("plain"), builders.pod("greedy")
    greedy["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    node = builders.state_node("n")
    standing = StandingGround()
    for pods in ([plain_pod], [plain_pod, greedy], [plain_pod]):
        problem = replace(builders.problem(pods), state_nodes=[node])
        carried = Solver(replace(problem, standing=standing)).solve()
        assert told(carried) == told(Solver(problem).solve())


def test_a_table_that_is_carried_on_leaves_the_one_before_as_it_was() -> None:
    nodes = [builders.state_node(name) for name in ("a", "b", "c")]
    standing = StandingGround()
    ground = standing.ground(builders.problem(builders.pods(1), state_nodes=nodes))
    assert ground is not None
    before = ground.nodes
    known = list(before.nodes), list(before.states), list(before.taints), dict(before.rows), before.room.copy()
    tainted = [{"key": "t", "effect": "NoSchedule"}]
    for later in (
        [nodes[0], builders.state_node("b", taints=tainted, labels={"team": "x"}), nodes[2]],
        [nodes[0], replace(nodes[1], pods=tuple(builders.pods(2, cpu="1"))), nodes[2]],
        [nodes[2], builders.state_node("aa"), builders.state_node("d", taints=tainted)],
    ):
        table = before.carried_on(
            [node for node in later if node not in nodes], {"a", "b"} if nodes[0] not in later else (), {}
        )
        anew = NodeTable(later, (), {})
        assert table.rows == anew.rows
        assert table.taints == anew.taints
        assert [state.requirements for state in table.states] == [state.requirements for state in anew.states]
        assert (before.nodes, before.states, before.taints, before.rows) == known[:4]
        assert (before.room == known[4]).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_table_that_is_carried_on_has_the_numbers_of_one_made_anew(seed: int) -> None:
    rng = Random(seed)
    problem = plain(random_problems.problem(rng))
    standing = StandingGround()
    for _ in range(4):
        ground = standing.ground(problem)
        assert ground is not None
        found, anew = ground.nodes, ground.table(problem.active_nodes, {pool.name: pool for pool in problem.pools})
        assert found.nodes == anew.nodes
        assert (found.room == anew.room).all()
        assert found.up == anew.up == sum(node.is_initialized for node in problem.active_nodes)
        for now_s in (0.0, problem.now_s, problem.now_s + 30.0, problem.now_s + 10**9):
            expected = [not is_settling(node, _pool_of(problem, node), now_s) for node in found.nodes]
            assert found.settled(now_s).tolist() == anew.settled(now_s).tolist() == expected
        problem = later(rng, problem)


def _pool_of(problem: Problem, node: StateNode) -> NodePool | None:
    return next((pool for pool in problem.pools if pool.name == node.pool_name), None)


def test_a_node_settles_anew_when_its_claim_tells_of_a_pod() -> None:
    at_s = 1_767_225_600.0
    initialized = {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    def settled(now_s: float, **more: str) -> list[bool]:
        node = builders.state_node("b", claim_status={"conditions": [initialized], **more})
        ground = standing.ground(replace(given, state_nodes=[builders.state_node("a"), node]))
        assert ground is not None
        return ground.nodes.settled(now_s).tolist()

    standing = StandingGround()
    given = builders.problem([], pools=[builders.pool(consolidate_after="60s")])
    assert settled(at_s + 59) == [True, False]
    assert settled(at_s + 60) == [True, True]
    assert settled(at_s + 60, lastPodEventTime="2026-01-01T00:00:30Z") == [True, False]


def test_pools_count_as_they_are_now_whether_their_specs_changed_or_not() -> None:
    standing = StandingGround()
    first = builders.problem(builders.pods(1))
    one, again = standing.ground(first), standing.ground(first)
    assert one is not None
    assert again is not None
    assert again.templates is one.templates
    (pool,) = first.pools
    told_more = NodePool.of({**pool.object, "status": {"resources": {"cpu": "8"}}})
    found = standing.ground(replace(first, pools=[told_more]))
    assert found is not None
    assert [template.pool for template in found.templates] == [told_more]
    assert found.forms is one.forms
    other = builders.pool(pool.name, taints=[{"key": "t", "effect": "NoSchedule"}])
    found = standing.ground(replace(first, pools=[other]))
    assert found is not None
    assert [template.taints for template in found.templates] == [other.taints]
    assert found.forms is not one.forms


@pytest.mark.parametrize(
    "change", [{"options": SolveOptions(size_daemons=False)}, {"daemon_pods": [builders.pod("daemon")]}]
)
def test_ground_begins_anew_when_options_or_daemons_are_others(change: dict[str, Any]) -> None:
    standing = StandingGround()
    first = builders.problem(builders.pods(1))
    one = standing.ground(first)
    found = standing.ground(replace(first, **change))
    back = standing.ground(first)
    assert one is not None
    assert found is not None
    assert back is not None
    assert found.forms is not one.forms
    assert back.forms is not found.forms
    assert len(found.daemons) == len(change.get("daemon_pods", ()))
    assert not back.daemons
