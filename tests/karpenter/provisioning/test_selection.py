from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.provisioning.daemons import daemon_pod, daemon_sets_of
from holokube.karpenter.provisioning.selection import Selector, moving_pods, select, why_ignored
from holokube.karpenter.scheduling.problem import NO_STORAGE, Storage
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from holokube.kube.types import JsonObject
from tests.karpenter.lab import small_catalog
from tests.karpenter.objects import NOW_S, claim, node, pending, pod

WELL_KNOWN = small_catalog().well_known
VOLUMES = VolumeReader(NO_STORAGE)


PINNED = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]


def required(*expressions: JsonObject, **term: Any) -> JsonObject:
    terms = [{"matchExpressions": list(expressions), **term}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_pods_that_wait_for_a_node_are_chosen() -> None:
    others = [
        pod("runs", node_name="n"), pod("fresh", phase="Pending"), pending("daemon", owner="DaemonSet"),
        pending("static", owner="Node"),
    ]  # fmt: skip
    found = select([*others, pending("waits")], VOLUMES, WELL_KNOWN)
    assert [one["metadata"]["name"] for one in found.pending] == ["waits"]
    assert found.ignored == []


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({"nodeSelector": {"karpenter.sh/made-up": "x"}}, "karpenter.sh/made-up"),
        ({"affinity": required({"key": "a", "operator": "Gt", "values": ["many"]})}, "Gt"),
        ({"affinity": required(matchFields=PINNED)}, "matchFields"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}, "default/gone not found"),
    ],
)
def test_a_pod_that_asks_for_what_cannot_be_read_is_left_out_with_a_reason(parts: JsonObject, word: str) -> None:
    found = select([pending(**parts)], VOLUMES, WELL_KNOWN)
    assert found.pending == []
    assert word in found.ignored[0].reason
    assert not found.ignored[0].is_wanted


def test_a_pod_that_keeps_off_our_nodes_wants_to_be_left_out() -> None:
    found = why_ignored(
        pending(affinity=required({"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"})), VOLUMES, WELL_KNOWN
    )
    assert found is not None
    assert found.is_wanted


def test_the_very_same_pods_are_sorted_once_unless_volumes_have_a_say() -> None:
    waiting = pending("waiting")
    mounting = pending("mounting", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    selector = Selector()
    plain = (waiting, pod("running", node_name="n"))
    once = selector.select(plain, VOLUMES, WELL_KNOWN)
    assert once.pending == [waiting]
    assert selector.select(plain, VOLUMES, WELL_KNOWN) is once
    assert selector.select((waiting,), VOLUMES, WELL_KNOWN) is not once
    both = (waiting, mounting)
    first = selector.select(both, VOLUMES, WELL_KNOWN)
    data = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"storageClassName": ""}}
    second = selector.select(both, VolumeReader(Storage({"default/data": data})), WELL_KNOWN)
    assert first is not second
    assert [one.reason for one in first.ignored] != [one.reason for one in second.ignored]


def test_pods_of_nodes_on_their_way_out_have_to_move_unless_something_holds_them() -> None:
    pods = (
        pod("plain"), pod("daemon", owner="DaemonSet"), pod("done", phase="Succeeded"),
        pod("held", annotations={"karpenter.sh/do-not-disrupt": "true"}), pod("guarded", labels={"app": "g"}),
        pod("leaving", deleted_s=10), pod("ordinal", owner="StatefulSet", deleted_s=10),
    )  # fmt: skip
    limits = EvictionLimits([{
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "g"}}}, "status": {"disruptionsAllowed": 0},
    }])  # fmt: skip
    going = StateNode(node("a"), claim(deleted_s=0), pods)
    stays = StateNode(node("b"), claim(), (pod("elsewhere"),))
    found = moving_pods([going, stays], limits, NOW_S)
    assert [one["metadata"]["name"] for one in found] == ["plain", "ordinal"]


DAEMONS: JsonObject = {
    "metadata": {"name": "agent", "namespace": "kube-system", "uid": "uid-DaemonSet"},
    "spec": {"template": {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c"}], "affinity": required({"key": "os", "operator": "Exists"})},
    }},
}  # fmt: skip


def test_a_daemon_set_without_pods_is_known_by_its_template() -> None:
    made = daemon_pod(DAEMONS, [])
    assert (made["metadata"]["namespace"], made["metadata"]["labels"]) == ("kube-system", {"app": "agent"})
    assert made["spec"]["affinity"] == required({"key": "os", "operator": "Exists"})
    assert list(daemon_sets_of(made)) == ["uid-DaemonSet"]


def test_the_newest_pod_of_a_daemon_set_shows_what_admission_made_of_it() -> None:
    pinned = required(matchFields=PINNED)
    old, new = (
        pod(name, owner="DaemonSet", node_name="n", overhead={"cpu": cpu}, affinity=pinned)
        for name, cpu in (("old", "1"), ("new", "2"))
    )
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    made = daemon_pod(DAEMONS, [new, old])
    assert made["spec"]["overhead"] == {"cpu": "2"}
    assert "nodeName" not in made["spec"]
    assert made["spec"]["affinity"] == required({"key": "os", "operator": "Exists"})
    free = {**DAEMONS, "spec": {"template": {"spec": {"containers": []}}}}
    assert "affinity" not in daemon_pod(free, [new])["spec"]
