from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scoring import Scoring
from tests.builders import JsonObject
from tests.scheduler.objects import make_node, waiting

SELECTOR = LabelSelector.from_labels({"app": "x"})


def spread_by_app(pod: JsonObject) -> LabelSelector | None:
    return SELECTOR if pod["metadata"]["labels"].get("app") == "x" else None


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


def requests_without_cpu(pod: JsonObject) -> JsonObject:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return {name: amount for name, amount in requests.items() if name != "cpu"}
