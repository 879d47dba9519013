"""The whole scheduler in a cluster on virtual time."""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from holokube.client.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from holokube.kube.conditions import get_condition
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.stop import StopSignal
from holokube.scheduler.cycle import Cycle, Decision
from holokube.scheduler.profiles import DEFAULT, Profile
from holokube.scheduler.scheduler import build
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.workloads import volume_controller
from tests.builders import JsonObject, budget, pod
from tests.packing.objects import affinity_term, make_node, pod_affinity
from tests.workloads.housekeeping import STORM, House
from tests.workloads.test_volume_controller import claim, storage_class, volume

TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
AFTER = "no new claims to deallocate"
NO_HELP = "Preemption is not helpful for scheduling."


VOLUMES = (build, volume_controller.build, volume_controller.build_reclaimer)


def priority_class(name: str, **more: Any) -> JsonObject:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 1000, **more}


def house(
    *nodes: JsonObject, objects: tuple[JsonObject, ...] = (), builds: tuple[Any, ...] = (build,), **more: Any
) -> House:
    classes = [priority_class("high"), priority_class("polite", preemptionPolicy="Never")]
    return House(*builds, objects=[*nodes, *classes, *objects], **more)


def make(name: str, cpu: str = "1", *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    made = pod(name, terminationGracePeriodSeconds=0, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    made["metadata"]["labels"] = labels or {}
    return made


def node_of(home: House, name: str) -> str:
    return str(home.get(PODS, name)["spec"].get("nodeName") or "")


def why(home: House, name: str) -> str:
    condition = get_condition(home.get(PODS, name), "PodScheduled")
    assert condition is not None and condition["status"] == "False", condition
    return str(condition["message"])


def test_pods_are_bound_and_users_are_told() -> None:
    with house(make_node("n")) as home:
        home.create(PODS, make("p"))
        home.pass_time(1)
        found = home.get(PODS, "p")
        assert found["spec"]["nodeName"] == "n"
        assert (get_condition(found, "PodScheduled") or {})["status"] == "True"
        assert home.events("Scheduled") == [("p", "Scheduled", "Successfully assigned default/p to n")]


def test_the_emptier_node_is_better() -> None:
    with house(make_node("small", cpu="2"), make_node("large", cpu="32", memory="64Gi")) as home:
        for number in range(4):
            home.create(PODS, make(f"p{number}"))
        home.pass_time(1)
        assert {node_of(home, f"p{number}") for number in range(4)} == {"large"}


def test_more_important_pods_go_first() -> None:
    with house() as home:
        home.create(PODS, make("early"))
        home.create(PODS, make("late", priorityClassName="high"))
        home.pass_time(1)
        assert why(home, "early") == "no nodes available to schedule pods"
        home.create(NODES, make_node("n", cpu="1"))
        home.patch(NODES, "n", {"spec": {"taints": None}})
        home.pass_time(30)
        assert (node_of(home, "late"), node_of(home, "early")) == ("n", "")
        assert why(home, "early") == (
            f"0/1 nodes are available: 1 Insufficient cpu. {AFTER}, preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod."
        )


def test_gated_pods_wait_in_silence() -> None:
    with house(make_node("n")) as home:
        home.create(PODS, make("p", schedulingGates=[{"name": "example.com/g"}]))
        home.pass_time(600)
        assert node_of(home, "p") == "" and home.events("FailedScheduling") == []
        assert (get_condition(home.get(PODS, "p"), "PodScheduled") or {})["reason"] == "SchedulingGated"
        home.patch(PODS, "p", {"spec": {"schedulingGates": None}})
        home.pass_time(1)
        assert node_of(home, "p") == "n"


def test_a_pod_that_fits_nowhere_says_why_and_comes_when_a_node_does() -> None:
    nodes = [make_node("full", cpu="1"), make_node("t1", taints=[TAINT]), make_node("t2", taints=[TAINT])]
    with house(*nodes) as home:
        home.create(PODS, make("p", cpu="2"))
        home.pass_time(1)
        message = (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). "
            f"{AFTER}, preemption: 0/3 nodes are available: 3 {NO_HELP}"
        )
        assert why(home, "p") == message
        assert home.events("FailedScheduling") == [("p", "FailedScheduling", message)]
        before = home.get(PODS, "p")["metadata"]["resourceVersion"]
        home.pass_time(290)
        assert home.get(PODS, "p")["metadata"]["resourceVersion"] == before, "nothing happened, nothing was written"
        home.patch(NODES, "t2", {"spec": {"taints": None}})
        home.pass_time(1)
        assert node_of(home, "p") == "t2"


def test_all_pods_that_wait_for_the_same_come_in_one_by_one_and_hear_what_is_new() -> None:
    with house(make_node("full", cpu="1")) as home:
        for number in range(6):
            home.create(PODS, make(f"p{number}", cpu="2"))
        home.pass_time(20)
        text = f"nodes are available: %s Insufficient cpu. {AFTER}, preemption: 0/%s nodes are available: "
        assert {why(home, f"p{number}") for number in range(6)} == {"0/1 " + text % (1, 1) + f"1 {NO_HELP}"}
        home.load([make_node("larger", cpu="4")])
        home.pass_time(20)
        bound = [number for number in range(6) if node_of(home, f"p{number}")]
        assert bound == [0, 1]
        assert {why(home, f"p{number}") for number in range(2, 6)} == {
            "0/2 " + text % (2, 2) + f"1 No preemption victims found for incoming pod, 1 {NO_HELP}"
        }
        home.delete(PODS, "p0", grace_s=0)
        home.pass_time(20)
        assert [number for number in range(2, 6) if node_of(home, f"p{number}")] == [2]
        home.pass_time(400)
        home.delete(PODS, "p1", grace_s=0)
        home.pass_time(20)
        assert len([number for number in range(2, 6) if node_of(home, f"p{number}")]) == 2


def test_the_same_seed_gives_the_same_cluster() -> None:
    def placements(seed: int) -> list[str]:
        with house(*(make_node(f"n{number}") for number in range(5)), seed=seed) as home:
            for number in range(8):
                home.create(PODS, make(f"p{number}", cpu="100m"))
            home.pass_time(5)
            return [node_of(home, f"p{number}") for number in range(8)]

    assert placements(1) == placements(1)
    assert len({tuple(placements(seed)) for seed in range(4)}) > 1


def test_a_pod_is_tried_again_when_the_one_it_looks_for_comes() -> None:
    with house(make_node("a", {"zone": "a"}), make_node("b", {"zone": "b"})) as home:
        friend = affinity_term("web", "zone", namespace_selector={"matchLabels": {"team": "x"}})
        home.create(PODS, make("p", affinity=pod_affinity(friend)))
        home.create(PODS, make("w", labels={"app": "web"}, nodeSelector={"zone": "b"}))
        home.pass_time(20)
        assert why(home, "p").startswith("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.")
        home.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "x"}}})
        home.pass_time(1)
        assert node_of(home, "p") == "b"


def test_a_pod_that_finishes_makes_room() -> None:
    with house(make_node("n", cpu="1")) as home:
        home.create(PODS, make("first"))
        home.pass_time(1)
        home.create(PODS, make("second"))
        home.pass_time(20)
        assert node_of(home, "second") == ""
        home.patch(PODS, "first", {"status": {"phase": "Succeeded"}}, subresource="status")
        home.pass_time(1)
        assert node_of(home, "second") == "n"


def test_preemption_takes_the_node_where_no_budget_is_broken() -> None:
    guarded = budget("guard", "guarded", allowed=0)
    with house(make_node("a", cpu="2"), make_node("b", cpu="2"), objects=(guarded,)) as home:
        for name in ("a", "b"):
            label = {"app": "guarded" if name == "a" else "free"}
            home.create(PODS, make(f"on-{name}", cpu="2", labels=label, nodeSelector={"kubernetes.io/hostname": name}))
        home.pass_time(1)
        home.create(PODS, make("vip", cpu="2", priorityClassName="high"))
        home.pass_time(30)
        assert node_of(home, "vip") == "b"
        assert home.exists(PODS, "on-a") and not home.exists(PODS, "on-b")
        uid = home.get(PODS, "vip")["metadata"]["uid"]
        assert home.events("Preempted") == [("on-b", "Preempted", f"Preempted by pod {uid} on node b")]


def test_victims_are_marked_and_the_node_is_kept_for_the_preemptor() -> None:
    with house(make_node("n", cpu="2")) as home:
        victim = make("victim", cpu="2")
        victim["spec"]["terminationGracePeriodSeconds"] = 60
        home.create(PODS, victim)
        home.pass_time(1)
        home.create(PODS, make("vip", cpu="2", priorityClassName="high"))
        home.pass_time(5)
        leaving = home.get(PODS, "victim")
        condition = get_condition(leaving, "DisruptionTarget") or {}
        assert leaving["metadata"]["deletionTimestamp"]
        assert (condition["reason"], condition["message"]) == (
            "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
        )  # fmt: skip
        assert home.get(PODS, "vip")["status"]["nominatedNodeName"] == "n"
        home.create(PODS, make("thief", cpu="2"))
        home.delete(PODS, "victim", grace_s=0)
        home.pass_time(5)
        assert (node_of(home, "vip"), node_of(home, "thief")) == ("n", "")
        assert len(home.events("Preempted")) == 1


def test_polite_pods_drive_nobody_away() -> None:
    with house(make_node("n", cpu="2")) as home:
        home.create(PODS, make("there", cpu="2"))
        home.pass_time(1)
        home.create(PODS, make("p", cpu="2", priorityClassName="polite"))
        home.pass_time(5)
        assert why(home, "p") == (
            f"0/1 nodes are available: 1 Insufficient cpu. {AFTER}, "
            "preemption: not eligible due to preemptionPolicy=Never."
        )
        assert home.exists(PODS, "there")


def test_profiles_have_names_filters_and_weights_of_their_own() -> None:
    tolerant = Profile("tolerant", disabled_filters=frozenset({"TaintToleration"}))
    careless = Profile("careless", ScoreProfile(node_resources_fit=0, node_resources_balanced_allocation=0))
    builds = (partial(build, profiles=(DEFAULT, tolerant, careless)),)
    with house(make_node("t", taints=[TAINT]), builds=builds) as home:
        for scheduler in ("default-scheduler", "tolerant", "unknown"):
            home.create(PODS, make(scheduler, schedulerName=scheduler))
        home.pass_time(5)
        assert [node_of(home, name) for name in ("default-scheduler", "tolerant", "unknown")] == ["", "t", ""]
        assert {name for name, _, _ in home.events("FailedScheduling")} == {"default-scheduler"}
        assert get_condition(home.get(PODS, "unknown"), "PodScheduled") is None


def test_a_claim_that_waits_gets_its_volume_on_the_node_of_its_pod() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [make_node("a", {zone: "a"}, cpu="1"), make_node("b", {zone: "b"})]
    late = storage_class("late", "WaitForFirstConsumer")
    with house(*nodes, objects=(late,), builds=VOLUMES) as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name="late"))
        mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        home.create(PODS, make("p", cpu="2", volumes=[mount]))
        home.pass_time(20)
        assert node_of(home, "p") == "b"
        bound = home.get(PERSISTENT_VOLUME_CLAIMS, "c")
        assert bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "b"
        made = home.get(PERSISTENT_VOLUMES, bound["spec"]["volumeName"])
        assert made["metadata"]["labels"] == {zone: "b"}
        home.create(PODS, make("q", cpu="100m", volumes=[mount], nodeSelector={zone: "a"}))
        home.pass_time(5)
        assert why(home, "q") == (
            "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
            "1 node(s) didn't match Pod's node affinity/selector. "
            f"{AFTER}, preemption: 0/2 nodes are available: 2 {NO_HELP}"
        )


def test_a_claim_that_waits_takes_a_volume_that_is_there() -> None:
    local = storage_class("local", "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
    with house(make_node("a"), make_node("b"), objects=(local,), builds=VOLUMES) as home:
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}]
        near_b = {"required": {"nodeSelectorTerms": terms}}
        home.create(PERSISTENT_VOLUMES, volume("v", "10Gi", "local", nodeAffinity=near_b))
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name="local"))
        mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        home.create(PODS, make("p", volumes=[mount]))
        home.pass_time(60)
        assert node_of(home, "p") == "b"
        assert home.get(PERSISTENT_VOLUME_CLAIMS, "c")["spec"]["volumeName"] == "v"


def test_a_pod_whose_volume_cannot_be_made_gives_its_node_back() -> None:
    late = storage_class("late", "WaitForFirstConsumer")
    with house(make_node("n", cpu="1"), objects=(late,)) as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name="late"))
        mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        home.create(PODS, make("p", volumes=[mount]))
        home.pass_time(5)
        assert home.get(PODS, "p")["status"]["nominatedNodeName"] == "n", "autoscalers see where it is about to go"
        home.create(PODS, make("q"))
        home.pass_time(5)
        assert "Insufficient cpu" in why(home, "q"), "the room is taken while the volume is being made"
        nothing = {"volume.kubernetes.io/selected-node": None}
        home.patch(PERSISTENT_VOLUME_CLAIMS, "c", {"metadata": {"annotations": nothing}})
        home.pass_time(1)
        assert node_of(home, "q") == "n"
        failed = [message for name, _, message in home.events("FailedScheduling") if name == "p"]
        assert failed[0] == 'running PreBind plugin "VolumeBinding": provisioning failed for PVC "c"'
        assert "nominatedNodeName" not in home.get(PODS, "p")["status"]


def test_a_volume_is_waited_for_ten_minutes() -> None:
    late = storage_class("late", "WaitForFirstConsumer")
    with house(make_node("n"), objects=(late,)) as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name="late"))
        home.create(PODS, make("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
        home.pass_time(590)
        assert home.events("FailedScheduling") == []
        home.pass_time(20)
        assert "context deadline exceeded" in home.events("FailedScheduling")[0][2]


def test_a_scheduler_that_starts_again_knows_what_is_there() -> None:
    nobodys = partial(build, profiles=(Profile("nobody"),))
    with house(make_node("n", cpu="2"), builds=(nobodys,)) as home:

        async def main() -> None:
            clock, rng = home.clock, home.rng
            informers = InformerSet(clock, home.client, rng)
            recorder = EventRecorder(clock, home.client, "s", rng=rng)
            scheduler = build(clock, home.client, informers, recorder, rng)
            stop_informers = StopSignal()
            running = asyncio.create_task(informers.runner().run(stop_informers))
            for name in ("first", "second", "third"):
                await home.client.create(PODS, make(name))
                stop = StopSignal()
                once = asyncio.create_task(scheduler.run(stop))
                await clock.sleep(5)
                stop.set()
                await once
            stop_informers.set()
            await running

        home.run(main)
        assert [node_of(home, name) for name in ("first", "second", "third")] == ["n", "n", ""]
        assert "Insufficient cpu" in why(home, "third")


def test_a_pod_that_cannot_be_understood_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Cycle.decide

    def stumbling(self: Cycle, pod: JsonObject, now: datetime) -> Decision:
        if pod["metadata"]["name"] == "odd":
            raise ValueError("what is this?")
        return decide(self, pod, now)

    monkeypatch.setattr(Cycle, "decide", stumbling)
    with house(make_node("n")) as home:
        home.create(PODS, make("odd"))
        home.create(PODS, make("even"))
        home.pass_time(5)
        assert (node_of(home, "odd"), node_of(home, "even")) == ("", "n")
        assert why(home, "odd") == "ValueError: what is this?"


def test_a_missing_claim_is_named() -> None:
    with house(make_node("n")) as home:
        home.create(PODS, make("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
        home.pass_time(1)
        assert why(home, "p") == (
            '0/1 nodes are available: persistentvolumeclaim "c" not found. not found'
        )


@pytest.mark.parametrize("seed", range(3))
def test_every_pod_gets_a_node_and_no_node_too_many_whatever_the_network_does(seed: int) -> None:
    nodes = [make_node(f"n{number}", cpu="4") for number in range(5)]
    with house(*nodes, faults=STORM, seed=seed) as home:
        for number in range(24):
            home.create(PODS, make(f"p{number}", priorityClassName="high" if number % 7 == 0 else ""))
            home.pass_time(3)
        home.delete(PODS, "p3", grace_s=0)
        home.pass_time(100)
        home.calm()
        home.pass_time(700)
        found = home.run(home.client.list(PODS, "default")).items
        placed: dict[str, int] = {}
        for item in found:
            placed[item["spec"].get("nodeName", "")] = placed.get(item["spec"].get("nodeName", ""), 0) + 1
        pending = placed.pop("", 0)
        assert all(count <= 4 for count in placed.values()), placed
        assert sum(placed.values()) == 20 and pending == len(found) - 20
        waiting = [item for item in found if not item["spec"].get("nodeName")]
        assert all(item["spec"]["priority"] == 0 for item in waiting)
        assert home.faulty.injected.total() > 5
