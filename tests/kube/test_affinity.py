from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.affinity import (
    NodeSelector,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeAffinity,
    RequiredNodeAffinity,
    apply_label_keys,
)
from holokube.kube.selector_errors import joined
from holokube.kube.selectors import SelectorError
from tests.kube.recordings import recorded


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    bare = {"key": key, "operator": operator}
    return {**bare, "values": list(values)} if values else bare


def selector(*terms: dict[str, Any]) -> NodeSelector:
    return NodeSelector.from_json({"nodeSelectorTerms": list(terms)})


def test_node_affinity_decides_as_upstream_does() -> None:
    for case in recorded("node_affinity"):
        required = RequiredNodeAffinity.of_pod(case["pod"])
        matches = required.matches_node(case["node"])
        assert (case, matches) == (case, case["matches"])
        if case["error"]:
            assert required.affinity is not None
            assert joined(required.affinity.errors) == case["error"]
        preferred = PreferredNodeAffinity.of_pod(case["pod"])
        if case["score_error"]:
            assert joined(preferred.errors) == case["score_error"]
        else:
            metadata = case["node"]["metadata"]
            assert preferred.score(metadata["labels"], metadata["name"]) == case["score"]


@pytest.mark.parametrize(
    ("condition", "labels", "matches"),
    [
        (expression("a", "In", "1", "2"), {"a": "2"}, True),
        (expression("a", "In", "1"), {}, False),
        (expression("a", "NotIn", "1"), {}, True),
        (expression("a", "NotIn", "1"), {"a": "1"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "DoesNotExist"), {"a": ""}, False),
        (expression("a", "Gt", "5"), {"a": "6"}, True),
        (expression("a", "Gt", "5"), {"a": "5"}, False),
        (expression("a", "Lt", "5"), {"a": "4"}, True),
        (expression("a", "Lt", "5"), {"a": "x"}, False),
    ],
)
def test_each_operator(condition: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    assert selector({"matchExpressions": [condition]}).matches(labels, "n1") is matches


def test_terms_are_alternatives_and_empty_terms_match_nothing() -> None:
    a = {"matchExpressions": [expression("a", "Exists")]}
    b = {"matchExpressions": [expression("b", "Exists")]}
    assert selector(a, b).matches({"b": ""}, "n")
    assert not selector(a, b).matches({}, "n")
    assert not selector({}, {"matchExpressions": []}).matches({}, "n")
    assert not selector().matches({}, "n")


def test_the_node_selector_must_hold_as_well() -> None:
    affinity = {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "Exists")]}]}
    pod = {
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
        }
    }
    required = RequiredNodeAffinity.of_pod(pod)
    assert required.matches({"disk": "ssd", "a": ""}, "n")
    assert not required.matches({"a": ""}, "n")
    assert not required.matches({"disk": "ssd"}, "n")
    assert RequiredNodeAffinity.of_pod({"spec": {}}).is_empty
    assert required == RequiredNodeAffinity.of_pod(pod)
    assert hash(required) == hash(RequiredNodeAffinity.of_pod(pod))


def test_daemon_pods_name_their_node() -> None:
    named = {"matchFields": [expression("metadata.name", "In", "n1")]}
    assert selector(named).node_names() == {"n1"}
    assert selector(named).matches({}, "n1")
    assert not selector(named).matches({}, "n2")
    other = {"matchFields": [expression("metadata.name", "In", "n2")]}
    assert selector(named, other).node_names() == {"n1", "n2"}
    assert selector(named, {"matchExpressions": [expression("a", "Exists")]}).node_names() is None
    assert selector(named, {}).node_names() is None
    twice = [expression("metadata.name", "In", "n1"), expression("metadata.name", "In", "n2")]
    assert selector({"matchFields": twice}).node_names() == frozenset()
    assert selector({"matchFields": [expression("metadata.name", "NotIn", "n1")]}).node_names() is None


def test_a_malformed_term_spares_the_others() -> None:
    bad = {"matchExpressions": [expression("a", "Near", "b")]}
    good = {"matchExpressions": [expression("a", "Exists")]}
    both = selector(bad, good)
    assert both.matches({"a": ""}, "n")
    assert "supported values" in both.errors[0]


def test_a_pod_term_without_namespaces_means_the_pods_own() -> None:
    term = PodAffinityTerm.from_json({"labelSelector": {}, "topologyKey": "zone"}, namespace="shop")
    assert term.matches("shop", {}, {})
    assert not term.matches("other", {}, {})


def test_listed_and_selected_namespaces_add_up() -> None:
    term = PodAffinityTerm.from_json(
        {
            "labelSelector": {"matchLabels": {"app": "db"}},
            "namespaces": ["a"],
            "namespaceSelector": {"matchLabels": {"team": "x"}},
            "topologyKey": "zone",
        },
        namespace="shop",
    )
    assert term.matches("a", {"app": "db"}, {})
    assert term.matches("b", {"app": "db"}, {"team": "x"})
    assert not term.matches("shop", {"app": "db"}, {})
    assert not term.matches("a", {"app": "web"}, {})


def test_an_empty_namespace_selector_means_every_namespace() -> None:
    term = PodAffinityTerm.from_json(
        {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "zone"}, namespace="shop"
    )
    assert term.namespaces == frozenset()
    assert term.matches("anywhere", {}, {})


def test_a_term_without_label_selector_means_no_pod() -> None:
    assert not PodAffinityTerm.from_json({"topologyKey": "zone"}, namespace="shop").matches("shop", {}, {})


def test_label_keys_are_written_into_the_selector() -> None:
    term = {
        "labelSelector": {"matchExpressions": [expression("app", "Exists")]},
        "matchLabelKeys": ["version", "missing"],
        "mismatchLabelKeys": ["tenant"],
        "topologyKey": "zone",
    }
    labels = {"version": "v2", "tenant": "t1"}
    assert apply_label_keys(term, labels) == {
        "matchExpressions": [
            expression("app", "Exists"),
            expression("version", "In", "v2"),
            expression("tenant", "NotIn", "t1"),
        ]
    }
    assert term["labelSelector"] == {"matchExpressions": [expression("app", "Exists")]}
    assert apply_label_keys({"matchLabelKeys": ["version"]}, labels) is None
    merged = PodAffinityTerm.from_json(term, namespace="shop", labels=labels)
    assert merged.matches("shop", {"app": "", "version": "v2", "tenant": "t2"})
    assert not merged.matches("shop", {"app": "", "version": "v2", "tenant": "t1"})
    assert not merged.matches("shop", {"app": "", "version": "v1"})
    plain = PodAffinityTerm.from_json(term, namespace="shop")
    assert plain.matches("shop", {"app": "", "version": "v1"})
    assert plain.match_label_keys == ("version", "missing")


def test_all_four_lists_of_a_pod_are_read() -> None:
    def term(key: str) -> dict[str, Any]:
        return {"labelSelector": {}, "topologyKey": key}

    def lists(required: str, preferred: str) -> dict[str, Any]:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(required)],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "podAffinityTerm": term(preferred)}
            ],
        }

    pod = {
        "metadata": {"namespace": "shop"},
        "spec": {"affinity": {"podAffinity": lists("a", "b"), "podAntiAffinity": lists("c", "d")}},
    }
    affinity = PodAffinity.of_pod(pod)
    found = [affinity.required, affinity.preferred, affinity.anti_required, affinity.anti_preferred]
    assert [[(t.topology_key, t.weight) for t in terms] for terms in found] == [
        [("a", 0)], [("b", 7)], [("c", 0)], [("d", 7)]
    ]  # fmt: skip
    assert affinity.required[0].namespaces == {"shop"}
    assert not affinity.is_empty
    assert PodAffinity.of_pod({"spec": {"affinity": {"nodeAffinity": {}}}}).is_empty


def test_a_malformed_pod_term_is_an_error() -> None:
    with pytest.raises(SelectorError, match="not a valid label selector operator"):
        PodAffinityTerm.from_json(
            {"labelSelector": {"matchExpressions": [expression("a", "Gt", "1")]}}, namespace="shop"
        )
