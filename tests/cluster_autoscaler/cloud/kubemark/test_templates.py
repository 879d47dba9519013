"""Templates of hollow nodes: where they come from, what is made of them, and what is refused."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL
from holokube.cluster_autoscaler.cloud.kubemark.templates import HollowTemplate, choose, parse_templates
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.cloud.kubemark.worlds import TEMPLATE

SHIPPED = TEMPLATE.read_text()

# As test/kubemark/resources of Kubernetes describes it: another program, another way to write the arguments.
UPSTREAM = """
apiVersion: v1
kind: ReplicationController
metadata: {name: hollow-node, labels: {name: hollow-node, autoscaling.k8s.io/nodegroup: mig}}
spec:
  replicas: 3
  selector: {name: hollow-node}
  template:
    metadata: {labels: {name: hollow-node, autoscaling.k8s.io/nodegroup: mig}}
    spec:
      containers:
      - name: hollow-kubelet
        image: kubemark
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        command: [/go-runner, -log-file=/var/log/kubelet-$(NODE_NAME).log, /kubemark, --morph=kubelet,
                  --name=$(NODE_NAME), "--node-labels=autoscaling.k8s.io/nodegroup=mig,pool=x", --max-pods=40,
                  --extended-resources=nvidia.com/gpu=1]
      - name: hollow-proxy
        image: kubemark
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        command: [/kubemark, --morph=proxy, --name=$(NODE_NAME)]
"""


def template(text: str = SHIPPED) -> HollowTemplate:
    (found,) = parse_templates(text, "file.yaml")
    return found


def test_a_new_controller_has_one_replica_and_selects_its_own_pod_alone() -> None:
    made = template().controller("a-xyz", "a", "kubemark")
    ours = {GROUP_LABEL: "a", "name": "a-xyz"}
    assert made["metadata"] == {"name": "a-xyz", "namespace": "kubemark", "labels": ours}
    assert made["spec"]["replicas"] == 1 and made["spec"]["selector"] == ours
    assert made["spec"]["template"]["metadata"]["labels"] == {"app.kubernetes.io/name": "hollow-node", **ours}


def test_the_shipped_template_is_a_node_of_any_group() -> None:
    template().check("a")
    node = template().node_info("a").node
    assert node["status"]["capacity"] == {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "200Gi", "pods": "110"}
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["metadata"]["labels"][GROUP_LABEL] == "a"
    assert node["spec"] == {"providerID": "kubemark://a-template"}


def test_a_hollow_node_of_kubernetes_own_kubemark_is_understood() -> None:
    found = template(UPSTREAM)
    found.check("mig")
    node = found.node_info("mig").node
    assert node["status"]["capacity"] == {
        "cpu": "1", "memory": "3840Mi", "ephemeral-storage": "0", "pods": "40", "nvidia.com/gpu": "1",
    }  # fmt: skip
    assert node["metadata"]["labels"]["pool"] == "x"
    with pytest.raises(CloudError, match=f"would not carry the label {GROUP_LABEL}=other"):
        found.check("other")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--node-name=$(NODE_NAME)", "--node-name=fixed", "a node of the name 'fixed'"),
        ("--node-name=$(NODE_NAME)", "--register=1", "no container has a node's name"),
        ("--provider-id=kubemark://$(NODE_NAME)", "--provider-id=gce://$(NODE_NAME)", "the provider id 'gce://"),
        ("--node-capacity=cpu=4", "--node-capacity=cpu=four", "--node-capacity: cpu=four"),
        ("nodegroup=$(NODE_GROUP)", "nodegroup=b", f"would not carry the label {GROUP_LABEL}=a"),
    ],
)
def test_a_pod_whose_node_would_not_be_known_again_is_refused(old: str, new: str, said: str) -> None:
    assert old in SHIPPED
    with pytest.raises(CloudError) as caught:
        template(SHIPPED.replace(old, new)).check("a")
    assert said in caught.value.message and "file.yaml" in caught.value.message
    assert caught.value.kind is ErrorKind.CONFIGURATION and "deploy/kubemark" in caught.value.hint


def test_a_size_in_a_profile_is_out_of_reach_and_said_so() -> None:
    hidden = SHIPPED.replace("--profile=kubelet", "--profile=/etc/profile.yaml")
    assert template(hidden).node_info("a").node["status"]["capacity"]["cpu"] == "4"
    nothing = hidden.replace("--node-capacity=cpu=4,memory=16Gi", "--node-capacity=cpu=4")
    with pytest.raises(NotImplementedByProvider, match=r"is in the profile /etc/profile\.yaml"):
        template(nothing).node_info("a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "file.yaml: "),
        ("", "is empty"),
        ("just text", "holds no object"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: p}}", "holds v1 Pod"),
        ("{apiVersion: v1, kind: ReplicationController}", "not a v1 ReplicationController"),
        (f"{SHIPPED}\n---\n{SHIPPED}", "two templates for all groups"),
        (f"{UPSTREAM}\n---\n{UPSTREAM}", "two templates for group mig"),
    ],
)
def test_a_file_that_holds_no_templates_is_refused(text: str, said: str) -> None:
    with pytest.raises(CloudError) as caught:
        parse_templates(text, "file.yaml")
    assert said in caught.value.message and caught.value.kind is ErrorKind.CONFIGURATION


def test_documents_and_lists_are_read_alike() -> None:
    listed = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ReplicationController, metadata: {name: x}}]}"
    assert [found.group for found in parse_templates(f"{UPSTREAM}\n---\n{listed}\n---\n", "f")] == ["mig", ""]


def existing(name: str, group: str, created: str = "2026-01-01T00:00:00Z") -> JsonObject:
    made = template().controller(name, group, "kubemark")
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": created}}


def test_a_groups_own_template_comes_first_then_what_runs_then_what_is_for_all_then_another_group() -> None:
    own, everybody = template(UPSTREAM), template()
    runs, other = existing("mig-1", "mig"), existing("other-1", "other", "2025-01-01T00:00:00Z")

    def source(*given: HollowTemplate, controllers: list[JsonObject]) -> str | None:
        found = choose("mig", given, controllers)
        return None if found is None else found.source

    assert choose("mig", [everybody, own], [runs]) is own
    assert source(everybody, controllers=[other, runs]) == "ReplicationController mig-1"
    assert choose("mig", [everybody], [other]) is everybody
    assert source(controllers=[other]) == "ReplicationController other-1"
    assert source(controllers=[]) is None


def test_of_several_that_run_the_oldest_is_taken() -> None:
    newer, older = existing("a", "g", "2026-02-01T00:00:00Z"), existing("b", "g", "2026-01-01T00:00:00Z")
    found = choose("g", [], [newer, older])
    assert found is not None and found.source == "ReplicationController b"
