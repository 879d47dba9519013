import pytest

from holokube.cluster_autoscaler.cloud.provider import NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.scale_down.minimum_resources import MinimumResources, UnknownAccelerators
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.scale_down.world import make_group, make_node

GROUP = make_group()
GIB = 2**30


def everybody(_name: str) -> GroupView | None:
    return GROUP


def test_nodes_go_until_the_minimum_is_reached() -> None:
    nodes = [make_node(f"n{number}") for number in range(3)]
    minimum = MinimumResources(ResourceLimiter({"cpu": 5}, {"cpu": 100}), nodes, everybody)
    assert minimum.take(nodes[0], GROUP) == []
    assert minimum.take(nodes[1], GROUP) == ["cpu"]


def test_what_was_refused_is_not_counted() -> None:
    nodes = [make_node("large"), make_node("small", cpu="1")]
    of = {"large": make_group("l"), "small": make_group("s")}
    minimum = MinimumResources(ResourceLimiter({"cpu": 3}), nodes, of.get)
    assert minimum.take(nodes[0], of["large"]) == ["cpu"]
    assert minimum.take(nodes[1], of["small"]) == []


def test_memory_counts_in_bytes_and_cores_rounded_up() -> None:
    nodes = [make_node(f"n{number}", cpu="3920m") for number in range(2)]
    minimum = MinimumResources(ResourceLimiter({"cpu": 4, "memory": 17 * GIB}), nodes, everybody)
    assert minimum.take(nodes[0], GROUP) == ["memory"]
    assert MinimumResources(ResourceLimiter({"cpu": 4}), nodes, everybody).take(nodes[0], GROUP) == []
    assert MinimumResources(ResourceLimiter({"cpu": 5}), nodes, everybody).take(nodes[0], GROUP) == ["cpu"]


def test_without_a_minimum_everything_may_go() -> None:
    node = make_node("n")
    assert MinimumResources(ResourceLimiter({}, {"cpu": 1}), [node], everybody).take(node, GROUP) == []
    assert MinimumResources(ResourceLimiter(), [node], everybody).take(node, GROUP) == []


def test_virtual_kubelets_do_not_count() -> None:
    virtual = make_node("v", cpu="1000", labels={"type": "virtual-kubelet"})
    node = make_node("n")
    minimum = MinimumResources(ResourceLimiter({"cpu": 1}), [virtual, node], {"n": GROUP}.get)
    assert minimum.take(node, GROUP) == ["cpu"]


def test_accelerators_count_by_their_type() -> None:
    labels, extra = {"gpu": "k80"}, {"nvidia.com/gpu": "2"}
    nodes = [make_node(f"n{number}", labels=labels, extra=extra) for number in range(2)]
    minimum = MinimumResources(ResourceLimiter({"k80": 3}), nodes, everybody, "gpu")
    assert minimum.take(nodes[0], GROUP) == ["k80"]


def test_accelerators_that_do_not_work_yet_count_as_the_template_says() -> None:
    node = make_node("n", labels={"gpu": "k80"})
    with pytest.raises(UnknownAccelerators, match="n"):
        MinimumResources(ResourceLimiter({"k80": 1}), [node], everybody, "gpu")
    with pytest.raises(UnknownAccelerators, match="n"):
        MinimumResources(ResourceLimiter({"k80": 1}), [node], lambda _: None, "gpu")
    template = NodeInfo(make_node("t", extra={"nvidia.com/gpu": "4"}))
    group = GroupView("ng", 0, 10, 1, template=template)
    minimum = MinimumResources(ResourceLimiter({"k80": 1}), [node], lambda _: group, "gpu")
    assert minimum.take(node, group) == ["k80"]


def test_where_nothing_has_to_stay_nodes_are_never_counted() -> None:
    def nobody() -> list[JsonObject]:
        raise AssertionError("nobody should count")

    minimum = MinimumResources(ResourceLimiter({"cpu": 0}, {"cpu": 9}), nobody, everybody, are_plain=True)
    assert minimum.take(make_node("a"), GROUP) == []


@pytest.mark.parametrize("keep", [0, 3, 4, 9])
def test_plain_nodes_come_to_the_same_however_late_they_are_counted(keep: int) -> None:
    nodes = [make_node(f"n{i}", cpu=str(1 + i)) for i in range(4)]
    limiter = ResourceLimiter({"cpu": keep}, {"memory": 5})
    at_once = MinimumResources(limiter, nodes, everybody)
    late = MinimumResources(limiter, lambda: nodes, everybody, are_plain=True)
    assert [late.take(node, GROUP) for node in nodes] == [at_once.take(node, GROUP) for node in nodes]
