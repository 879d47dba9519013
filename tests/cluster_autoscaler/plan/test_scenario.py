from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.plan.scenario import is_scenario, read_scenario
from holokube.cluster_autoscaler.plan.scenario_objects import objects_of, template_node
from holokube.kube.types import JsonObject

_GROUP = {"id": "g", "min": 0, "max": 3, "template": {"cpu": "4", "memory": "8Gi"}}


def _scenario(**fields: Any) -> dict[str, Any]:
    return {"nodeGroups": [_GROUP], **fields}


def _objects(**fields: Any) -> dict[str, JsonObject]:
    scenario = read_scenario(_scenario(**fields), "s.json")
    return {f"{obj['kind']} {obj['metadata']['name']}": obj for obj in objects_of(scenario, 1_000_000.0)}


def test_a_scenario_is_told_from_objects() -> None:
    assert is_scenario(_scenario())
    assert not is_scenario({"kind": "Pod", "nodeGroups": []})
    assert not is_scenario([_scenario()])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"node": []}, "s.json: Object contains unknown field `node`"),
        ({"nodes": [{"name": "n", "cpu": "4"}]}, "s.json: Object missing required field `memory` - at `$.nodes[0]`"),
        ({"nodes": [{"name": "n", "cpu": "4", "memory": "x"}]}, "s.json: nodes[0].memory: "),
        ({"nodes": [{"name": "n", "cpu": "4", "memory": "1", "group": "h"}]}, "nodes[0].group: there is no group 'h'"),
        ({"pods": [{"name": "p", "node": "n"}]}, "pods[0].node: there is no node 'n'"),
        ({"pods": [{"name": "p", "ownerKind": "Job"}]}, "pods[0]: ownerKind and ownerName belong together"),
        ({"pods": [{"name": "p", "extra": {"nvidia.com/gpu": "one"}}]}, "pods[0].extra.nvidia.com/gpu: "),
        ({"loops": [{}, {"advance": "soon"}]}, "loops[1].advance: "),
        ({"loops": [{"onIncrease": "perhaps"}]}, "loops[0].onIncrease: 'perhaps' is not known"),
        ({"onIncrease": "perhaps"}, "onIncrease: 'perhaps' is not known"),
        ({"nodeGroups": [_GROUP, _GROUP]}, "nodeGroups[1].id: 'g' is taken"),
        ({"nodeGroups": [{**_GROUP, "min": 4}]}, "nodeGroups[0]: min 4 and max 3 do not go together"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_scenario(_scenario(**fields), "s.json")
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"node": []}, "A scenario may have nodeGroups, flags, nodes, pods"),
        ({"nodes": [{"nam": "n"}]}, "A node may have name, cpu, memory, group"),
        ({"pods": [{"name": 1}]}, "A pod may have name, count, namespace"),
        ({"nodeGroups": [{**_GROUP, "template": {"cpus": 1}}]}, "A template may have cpu, memory, pods"),
        ({"loops": [{"after": "1m"}]}, "A loop may have advance, onIncrease."),
    ],
)
def test_the_hint_lists_what_may_stand_there(fields: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_scenario(_scenario(**fields), "s.json")
    assert caught.value.hint.startswith(hint)


def test_a_template_has_all_of_its_capacity_to_give_away() -> None:
    group = read_scenario(_scenario(), "s.json").node_groups[0]
    node = template_node(group)
    assert node["status"]["allocatable"] == node["status"]["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}


def test_a_node_knows_its_host_name_and_age() -> None:
    found = _objects(nodes=[{"name": "n", "cpu": 4, "memory": "8Gi", "group": "g", "ready": False, "ageSeconds": 60}])
    node = found["Node n"]
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n"}
    assert node["metadata"]["creationTimestamp"] == "1970-01-12T13:45:40Z"
    assert node["status"]["conditions"][0]["status"] == "False"


def test_a_pod_without_a_node_was_found_unschedulable() -> None:
    found = _objects(pods=[{"name": "p", "cpu": "1", "memory": "1Gi", "count": 2}])
    assert set(found) == {"Pod p-0", "Pod p-1"}
    (condition,) = found["Pod p-0"]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")


def test_one_pod_keeps_its_name() -> None:
    assert set(_objects(pods=[{"name": "p", "count": 1}])) == {"Pod p"}


def test_a_pod_on_a_node_runs() -> None:
    found = _objects(
        nodes=[{"name": "n", "cpu": 4, "memory": "8Gi"}], pods=[{"name": "p", "node": "n", "priority": 0}])
    assert found["Pod p"]["spec"]["nodeName"] == "n"
    assert found["Pod p"]["spec"]["priority"] == 0
    assert found["Pod p"]["status"]["phase"] == "Running"


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Job", "ReplicationController"])
def test_owners_exist_with_as_many_replicas_as_they_have_pods(kind: str) -> None:
    found = _objects(pods=[{"name": "p", "count": 3, "ownerKind": kind, "ownerName": "o"}])
    owner = found[f"{kind} o"]
    (reference,) = found["Pod p-0"]["metadata"]["ownerReferences"]
    assert reference["uid"] == owner["metadata"]["uid"] and reference["apiVersion"] == owner["apiVersion"]
    assert owner["spec"].get("replicas", owner["spec"].get("parallelism")) == 3


def test_a_daemon_set_that_is_given_is_not_made_up() -> None:
    given = {"metadata": {"name": "o"}, "spec": {"mine": True}}
    found = _objects(daemonSets=[given], pods=[{"name": "p", "ownerKind": "DaemonSet", "ownerName": "o"}])
    assert found["DaemonSet o"]["spec"] == {"mine": True}
    assert found["DaemonSet o"]["metadata"]["namespace"] == "default"


def test_owners_of_other_kinds_are_nobody_we_know() -> None:
    found = _objects(pods=[{"name": "p", "ownerKind": "Rollout", "ownerName": "o"}])
    assert set(found) == {"Pod p"}
