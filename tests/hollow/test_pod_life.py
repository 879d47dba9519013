"""The life of a pod, as tables: what it was asked for, what shows after so many seconds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holokube.hollow.pod_life import begin, failed, preempt, reboot
from holokube.hollow.pod_state import EmitEvent, Rejection, Stage
from holokube.hollow.profile import FAST, PodProfile
from tests.builders import pod
from tests.hollow.worlds import DRAW, FakeHost, PodWorld

KUBELET = PodProfile(sandbox=1.0, pull=2.0, start=0.5, init_run=3.0, ready=1.0, job_run=10.0, stop=2.0,
                     events=True, final_status=True)  # fmt: skip


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": f"registry.example/{name}:1", **fields}


def annotated(given: dict[str, Any], **annotations: str) -> dict[str, Any]:
    keys = {f"holokube.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**given, "metadata": {**given["metadata"], "annotations": keys}}


def job_pod(**spec: Any) -> dict[str, Any]:
    made = pod(restartPolicy="Never", **spec)
    made["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j"}]
    return made


def test_the_fast_profile_runs_a_pod_with_one_patch_and_no_event() -> None:
    world = PodWorld(pod()).step()
    assert (world.phase, len(world.patches), world.events) == ("Running", 1, [])
    assert world.pod["status"]["podIP"] == "10.1.0.1"
    assert world.condition("Ready") == ("True", "")
    world.step()
    assert len(world.patches) == 1


def test_a_patch_names_the_uid_of_its_pod() -> None:
    world = PodWorld(pod()).step()
    assert world.patches[0]["metadata"] == {"uid": "u1"}


def test_the_kubelet_profile_shows_every_phase() -> None:
    world = PodWorld(pod(), KUBELET).step()
    assert (world.phase, world.state()) == ("Pending", "ContainerCreating")
    assert world.condition("PodReadyToStartContainers") == ("False", "")
    assert world.condition("Initialized") == ("True", "")
    assert world.condition("Ready") == ("False", "ContainersNotReady")
    assert world.condition("ContainersReady") == ("False", "ContainersNotReady")
    assert "podIP" not in world.pod["status"]
    world.run_until(1.2)
    assert world.condition("PodReadyToStartContainers") == ("True", "")
    assert world.pod["status"]["podIPs"] == [{"ip": "10.1.0.1"}]
    world.run_until(5)
    assert (world.phase, world.state()) == ("Running", "running")
    assert world.condition("ContainersReady") == ("True", "")
    assert "message" not in next(c for c in world.pod["status"]["conditions"] if c["type"] == "Ready")
    assert len(world.patches) == 3
    assert world.events == ["Pulled", "Created", "Started"]


def test_a_running_container_has_all_the_fields_that_kubelets_fill_in() -> None:
    given = pod(containers=[container(
        resources={"requests": {"cpu": "1"}}, volumeMounts=[{"name": "v", "mountPath": "/v", "readOnly": True}])])
    entry = PodWorld(given).step().container()
    assert entry["imageID"].startswith("registry.example/c@sha256:")
    assert len(entry["containerID"]) == len("containerd://") + 64
    assert entry["allocatedResources"] == {"cpu": "1"} and entry["resources"] == {"requests": {"cpu": "1"}}
    assert entry["volumeMounts"] == [
        {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Disabled"}
    ]
    assert (entry["ready"], entry["started"], entry["restartCount"], entry["lastState"]) == (True, True, 0, {})


def test_an_image_that_is_always_pulled_tells_so() -> None:
    world = PodWorld(pod(containers=[container(imagePullPolicy="Always")]), KUBELET).run_until(2)
    assert world.events == ["Pulling"]
    world.run_until(10)
    assert world.events == ["Pulling", "Pulled", "Created", "Started"]


def test_init_containers_run_one_after_the_other_before_the_others() -> None:
    world = PodWorld(pod(initContainers=[container("i1"), container("i2")]), KUBELET).run_until(2)
    assert (world.state("i1"), world.state("i2"), world.state()) == ("running", "PodInitializing", "PodInitializing")
    assert world.condition("Initialized") == ("False", "ContainersNotInitialized")
    assert world.phase == "Pending"
    world.run_until(5.2)
    assert (world.state("i1"), world.state("i2")) == ("Completed", "running")
    world.run_until(20)
    assert (world.state("i2"), world.state()) == ("Completed", "running")
    assert world.condition("Initialized") == ("True", "")
    assert world.container("i1")["ready"] is True


def test_a_sidecar_keeps_running_beside_the_main_container() -> None:
    world = PodWorld(pod(initContainers=[container("s", restartPolicy="Always")]), KUBELET).run_until(20)
    assert (world.state("s"), world.state(), world.phase) == ("running", "running", "Running")
    assert world.container("s")["ready"] is True


def test_a_sidecar_does_not_keep_a_job_from_ending() -> None:
    world = PodWorld(job_pod(initContainers=[container("s", restartPolicy="Always")]), KUBELET).run_until(60)
    assert (world.phase, world.state(), world.state("s")) == ("Succeeded", "Completed", "Completed")


def test_a_job_pod_completes_with_the_conditions_of_a_real_kubelet() -> None:
    world = PodWorld(job_pod(), KUBELET).run_until(60)
    assert (world.phase, world.state()) == ("Succeeded", "Completed")
    assert world.condition("Ready") == ("False", "PodCompleted")
    assert world.condition("ContainersReady") == ("False", "PodCompleted")
    assert world.condition("Initialized") == ("True", "PodCompleted")
    assert world.condition("PodReadyToStartContainers") == ("False", "")
    assert world.run.stage is Stage.ENDED


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", "0", "Succeeded"), ("Never", "3", "Failed"), ("OnFailure", "0", "Succeeded"),
     ("OnFailure", "3", "Running"), ("Always", "0", "Running"), ("Always", "3", "Running")],
)  # fmt: skip
def test_the_restart_policy_decides_what_an_exit_code_means(policy: str, code: str, phase: str) -> None:
    world = PodWorld(annotated(pod(restartPolicy=policy), run_time="5s", exit_code=code)).run_until(6)
    assert world.phase == phase
    assert world.container()["restartCount"] == (1 if phase == "Running" else 0)


def test_a_failed_pod_says_so_in_its_conditions() -> None:
    world = PodWorld(annotated(pod(restartPolicy="Never"), run_time="5s", exit_code="3")).run_until(6)
    assert world.condition("Ready") == ("False", "PodFailed")
    assert world.container()["state"]["terminated"]["exitCode"] == 3


def test_restarts_back_off_from_ten_seconds_to_five_minutes() -> None:
    profile = msgspec.structs.replace(FAST, events=True)
    world = PodWorld(annotated(pod(), failure="Error", run_time="1s"), profile).step()
    waits = []
    for _ in range(1, 9):
        world.now_s = world.due_s
        world.step()
        if world.state() == "CrashLoopBackOff":
            waits.append(world.due_s - world.now_s)
            world.now_s = world.due_s
            world.step()
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert world.container()["restartCount"] == 8
    assert world.container()["lastState"]["terminated"]["reason"] == "Error"
    assert world.events.count("BackOff") == 7


def test_the_back_off_message_is_the_kubelets() -> None:
    world = PodWorld(annotated(pod(), failure="Error", run_time="1s")).run_until(2.5)
    waiting = world.container()["state"]["waiting"]
    assert waiting["message"] == "back-off 10s restarting failed container=c pod=p_default(u1)"


def test_while_it_backs_off_the_last_state_is_the_latest_end() -> None:
    world = PodWorld(annotated(pod(), failure="Error", run_time="1s")).run_until(2.5)
    entry = world.container()
    ended = entry["lastState"]["terminated"]
    assert ended["finishedAt"] == "1970-01-01T00:16:42Z" and entry["containerID"] == ended["containerID"]
    patches = len(world.patches)
    world.run = begin(world.pod, world.profile, world.host, world.now_s, DRAW)
    world.step()
    assert len(world.patches) == patches and world.due_s == 1012


def test_a_long_run_makes_the_back_off_start_anew() -> None:
    world = PodWorld(annotated(pod(), failure="Error", run_time="11m")).step()
    for _ in range(4):
        world.now_s = world.due_s
        world.step()
        assert world.state() == "running"


def test_oom_kills_end_with_137_and_their_reason() -> None:
    world = PodWorld(annotated(pod(restartPolicy="Never"), failure="OOMKilled", run_time="2s")).run_until(3)
    ended = world.container()["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"], world.phase) == ("OOMKilled", 137, "Failed")


def test_image_pull_errors_show_first_and_back_off_then() -> None:
    world = PodWorld(annotated(pod(), failure="ErrImagePull"), KUBELET).run_until(3.5)
    assert world.state() == "ErrImagePull"
    world.run_until(6)
    assert (world.state(), world.phase) == ("ImagePullBackOff", "Pending")
    assert world.events == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]
    assert "not found" in world.container()["state"]["waiting"]["message"]
    world.run_until(16)
    assert world.events[5:] == ["Pulling"]


def test_a_pod_over_its_active_deadline_fails() -> None:
    world = PodWorld(pod(activeDeadlineSeconds=30), KUBELET).run_until(29)
    assert world.phase == "Running"
    world.run_until(33)
    assert (world.phase, world.pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert world.state() == "Completed"


def test_a_rejected_pod_fails_with_reason_and_event() -> None:
    host = FakeHost(rejection=Rejection("OutOfcpu", "Node didn't have enough resource: cpu"))
    world = PodWorld(pod(), host=host).step()
    status = world.pod["status"]
    assert (world.phase, status["reason"]) == ("Failed", "OutOfcpu")
    assert status["message"] == "Pod was rejected: Node didn't have enough resource: cpu"
    assert world.events == ["OutOfcpu"]
    assert host.free == ["10.1.0.1"]


@pytest.mark.parametrize("reason", ["TaintToleration", "NodeAffinity"])
@pytest.mark.parametrize("profile", [FAST, KUBELET], ids=["fast", "kubelet"])
def test_a_refusal_by_an_old_state_of_the_node_is_forgotten(reason: str, profile: PodProfile) -> None:
    host = FakeHost(rejection=Rejection(reason, "a taint that the scheduler has seen go"))
    world = PodWorld(pod(), profile, host=host).step()
    world.run_until(0.5)
    assert (world.phase, world.patches, world.events) == ("Pending", [], [])
    host.rejection = None
    world.run_until(10)
    assert world.phase == "Running"
    assert reason not in world.events


@pytest.mark.parametrize("reason", ["TaintToleration", "NodeAffinity"])
def test_a_refusal_that_lasts_is_told_after_another_look(reason: str) -> None:
    world = PodWorld(pod(), host=FakeHost(rejection=Rejection(reason, "no"))).step().step()
    assert world.phase == "Pending", "other changes of the pod do not hasten it"
    world.run_until(1.0)
    assert (world.phase, world.pod["status"]["reason"], world.events) == ("Failed", reason, [reason])


def test_a_pod_in_doubt_that_is_deleted_goes() -> None:
    world = PodWorld(pod(), host=FakeHost(rejection=Rejection("TaintToleration", "no"))).step()
    world.delete().step()
    world.run_until(60)
    assert world.deleted and world.events == []


def test_a_deleted_pod_stops_shows_its_end_and_goes() -> None:
    world = PodWorld(pod(), KUBELET).run_until(10)
    world.delete().step()
    assert world.events[-1] == "Killing" and not world.deleted and world.phase == "Running"
    world.run_until(12)
    assert (world.phase, world.state(), world.deleted) == ("Succeeded", "Completed", True)
    assert world.condition("Ready") == ("False", "PodCompleted")


def test_a_container_that_outlasts_its_grace_period_is_killed() -> None:
    world = PodWorld(annotated(pod(), stop_time="60s"), KUBELET).run_until(10)
    world.delete(grace_s=5).run_until(14.9)
    assert not world.deleted
    world.run_until(15)
    assert (world.phase, world.container()["state"]["terminated"]["exitCode"]) == ("Failed", 137)
    assert world.deleted


def test_the_fast_profile_deletes_without_a_final_status() -> None:
    world = PodWorld(pod()).step().delete().step()
    assert world.deleted and len(world.patches) == 1


def test_a_pod_deleted_before_it_was_seen_goes_at_once() -> None:
    world = PodWorld(pod(), KUBELET).delete().step()
    assert world.deleted and world.phase == "Failed"


def test_an_ended_pod_goes_when_it_is_deleted() -> None:
    world = PodWorld(job_pod(), KUBELET).run_until(60)
    assert not world.deleted
    patches = len(world.patches)
    assert world.delete().step().deleted
    assert len(world.patches) == patches


def test_a_delete_is_sent_once() -> None:
    world = PodWorld(pod()).step().delete().step()
    world.deleted = False
    assert not world.step().deleted


def test_readiness_gates_are_left_to_whoever_sets_them() -> None:
    world = PodWorld(pod(readinessGates=[{"conditionType": "example.com/ok"}])).step()
    assert world.condition("Ready") == ("False", "ReadinessGatesNotReady")
    assert world.condition("ContainersReady") == ("True", "")
    gate = {"type": "example.com/ok", "status": "True"}
    status = world.pod["status"]
    world.pod = {**world.pod, "status": {**status, "conditions": [*status["conditions"], gate]}}
    world.step()
    assert world.condition("Ready") == ("True", "")


def test_readiness_waits_for_its_probe() -> None:
    probe = {"initialDelaySeconds": 5, "httpGet": {"port": 80}}
    world = PodWorld(pod(containers=[container(readinessProbe=probe)]), KUBELET).run_until(5)
    assert (world.state(), world.condition("Ready")) == ("running", ("False", "ContainersNotReady"))
    world.run_until(9)
    assert world.condition("Ready") == ("True", "")


def unready(world: PodWorld) -> None:
    """What the node lifecycle controller does to the pods of a lost node."""
    status = world.pod["status"]
    conditions = [{**c, "status": "False"} if c["type"] == "Ready" else c for c in status["conditions"]]
    world.pod = {**world.pod, "status": {**status, "conditions": conditions}}


def test_ready_is_restored_after_others_took_it_away() -> None:
    world = PodWorld(pod()).step()
    unready(world)
    world.step()
    assert world.condition("Ready") == ("True", "")


def test_two_writers_who_disagree_do_not_chase_each_other() -> None:
    world = PodWorld(pod()).step()
    for _ in range(100):
        unready(world)
        world.step()
    assert len(world.patches) == 2
    assert world.due_s == world.now_s + 10
    world.now_s = world.due_s
    world.step()
    assert world.condition("Ready") == ("True", "")


def test_a_pod_waits_for_an_address_when_the_range_is_full() -> None:
    host = FakeHost(free=[])
    world = PodWorld(pod(), host=host).step()
    assert (world.phase, world.events) == ("Pending", ["FailedCreatePodSandBox"])
    host.free.append("10.1.0.9")
    world.run_until(11)
    assert world.pod["status"]["podIP"] == "10.1.0.9"


def test_host_network_pods_have_the_addresses_of_their_node() -> None:
    world = PodWorld(pod(hostNetwork=True)).step()
    assert world.pod["status"]["podIP"] == "100.64.0.1"


def test_another_process_goes_on_where_the_first_stopped() -> None:
    world = PodWorld(annotated(pod(), failure="Error", run_time="60s"), KUBELET).run_until(30)
    patches = len(world.patches)
    world.run = begin(world.pod, world.profile, FakeHost(free=[]), world.now_s, DRAW)
    world.step()
    assert len(world.patches) == patches
    world.run_until(70)
    assert world.container()["restartCount"] == 1


def test_a_job_pod_ends_on_time_whoever_runs_it() -> None:
    world = PodWorld(job_pod(), KUBELET).run_until(4)
    world.run = begin(world.pod, world.profile, world.host, world.now_s, DRAW)
    world.run_until(60)
    assert world.phase == "Succeeded"


def test_a_reboot_restarts_what_may_be_restarted() -> None:
    world = PodWorld(pod()).step()
    reboot(world.pod, world.run, world.now_s, DRAW)
    world.step()
    assert (world.container()["restartCount"], world.state()) == (1, "running")
    assert world.container()["lastState"]["terminated"]["exitCode"] == 255


def test_a_slow_node_takes_longer() -> None:
    world = PodWorld(pod(), KUBELET, FakeHost(slow_factor=10)).run_until(9)
    assert world.phase == "Pending" and "podIP" not in world.pod["status"]
    assert world.run_until(20).phase == "Running"


def test_a_debug_container_is_started_too() -> None:
    world = PodWorld(pod()).step()
    spec = {**world.pod["spec"], "ephemeralContainers": [container("debug")]}
    world.pod = {**world.pod, "spec": spec}
    world.step()
    (entry,) = world.pod["status"]["ephemeralContainerStatuses"]
    assert "running" in entry["state"] and world.condition("Ready") == ("True", "")


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    given = annotated(pod(restartPolicy="Never", initContainers=[container("i")]), failure="Error",
                      failure_container="i", run_time="1s")  # fmt: skip
    world = PodWorld(given).run_until(2)
    assert (world.phase, world.state("i"), world.state()) == ("Failed", "Error", "PodInitializing")


def test_a_failed_init_container_is_tried_again_otherwise() -> None:
    given = annotated(pod(initContainers=[container("i")]), failure="Error", failure_container="i", run_time="1s")
    world = PodWorld(given).run_until(2.5)
    assert (world.phase, world.state("i")) == ("Pending", "CrashLoopBackOff")


def test_kwoks_annotations_are_understood() -> None:
    given = pod()
    given["metadata"]["annotations"] = {"pod-ready.stage.kwok.x-k8s.io/delay": "7s"}
    world = PodWorld(given).step()
    assert world.phase == "Pending"
    assert world.run_until(6.9).phase == "Pending"
    assert world.run_until(7.1).phase == "Running"


def test_kwoks_failures_are_those_of_all_containers_of_a_kind() -> None:
    given = pod(restartPolicy="Never", containers=[container("a"), container("b")], initContainers=[container("i")])
    given["metadata"]["labels"] = {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}
    world = PodWorld(given).run_until(5)
    assert [world.state(name) for name in ("i", "a", "b")] == ["Completed", "containerFailed", "containerFailed"]
    assert world.phase == "Failed"
    given["metadata"]["labels"] = {"pod-init-container-running-failed.stage.kwok.x-k8s.io": "true"}
    world = PodWorld(given).run_until(5)
    assert (world.phase, world.state("i"), world.state("a")) == ("Failed", "initContainerError", "PodInitializing")


def test_annotations_that_make_no_sense_are_reported() -> None:
    world = PodWorld(annotated(pod(), run_time="soon")).step()
    assert world.events == ["HollowAnnotationIgnored"] and world.phase == "Running"


def ruled(name: str, action: str, operator: str = "In", policy: str = "Never") -> dict[str, Any]:
    rule = {"action": action, "exitCodes": {"operator": operator, "values": [42]}}
    return container(name, restartPolicy=policy, restartPolicyRules=[rule])


@pytest.mark.parametrize(
    ("code", "operator", "restarts"), [("42", "In", 1), ("1", "In", 0), ("42", "NotIn", 0), ("1", "NotIn", 1)]
)
def test_a_containers_own_rules_come_before_the_policies(code: str, operator: str, restarts: int) -> None:
    given = annotated(pod(restartPolicy="Never", containers=[ruled("c", "Restart", operator)]),
                      run_time="5s", exit_code=code)  # fmt: skip
    world = PodWorld(given).run_until(6)
    assert world.container()["restartCount"] == restarts
    assert world.phase == ("Running" if restarts else "Failed")


def test_one_container_can_restart_them_all_from_the_init_containers_on() -> None:
    given = pod(restartPolicy="Never", initContainers=[container("i")],
                containers=[ruled("watch", "RestartAllContainers"), container("work")])  # fmt: skip
    given = annotated(given, failure="Error", failure_container="watch", exit_code="42", run_time="5s")
    world = PodWorld(given).run_until(5.5)
    assert world.condition("AllContainersRestarting") == ("True", "RestartAllContainersStarted")
    assert world.state("work") == "RestartingAllContainers"
    world.run_until(7)
    assert [world.container(name)["restartCount"] for name in ("i", "watch", "work")] == [1, 1, 1]
    assert [world.state(name) for name in ("i", "watch", "work")] == ["Completed", "running", "running"]
    assert world.condition("AllContainersRestarting") == ("False", "")
    assert world.container("work")["lastState"]["terminated"]["reason"] == "RestartingAllContainers"
    assert world.container("watch")["lastState"]["terminated"]["exitCode"] == 42
    assert world.condition("Ready") == ("True", "")


def test_pods_without_such_a_rule_say_nothing_of_it() -> None:
    world = PodWorld(pod()).step()
    assert "AllContainersRestarting" not in [c["type"] for c in world.pod["status"]["conditions"]]


def test_a_pre_stop_sleep_comes_before_the_end() -> None:
    hook = {"preStop": {"sleep": {"seconds": 5}}}
    world = PodWorld(pod(containers=[container(lifecycle=hook)]), KUBELET).run_until(20)
    start_s = world.now_s
    world.delete().step()
    assert world.due_s == start_s + 7
    world.now_s = world.due_s
    world.step()
    assert world.phase == "Succeeded" and world.deleted


def test_a_pre_stop_sleep_beyond_the_grace_is_cut_off_with_a_kill() -> None:
    hook = {"preStop": {"sleep": {"seconds": 60}}}
    world = PodWorld(pod(containers=[container(lifecycle=hook)]), KUBELET).run_until(20)
    start_s = world.now_s
    world.delete(grace_s=10).step()
    assert world.due_s == start_s + 10
    world.now_s = world.due_s
    world.step()
    assert world.container()["state"]["terminated"]["exitCode"] == 137 and world.phase == "Failed"


def test_sidecars_stop_after_the_main_containers_the_last_first() -> None:
    sidecars = [container("s1", restartPolicy="Always"), container("s2", restartPolicy="Always")]
    world = PodWorld(pod(initContainers=sidecars), KUBELET).run_until(20)
    world.delete().step()
    world.now_s = world.due_s
    world.step()
    ended = {name: world.container(name)["state"]["terminated"]["finishedAt"] for name in ("c", "s1", "s2")}
    assert ended["c"] < ended["s2"] < ended["s1"]


def test_a_termination_message_is_left_behind() -> None:
    world = PodWorld(annotated(pod(restartPolicy="Never"), run_time="1s", termination_message="bye")).run_until(2)
    assert world.container()["state"]["terminated"]["message"] == "bye"


def test_a_pod_that_makes_room_fails_with_the_kubelets_words() -> None:
    world = PodWorld(pod(), KUBELET).run_until(20)
    commands = preempt(world.pod, world.run, world.now_s, DRAW)
    assert [c.reason for c in commands if isinstance(c, EmitEvent)] == ["Preempting", "Killing"]
    world.step()
    world.now_s = world.due_s
    world.step()
    status = world.pod["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Preempting")
    assert status["message"] == "Preempted in order to admit critical pod"
    assert world.condition("DisruptionTarget") == ("True", "TerminationByKubelet")
    assert preempt(world.pod, world.run, world.now_s, DRAW) == ()


def test_a_failed_write_lets_the_next_step_speak_again() -> None:
    world = PodWorld(pod()).step().delete().step()
    failed(world.run)
    world.deleted = False
    assert world.step().deleted


def test_what_the_server_lost_is_sent_again() -> None:
    world = PodWorld(job_pod()).run_until(0)
    before = world.pod
    world.run_until(5)
    assert world.phase == "Succeeded"
    world.pod = replace_status(before)
    assert world.step().phase == "Succeeded"


def replace_status(given: dict[str, Any]) -> dict[str, Any]:
    assert given["status"]["phase"] == "Running"
    return given


def test_states_are_small_enough_for_a_hundred_thousand() -> None:
    world = PodWorld(pod()).step()
    assert not hasattr(world.run, "__dict__")
    assert msgspec.structs.replace(world.run).stage is Stage.ALIVE
