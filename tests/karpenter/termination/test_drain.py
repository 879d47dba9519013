from __future__ import annotations

from holokube.karpenter.termination.drain import drain, is_waited_for, must_be_deleted, remaining_grace_s
from holokube.kube.types import JsonObject
from tests.karpenter.objects import NOW_S, pod


def names(pods: tuple[JsonObject, ...]) -> list[str]:
    return [one["metadata"]["name"] for one in pods]


def test_four_groups_leave_one_after_the_other() -> None:
    left = [
        pod("critical-daemon", owner="DaemonSet", priorityClassName="system-node-critical"),
        pod("critical", priorityClassName="system-cluster-critical"),
        pod("daemon", owner="DaemonSet"),
        pod("plain"),
    ]
    order = []
    while left:
        step = drain(left, None, NOW_S)
        assert step.waiting == len(left)
        order.append(names(step.leaving))
        left = [one for one in left if one not in step.leaving]
    assert order == [["plain"], ["daemon"], ["critical"], ["critical-daemon"]]
    assert drain([], None, NOW_S).is_done


def test_a_node_is_drained_when_only_pods_are_left_that_nobody_waits_for() -> None:
    tolerant = pod("t", tolerations=[{"operator": "Exists"}])
    stuck = pod("s", deleted_s=-61)
    step = drain([pod("m", owner="Node"), pod("done", phase="Succeeded"), tolerant, stuck], None, NOW_S)
    assert step.is_done
    assert step.leaving == ()


def test_a_terminating_pod_is_waited_for_until_a_minute_after_its_end() -> None:
    assert is_waited_for(pod(deleted_s=-60), NOW_S)
    assert not is_waited_for(pod(deleted_s=-60.5), NOW_S + 1)


def test_a_protected_pod_is_waited_for() -> None:
    assert not drain([pod(annotations={"karpenter.sh/do-not-disrupt": "true"})], None, NOW_S).is_done


def test_pods_that_would_outlive_the_deadline_are_deleted_whatever_their_group() -> None:
    slow = pod("slow", priorityClassName="system-node-critical", terminationGracePeriodSeconds=120)
    quick = pod("quick", terminationGracePeriodSeconds=10)
    step = drain([slow, quick], NOW_S + 60, NOW_S)
    assert names(step.leaving) == ["slow", "quick"]
    late = drain([slow, pod("quick", terminationGracePeriodSeconds=1)], NOW_S + 0.5, NOW_S)
    assert names(late.leaving) == ["slow", "quick"]


def test_without_a_deadline_nobody_is_deleted() -> None:
    assert not must_be_deleted(pod(terminationGracePeriodSeconds=3600), None, NOW_S)


def test_a_terminating_pod_is_deleted_again_only_if_it_ends_after_the_deadline() -> None:
    assert must_be_deleted(pod(deleted_s=100), NOW_S + 60, NOW_S)
    assert not must_be_deleted(pod(deleted_s=50), NOW_S + 60, NOW_S)


def test_a_pod_is_left_at_least_a_second() -> None:
    assert remaining_grace_s(NOW_S - 100, NOW_S) == 1
    assert remaining_grace_s(NOW_S + 30.9, NOW_S) == 30
