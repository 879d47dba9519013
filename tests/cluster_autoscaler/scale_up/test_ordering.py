"""The order of pods in an estimate."""

from __future__ import annotations

from dataclasses import dataclass

from holokube.cluster_autoscaler.scale_up.ordering import largest_first, with_shortcut_last
from tests.cluster_autoscaler.scale_up.objects import JsonObject, node, pods_of


@dataclass
class Group:
    pods: list[JsonObject]

    @property
    def owner(self) -> str:
        owner: str = self.pods[0]["metadata"]["ownerReferences"][0]["name"]
        return owner


def apart(app: str, key: str) -> JsonObject:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_the_share_of_cpu_and_of_memory_are_added_up() -> None:
    groups = [
        Group(pods_of("half-cpu", 1, "2", "0")), Group(pods_of("more-of-both", 1, "1500m", "4Gi")),
        Group(pods_of("little", 1, "1", "1Gi")), Group(pods_of("same-as-half", 1, "0", "8Gi")),
    ]  # fmt: skip
    ordered = [group.owner for group in largest_first(groups, node("n", "4", "16Gi"))]
    assert ordered == ["more-of-both", "half-cpu", "same-as-half", "little"]


def test_what_a_node_does_not_offer_does_not_count() -> None:
    groups = [Group(pods_of("cpu", 1, "4", "0")), Group(pods_of("memory", 1, "0", "1Gi"))]
    ordered = [group.owner for group in largest_first(groups, node("n", "0", "16Gi"))]
    assert ordered == ["memory", "cpu"]


def test_the_group_that_saves_the_most_placements_comes_last() -> None:
    groups = [Group(pods_of("many", 40, "1")), Group(pods_of("few", 4, "1")), Group(pods_of("one", 1, "1"))]
    ordered, found = with_shortcut_last(groups, node("n", "4"))
    assert (found, [group.owner for group in ordered]) == (True, ["few", "one", "many"])


def test_pods_apart_by_host_need_a_node_each() -> None:
    groups = [
        Group(pods_of("apart", 20, "10m", affinity=apart("apart", "kubernetes.io/hostname"))),
        Group(pods_of("x", 20, "1")),
    ]  # fmt: skip
    ordered, _ = with_shortcut_last(groups, node("n", "4"))
    assert [group.owner for group in ordered] == ["x", "apart"]


def test_pods_that_may_fit_again_later_are_not_counted() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    groups = [
        Group(pods_of("spread", 30, topologySpreadConstraints=[constraint])),
        Group(pods_of("zonal", 30, affinity=apart("zonal", "topology.kubernetes.io/zone"))),
    ]  # fmt: skip
    ordered, found = with_shortcut_last(groups, node("n", "4"))
    assert (found, [group.owner for group in ordered]) == (False, ["spread", "zonal"])
