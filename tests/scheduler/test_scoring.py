from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState, PodClass
from holokube.packing.arrays import RowArray
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scoring import Scoring
from tests.builders import JsonObject
from tests.scheduler.objects import make_node, waiting

SELECTOR = LabelSelector.from_labels({"app": "x"})


def spread_by_app(pod: JsonObject) -> LabelSelector | None:
    return SELECTOR if pod["metadata"]["labels"].get("app") == "x" else None


def assert_same_order(remembering: Scoring, plain: Scoring, cls: PodClass, pod: JsonObject, rows: RowArray) -> None:
    """Ranks are totals without something that all rows get."""
    left_out = plain(cls, pod, rows) - remembering.ranks(cls, pod, rows)
    assert len(set(left_out.tolist())) <= 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_remembered_scores_equal_computed_ones_whatever_happens(data: st.DataObject) -> None:
    state, profile = ClusterState(), ScoreProfile()
    remembering, plain = (Scoring(state, profile, spread_by_app, reuse=reuse) for reuse in (True, False))
    for number in range(3):
        state.add_node(make_node(f"n{number}", {"zone": "a"}))
    for number in range(data.draw(st.integers(1, 25))):
        name = f"n{data.draw(st.integers(0, 80))}"
        match data.draw(st.sampled_from(("score", "score", "add", "remove", "node", "gone"))):
            case "add" if name in state.node_names:
                state.add_pod(waiting(f"p{number}", node=name, cpu=data.draw(st.sampled_from(("1", "500m")))))
            case "remove" if state.pods:
                state.remove_pod(data.draw(st.sampled_from(sorted(state.pods))))
            case "node":
                state.add_node(make_node(name, cpu=data.draw(st.sampled_from(("4", "16")))))
            case "gone" if name in state.node_names and len(state.node_names) > 1:
                state.remove_node(name)
            case "score":
                cpu, app = data.draw(st.sampled_from(("1", "2", ""))), data.draw(st.sampled_from("xy"))
                pod = waiting("new", cpu=cpu, labels={"app": app})
                cls = state.class_of(pod)
                rows = np.flatnonzero(state.feasible(cls))
                assert remembering(cls, pod, rows).tolist() == plain(cls, pod, rows).tolist()
                assert_same_order(remembering, plain, cls, pod, rows)


def test_emptier_nodes_score_higher_as_pods_come() -> None:
    state = ClusterState()
    for name in "ab":
        state.add_node(make_node(name))
    scoring = Scoring(state, ScoreProfile(), lambda pod: None)
    pod = waiting("new", cpu="1")
    cls, rows = state.class_of(pod), state.rows
    assert len(set(scoring(cls, pod, rows).tolist())) == 1
    state.add_pod(waiting("p", node="a", cpu="2"))
    first, second = scoring(cls, pod, rows).tolist()
    assert first < second


def test_requests_of_the_pod_as_a_whole_are_remembered_apart_from_those_of_its_containers() -> None:
    """Upstream's LeastAllocated does not count the former, so that pods alike to every filter score differently."""
    state = ClusterState()
    for name in "ab":
        state.add_node(make_node(name))
    state.add_pod(waiting("p", node="a", cpu="1"))
    by_container = waiting("c", cpu="1")
    by_pod = waiting("w", cpu="")
    by_pod["spec"]["resources"] = {"requests": {"cpu": "1", **requests_without_cpu(by_container)}}
    remembering, plain = (Scoring(state, ScoreProfile(), lambda pod: None, reuse=reuse) for reuse in (True, False))
    for pod in (by_container, by_pod):
        cls = state.class_of(pod)
        assert remembering(cls, pod, state.rows).tolist() == plain(cls, pod, state.rows).tolist()


def test_pods_that_have_some_of_their_images_in_common_are_told_apart() -> None:
    state = ClusterState()
    for name, images in zip("abc", IMAGES, strict=True):
        node = make_node(name)
        node["status"]["images"] = images
        state.add_node(node)
    pod = waiting("p", cpu="1")
    shared = pod["spec"]["containers"]
    specs: list[JsonObject] = [
        {**pod["spec"]},
        {**pod["spec"], "initContainers": [{"name": "i", "image": "a:1"}]},
        {**pod["spec"], "initContainers": [{"name": "i", "image": "b:1"}]},
        {**pod["spec"], "containers": [{**shared[0], "image": "a:1"}]},
        {**pod["spec"], "volumes": [{"name": "v", "image": {"reference": "b:1"}}]},
        {**pod["spec"]},
    ]
    assert specs[0]["containers"] is shared
    remembering, plain = (Scoring(state, ScoreProfile(), lambda pod: None, reuse=reuse) for reuse in (True, False))
    rows = state.rows
    for spec in specs:
        other = {**pod, "spec": spec}
        cls = state.class_of(other)
        assert remembering(cls, other, rows).tolist() == plain(cls, other, rows).tolist()


def requests_without_cpu(pod: JsonObject) -> JsonObject:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return {name: amount for name, amount in requests.items() if name != "cpu"}


SELECTORS = {app: LabelSelector.from_labels({"app": app}) for app in "xyz"}
TAINTS: tuple[list[JsonObject], ...] = (
    [], [{"key": "soft", "value": "1", "effect": "PreferNoSchedule"}], [{"key": "hard", "effect": "NoSchedule"}],
)  # fmt: skip
IMAGES: tuple[list[JsonObject], ...] = (
    [], [{"names": ["a:1"], "sizeBytes": 500_000_000}], [{"names": ["b:1"], "sizeBytes": 900_000_000}],
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_nodes_are_and_who_selects_a_pod_is_remembered_rightly(data: st.DataObject) -> None:
    """Pods of one class with different owners, nodes that differ in taints and images; feasible nodes come and go."""
    state, profile = ClusterState(), ScoreProfile()
    remembering, plain = (
        Scoring(state, profile, lambda pod: SELECTORS.get(pod["metadata"]["labels"]["app"]), reuse=reuse)
        for reuse in (True, False)
    )
    for number in range(4):
        state.add_node(make_node(f"n{number}", {"topology.kubernetes.io/zone": "ab"[number % 2]}))
    known: tuple[Any, Any] = None, None
    for number in range(data.draw(st.integers(1, 25))):
        name = f"n{data.draw(st.integers(0, 5))}"
        match data.draw(st.sampled_from(("score", "score", "score", "add", "remove", "node", "gone"))):
            case "add" if name in state.node_names:
                app = data.draw(st.sampled_from("xyz"))
                state.add_pod(waiting(f"p{number}", node=name, cpu="1", labels={"app": app}))
            case "remove" if state.pods:
                state.remove_pod(data.draw(st.sampled_from(sorted(state.pods))))
            case "node":
                node = make_node(name, {"topology.kubernetes.io/zone": "a"}, taints=data.draw(st.sampled_from(TAINTS)))
                node["status"]["images"] = data.draw(st.sampled_from(IMAGES))
                state.add_node(node)
            case "gone" if name in state.node_names and len(state.node_names) > 1:
                state.remove_node(name)
            case "score":
                pod = waiting("new", cpu="1", labels={"app": data.draw(st.sampled_from("wxyz"))})
                pod["spec"]["containers"][0]["image"] = data.draw(st.sampled_from(("a:1", "b:1", "c")))
                cls = state.class_of(pod)
                mask = state.feasible(cls)
                rows = known[1] if known[0] is mask else np.flatnonzero(mask)
                known = mask, rows
                if len(rows):
                    assert remembering(cls, pod, rows).tolist() == plain(cls, pod, rows).tolist()
                    assert_same_order(remembering, plain, cls, pod, rows)


def test_nodes_that_move_while_the_same_ones_are_feasible_are_looked_at_again() -> None:
    state, profile = ClusterState(), ScoreProfile()
    zone = "topology.kubernetes.io/zone"
    for name in "abcd":
        state.add_node(make_node(name, {zone: "near"}))
    for number in range(3):
        state.add_pod(waiting(f"p{number}", node="a", labels={"app": "x"}))
    remembering, plain = (Scoring(state, profile, spread_by_app, reuse=reuse) for reuse in (True, False))
    pod = waiting("new", labels={"app": "x"})
    cls, rows = state.class_of(pod), state.rows
    before = remembering(cls, pod, rows).tolist()
    assert before == plain(cls, pod, rows).tolist()
    state.add_node(make_node("b", {zone: "far"}))
    after = remembering(cls, pod, rows).tolist()
    assert after == plain(cls, pod, rows).tolist()
    assert after != before
