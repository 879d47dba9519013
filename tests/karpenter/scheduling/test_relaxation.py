from __future__ import annotations

from typing import Any

from holokube.karpenter.scheduling.relaxation import TOLERATE_PREFERENCE, Demands
from tests.karpenter.scheduling.builders import (
    HOST,
    ZONE,
    need,
    pod,
    preferred_nodes,
    preferred_pods,
    required_nodes,
    spread,
)


def _steps(demands: Demands, *, tolerate: bool = False) -> list[Demands]:
    found = [demands]
    while (relaxed := found[-1].relaxed(tolerate_preferences=tolerate)) is not None:
        found.append(relaxed)
    return found


def _full() -> dict[str, Any]:
    nodes = {**required_nodes([need("a", "Exists")], [need("b", "Exists")])["nodeAffinity"]}
    nodes |= preferred_nodes((1, need("x", "Exists")), (5, need("y", "Exists")))["nodeAffinity"]
    affinity = {
        "nodeAffinity": nodes,
        **preferred_pods("podAffinity", ZONE, "web"),
        **preferred_pods("podAntiAffinity", HOST, "web"),
    }
    soft, hard = spread(ZONE, "web", when="ScheduleAnyway"), spread(HOST, "web")
    return pod("p", affinity=affinity, topologySpreadConstraints=[soft, hard])


def test_wishes_are_given_up_one_at_a_time_and_each_kind_before_the_next() -> None:
    steps = _steps(Demands.of(_full()), tolerate=True)
    shape = [
        (len(s.node_terms or ()), len(s.affinity_wishes), len(s.anti_affinity_wishes), len(s.node_wishes),
         len(s.spread), TOLERATE_PREFERENCE in s.tolerations)
        for s in steps
    ]  # fmt: skip
    assert shape == [
        (2, 1, 1, 2, 2, False), (1, 1, 1, 2, 2, False), (1, 0, 1, 2, 2, False), (1, 0, 0, 2, 2, False),
        (1, 0, 0, 1, 2, False), (1, 0, 0, 0, 2, False), (1, 0, 0, 0, 1, False), (1, 0, 0, 0, 1, True),
    ]  # fmt: skip


def test_the_first_alternative_and_the_heaviest_wish_go_first() -> None:
    steps = _steps(Demands.of(_full()))
    assert set(steps[0].requirements()) == {"a", "y"}
    assert set(steps[1].requirements()) == {"b", "y"}
    assert set(steps[4].requirements()) == {"b", "x"}
    assert set(steps[0].requirements(strict=True)) == {"a"}


def test_the_last_constraint_takes_the_place_of_one_that_goes() -> None:
    listed = [spread("k1", "a", when="ScheduleAnyway"), spread("k2", "a"), spread("k3", "a")]
    relaxed = _steps(Demands.of(pod("p", topologySpreadConstraints=listed)))[-1]
    assert [one["topologyKey"] for one in relaxed.spread] == ["k3", "k2"]


def test_without_wishes_only_what_is_required_is_there() -> None:
    demands = Demands.of(_full(), with_wishes=False)
    assert not demands.node_wishes and not demands.affinity_terms and not demands.anti_affinity_terms
    assert len(demands.spread) == 1 and len(_steps(demands)) == 2


def test_preferences_against_nodes_are_borne_only_if_some_pool_has_them_and_once() -> None:
    demands = Demands.of(pod("p"))
    assert demands.relaxed(tolerate_preferences=False) is None
    bearing = demands.relaxed(tolerate_preferences=True)
    assert bearing is not None and bearing.relaxed(tolerate_preferences=True) is None
    assert bearing.tolerating(TOLERATE_PREFERENCE) is bearing
