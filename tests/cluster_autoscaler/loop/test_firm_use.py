"""Which changes of pods make a difference to nodes that are well used."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.loop.firm_use import FirmUse
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_node, make_pod

NODE = make_node("n", cpu="4")
STAYS = Unremovable(NODE, UnremovableReason.NOT_UNDERUTILIZED, utilization=Utilization("cpu", 0.9), threshold=0.5)


def ended(pod: Any) -> Any:
    return {**pod, "status": {"phase": "Succeeded"}}


OPTIONS = AutoscalerOptions(allowed_scheduler_names=("default-scheduler",))


def use_of(*pods: Any, may_leave: bool = True, stays: Unremovable = STAYS) -> FirmUse:
    use = FirmUse(OPTIONS)
    for pod in pods:
        use.on_pod("ADDED", None, pod)
    use.forget_changes()
    use.judge([stays], may_leave=may_leave)
    return use


OURS = {"schedulerName": "default-scheduler"}
LARGE, SMALL = make_pod("large", "n", cpu="2500m", **OURS), make_pod("small", "n", cpu="500m", **OURS)


def test_a_pod_that_leaves_a_node_which_stays_firm_is_no_change() -> None:
    use = use_of(LARGE, SMALL)
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    use.on_pod("MODIFIED", ended(SMALL), {**ended(SMALL), "metadata": {**SMALL["metadata"], "finalizers": []}})
    use.on_pod("DELETED", ended(SMALL), None)
    assert not use.has_changed
    use.on_pod("DELETED", LARGE, None)
    assert use.has_changed


def test_one_that_leaves_is_a_change_if_it_was_not_asked_otherwise() -> None:
    use = use_of(LARGE, SMALL, may_leave=False)
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed
    use = use_of(LARGE, SMALL)
    use.forget_changes()
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed


def test_a_pod_that_had_ended_makes_no_difference_anywhere() -> None:
    use = use_of(LARGE, may_leave=False)
    use.on_pod("DELETED", ended(make_pod("p", "elsewhere")), None)
    assert not use.has_changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, make_pod("new", "n")),
        (SMALL, {**SMALL, "status": {"phase": "Running", "conditions": []}}),
        (SMALL, {**SMALL, "metadata": {**SMALL["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        (make_pod("p", "elsewhere"), None),
        (make_pod("waits"), None),
        (SMALL, ended({**SMALL, "metadata": {**SMALL["metadata"], "uid": "another"}})),
        (ended(SMALL), {**SMALL, "metadata": {**SMALL["metadata"], "uid": "another"}}),
    ],
)
def test_all_else_is_a_change(old: Any, new: Any) -> None:
    use = use_of(LARGE, SMALL)
    use.on_pod("MODIFIED" if old and new else "ADDED" if new else "DELETED", old, new)
    assert use.has_changed


def test_where_pods_may_be_waited_for_every_one_that_leaves_counts() -> None:
    use = use_of(LARGE, SMALL, make_pod("w", "other", annotations={SAFE_TO_EVICT: "on-completion"}, **OURS))
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed


def test_a_node_that_is_not_thought_to_be_well_used_does_not_stay_firm() -> None:
    use = use_of(LARGE, SMALL, stays=Unremovable(NODE, UnremovableReason.RECENTLY_UNREMOVABLE))
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed
    use = use_of(LARGE, SMALL, stays=Unremovable(NODE, UnremovableReason.BLOCKED_BY_POD))
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed


@pytest.mark.parametrize("spec", [{"priority": -11, **OURS}, {"schedulerName": "another"}])
def test_a_node_is_not_firm_by_pods_that_no_turn_counts(spec: Any) -> None:
    large = make_pod("large", "n", cpu="2500m", **spec)
    use = use_of(large, SMALL)
    use.on_pod("MODIFIED", SMALL, ended(SMALL))
    assert use.has_changed
    use = use_of(SMALL)
    use.on_pod("ADDED", None, large)
    assert not use.stays_firm()
