from holokube.cluster_autoscaler.scale_down.registered import registered_nodes
from tests.cluster_autoscaler.scale_down.world import make_group, make_node


def test_machines_with_a_node_are_registered_and_expected_ones_are_not() -> None:
    upcoming = make_node("b", annotations={"cluster-autoscaler.k8s.io/upcoming-node": "true"})
    denied = make_node("c", annotations={"cluster-autoscaler.k8s.io/upcoming-node": "no"})
    group = make_group(members=("a", "b", "c", "never"))
    assert registered_nodes(group, [make_node("a"), upcoming, denied, make_node("other")]) == ["a", "c"]
