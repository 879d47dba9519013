"""What a new node of each group will look like."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.objects import time_s
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.taints import TaintConfig, to_be_deleted
from holokube.cluster_autoscaler.templates import (
    TEMPLATE_LABEL,
    UPCOMING_ANNOTATION,
    TemplateNodes,
    daemon_pods,
    fresh_copy,
    is_good_model,
    upcoming_copy,
)
from holokube.kube.sizing import ENABLED_LABEL, PREFIX
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import NOW_S, annotated, daemon_set, owned_pod, ready_node
from tests.packing.objects import make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"


class World:
    """A cluster of nodes whose names begin with the id of their group."""

    def __init__(self, **options: Any) -> None:
        self.templates = TemplateNodes(AutoscalerOptions(**options))
        self.snapshot = ClusterSnapshot()
        self.config = TaintConfig.of(AutoscalerOptions(**options))

    def compute(
        self,
        *nodes: JsonObject,
        pods: tuple[JsonObject, ...] = (),
        daemon_sets: tuple[JsonObject, ...] = (),
        provider: dict[str, NodeInfo | None] | None = None,
        now_s: float = NOW_S,
    ) -> dict[str, NodeInfo]:
        self.snapshot.set_cluster_state(nodes, pods)
        groups = [
            GroupView(id=group_id, min_size=0, max_size=10, target_size=0, template=template)
            for group_id, template in (provider if provider is not None else {"g": None}).items()
        ]
        names = [node["metadata"]["name"] for node in nodes]
        group_of_node = {name: name.partition("-")[0] for name in names if "-" in name}
        return self.templates.compute(
            groups, nodes, daemon_sets, self.config, now_s, snapshot=self.snapshot, group_of_node=group_of_node
        )


def names(info: NodeInfo) -> list[str]:
    return [pod["metadata"]["name"].rpartition("-")[0] for pod in info.pods]


@pytest.mark.parametrize(
    ("node", "is_good"),
    [
        (ready_node("n"), True),
        (ready_node("n", unschedulable=True), False),
        (ready_node("n", taints=[to_be_deleted(1.0)]), False),
        (ready_node("n", since="2027-01-15T07:59:00Z"), False),
        (ready_node("n", since="2027-01-15T07:58:59Z"), True),
        (make_node("n"), False),
    ],
)
def test_a_good_model_has_been_well_for_more_than_a_minute(node: JsonObject, is_good: bool) -> None:
    assert time_s("2027-01-15T08:00:00Z") == NOW_S
    assert is_good_model(node, NOW_S) is is_good


def test_the_first_good_node_of_a_group_is_its_model() -> None:
    found = World().compute(
        ready_node("g-0", unschedulable=True, labels={"which": "0"}),
        ready_node("g-1", labels={"which": "1"}),
        ready_node("g-2", labels={"which": "2"}),
        ready_node("nobodys", labels={"which": "3"}),
    )
    assert list(found) == ["g"]
    labels = found["g"].node["metadata"]["labels"]
    assert labels["which"] == "1"
    assert labels[TEMPLATE_LABEL] == "true"
    assert labels[HOSTNAME] == found["g"].node["metadata"]["name"]
    assert found["g"].node["metadata"]["name"].startswith("template-node-for-g-")


def test_taints_of_a_passing_state_are_not_those_of_new_nodes() -> None:
    passing = ("node.kubernetes.io/memory-pressure", "DeletionCandidateOfClusterAutoscaler", "starting", "busy")
    keys = ("dedicated", *passing)
    node = ready_node("g-0", taints=[{"key": key, "effect": "NoSchedule"} for key in keys])
    found = World(startup_taint=("starting",), status_taint=("busy",)).compute(node)
    assert found["g"].node["spec"]["taints"] == [{"key": "dedicated", "effect": "NoSchedule"}]
    assert len(node["spec"]["taints"]) == 5


def test_only_mirrors_and_daemons_of_a_live_node_are_on_new_ones() -> None:
    found = World().compute(
        ready_node("g-0"),
        pods=(
            owned_pod("app", node="g-0"),
            owned_pod("daemon", "ds", kind="DaemonSet", node="g-0"),
            owned_pod("going", "other", kind="DaemonSet", node="g-0", deleted=True),
            annotated(make_pod("mirror", node="g-0"), kubernetes_io__config_mirror="x"),
        ),
    )
    info = found["g"]
    assert names(info) == ["daemon", "mirror"]
    assert {pod["spec"]["nodeName"] for pod in info.pods} == {info.node["metadata"]["name"]}
    assert all("uid" not in pod["metadata"] for pod in info.pods)


CRITICAL = {"priorityClassName": "system-node-critical"}
DAEMON_SETS = (
    daemon_set("running"),
    daemon_set("pending"),
    daemon_set("critical", **CRITICAL),
    daemon_set("patient", **CRITICAL, preemptionPolicy="Never"),
    daemon_set("elsewhere", **CRITICAL, nodeSelector={"disk": "ssd"}),
)


@pytest.mark.parametrize(
    ("force_ds", "expected"),
    [(False, ["running", "critical-pod"]), (True, ["running", "pending-pod", "critical-pod", "patient-pod"])],
)
def test_missing_daemons_are_added_if_forced_or_if_they_push_others_out(force_ds: bool, expected: list[str]) -> None:
    running = owned_pod("running", "running", kind="DaemonSet", node="g-0")
    found = World(force_ds=force_ds).compute(ready_node("g-0"), pods=(running,), daemon_sets=DAEMON_SETS)
    assert names(found["g"]) == expected


def test_all_fitting_daemons_are_on_a_node_of_the_providers() -> None:
    template = NodeInfo(ready_node("machine"), (make_pod("app"), owned_pod("own", "running", kind="DaemonSet")))
    found = World().compute(daemon_sets=DAEMON_SETS, provider={"g": template})
    assert names(found["g"]) == ["own", "pending-pod", "critical-pod", "patient-pod"]


def test_old_names_of_labels_are_added_to_a_node_of_the_providers() -> None:
    labels = {
        "node.kubernetes.io/instance-type": "large",
        "topology.kubernetes.io/zone": "z",
        "topology.kubernetes.io/region": "r",
    }
    found = World().compute(provider={"g": NodeInfo(ready_node("machine", labels=labels))})
    given = found["g"].node["metadata"]["labels"]
    assert given["beta.kubernetes.io/instance-type"] == "large"
    assert given["failure-domain.beta.kubernetes.io/zone"] == "z"
    assert given["failure-domain.beta.kubernetes.io/region"] == "r"


def test_a_live_node_is_remembered_when_the_group_is_empty_until_it_expires() -> None:
    world = World(node_info_cache_expire_time_s=100.0)
    provider: dict[str, NodeInfo | None] = {"g": NodeInfo(ready_node("machine", labels={"which": "provider"}))}
    live = world.compute(ready_node("g-0", labels={"which": "live"}), provider=provider)["g"]
    assert world.compute(provider=provider, now_s=NOW_S + 100)["g"] == live
    later = world.compute(provider=provider, now_s=NOW_S + 101)["g"]
    assert later.node["metadata"]["labels"]["which"] == "provider"


def test_a_group_that_is_gone_is_forgotten() -> None:
    world = World()
    world.compute(ready_node("g-0"))
    assert world.compute(provider={"other": None}) == {}
    assert world.compute() == {}


def test_a_bad_node_is_the_last_resort() -> None:
    world, bad = World(), ready_node("g-0", unschedulable=True, labels={"which": "bad"})
    found = world.compute(bad)["g"]
    assert found.node["metadata"]["labels"]["which"] == "bad"
    assert found.node["spec"]["unschedulable"] is True
    assert world.compute() == {}
    provided = world.compute(bad, provider={"g": NodeInfo(ready_node("machine"))})["g"]
    assert "which" not in provided.node["metadata"]["labels"]


def test_a_cordoned_model_can_be_taken_for_a_schedulable_one() -> None:
    bad = ready_node("g-0", unschedulable=True)
    assert not World(scale_from_unschedulable=True).compute(bad)["g"].node["spec"].get("unschedulable")


def test_every_template_has_a_name_of_its_own() -> None:
    world, provider = World(), NodeInfo(ready_node("machine"))
    first = world.compute(provider={"a": provider, "b": provider})
    second = world.compute(provider={"a": provider, "b": provider})
    assert len({info.node["metadata"]["name"] for info in (*first.values(), *second.values())}) == 4


def test_daemons_go_to_nodes_whose_labels_and_taints_they_bear_whatever_room_there_is() -> None:
    node = make_node("n", {"a": "b"}, cpu="0", unschedulable=True, taints=[
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, {"key": "x", "effect": "NoSchedule"},
    ])  # fmt: skip
    tolerant: JsonObject = {"tolerations": [{"key": "x", "operator": "Exists"}]}
    found = daemon_pods(node, [
        daemon_set("tolerant", requests={"cpu": "1"}, **tolerant),
        daemon_set("intolerant"),
        daemon_set("selective", nodeSelector={"a": "c"}, **tolerant),
        daemon_set("bound", nodeName="other", **tolerant),
    ])  # fmt: skip
    assert [pod["metadata"]["name"] for pod in found] == ["tolerant-pod"]
    owner = found[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("DaemonSet", "uid-of-tolerant", True)


@pytest.mark.parametrize(("size_daemons", "cpu"), [(True, "400m"), (False, "1")])
def test_daemons_that_ask_for_it_are_sized_by_the_node(size_daemons: bool, cpu: str) -> None:
    sized = daemon_set("sized", requests={"cpu": "1"})
    metadata = sized["spec"]["template"]["metadata"]
    metadata["labels"][ENABLED_LABEL] = "true"
    metadata["annotations"] = {f"{PREFIX}request-cpu-fraction": "0.1"}
    world = World(size_daemons=size_daemons)
    found = world.compute(daemon_sets=(sized,), provider={"g": NodeInfo(ready_node("machine", cpu="4"))})
    assert found["g"].pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == cpu


def test_copies_of_a_template_differ_in_their_names_alone() -> None:
    template = NodeInfo(make_node("t", {"a": "b"}), (owned_pod("d", kind="DaemonSet", node="t"),))
    copy = fresh_copy(template, "e-0")
    assert copy.node["metadata"]["name"] == copy.node["metadata"]["labels"][HOSTNAME] == "t-e-0"
    assert copy.node["metadata"]["labels"]["a"] == "b" and copy.node["status"] is template.node["status"]
    assert copy.pods[0]["metadata"]["name"] == "d-e-0" and copy.pods[0]["spec"]["nodeName"] == "t-e-0"
    assert template.node["metadata"]["name"] == "t" and template.pods[0]["spec"]["nodeName"] == "t"
    coming = upcoming_copy(template, "upcoming-0").node["metadata"]
    assert coming["annotations"] == {UPCOMING_ANNOTATION: "true"} and coming["name"] == "t-upcoming-0"


def test_what_happens_to_the_daemons_of_a_model_is_seen_in_the_next_template() -> None:
    world, node = World(), ready_node("g-0")
    daemons = [owned_pod(f"d{i}", f"ds{i}", kind="DaemonSet", nodeName="g-0") for i in range(2)]
    going = {**daemons[0], "metadata": {**daemons[0]["metadata"], "deletionTimestamp": "2027-01-15T08:00:00Z"}}
    other = owned_pod("other", nodeName="g-0")
    for pods, expected in (
        (daemons[:1], ["d0"]), (daemons[:1], ["d0"]), (daemons, ["d0", "d1"]), ([going, other, daemons[1]], ["d1"]),
        ([other], []), ([other], []),
    ):  # fmt: skip
        assert names(world.compute(node, pods=tuple(pods))["g"]) == expected
