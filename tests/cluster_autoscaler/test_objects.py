"""Readings of pods and nodes."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler import objects
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import annotated, owned_pod, ready_node
from tests.packing.objects import make_node, make_pod

DELETED_S = objects.time_s("2026-01-01T00:00:00Z")


def test_a_pod_is_known_by_its_uid_or_else_by_its_name() -> None:
    assert objects.pod_identity(owned_pod("p")) == "uid-of-p"
    assert objects.pod_identity(make_pod("p")) == objects.pod_key(make_pod("p")) == "default/p"


def test_only_the_controller_among_the_owners_counts() -> None:
    pod = make_pod()
    controller = {"kind": "Job", "uid": "b", "controller": True}
    pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "a"}, controller]
    owner = objects.controller_of(pod)
    assert owner is not None and owner["uid"] == "b"
    assert not objects.is_daemon_set_pod(pod)
    assert objects.controller_of(make_pod()) is None


@pytest.mark.parametrize(
    ("pod", "is_daemon"),
    [
        (owned_pod("p", kind="DaemonSet"), True),
        (owned_pod("p", kind="ReplicaSet"), False),
        (annotated(make_pod(), **{"cluster-autoscaler_kubernetes_io__daemonset-pod": "true"}), True),
        (annotated(make_pod(), **{"cluster-autoscaler_kubernetes_io__daemonset-pod": "yes"}), False),
    ],
)
def test_a_daemon_is_owned_by_a_daemon_set_or_says_so(pod: JsonObject, is_daemon: bool) -> None:
    assert objects.is_daemon_set_pod(pod) is is_daemon


def test_mirror_and_static_pods_are_known_by_annotations() -> None:
    mirror = annotated(make_pod(), kubernetes_io__config_mirror="x")
    assert objects.is_mirror(mirror) and not objects.is_mirror(make_pod())
    assert objects.is_static(annotated(make_pod(), kubernetes_io__config_source="file"))
    assert not objects.is_static(annotated(make_pod(), kubernetes_io__config_source="api"))
    assert not objects.is_static(make_pod())


@pytest.mark.parametrize(("grace_s", "limit_s"), [(None, 60), (0, 30), (100, 130)])
def test_a_pod_that_should_be_gone_for_half_a_minute_is_long_terminating(grace_s: int | None, limit_s: int) -> None:
    pod = make_pod(deleted=True, **({} if grace_s is None else {"terminationGracePeriodSeconds": grace_s}))
    assert not objects.is_long_terminating(pod, DELETED_S + limit_s)
    assert objects.is_long_terminating(pod, DELETED_S + limit_s + 0.5)
    assert not objects.is_long_terminating(make_pod(), DELETED_S + 1e9)


def test_a_pod_is_terminal_when_it_will_not_be_started_again() -> None:
    def ended(phase: str, policy: str) -> JsonObject:
        return {**make_pod(restartPolicy=policy), "status": {"phase": phase}}

    assert objects.is_terminal(ended("Failed", "Always"))
    assert objects.is_terminal(ended("Succeeded", "OnFailure"))
    assert not objects.is_terminal(ended("Succeeded", "Always"))
    assert not objects.is_terminal(ended("Running", "Never"))


def test_a_pod_without_its_node_is_a_new_object_only_if_it_had_one() -> None:
    waiting, bound = make_pod(), make_pod(node="n")
    assert objects.without_node(waiting) is waiting
    assert "nodeName" not in objects.without_node(bound)["spec"] and bound["spec"]["nodeName"] == "n"


def test_accelerators_are_found_in_any_container() -> None:
    assert objects.requests_gpu(make_pod(requests={"amd.com/gpu": "1"}))
    assert objects.requests_gpu(
        make_pod(initContainers=[{"name": "i", "resources": {"requests": {"nvidia.com/gpu": "1"}}}])
    )
    assert not objects.requests_gpu(make_pod(requests={"example.com/gpu": "1"}))


def _conditions(*conditions: tuple[str, str, str], taints: tuple[str, ...] = ()) -> JsonObject:
    node = make_node("n", taints=[{"key": key, "effect": "NoSchedule"} for key in taints])
    node["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": time, "reason": f"{kind}Is{status}"}
        for kind, status, time in conditions
    ]
    return node


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("node", "is_ready"),
    [
        (_conditions(("Ready", "True", EARLY)), True),
        (_conditions(("Ready", "False", EARLY)), False),
        (_conditions(("Ready", "Unknown", EARLY)), False),
        (_conditions(("Ready", "True", EARLY), ("DiskPressure", "True", EARLY)), False),
        (_conditions(("Ready", "True", EARLY), ("NetworkUnavailable", "True", EARLY)), False),
        (_conditions(("Ready", "True", EARLY), ("MemoryPressure", "True", EARLY)), True),
        (_conditions(("Ready", "True", EARLY), taints=("node.kubernetes.io/not-ready",)), False),
        (_conditions(("Ready", "True", EARLY), taints=("node.kubernetes.io/unreachable",)), True),
        (_conditions(("DiskPressure", "False", EARLY)), False),
        (make_node("n"), False),
    ],
)
def test_readiness_is_more_than_the_ready_condition(node: JsonObject, is_ready: bool) -> None:
    assert objects.node_is_ready(node) is is_ready


def test_readiness_changed_when_the_last_of_its_parts_did() -> None:
    readiness = objects.readiness_of(_conditions(("Ready", "False", EARLY), ("DiskPressure", "False", LATE)))
    assert readiness.changed_s == objects.time_s(LATE)
    assert readiness.reason == "ReadyIsFalse"


def test_a_cordoned_node_is_not_among_the_ready_ones() -> None:
    assert objects.is_ready_and_schedulable(ready_node("n"))
    assert not objects.is_ready_and_schedulable(ready_node("n", unschedulable=True))


def test_an_unready_copy_is_unready_since_the_node_was_made() -> None:
    node = ready_node("n")
    node["metadata"]["creationTimestamp"] = EARLY
    copy = objects.unready_copy(node, objects.STARTUP_TAINTED)
    assert objects.readiness_of(copy) == (False, objects.time_s(EARLY), objects.STARTUP_TAINTED)
    assert objects.node_is_ready(node)


def test_nodes_whose_accelerators_are_missing_count_as_unready() -> None:
    label = {"accelerator": "a100"}
    complete = ready_node("complete", labels=label, **{"nvidia.com/gpu": "8"})
    missing, empty, plain = ready_node("missing", labels=label), ready_node("empty", labels=label), ready_node("plain")
    empty["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    everything = [complete, missing, empty, plain]
    nodes, ready = objects.without_unready_gpus(everything, everything, "accelerator")
    assert [objects.name_of(node) for node in ready] == ["complete", "plain"]
    assert [objects.node_is_ready(node) for node in nodes] == [True, False, False, True]
    assert objects.readiness_of(nodes[1]).reason == objects.RESOURCE_UNREADY


def test_the_first_kind_of_accelerator_that_is_there_counts() -> None:
    node = make_node("n", **{"nvidia.com/gpu": "0", "amd.com/gpu": "4"})
    assert objects.gpu_allocatable(node) == 4
    assert objects.gpu_resource_name(node) == "amd.com/gpu"
    assert objects.gpu_resource_name(make_node("n")) == "nvidia.com/gpu"
    assert objects.has_gpu(make_node("n", {"gpu": "x"}), "gpu") and not objects.has_gpu(make_node("n"), "gpu")


def test_cores_are_rounded_up_and_what_is_missing_is_none() -> None:
    node = {"status": {"capacity": {"cpu": "3920m", "memory": "1Ki"}}}
    assert objects.cores_and_memory(node) == (4, 1024)
    assert objects.cores_and_memory({"status": {"capacity": {"cpu": "-1"}}}) == (0, 0)


def test_what_has_no_time_is_as_old_as_can_be() -> None:
    assert objects.creation_s(make_pod()) == float("-inf")
    assert objects.creation_s({"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}}) == 60
