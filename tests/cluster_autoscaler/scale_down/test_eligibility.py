from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import Unremovable, UnremovableReason
from holokube.cluster_autoscaler.scale_down.eligibility import Eligibility, filter_out_unremovable
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from holokube.cluster_autoscaler.taints import to_be_deleted
from tests.cluster_autoscaler.scale_down.world import NOW_S, World, make_group, make_node, make_pod

DISABLED = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}


def check(world: World, known: UnremovableNodes | None = None, *, given: Any = None, **options: Any) -> Eligibility:
    given = given or world.look()
    return filter_out_unremovable(
        given.observation.nodes, given, AutoscalerOptions(**options), known or UnremovableNodes()
    )


def reasons(found: Eligibility) -> list[str]:
    return [str(stays.reason) for stays in found.ineligible]


def test_a_node_with_little_on_it_is_eligible() -> None:
    found = check(World([make_node("n")], [make_pod("p", "n", cpu="1")]))
    assert found.eligible == ["n"]
    assert found.utilization["n"].value == 0.25


@pytest.mark.parametrize(("cpu", "is_eligible"), [("2", True), ("2001m", False)])
def test_exactly_the_threshold_is_still_little(cpu: str, is_eligible: bool) -> None:
    found = check(World([make_node("n")], [make_pod("p", "n", cpu=cpu)]))
    assert bool(found.eligible) is is_eligible
    if not is_eligible:
        stays = found.ineligible[0]
        assert stays.reason is UnremovableReason.NOT_UNDERUTILIZED
        assert stays.threshold == 0.5
        assert stays.utilization is not None and stays.utilization.value == 2001 / 4000


def test_a_group_has_its_own_threshold() -> None:
    group = make_group(size=1, scale_down_utilization_threshold=0.2)
    world = World([make_node("n")], [make_pod("p", "n", cpu="1")], groups=[group])
    assert reasons(check(world)) == ["NotUnderutilized"]


def test_a_node_with_accelerators_has_another_threshold() -> None:
    group = make_group(size=1, scale_down_gpu_utilization_threshold=0.9, scale_down_utilization_threshold=0.0)
    node = make_node("n", extra={"nvidia.com/gpu": "4"})
    world = World([node], [make_pod("p", "n", extra={"nvidia.com/gpu": "3"})], groups=[group])
    given = world.look(gpu_config=lambda _: GpuConfig("gpu", "k80", "nvidia.com/gpu"))
    assert check(world, given=given).eligible == ["n"]


def test_the_first_reason_is_given() -> None:
    marked = make_node("n", annotations=DISABLED, taints=[to_be_deleted(NOW_S - 299)], ready=False)
    assert reasons(check(World([marked]), scale_down_unready_enabled=False)) == ["CurrentlyBeingDeleted"]
    forgotten = make_node("n", annotations=DISABLED, taints=[to_be_deleted(NOW_S - 300)], ready=False)
    assert reasons(check(World([forgotten]), scale_down_unready_enabled=False)) == ["ScaleDownDisabledAnnotation"]
    assert reasons(check(World([make_node("n", ready=False)]), scale_down_unready_enabled=False)) == [
        "ScaleDownUnreadyDisabled"
    ]
    assert check(World([make_node("n", ready=False)])).eligible == ["n"]


def test_a_taint_with_another_value_is_not_ours() -> None:
    taint = {**to_be_deleted(NOW_S), "value": "soon"}
    assert check(World([make_node("n", taints=[taint])])).eligible == ["n"]


def test_nodes_of_nobody_and_nodes_that_nobody_knows_stay() -> None:
    world = World([make_node("n")])
    world.group_of_node = {}
    assert reasons(check(world)) == ["NotAutoscaled"]
    world = World([make_node("n")])
    given = world.look()
    given.snapshot.remove_node("n")
    assert reasons(check(world, given=given)) == ["UnexpectedError"]


def test_a_node_without_allocatable_cpu_stays() -> None:
    node = make_node("n")
    del node["status"]["allocatable"]["cpu"]
    found = check(World([node]))
    assert reasons(found) == ["UnexpectedError"]
    assert "allocatable" in found.ineligible[0].detail


def test_what_was_found_unremovable_a_moment_ago_is_not_looked_at_again() -> None:
    known = UnremovableNodes()
    known.add_until(Unremovable(make_node("n"), UnremovableReason.NO_PLACE_TO_MOVE_PODS), NOW_S + 300)
    stays = check(World([make_node("n")]), known).ineligible[0]
    assert stays.reason is UnremovableReason.RECENTLY_UNREMOVABLE
    assert stays.earlier is not None and stays.earlier.reason is UnremovableReason.NO_PLACE_TO_MOVE_PODS
    assert stays.recheck_at_s == NOW_S + 300
