from __future__ import annotations

from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.client.resources import PERSISTENT_VOLUMES, PODS
from holokube.kube.conditions import get_condition
from holokube.kube.errors import Conflict, Invalid
from holokube.runtime.events import EventRecorder
from holokube.scheduler.writes import UNSCHEDULABLE, Writes
from holokube.testing.cluster import Cluster
from tests.builders import JsonObject, pod
from tests.packing.objects import make_node
from tests.workloads.test_volume_controller import volume


class World(Cluster):
    def __init__(self) -> None:
        super().__init__(objects=[make_node("n")])
        self.recorder = EventRecorder(self.clock, self.client, "s", rng=Rng(0))
        self.writes = Writes(self.clock, self.client, self.recorder)

    def create(self, **more: Any) -> JsonObject:
        return self.run(self.client.create(PODS, pod("p", **more)))

    def get(self) -> JsonObject:
        return self.run(self.client.get(PODS, "p", "default"))


def test_a_refusal_is_written_once_and_keeps_its_time() -> None:
    with World() as world:
        made = world.create()
        status = world.writes.refusal_patch(made, UNSCHEDULABLE, "no room", "n")
        assert status is not None
        world.run(world.writes.patch_pod_status(made, status))
        seen = world.get()
        first = get_condition(seen, "PodScheduled") or {}
        assert (first["status"], first["reason"], first["message"]) == ("False", UNSCHEDULABLE, "no room")
        assert seen["status"]["nominatedNodeName"] == "n" and first["observedGeneration"] == 1
        assert world.writes.refusal_patch(seen, UNSCHEDULABLE, "no room", "n") is None
        world.pass_time(60)
        again = world.writes.refusal_patch(seen, UNSCHEDULABLE, "still none", "")
        assert again is not None
        world.run(world.writes.patch_pod_status(seen, again))
        seen = world.get()
        second = get_condition(seen, "PodScheduled") or {}
        assert second["message"] == "still none" and second["lastTransitionTime"] == first["lastTransitionTime"]
        assert "nominatedNodeName" not in seen["status"]


def test_a_pod_of_the_same_name_is_not_written_to() -> None:
    with World() as world:
        made = world.create()
        other = {**made, "metadata": {**made["metadata"], "uid": "other"}}
        with pytest.raises((Conflict, Invalid)):
            world.run(world.writes.patch_pod_status(other, {"nominatedNodeName": "n"}))
        with pytest.raises(Conflict):
            world.run(world.writes.bind(other, "n"))
        assert world.recorder.queued == 0 and not world.get()["spec"].get("nodeName")


def test_a_victim_that_is_gone_is_no_trouble() -> None:
    with World() as world:
        victim = world.create(node="n", terminationGracePeriodSeconds=30)
        preemptor = {**victim, "metadata": {**victim["metadata"], "name": "vip", "uid": "vip"}}
        world.run(world.writes.end(victim, preemptor, "n"))
        leaving = world.get()
        assert leaving["metadata"]["deletionTimestamp"] and world.recorder.queued == 1
        world.run(world.client.delete(PODS, "p", "default", grace_s=0))
        world.run(world.writes.end(victim, preemptor, "n"))
        assert world.recorder.queued == 1


def test_a_volume_that_somebody_changed_is_not_reserved() -> None:
    with World() as world:
        made = world.run(world.client.create(PERSISTENT_VOLUMES, volume("v", "1Gi")))
        world.run(world.client.patch(PERSISTENT_VOLUMES, "v", {"metadata": {"labels": {"a": "b"}}}))
        wanted = {**made, "spec": {**made["spec"], "claimRef": {"namespace": "default", "name": "c", "uid": "u"}}}
        with pytest.raises(Conflict):
            world.run(world.writes.reserve(wanted))
