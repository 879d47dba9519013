"""A pod that gets other labels when it is bound, and templates that are known again: the short ways and the long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState, PodClass
from holokube.packing.classes import ClassTable
from holokube.packing.counters import SpreadMatcher
from holokube.packing.placed import PlacedPod
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity, spread

JsonObject = dict[str, Any]
NODES = ("n0", "n1", "n2")
SELECTOR = LabelSelector.from_labels({"zone": "a"})
QUESTIONS = (
    make_pod("plain", requests={"cpu": "1"}),
    make_pod("apart", labels={"app": "a"}, affinity=pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname"))),
    make_pod("even", labels={"app": "b"}, topologySpreadConstraints=[spread("kubernetes.io/hostname", "b")]),
    make_pod("away", affinity=pod_anti_affinity({
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"zone": "a"}},
    })),
)  # fmt: skip
LABELS = st.sampled_from([{}, {"app": "a"}, {"app": "b"}, {"app": "a", "zone": "a"}, {"app": "b", "zone": "b"}])


STATUS = {"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}


class TheLongWay(ClusterState):
    """Takes every pod out, and in again as it is now."""

    def renew_pod(self, placed: PlacedPod, pod: JsonObject) -> bool:
        return False


def both() -> tuple[ClusterState, ClusterState]:
    states = ClusterState(), TheLongWay()
    for state in states:
        for number, name in enumerate(NODES):
            state.add_node(make_node(name, {"zone": "ab"[number % 2]}))
    return states


def seen(state: ClusterState) -> list[Any]:
    """Everything that anybody can find out about the pods."""
    classes = state.classify(QUESTIONS)
    answers: list[Any] = [
        [state.feasible(cls).tolist(), state.recompute(cls).tolist(), state.explain(cls)] for cls in classes
    ]
    answers.append(state.pods_per_row(classes[0], SpreadMatcher("default", SELECTOR)).tolist())
    answers.append([state.nodes.used.tolist(), state.nodes.used_nonzero.tolist()])
    answers.append([[(placed.key, placed.labels) for placed in state.pods_on(row)] for row in range(len(NODES))])
    in_order = sorted(state.pods.values(), key=lambda placed: placed.number)
    answers.append([(placed.key, placed.pod, placed.node_name, placed.is_terminating) for placed in in_order])
    answers.append([placed.cls.is_stale or placed.cls is own_class(state, placed) for placed in in_order])
    return answers


def own_class(state: ClusterState, placed: PlacedPod) -> PodClass:
    assert placed.pod is not None
    spec = {name: value for name, value in placed.pod["spec"].items() if name != "nodeName"}
    return state.class_of({**placed.pod, "spec": spec})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_pod_with_other_labels_is_as_one_that_was_taken_out_and_in_again(data: st.DataObject) -> None:
    short, long = both()
    if data.draw(st.booleans()):
        assert seen(short) == seen(long)
    pods: dict[str, JsonObject] = {}
    for number in range(data.draw(st.integers(4, 20))):
        deeds = ("bind", "bind", "bind", "label", "assume", "end", "finish", "remove", "look")
        deed = data.draw(st.sampled_from(deeds)) if number > 2 else "assume"
        name = data.draw(st.sampled_from(sorted(pods))) if pods and deed != "assume" else ""
        if deed == "assume":
            kind = data.draw(st.sampled_from(QUESTIONS))
            pod = {**kind, "metadata": {**kind["metadata"], "name": f"p{number}", "uid": f"u{number}"}}
            row = data.draw(st.integers(0, len(NODES) - 1))
            for state in (short, long):
                state.assume_pod(pod, row)
            pods[pod["metadata"]["name"]] = pod
        elif deed in ("bind", "label") and name:
            pod = pods[name]
            labels = {**pod["metadata"].get("labels", {}), **data.draw(LABELS)}
            placed = short.pod(f"default/{name}")
            assert placed is not None
            spec = pod["spec"] if "nodeName" in pod["spec"] else {**pod["spec"], "nodeName": placed.node_name}
            pods[name] = {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}
            for state in (short, long):
                assert state.add_pod(pods[name])
        elif deed == "end" and name and "nodeName" in pods[name]["spec"]:
            metadata = {**pods[name]["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
            status = data.draw(st.sampled_from(({}, {"resources": {}}, {"containerStatuses": [STATUS]})))
            pods[name] = {**pods[name], "metadata": metadata, **({"status": status} if status else {})}
            for state in (short, long):
                assert state.add_pod(pods[name])
        elif deed == "finish" and name and "nodeName" in pods[name]["spec"]:
            for state in (short, long):
                state.add_pod({**pods[name], "status": {"phase": "Succeeded"}})
            del pods[name]
        elif deed == "remove" and name:
            for state in (short, long):
                state.remove_pod(f"default/{name}")
            del pods[name]
        elif deed == "look":
            assert seen(short) == seen(long)
    assert seen(short) == seen(long)


def test_a_relabelled_pod_takes_the_short_way_and_is_the_youngest() -> None:
    state, _ = both()
    first, second = (make_pod(name, labels={"app": name}) for name in ("a", "b"))
    for pod in (first, second):
        state.assume_pod(pod, 0)
    before = state.pod("default/a")
    bound = {**first, "metadata": {**first["metadata"], "labels": {"app": "a", "zone": "x"}},
             "spec": {**first["spec"], "nodeName": "n0"}}  # fmt: skip
    state.add_pod(bound)
    assert before is not None and state.pod("default/a") is before
    assert before.label_set is state.counters.label_set("default", {"app": "a", "zone": "x"})
    assert [placed.key for placed in state.pods_on(0)] == ["default/b", "default/a"]


def test_a_pod_that_is_asked_to_end_takes_the_short_way_but_not_in_an_experiment() -> None:
    state, _ = both()
    pod = make_pod("a", labels={"zone": "a"}, nodeName="n0")
    matcher, cls = SpreadMatcher("default", SELECTOR), state.class_of(QUESTIONS[0])
    state.add_pod(pod)
    placed = state.pod("default/a")
    assert placed is not None
    ending = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    another = {**ending, "metadata": {**ending["metadata"], "uid": "another"}}
    with state.trial():
        assert not state.renew_pod(placed, ending) and not state.end_pod(placed, ending)
    assert not state.end_pod(placed, another), "it has only taken the name"
    assert state.pods_per_row(cls, matcher)[0] == 1
    assert state.renew_pod(placed, ending)
    assert placed.pod is ending and placed.is_terminating and state.pod("default/a") is placed
    assert state.pods_per_row(cls, matcher)[0] == 0, "one that ends is not spread"
    state.remove_pod("default/a")
    assert not state.counters._label_sets and not state.nodes.used.any()


def test_a_pod_that_was_assumed_and_comes_without_a_node_is_refused() -> None:
    state, _ = both()
    pod = make_pod("a")
    state.assume_pod(pod, 0)
    with pytest.raises(Exception, match="has no node"):
        state.add_pod(pod)


CONTAINERS = [[{"name": "c", "resources": {"requests": {"cpu": cpu}}}] for cpu in ("1", "2", "1")]
EPHEMERAL = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]
SPECS = st.builds(
    lambda containers, more: {"containers": containers, **more},
    st.sampled_from(CONTAINERS),
    st.sampled_from([
        {}, {"nodeSelector": {"a": "b"}}, {"nodeName": "n0"}, {"volumes": EPHEMERAL},
        {"tolerations": [{"operator": "Exists"}]},
        {"topologySpreadConstraints": [spread("zone", "a")]},
        {"affinity": pod_anti_affinity(affinity_term("a", "zone"))},
        {"topologySpreadConstraints": [{**spread("zone", None), "labelSelector": {"matchLabels": {"tier": "x"}}}]},
    ]),
)  # fmt: skip
METADATA = st.builds(
    lambda name, namespace, labels: {"name": name, "uid": name, "namespace": namespace, "labels": labels},
    st.sampled_from(["p", "q"]),
    st.sampled_from(["default", "other"]),
    st.sampled_from([{}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {"tier": "y"}]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(METADATA, SPECS), min_size=1, max_size=15))
def test_a_template_that_is_known_again_has_the_class_that_it_would_be_found_to_have(
    given_pods: list[tuple[JsonObject, JsonObject]],
) -> None:
    quick, plain = ClassTable(), ClassTable()
    held: list[Any] = []
    for metadata, spec in given_pods:
        pod = {"metadata": metadata, "spec": {**spec}}
        found = quick.class_of(pod)
        assert found is quick._class_of(pod, False)
        assert not found.is_stale
        expected = plain._class_of(pod, False)
        assert found.ignored_keys == expected.ignored_keys
        held += [found, expected]
    # Which classes became stale is the same too.
    assert [cls.is_stale for cls in held[::2]] == [cls.is_stale for cls in held[1::2]]
