import math

import pytest

from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.cluster_autoscaler.scale_down.utilization import UtilizationTable
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState
from tests.cluster_autoscaler.scale_down.world import NOW_S, make_node, make_pod

GPU = GpuConfig("gpu", "k80", "nvidia.com/gpu")
DAEMON = make_pod("d", "n", cpu="1", owner=("DaemonSet", "d"))
MIRROR = make_pod("m", "n", cpu="1", owner=None, annotations={"kubernetes.io/config.mirror": "x"})


def state_of(*pods: JsonObject, node: JsonObject | None = None) -> ClusterState:
    state = ClusterState()
    state.add_node(node or make_node("n", cpu="4", memory="4Gi"))
    for pod in pods:
        state.add_pod(pod)
    return state


def value(state: ClusterState, *, ignore_daemon_sets: bool = False, ignore_mirror_pods: bool = False) -> float:
    table = UtilizationTable(state, NOW_S, ignore_mirror_pods=ignore_mirror_pods)
    found = table.of("n", ignore_daemon_sets=ignore_daemon_sets, gpu=None)
    assert found is not None
    return found.value


def test_the_larger_of_cpu_and_memory_counts() -> None:
    state = state_of(make_pod("a", "n", cpu="1", memory="1Gi"), make_pod("b", "n", cpu="1", memory="2Gi"))
    found = UtilizationTable(state, NOW_S).of("n", ignore_daemon_sets=False, gpu=None)
    assert found is not None
    assert (found.resource, found.value, found.cpu, found.memory) == ("memory", 0.75, 0.5, 0.75)
    found = UtilizationTable(state_of(make_pod("a", "n", cpu="1", memory="0")), NOW_S).of(
        "n", ignore_daemon_sets=False, gpu=None
    )
    assert found is not None and (found.resource, found.value) == ("cpu", 0.25)


def test_ignored_pods_leave_numerator_and_denominator() -> None:
    pod = make_pod("a", "n", cpu="1", memory="0")
    assert value(state_of(pod, DAEMON, MIRROR)) == 0.75
    assert value(state_of(pod, DAEMON, MIRROR), ignore_daemon_sets=True) == 2 / 3
    assert value(state_of(pod, DAEMON, MIRROR), ignore_mirror_pods=True) == 2 / 3
    assert value(state_of(pod, DAEMON, MIRROR), ignore_daemon_sets=True, ignore_mirror_pods=True) == 0.5


def test_pods_that_should_be_gone_take_no_room_and_leave_it() -> None:
    dying, dead = make_pod("dying", "n", cpu="1", memory="0"), make_pod("dead", "n", cpu="2", memory="0")
    dying["metadata"]["deletionTimestamp"] = format_time(NOW_S - 10)
    dead["metadata"]["deletionTimestamp"] = format_time(NOW_S - 100)
    assert value(state_of(dying, dead)) == 0.25


def test_a_node_full_of_daemons_is_divided_by_zero_as_upstream_does() -> None:
    full = make_pod("d", "n", cpu="4", memory="4Gi", owner=("DaemonSet", "d"))
    assert math.isnan(value(state_of(full), ignore_daemon_sets=True))
    assert value(state_of(full, make_pod("a", "n")), ignore_daemon_sets=True) == math.inf


def test_on_a_node_with_accelerators_only_they_count() -> None:
    node = make_node("n", cpu="4", extra={"nvidia.com/gpu": "4"})
    state = state_of(make_pod("a", "n", cpu="3", extra={"nvidia.com/gpu": "1"}), node=node)
    found = UtilizationTable(state, NOW_S).of("n", ignore_daemon_sets=False, gpu=GPU)
    assert found is not None and (found.resource, found.value, found.gpu) == ("nvidia.com/gpu", 0.25, 0.25)


def test_accelerators_that_do_not_work_yet_are_unused() -> None:
    state = state_of(make_pod("a", "n", cpu="3"))
    found = UtilizationTable(state, NOW_S).of("n", ignore_daemon_sets=False, gpu=GPU)
    assert found is not None and found.value == 0.0


@pytest.mark.parametrize("missing", ["cpu", "memory"])
def test_a_node_without_cpu_or_memory_has_no_utilisation(missing: str) -> None:
    node = make_node("n")
    del node["status"]["allocatable"][missing]
    assert UtilizationTable(state_of(node=node), NOW_S).of("n", ignore_daemon_sets=False, gpu=None) is None
