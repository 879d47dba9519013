"""Which pods are alike."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.pods.kinds import PodKinds
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import annotated, owned_pod


def _with_token(pod: JsonObject, name: str) -> JsonObject:
    pod = copy.deepcopy(pod)
    pod["spec"].setdefault("volumes", []).append({"name": name, "projected": {"sources": []}})
    for container in pod["spec"]["containers"]:
        container.setdefault("volumeMounts", []).append({"name": name, "mountPath": "/token"})
    return pod


def _changed(pod: JsonObject, **spec: object) -> JsonObject:
    return {**pod, "spec": {**pod["spec"], **spec}}


BASE = owned_pod("p", requests={"cpu": "100m", "memory": "1Gi"}, labels={"app": "a"})


def _container(**fields: object) -> list[JsonObject]:
    return [{**BASE["spec"]["containers"][0], **fields}]


@pytest.mark.parametrize(
    "other",
    [
        owned_pod("q", requests={"cpu": "0.1", "memory": "1073741824"}, labels={"app": "a"}),
        _changed(BASE, nodeName="n"),
        _changed(BASE, hostname="h"),
        _changed(BASE, containers=_container(env=[{"name": "A", "value": "1"}])),
        _changed(BASE, nodeSelector={}, tolerations=[], affinity=None),
        _with_token(BASE, "token-abc"),
        _with_token(_changed(BASE, nodeName="m"), "token-def"),
        _with_token(_with_token(BASE, "token-1"), "token-2"),
    ],
)
def test_pods_are_alike_up_to_what_no_scheduler_looks_at(other: JsonObject) -> None:
    kinds = PodKinds()
    assert kinds.kind_of(copy.deepcopy(other)) is kinds.kind_of(BASE)
    assert kinds.kind_of(copy.deepcopy(other)) is kinds.kind_of(BASE)


@pytest.mark.parametrize(
    "other",
    [
        owned_pod("q", requests={"cpu": "200m", "memory": "1Gi"}, labels={"app": "a"}),
        owned_pod("q", requests={"cpu": "100m", "memory": "1Gi"}, labels={"app": "b"}),
        owned_pod("q", requests={"cpu": "100m", "memory": "1Gi"}, labels={"app": "a"}, namespace="other"),
        _changed(BASE, nodeSelector={"a": "b"}),
        _changed(BASE, priority=1),
        _changed(BASE, containers=_container(image="b:1")),
        _changed(BASE, volumes=[{"name": "v", "emptyDir": {}}]),
        _changed(BASE, containers=_container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
    ],
)
def test_pods_differ_in_everything_else(other: JsonObject) -> None:
    kinds = PodKinds()
    assert kinds.kind_of(other) is not kinds.kind_of(BASE)


def test_an_empty_selector_is_not_a_missing_one() -> None:
    def near(**fields: JsonObject) -> JsonObject:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, **fields}
        return _changed(BASE, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})

    kinds = PodKinds()
    assert kinds.kind_of(near()) is not kinds.kind_of(near(namespaceSelector={}))


def test_a_name_that_happens_to_be_that_of_a_token_volume_still_counts() -> None:
    def odd(name: str, container: str) -> JsonObject:
        pod = _with_token(BASE, name)
        pod["spec"]["containers"][0]["name"] = container
        return pod

    kinds = PodKinds()
    assert kinds.kind_of(odd("x", "x")) is not kinds.kind_of(odd("y", "y"))
    assert kinds.kind_of(odd("x", "c")) is kinds.kind_of(odd("y", "c"))


def test_two_token_volumes_in_different_order_are_no_matter() -> None:
    kinds = PodKinds()
    assert kinds.kind_of(_with_token(_with_token(BASE, "a"), "b")) is kinds.kind_of(_with_token(BASE, "c"))


def test_what_is_known_of_a_pod() -> None:
    kinds = PodKinds()
    facts = kinds.facts_of(
        annotated(
            {**BASE, "metadata": {**BASE["metadata"], "creationTimestamp": "1970-01-01T00:01:00Z"}},
            **{"cluster-autoscaler_kubernetes_io__pod-scale-up-delay": "5m"},
        )
    )
    assert (facts.identity, facts.controller, facts.is_daemon) == ("uid-of-p", "uid-of-rs", False)
    assert (facts.created_s, facts.delay_text, facts.kind.priority) == (60.0, "5m", None)
    assert kinds.facts_of(owned_pod("d", kind="DaemonSet")).is_daemon


def test_pods_that_nobody_asks_about_are_forgotten_and_kinds_stay_the_same() -> None:
    kinds = PodKinds()
    kind = kinds.kind_of(BASE)
    for _ in range(3):
        kinds.drop_old()
        assert kinds.kind_of(BASE) is kind
    other = owned_pod("other", labels={"x": "y"})
    first = kinds.facts_of(other)
    kinds.drop_old()
    kinds.drop_old()
    assert kinds.facts_of(other) is not first


def test_many_kinds_of_pods_that_are_gone_do_not_pile_up() -> None:
    kinds = PodKinds()
    for i in range(3000):
        kinds.kind_of(owned_pod(f"p{i}", labels={"number": str(i)}))
    kinds.drop_old()
    kind = kinds.kind_of(BASE)
    kinds.drop_old()
    assert len(kinds._by_content) == len(kinds._by_text) == 1
    assert kinds.kind_of(copy.deepcopy(BASE)) is kind


_specs = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["1", "1000m", "2"]),
        "env": st.sampled_from([None, [], [{"name": "A", "value": "1"}]]),
        "token": st.sampled_from([None, "t1", "t2"]),
        "node": st.sampled_from([None, "t1", "n"]),
        "name": st.sampled_from(["c", "t1"]),
        "selector": st.sampled_from([None, {}, {"a": "b"}]),
    }
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_specs, min_size=2, max_size=6))
def test_kinds_do_not_depend_on_what_was_seen_before(specs: list[dict[str, object]]) -> None:
    def built(spec: dict[str, object]) -> JsonObject:
        container: JsonObject = {"name": spec["name"], "resources": {"requests": {"cpu": spec["cpu"]}}}
        if spec["env"] is not None:
            container["env"] = spec["env"]
        pod: JsonObject = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [container]}}
        if spec["selector"] is not None:
            pod["spec"]["nodeSelector"] = spec["selector"]
        if spec["node"] is not None:
            pod["spec"]["nodeName"] = spec["node"]
        return _with_token(pod, str(spec["token"])) if spec["token"] else pod

    def meaning(spec: dict[str, object]) -> tuple[object, ...]:
        return (spec["cpu"] == "2", spec["name"], spec["selector"] == {"a": "b"})

    kinds = PodKinds()
    found = [kinds.kind_of(built(spec)) for spec in specs]
    for left, one in zip(specs, found, strict=True):
        for right, other in zip(specs, found, strict=True):
            assert (one is other) == (meaning(left) == meaning(right))


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8))
def test_many_pods_are_known_as_one_by_one(turns: list[list[int]]) -> None:
    pods = [owned_pod(f"p{i}", f"rs{i % 3}", labels={"app": str(i % 2)}) for i in range(10)]
    kinds = PodKinds()
    kinds.keep(pods[3])
    for asked in turns:
        known = kinds.facts_of_all([pods[i] for i in asked])
        assert [facts.pod for facts in known] == [pods[i] for i in asked]
        assert known == [kinds.facts_of(pods[i]) for i in asked]
        kinds.drop_old()


SHARED = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
FIELDS = st.fixed_dictionaries({}, optional={
    "nodeName": st.sampled_from(["n", "m"]), "nodeSelector": st.sampled_from([{}, {"a": "b"}]),
    "priority": st.sampled_from([0, 1]), "hostname": st.sampled_from(["g", "h"]),
    "volumes": st.sampled_from([[], [{"name": "t", "projected": {}}], [{"name": "u", "projected": {}}]]),
})  # fmt: skip
LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")})


@settings(max_examples=200)
@given(st.lists(st.tuples(FIELDS, LABELS, st.sampled_from(["default", "other"]), st.booleans()), max_size=8))
def test_pods_that_share_their_containers_are_alike_if_those_are_that_share_nothing(
    made: list[tuple[JsonObject, JsonObject, str, bool]]
) -> None:
    kinds, apart = PodKinds(), PodKinds()
    pods = [
        {
            "metadata": {"name": f"p{number}", "namespace": namespace, "labels": labels},
            "spec": {**fields, "containers": SHARED if is_shared else copy.deepcopy(SHARED)},
        }
        for number, (fields, labels, namespace, is_shared) in enumerate(made)
    ]  # fmt: skip
    found = [kinds.kind_of(pod) for pod in pods]
    apart_found = [apart.kind_of(copy.deepcopy(pod)) for pod in pods]
    for one, other in zip(found, apart_found, strict=True):
        alike = [a is one for a in found]
        assert alike == [a is other for a in apart_found]
