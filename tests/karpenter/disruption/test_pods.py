from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption import pods
from tests.karpenter.disruption.objects import LONG_AGO_S, NOW_S, daemon, mirror, pending, pod

PROTECTED = "karpenter.sh/do-not-disrupt"


def test_an_ended_or_terminating_pod_is_not_active() -> None:
    assert pods.is_active(pod("a"))
    assert not pods.is_active(pod("a", phase="Succeeded"))
    assert not pods.is_active(pod("a", phase="Failed"))
    assert not pods.is_active(pod("a", deleted=True))


def test_daemons_and_mirrors_need_no_other_place() -> None:
    assert pods.is_reschedulable(pod("a"))
    assert not pods.is_reschedulable(daemon("a"))
    assert not pods.is_reschedulable(mirror("a"))


def test_a_terminating_pod_needs_another_place_only_if_a_stateful_set_will_bring_it_back() -> None:
    assert not pods.is_reschedulable(pod("a", deleted=True))
    assert pods.is_reschedulable(pod("a", deleted=True, owner=("apps/v1", "StatefulSet")))


def test_an_owner_of_the_same_kind_in_another_group_is_another_kind() -> None:
    assert pods.is_reschedulable(pod("a", owner=("apps.example.com/v1", "DaemonSet")))


def test_only_a_pod_that_the_scheduler_gave_up_on_is_provisionable() -> None:
    assert pods.is_provisionable(pending("a"))
    assert not pods.is_provisionable(pod("a"))
    assert not pods.is_provisionable(pending("a", nodeName="n"))
    assert not pods.is_provisionable({**pending("a"), "status": {**pending("a")["status"], "nominatedNodeName": "n"}})
    assert not pods.is_provisionable(pending("a", owner=("apps/v1", "DaemonSet")))


def test_true_protects_for_ever() -> None:
    assert pods.is_protected(pod("a", annotations={PROTECTED: "true"}), NOW_S)


@pytest.mark.parametrize("value", ["false", "", "0s", "-5m", "soon", "10"])
def test_what_is_no_positive_duration_protects_nothing(value: str) -> None:
    assert not pods.is_protected(pod("a", annotations={PROTECTED: value}), NOW_S)


def test_a_duration_protects_for_that_long_after_the_start() -> None:
    guarded = pod("a", annotations={PROTECTED: "1h"}, started_s=NOW_S - 3599)
    assert pods.is_protected(guarded, NOW_S)
    assert not pods.is_protected(guarded, NOW_S + 1)


def test_a_duration_protects_a_pod_that_has_not_started() -> None:
    assert pods.is_protected(pod("a", annotations={PROTECTED: "1s"}, started_s=None), NOW_S)


def test_what_pods_tolerate_is_their_own_whoever_was_asked_about_before() -> None:
    all_of_it, something = [{"operator": "Exists"}], [{"key": "other", "operator": "Exists"}]
    lists = [all_of_it, something, something, all_of_it, [], something, all_of_it, all_of_it]
    found = [pods.tolerates_disruption(pod("a", tolerations=one)) for one in lists]
    assert found == [one is all_of_it for one in lists]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_pod_that_tolerates_the_disruption_is_not_evicted(toleration: dict[str, Any], expected: bool) -> None:
    tolerant = pod("a", tolerations=[toleration], started_s=LONG_AGO_S)
    assert pods.tolerates_disruption(tolerant) is expected
    assert pods.is_evictable(tolerant, NOW_S) is not expected


def test_mirrors_and_protected_pods_are_not_evicted() -> None:
    assert not pods.is_evictable(mirror("a"), NOW_S)
    assert not pods.is_evictable(pod("a", annotations={PROTECTED: "true"}), NOW_S)
    assert pods.is_evictable(daemon("a"), NOW_S)
