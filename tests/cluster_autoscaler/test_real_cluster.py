"""The autoscaler as a program on a real control plane: up to a hundred nodes, down to none, killed in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.testing.controlplane import COMPONENTS, ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.conftest import run_control_plane
from tests.real_programs import kill, program, until

NODES, PODS = 100, 1000
GROUP = "cluster-autoscaler.kwok.nodegroup"
FOREIGN = "somebodys-own"

pytestmark = [pytest.mark.kubectl, pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("autoscaler-real")]

TEMPLATE = f"""
apiVersion: v1
kind: Node
metadata:
  name: ten
  annotations: {{{GROUP}/name: ten, {GROUP}/max-count: "{NODES + 50}"}}
status:
  capacity: {{cpu: "10", memory: 40Gi, pods: "110"}}
  allocatable: {{cpu: "10", memory: 40Gi, pods: "110"}}
"""
# Empty, Ready and in nobody's group: an autoscaler that did not look whose it is would take it for the best candidate.
FOREIGN_NODE = f"""
apiVersion: v1
kind: Node
metadata: {{name: {FOREIGN}, annotations: {{mine: "yes"}}}}
spec: {{taints: [{{key: mine, effect: NoSchedule}}]}}
status:
  capacity: {{cpu: "10", memory: 40Gi, pods: "110"}}
  allocatable: {{cpu: "10", memory: 40Gi, pods: "110"}}
"""
WORKLOAD = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {PODS}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: c, image: x, resources: {{requests: {{cpu: 950m, memory: 1Gi}}}}}}]
"""
# Ten pods to a node: what upstream's kwok templates set aside for kube-proxy fits beside them.
FLAGS = (
    "--cloud-provider=kwok", "--scan-interval=2s", "--leader-elect=false", "--address=127.0.0.1:0", "--keep-nodes",
    "--scale-down-delay-after-add=5s", "--scale-down-unneeded-time=5s", "--unremovable-node-recheck-timeout=5s",
    "--max-scale-down-parallelism=20", "--node-delete-delay-after-taint=1s",
)  # fmt: skip


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(request, tmp_path_factory.mktemp("autoscaler"), COMPONENTS)


def test_a_thousand_pods_get_a_hundred_nodes_which_go_with_them(
    plane: ControlPlane, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, plane.kubeconfig, tmp_path, timeout_s=120)
    for name, text in (("template", TEMPLATE), ("foreign", FOREIGN_NODE), ("workload", WORKLOAD)):
        (tmp_path / f"{name}.yaml").write_text(text)
    log = tmp_path / "autoscaler.log"

    def ours() -> list[str]:
        lines = kubectl("get", "nodes", "--no-headers").splitlines()
        return [line.split()[0] for line in lines if line.split()[0] != FOREIGN]

    def running() -> int:
        listed = kubectl("get", "pods", "--field-selector=status.phase=Running", "--no-headers", "--ignore-not-found")
        return len(listed.splitlines())

    def autoscaler() -> Any:
        return program(plane, log, "cluster-autoscaler", f"--kwok-templates={tmp_path / 'template.yaml'}", *FLAGS)

    def foreign() -> dict[str, Any]:
        node = json.loads(kubectl("get", "node", FOREIGN, "-o", "json"))
        return {
            "uid": node["metadata"]["uid"], "labels": node["metadata"].get("labels"),
            "annotations": node["metadata"]["annotations"], "spec": node["spec"],
        }  # fmt: skip

    fleets = [
        program(plane, tmp_path / "fleet.log", "fleet", "--profile=fast"),
        program(plane, tmp_path / "theirs.log", "fleet", "--profile=fast",
                "--manage-nodes-with-annotation-selector=mine=yes"),
    ]  # fmt: skip
    with fleets[0], fleets[1]:
        kubectl("apply", "-f", str(tmp_path / "foreign.yaml"))
        kubectl("wait", "--for=condition=Ready", f"node/{FOREIGN}", "--timeout=60s")
        until("only the taint of its owner is left",
              lambda: [taint["key"] for taint in foreign()["spec"].get("taints", ())], lambda keys: keys == ["mine"])
        before = foreign()

        with autoscaler() as first:
            kubectl("apply", "-f", str(tmp_path / "workload.yaml"))
            until("some nodes have come", ours, lambda names: len(names) >= 20)
            kill(first)
        with autoscaler() as second:
            until("all pods run", running, lambda pods: pods == PODS)
            assert len(ours()) == NODES
            kubectl("scale", "deployment", "web", "--replicas=0")
            until("some nodes have gone", ours, lambda names: len(names) <= NODES - 20)
            kill(second)
        with autoscaler() as third:
            until("all nodes have gone", ours, lambda names: not names, by=third)
        assert foreign() == before
        events = kubectl("get", "events", "-A", "-o", "jsonpath={range .items[*]}{.reason}{'\\n'}{end}").split()
        assert events.count("TriggeredScaleUp") > 0 and events.count("ScaleDownEmpty") > 0
