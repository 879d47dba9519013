from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    Resource,
)
from holokube.kube.conditions import get_condition
from holokube.kube.errors import TooManyRequests
from holokube.workloads import disruption_controller
from tests.builders import deployment, pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]


def house(*objects: JsonObject, **options: Any) -> House:
    return House(disruption_controller.build, disruption_controller.build_stale, objects=objects, **options)


def budget(name: str = "b", app: str = "a", **spec: Any) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def replicas(home: House, count: int) -> list[JsonObject]:
    """A Deployment, its ReplicaSet, and as many ready pods as it wants."""
    top = home.create(DEPLOYMENTS, deployment(replicas=count))
    rs = deployment("d-1", replicas=count)
    rs = {**rs, "kind": "ReplicaSet", "metadata": {**rs["metadata"], "ownerReferences": [owner(top)]}}
    owned = home.create(REPLICA_SETS, rs)
    return [ready_pod(home, f"p{n}", owner(owned)) for n in range(count)]


def owner(obj: JsonObject) -> JsonObject:
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": True,
    }  # fmt: skip


def ready_pod(home: House, name: str, *owners: JsonObject) -> JsonObject:
    obj = pod(name, node="n1")
    obj["metadata"] |= {"labels": {"app": "a"}, "ownerReferences": list(owners)}
    home.create(PODS, obj)
    return ready(home, name)


def ready(home: House, name: str, status: str = "True") -> JsonObject:
    patch = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}}
    return home.patch(PODS, name, patch, subresource="status")


def status(home: House, name: str = "b") -> JsonObject:
    return dict(home.get(POD_DISRUPTION_BUDGETS, name)["status"])


def counts(home: House, name: str = "b") -> tuple[int, int, int, int]:
    found = status(home, name)
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    expected, desired, healthy, allowed = (found.get(key, 0) for key in keys)
    return expected, desired, healthy, allowed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": 9}, (4, 9, 4, 0)),
        ({"minAvailable": "30%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 1}, (4, 3, 4, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 9}, (4, 0, 4, 4)),
    ],
)
def test_a_budget_allows_what_its_pods_can_spare(spec: JsonObject, expected: tuple[int, ...]) -> None:
    with house() as home:
        replicas(home, 4)
        home.create(POD_DISRUPTION_BUDGETS, budget(**spec))
        home.pass_time(1)
        assert counts(home) == expected
        allowed = get_condition({"status": status(home)}, "DisruptionAllowed")
        assert allowed is not None
        assert allowed["reason"] == ("SufficientPods" if expected[3] else "InsufficientPods")
        assert status(home)["observedGeneration"] == 1


def test_pods_and_owners_that_change_change_the_budget() -> None:
    with house() as home:
        replicas(home, 4)
        home.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        home.pass_time(1)
        ready(home, "p0", "False")
        home.pass_time(1)
        assert counts(home) == (4, 3, 3, 0)
        home.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 3}})
        home.pass_time(1)
        assert counts(home) == (3, 2, 3, 1)
        home.delete(PODS, "p1")
        home.pass_time(1)
        assert counts(home) == (3, 2, 2, 0)


def test_evictions_are_granted_up_to_the_budget_and_forgotten_if_the_pod_stays() -> None:
    with house() as home:
        replicas(home, 3)
        home.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=2))
        home.pass_time(1)
        home.run(home.client.evict("default", "p0"))
        with pytest.raises(TooManyRequests):
            home.run(home.client.evict("default", "p1"))
        home.pass_time(1)
        assert counts(home) == (3, 2, 2, 0)
        # An eviction that was granted but never became a deletion.
        found = home.get(POD_DISRUPTION_BUDGETS, "b")
        stamp = home.get(PODS, "p1")["metadata"]["creationTimestamp"]
        granted = {**found, "status": {**found["status"], "disruptedPods": {"p1": stamp}}}
        home.run(home.client.update_status(POD_DISRUPTION_BUDGETS, granted))
        home.pass_time(60)
        assert counts(home)[2] == 1 and status(home)["disruptedPods"] == {"p1": stamp}
        home.pass_time(70)
        assert counts(home)[2] == 2 and "disruptedPods" not in status(home)
        message = "Pod was expected by PDB default/b to be deleted but it wasn't"
        assert ("p1", "NotDeleted", message) in home.events()


def test_a_budget_without_pods_allows_nothing() -> None:
    with house() as home:
        home.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=0))
        home.pass_time(1)
        assert counts(home) == (0, 0, 0, 0)
        assert home.events("NoPods") == [("b", "NoPods", "No matching pods found")]


def test_pods_without_a_controller_are_reported_when_they_would_have_to_be_counted() -> None:
    with house() as home:
        ready_pod(home, "loose")
        home.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        home.pass_time(1)
        assert counts(home) == (0, 0, 1, 0)
        assert len(home.events("UnmanagedPods")) == 1


def test_a_controller_that_is_not_there_fails_the_budget_safely() -> None:
    with house() as home:
        ghost = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
        ready_pod(home, "p", ghost)
        home.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        home.pass_time(1)
        failed = get_condition({"status": status(home)}, "DisruptionAllowed")
        assert failed is not None
        assert (failed["status"], failed["reason"]) == ("False", "SyncFailed")
        assert failed["message"] == 'found no controllers for pod "p"'


def test_a_custom_controller_tells_its_scale_by_the_subresource() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }  # fmt: skip
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip
    with house(definition) as home:
        fleets = Resource("example.com", "v1", "fleets", "Fleet", True)
        body = {"metadata": {"name": "f", "namespace": "default"}, "spec": {"replicas": 5}}
        fleet = home.create(fleets, body)
        for n in range(5):
            ready_pod(home, f"p{n}", owner(fleet))
        home.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=2))
        home.pass_time(1)
        assert counts(home) == (5, 3, 5, 2)


def test_two_budgets_for_one_pod_are_reported() -> None:
    with house() as home:
        for name in ("a", "b"):
            home.create(POD_DISRUPTION_BUDGETS, budget(name, minAvailable=1))
        home.pass_time(1)
        ready_pod(home, "p")
        home.pass_time(1)
        said = {message for _, _, message in home.events("MultiplePodDisruptionBudgets")}
        assert said == {
            'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "a" arbitrarily.'
        }


def test_a_claim_of_disruption_that_nobody_follows_up_is_taken_back() -> None:
    with house() as home:
        ready_pod(home, "p")
        claim = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        stamp = home.get(PODS, "p")["metadata"]["creationTimestamp"]
        patch = {"status": {"conditions": [{**claim, "lastTransitionTime": stamp}]}}
        home.patch(PODS, "p", patch, subresource="status")
        home.pass_time(110)
        target = get_condition(home.get(PODS, "p"), "DisruptionTarget")
        assert target is not None and target["status"] == "True"
        home.pass_time(20)
        target = get_condition(home.get(PODS, "p"), "DisruptionTarget")
        assert target is not None and target["status"] == "False"


@pytest.mark.parametrize("seed", range(3))
def test_budgets_are_right_in_the_end_whatever_the_network_does(seed: int) -> None:
    with house(faults=STORM, seed=seed) as home:
        replicas(home, 6)
        home.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable="50%"))
        for n in range(6):
            ready(home, f"p{n % 3}", "False" if n < 5 else "True")
            home.pass_time(10)
        home.calm()
        home.pass_time(120)
        assert counts(home) == (6, 3, 4, 1)
        assert home.faulty.injected.total() > 3
