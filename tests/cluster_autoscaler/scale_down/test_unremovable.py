from holokube.cluster_autoscaler.scale_down import Unremovable, UnremovableReason
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from tests.cluster_autoscaler.scale_down.world import make_node

FOUND = Unremovable(make_node("n"), UnremovableReason.NO_PLACE_TO_MOVE_PODS)


def test_what_a_simulation_found_stands_until_its_time_is_up() -> None:
    nodes = UnremovableNodes()
    nodes.add_until(FOUND, 300.0)
    nodes.start_turn(lambda _: True, 299.0)
    earlier = nodes.recent("n")
    assert earlier is not None and earlier.recheck_at_s == 300.0
    assert nodes.as_list() == []
    nodes.start_turn(lambda _: True, 300.0)
    assert nodes.recent("n") is None


def test_a_node_that_is_gone_is_forgotten() -> None:
    nodes = UnremovableNodes()
    nodes.add_until(FOUND, 300.0)
    nodes.start_turn(lambda _: False, 0.0)
    assert nodes.recent("n") is None


def test_other_reasons_are_of_one_turn_and_the_last_one_holds() -> None:
    nodes = UnremovableNodes()
    nodes.add(FOUND)
    later = Unremovable(make_node("n"), UnremovableReason.NOT_AUTOSCALED)
    nodes.add(later)
    assert nodes.as_list() == [later]
    assert nodes.recent("n") is None
