import pytest

from holokube.cluster_autoscaler.scale_down.recreation import Replicas, not_recreated, replicas_of
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.scale_down.world import make_pod


def test_as_many_pods_are_expected_as_their_controller_lacks() -> None:
    pods = [make_pod(f"p{number}") for number in range(4)]
    controllers = {("ReplicaSet", "default", "rs"): {"spec": {"replicas": 10}, "status": {"replicas": 8}}}
    assert not_recreated(pods, controllers) == pods[:2]


def test_pods_whose_controller_cannot_be_asked_are_all_expected() -> None:
    custom, bare, orphan = make_pod("c", owner=("CloneSet", "c")), make_pod("b", owner=None), make_pod("o")
    assert not_recreated([custom, bare, orphan], {}) == [custom, bare, orphan]


def test_pods_that_belong_to_their_node_are_not_expected_elsewhere() -> None:
    mirror = make_pod("m", owner=None, annotations={"kubernetes.io/config.mirror": "x"})
    static = make_pod("s", owner=None, annotations={"kubernetes.io/config.source": "file"})
    assert not_recreated([mirror, static, make_pod("d", owner=("DaemonSet", "d"))], {}) == []


@pytest.mark.parametrize(
    ("kind", "controller", "expected"),
    [
        ("ReplicaSet", {"spec": {"replicas": 3}, "status": {"replicas": 2}}, Replicas(3, 2)),
        ("ReplicationController", {"status": {"replicas": 2}}, Replicas(1, 2)),
        ("StatefulSet", {"spec": {"replicas": 3}, "status": {"currentReplicas": 1, "replicas": 3}}, Replicas(3, 1)),
        ("Job", {"spec": {"parallelism": 5}, "status": {"active": 4}}, Replicas(5, 4)),
        ("Job", {"spec": {"parallelism": 5, "completions": 10}, "status": {"succeeded": 8}}, Replicas(2, 0)),
    ],
)
def test_controllers_tell_what_they_want_and_have(kind: str, controller: JsonObject, expected: Replicas) -> None:
    assert replicas_of(kind, controller) == expected
