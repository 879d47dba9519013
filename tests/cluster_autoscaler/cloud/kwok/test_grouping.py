"""Which templates make which groups."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.kwok.grouping import POOL_LABELS, Grouping, GroupPlan, Template, plan_groups
from holokube.cluster_autoscaler.cloud.kwok.node_template import node_of
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.cloud.kwok.worlds import template

LABEL = Grouping(label_key="kwok-nodegroup")


class Planned:
    """Groups and what was said about them."""

    def __init__(self, *nodes: Any, grouping: Grouping | None = None, taint: bool = False, live: bool = False) -> None:
        self.problems = Problems()
        templates = [Template(node, f"file, line {number}") for number, node in enumerate(nodes, 1)]
        self.plans: list[GroupPlan] = plan_groups(
            templates, grouping or Grouping(), self.problems, taint=taint, live=live
        )

    @property
    def ids(self) -> list[str]:
        return [plan.id for plan in self.plans]


def labelled(name: str, **labels: str) -> JsonObject:
    return template(name, labels={key.replace("__", "/").replace("_", "-"): text for key, text in labels.items()})


def test_groups_come_in_the_order_of_their_templates() -> None:
    assert Planned(template("x", "c"), template("y", "a"), template("z", "b")).ids == ["c", "a", "b"]


def test_a_label_that_the_configuration_names_is_the_group() -> None:
    planned = Planned(labelled("n1", kwok_nodegroup="a"), labelled("n2", kwok_nodegroup="b"), grouping=LABEL)
    assert planned.ids == ["a", "b"] and planned.problems.warnings == []


def test_an_annotation_can_be_the_group_too() -> None:
    node = template("n1")
    node["metadata"]["annotations"]["eks.amazonaws.com/nodegroup"] = "a"
    assert Planned(node, grouping=Grouping(annotation_key="eks.amazonaws.com/nodegroup")).ids == ["a"]


def test_the_annotation_with_the_name_comes_first_in_both_rules() -> None:
    node = template("n1", "mine", labels={"kwok-nodegroup": "a", "cloud.google.com/gke-nodepool": "p"})
    assert Planned(node, grouping=LABEL).ids == ["mine"]
    assert Planned(node).ids == ["mine"]


def test_nodes_without_the_label_are_told_by_name_and_key() -> None:
    planned = Planned(labelled("n1", kwok_nodegroup="a"), labelled("n2", kwok_nodegrop="a"), grouping=LABEL)
    assert planned.ids == ["a"]
    (text,) = planned.problems.warnings
    assert text == (
        "node n2 (file, line 2): has no label kwok-nodegroup, so it makes no group (did you mean kwok-nodegrop?)"
    )


def test_a_key_that_no_node_has_is_an_error() -> None:
    planned = Planned(labelled("n1", a="b"), labelled("n2"), grouping=LABEL)
    assert planned.ids == []
    assert len(planned.problems.errors) == 2 and "node n1" in planned.problems.errors[0]


@pytest.mark.parametrize("label", POOL_LABELS)
def test_pools_of_known_clouds_are_found_and_renamed(label: str) -> None:
    assert Planned(template("n1", labels={label: "pool-1"})).ids == ["pool-1-kwok"]


def test_pools_may_be_told_by_annotations() -> None:
    node = template("n1")
    node["metadata"]["annotations"]["oci.oraclecloud.com/node-pool-id"] = "ocid1"
    assert Planned(node).ids == ["ocid1-kwok"]


def test_nodes_of_the_proposals_gke_example_make_its_two_groups() -> None:
    nodes = [
        template("gke-cluster-1-default-pool-abc", labels={"cloud.google.com/gke-nodepool": "default-pool"}),
        template("gke-cluster-1-default-pool-xyz", labels={"cloud.google.com/gke-nodepool": "default-pool"}),
        template("gke-cluster-1-pool-1-lmn", labels={"cloud.google.com/gke-nodepool": "pool-1"}),
    ]
    planned = Planned(*nodes)
    assert planned.ids == ["default-pool-kwok", "pool-1-kwok"]
    first = planned.plans[0]
    assert first.template["metadata"]["name"] == "kwok-fake-gke-cluster-1-default-pool-abc"
    assert (first.settings.min_size, first.settings.max_size, first.settings.desired_size) == (0, 200, 0)


def test_without_a_pool_the_instance_type_and_zone_make_a_group() -> None:
    kind, zone = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
    planned = Planned(
        template("n1", labels={kind: "m5.large", zone: "a"}),
        template("n2", labels={kind: "m5.large", zone: "b"}),
        template("n3", labels={kind: "m5.large", zone: "a"}),
        template("n4", labels={kind: "c5.large"}),
    )
    assert planned.ids == ["m5.large-a-kwok", "m5.large-b-kwok", "c5.large-kwok"]


def test_nodes_of_the_proposals_kind_example_make_a_group_each_that_a_restart_finds_again() -> None:
    nodes = [template("kind-control-plane"), template("worker-node-1")]
    ids = Planned(*nodes).ids
    assert len(set(ids)) == 2 and all(name.startswith("nodegroup-") for name in ids)
    assert Planned(*reversed(nodes)).ids == ids[::-1]


def test_a_second_node_of_a_group_adds_nothing() -> None:
    planned = Planned(template("n1", "a", cpu="4"), template("n2", "a", cpu="8"))
    assert planned.ids == ["a"] and planned.problems.warnings == []
    assert planned.plans[0].template["status"]["allocatable"]["cpu"] == "4"


def test_a_second_node_that_says_something_else_is_told() -> None:
    kind = "node.kubernetes.io/instance-type"
    planned = Planned(
        template("n1", "a", labels={kind: "m5.large"}, max_count=3),
        template("n2", "a", labels={kind: "m5.large"}, max_count=3),
        template("n3", "a", labels={kind: "c5.large"}, max_count=4),
    )
    size, shape = planned.problems.warnings
    assert "node n3" in size and "max-count is ignored" in size and "node n1" in size
    assert "c5.large" in shape and "m5.large" in shape


def test_live_nodes_that_a_provider_made_are_no_templates() -> None:
    real = template("real", labels={"cloud.google.com/gke-nodepool": "p"})
    (plan,) = Planned(real, taint=True, live=True).plans
    ours = node_of(plan.template, "p-kwok-abcde")
    again = Planned(ours, real, taint=True, live=True)
    assert again.ids == ["p-kwok"]
    assert again.plans[0].template == plan.template


def test_a_group_of_which_only_our_nodes_are_left_lives_on() -> None:
    (plan,) = Planned(template("real", "g", min_count=1), taint=True, live=True).plans
    again = Planned(node_of(plan.template, "g-abcde"), taint=True, live=True)
    assert again.ids == ["g"]
    assert again.plans[0].settings == plan.settings
    assert again.plans[0].template["spec"]["taints"] == plan.template["spec"]["taints"]


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("labels", {"a": 1}, "metadata.labels[a] is 1, not a string: write it in quotes"),
        ("annotations", {"cluster-autoscaler.kwok.nodegroup/min-count": 2}, "write it in quotes"),
        ("labels", ["a"], "metadata.labels must be an object"),
    ],
)
def test_a_node_of_the_wrong_shape_is_an_error_that_names_it(part: str, value: Any, message: str) -> None:
    node = template("n1")
    node["metadata"][part] = value
    (text,) = Planned(node).problems.errors
    assert text.startswith("node n1 (file, line 1): ") and message in text


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
def test_parts_that_are_no_objects_are_errors(part: str) -> None:
    (text,) = Planned({**template("n1"), part: [1]}).problems.errors
    assert f"{part} must be an object" in text
