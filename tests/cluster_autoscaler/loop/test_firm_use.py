"""Which changes of pods make a difference to nodes that are well used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.loop.firm_use import FirmUse
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.planner import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, World, make_node, make_pod

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


def host(*pods: Any, room: dict[str, list[int]] | None = None) -> FirmUse:
    """One that knows how much room pods that come may take."""
    use = FirmUse(OPTIONS)
    for pod in pods:
        use.on_pod("ADDED", None, pod)
    use.forget_changes()
    use.judge([STAYS], may_leave=True, room_left=lambda: room or {})
    return use


def unplaced(pod: Any) -> Any:
    return {**pod, "spec": {name: value for name, value in pod["spec"].items() if name != "nodeName"}, "status": {}}


COMES = make_pod("comes", "n", cpu="300m", memory="1Gi", **OURS)
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
NO_NEIGHBOURS = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


def test_a_pod_that_comes_to_a_firm_node_and_its_start_are_no_change() -> None:
    use = host(LARGE)
    use.on_pod("ADDED", None, unplaced(COMES))
    use.on_pod("MODIFIED", unplaced(COMES), COMES)
    use.on_pod("MODIFIED", COMES, {**COMES, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}})
    assert not use.has_changed
    use.on_pod("DELETED", LARGE, None)
    assert use.has_changed, "what came does not keep the node above the threshold"


def test_pods_may_come_as_long_as_they_leave_the_room_that_others_need() -> None:
    gib = 2**30 * 1000
    for room, fits in (
        ([300, gib, 1000], 1), ([600, 2 * gib, 2000], 2), ([299, gib, 1000], 0), ([300, gib - 1, 1000], 0),
        ([300, gib, 999], 0),
    ):  # fmt: skip
        use = host(LARGE, room={"n": room})
        for number in range(fits):
            use.on_pod("ADDED", None, make_pod(f"comes-{number}", "n", cpu="300m", memory="1Gi", **OURS))
        assert not use.has_changed
        use.on_pod("ADDED", None, COMES)
        assert use.has_changed
    use = host(LARGE, room={"other": [0, 0, 0]})
    use.on_pod("ADDED", None, COMES)
    assert not use.has_changed, "nobody would go there"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, make_pod("comes", "elsewhere", **OURS)),
        (None, make_pod("comes", "n", schedulerName="another")),
        (None, make_pod("comes", "n", owner=("DaemonSet", "d"), **OURS)),
        (None, make_pod("comes", "n", affinity=NO_NEIGHBOURS, **OURS)),
        (None, make_pod("comes", "n", extra={"example.com/card": "1"}, **OURS)),
        (None, make_pod("comes", "n", annotations={SAFE_TO_EVICT: "on-completion"}, **OURS)),
        (None, {**unplaced(COMES), "status": REFUSED}),
        (unplaced(COMES), {**unplaced(COMES), "status": REFUSED}),
        ({**unplaced(COMES), "status": REFUSED}, COMES),
        (unplaced(COMES), None),
        (SMALL, {**SMALL, "metadata": {**SMALL["metadata"], "annotations": {SAFE_TO_EVICT: "on-completion"}}}),
        (SMALL, {**SMALL, "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}),
        (SMALL, {**SMALL, "metadata": {**SMALL["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        (None, {**COMES, "metadata": {**COMES["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        (unplaced({**COMES, "metadata": {**COMES["metadata"], "uid": "another"}}), COMES),
    ],
)
def test_all_other_pods_that_come_are_a_change(old: Any, new: Any) -> None:
    use = host(LARGE, SMALL)
    use.on_pod("MODIFIED" if old and new else "ADDED" if new else "DELETED", old, new)
    assert use.has_changed


def test_a_pod_that_comes_to_a_node_that_is_not_firm_is_a_change() -> None:
    use = host(SMALL)
    use.on_pod("ADDED", None, COMES)
    assert use.has_changed
    use = host(LARGE)
    use.forget_changes()
    use.on_pod("ADDED", None, COMES)
    assert use.has_changed, "nothing is known any more"


NODES = 6
WHAT = st.sampled_from(["come", "come", "bind", "state", "end", "go"])
EVENT = st.tuples(WHAT, st.integers(0, 99), st.integers(1, 6))
TURN = st.lists(EVENT, min_size=1, max_size=3)


class Cluster:
    """One that a planner looks at, and of which this hears pod by pod."""

    def __init__(self, pods: list[tuple[int, int]]) -> None:
        nodes = [make_node(f"n{i}", cpu=str(2 + i % 3)) for i in range(NODES)]
        self.world = World(nodes)
        self.use = FirmUse(AutoscalerOptions())
        self.planner = ScaleDownPlanner(AutoscalerOptions(), lambda: 0.0)
        self.made = 0
        for node, size in pods:
            self.happens("come", node, size)

    def tell(self, old: Any, new: Any) -> None:
        pods = [pod for pod in self.world.pods if old is None or pod["metadata"]["uid"] != old["metadata"]["uid"]]
        self.world.pods = pods if new is None else [*pods, new]
        self.use.on_pod("MODIFIED" if old and new else "ADDED" if new else "DELETED", old, new)

    def happens(self, what: str, which: int, size: int) -> None:
        self.made += 1
        if what in ("come", "bind") or not self.world.pods:
            name, node = f"p{self.made}", f"n{which % NODES}"
            pod = make_pod(name, node, cpu=f"{size * 150}m", memory="1Mi", owner=("ReplicaSet", f"rs{size}"))
            if what == "bind":
                self.use.on_pod("ADDED", None, unplaced(pod))
                self.use.on_pod("MODIFIED", unplaced(pod), pod)
                self.world.pods = [*self.world.pods, pod]
            else:
                self.tell(None, pod)
            return
        old = self.world.pods[which % len(self.world.pods)]
        if what == "state":
            self.tell(old, {**old, "status": {**old["status"], "message": str(self.made)}})
        elif what == "end":
            self.use.on_pod("MODIFIED", old, ended(old))
            self.world.pods = [pod for pod in self.world.pods if pod is not old]
        else:
            self.tell(old, None)

    def look(self) -> Any:
        found = self.planner.update(self.world.look(after_s=10.0))
        return found.unneeded, {stays.name: stays.reason for stays in found.unremovable}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(1, 6)), min_size=6, max_size=16), st.lists(TURN))
def test_a_look_finds_what_the_last_one_found_where_nothing_is_said_to_have_changed(
    pods: list[tuple[int, int]], turns: list[list[tuple[str, int, int]]]
) -> None:
    cluster = Cluster(pods)
    for _ in range(3):
        before = cluster.look()
    for events in turns:
        is_settled = cluster.planner.settled_on() is not None
        cluster.use.forget_changes()
        unremovable = cluster.planner.unremovable()
        cluster.use.judge(unremovable, may_leave=is_settled, room_left=cluster.planner.room_left)
        for event in events:
            cluster.happens(*event)
        now = cluster.look()
        if is_settled and not cluster.use.has_changed:
            assert now == before
            assert cluster.planner.settled_on() is not None
        before = now
