from __future__ import annotations

from typing import Any

from holokube.karpenter.scheduling.default_spread import DefaultSpread
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from tests.karpenter.scheduling.builders import HOST, ZONE, placed, pod, pods, solve, spread

CONSTRAINT = {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
OPTIONS = SolveOptions(default_spread_constraints=(CONSTRAINT,))


def _service(**selector: str) -> dict[str, Any]:
    return {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": selector}}


def _owned(name: str, kind: str, api_version: str = "apps/v1") -> dict[str, Any]:
    made = pod(name, app="web")
    reference = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "owner", "controller": True}
    made["metadata"]["ownerReferences"] = [reference]
    return made


def _selector(given: dict[str, Any], **more: Any) -> Any:
    found = DefaultSpread(Problem([], {}, options=OPTIONS, **more)).applied(given)
    constraints = found["spec"].get("topologySpreadConstraints")
    return constraints[0]["labelSelector"] if constraints else None


def test_pods_of_a_service_are_spread_by_default() -> None:
    wanted = pods(3, app="web")
    assert [len(names) for names in placed(solve(wanted, services=[_service(app="web")], options=OPTIONS))] == [1, 1, 1]
    assert [len(names) for names in placed(solve(wanted, options=OPTIONS))] == [3]


def test_a_pod_with_constraints_of_its_own_gets_no_others() -> None:
    own = pod("p", app="web", topologySpreadConstraints=[spread(ZONE, "web")])
    spreading = DefaultSpread(Problem([], {}, services=[_service(app="web")], options=OPTIONS))
    assert spreading.applied(own) is own


def test_the_selector_comes_from_services_and_the_owner() -> None:
    exists = {"key": "x", "operator": "Exists"}
    replicas = {"spec": {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [exists]}}}
    expected = [{"key": "app", "operator": "In", "values": ["web"]}, {"key": "x", "operator": "Exists"}]
    owners = {"owner": replicas}
    assert _selector(_owned("p", "ReplicaSet"), owners=owners) == {"matchExpressions": expected}
    found = _selector(_owned("p", "StatefulSet"), owners=owners, services=[_service(app="web")])
    assert found == {"matchLabels": {"app": "web"}, "matchExpressions": expected}
    controller = {"owner": {"spec": {"selector": {"app": "web"}}}}
    assert _selector(_owned("p", "ReplicationController", "v1"), owners=controller) == {"matchLabels": {"app": "web"}}


def test_without_anything_to_go_by_a_pod_is_left_alone() -> None:
    assert _selector(_owned("p", "Job", "batch/v1"), owners={"owner": {"spec": {"selector": {"app": "web"}}}}) is None
    assert _selector(_owned("p", "ReplicaSet")) is None
    assert _selector(pod("p", app="web"), services=[_service(app="db"), _service()]) is None


def test_the_same_pod_becomes_the_same_object() -> None:
    given = pod("p", app="web")
    spreading = DefaultSpread(Problem([], {}, services=[_service(app="web")], options=OPTIONS))
    assert spreading.applied(given) is spreading.applied(given) is not given
    assert DefaultSpread(Problem([], {})).applied(given) is given
