from __future__ import annotations

from holokube.client.cache import Cache
from holokube.scheduler.default_spread import DefaultSpread
from tests.builders import JsonObject
from tests.scheduler.objects import waiting


def owned(kind: str, name: str) -> JsonObject:
    pod = waiting("p", labels={"app": "x", "hash": "1"})
    pod["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "uid": name, "controller": True}]
    return pod


def world() -> tuple[DefaultSpread, Cache, Cache]:
    services, sets = Cache(), Cache()
    return DefaultSpread(services, {"ReplicaSet": sets}), services, sets


def put(cache: Cache, kind: str, name: str, selector: JsonObject, namespace: str = "default") -> None:
    obj = {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
    cache.put(f"{namespace}/{name}", obj)


def test_services_and_owners_select_pods() -> None:
    spread, services, sets = world()
    put(services, "Service", "s", {"app": "x"})
    put(services, "Service", "elsewhere", {"hash": "1"}, "other")
    put(services, "Service", "stranger", {"app": "y"})
    put(sets, "ReplicaSet", "rs", {"matchLabels": {"hash": "1"}})
    assert str(spread.selector_of(owned("ReplicaSet", "rs"))) == "app=x,hash=1"
    assert str(spread.selector_of(owned("Job", "j"))) == "app=x"


def test_answers_are_kept_until_they_are_forgotten() -> None:
    spread, services, _ = world()
    assert spread.selector_of(owned("ReplicaSet", "gone")) is None
    put(services, "Service", "s", {"app": "x"})
    assert spread.selector_of(owned("ReplicaSet", "gone")) is None
    spread.forget()
    assert str(spread.selector_of(owned("ReplicaSet", "gone"))) == "app=x"


def test_a_pod_that_nobody_could_select_is_asked_about_anew_when_somebody_can() -> None:
    spread, services, sets = world()
    put(services, "Service", "elsewhere", {"app": "x"}, "other")
    put(sets, "ReplicaSet", "j", {"matchLabels": {"hash": "1"}})
    pod = owned("Job", "j")
    assert spread.selector_of(pod) is None
    put(services, "Service", "s", {"app": "x"})
    assert str(spread.selector_of(pod)) == "app=x"


def test_services_that_select_nobody_are_known_until_one_changes() -> None:
    spread, services, sets = world()
    services.put("default/kubernetes", {"kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"}})
    put(sets, "ReplicaSet", "rs", {"matchLabels": {"hash": "1"}})
    pod, bare = owned("Job", "j"), waiting("p", labels={"app": "x"})
    for _ in range(2):
        assert spread.selector_of(pod) is None and spread.selector_of(bare) is None
        assert str(spread.selector_of(owned("ReplicaSet", "rs"))) == "hash=1"
    put(services, "Service", "s", {"app": "x"})
    spread.forget()
    assert str(spread.selector_of(pod)) == "app=x" == str(spread.selector_of(bare))
    assert str(spread.selector_of(owned("ReplicaSet", "rs"))) == "app=x,hash=1"


def test_pods_with_constraints_of_their_own_get_no_others() -> None:
    spread, services, _ = world()
    put(services, "Service", "s", {"app": "x"})
    pod = waiting("p", labels={"app": "x"}, topologySpreadConstraints=[{"topologyKey": "zone"}])
    assert spread.selector_of(pod) is None


def test_pods_that_share_references_or_labels_are_told_apart_by_the_others() -> None:
    spread, services, sets = world()
    put(services, "Service", "s", {"app": "x"})
    put(sets, "ReplicaSet", "rs", {"matchLabels": {"hash": "1"}})
    first = owned("ReplicaSet", "rs")
    assert str(spread.selector_of(first)) == "app=x,hash=1"
    references, labels = first["metadata"]["ownerReferences"], first["metadata"]["labels"]
    other = {**first, "metadata": {**first["metadata"], "labels": {"app": "y"}, "ownerReferences": references}}
    assert str(spread.selector_of(other)) == "hash=1"
    orphan = {**first, "metadata": {**first["metadata"], "labels": labels, "ownerReferences": []}}
    assert str(spread.selector_of(orphan)) == "app=x"
    elsewhere = {**first, "metadata": {**first["metadata"], "namespace": "other"}}
    assert spread.selector_of(elsewhere) is None
    assert str(spread.selector_of(first)) == "app=x,hash=1"
    spread.forget()
    sets.remove("default/rs")
    assert str(spread.selector_of(first)) == "app=x"
