from holokube.cluster_autoscaler.scale_down import NodeToRemove
from holokube.cluster_autoscaler.scale_down.atomic_groups import keep_partial_groups
from tests.cluster_autoscaler.scale_down.world import World, make_group, make_node

NODES = [make_node(name) for name in ("a1", "a2", "b1")]


def world_of(size: int | None) -> World:
    groups = [
        make_group("a", size=size, members=("a1", "a2"), zero_or_max_node_scaling=True),
        make_group("b", size=1, members=("b1",)),
    ]
    world = World(NODES, groups=groups)
    world.group_of_node = {"a1": "a", "a2": "a", "b1": "b"}
    return world


def keep(names: list[str], size: int | None) -> tuple[list[str], list[str]]:
    removals = [NodeToRemove(make_node(name)) for name in names]
    kept, unremovable = keep_partial_groups(removals, world_of(size).look(), NODES)
    return [removal.name for removal in kept], [f"{stays.name} {stays.reason}" for stays in unremovable]


def test_a_whole_group_may_go_and_comes_last() -> None:
    assert keep(["a1", "b1", "a2"], 2) == (["b1", "a1", "a2"], [])


def test_a_part_of_it_may_not() -> None:
    assert keep(["a1", "b1"], 2) == (["b1"], ["a1 AtomicScaleDownFailed"])


def test_machines_that_never_registered_are_not_waited_for() -> None:
    assert keep(["a1", "a2"], 5) == (["a1", "a2"], [])


def test_a_group_of_unknown_size_stays() -> None:
    assert keep(["a1", "a2"], None) == ([], ["a1 UnexpectedError", "a2 UnexpectedError"])


def test_a_node_of_nobody_stays() -> None:
    assert keep(["z"], 2) == ([], ["z NotAutoscaled"])
