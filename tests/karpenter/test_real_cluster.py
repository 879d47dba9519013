"""Karpenter as a program on a real control plane, killed again and again at points that a seed draws.

A pool is applied and 500 pods wait; nodes come, pods run; pods go, and so do nodes, but for those whose pods are held.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.testing.controlplane import COMPONENTS, ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.conftest import run_control_plane
from tests.real_programs import kill, program, until

PODS = 500
SEEDS = range(2)
KILLS_UP, KILLS_DOWN = 3, 3
LONGEST_LIFE_S = 20.0

pytestmark = [pytest.mark.kubectl, pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("karpenter-real")]

CATALOG = """\
name,cpu,memory,price,zone,pods
small,2,8Gi,0.10,zone-a|zone-b,110
medium,4,16Gi,0.19,zone-a|zone-b,110
large,8,32Gi,0.36,zone-a|zone-b,110
"""
MANIFESTS = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {{name: {pool}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {pool}}}
spec:
  template:
    spec:
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: {pool}}}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1s
    budgets: [{{nodes: 100%}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: guarded}}
spec: {{maxUnavailable: 0, selector: {{matchLabels: {{app: guarded}}}}}}
"""
# Pods go to nodes of this pool alone: the cluster may have others.
WORKLOAD = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {annotations}}}
    spec:
      nodeSelector: {{karpenter.sh/nodepool: {pool}}}
      terminationGracePeriodSeconds: 1
      containers: [{{name: c, image: x, resources: {{requests: {{cpu: {cpu}, memory: 64Mi}}}}}}]
"""
HELD = ("kept", "guarded")


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(request, tmp_path_factory.mktemp("karpenter"), COMPONENTS)


class Site:
    """One pool on the cluster, and what tests ask about it."""

    def __init__(self, plane: ControlPlane, kubectl: Kubectl, folder: Path, pool: str) -> None:
        self._plane, self.kubectl, self._folder, self.pool = plane, kubectl, folder, pool
        self.selector = f"--selector=karpenter.sh/nodepool={pool}"
        (folder / "catalog.csv").write_text(CATALOG)

    def karpenter(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return program(
            self._plane, self._folder / "karpenter.log", "karpenter", f"--catalog={self._folder / 'catalog.csv'}",
            "--disable-leader-election", "--metrics-port=0", "--health-probe-port=0", "--batch-max-duration=3s",
        )  # fmt: skip

    def killed(self, rng: Rng, is_time: Callable[[], bool]) -> None:
        """One run of Karpenter that comes to a violent end, a little after some point of its work is reached."""
        with self.karpenter() as process:
            deadline_s = time.monotonic() + LONGEST_LIFE_S
            while not is_time() and time.monotonic() < deadline_s:
                time.sleep(0.2)
            time.sleep(rng.uniform(0.0, 2.0))
            kill(process)

    def apply(self, text: str) -> None:
        self.kubectl("apply", "-f", "-", stdin=text)

    def workload(self, name: str, replicas: int, cpu: str, annotations: str = "{}") -> str:
        return WORKLOAD.format(name=name, replicas=replicas, cpu=cpu, annotations=annotations, pool=self.pool)

    def items(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kubectl.json("get", kind, self.selector)["items"]
        return found

    def names(self, kind: str) -> list[str]:
        return self.kubectl("get", kind, self.selector, "-o", "name").split()

    def running(self, *apps: str) -> dict[str, str]:
        """Uid and node of pods that run."""
        listed = self.kubectl.json(
            "get", "pods", f"--selector=app in ({','.join(apps)})", "--field-selector=status.phase=Running"
        )["items"]
        return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in listed}


def test_nodes_come_with_pods_and_go_with_them_however_often_karpenter_is_killed(
    plane: ControlPlane, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, plane.kubeconfig, tmp_path, timeout_s=120)
    # What follows waits for the definitions, which Karpenter itself brings along.
    first = Site(plane, kubectl, tmp_path, "first")
    with first.karpenter():
        until("there are NodePools", lambda: kubectl.run("get", "nodepools,kwoknodeclasses").returncode,
              lambda status: status == 0)  # fmt: skip
        # Once it says that it works, a signal ends it properly.
        until("Karpenter works", (tmp_path / "karpenter.log").read_text, lambda told: "karpenter works on" in told)
    selector = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
    with program(plane, tmp_path / "fleet.log", "fleet", "--profile=fast", selector):
        for seed in SEEDS:
            _come_and_go(Site(plane, kubectl, tmp_path, f"pool-{seed}"), Rng(f"kills/{seed}"))


def _come_and_go(site: Site, rng: Rng) -> None:
    site.apply(MANIFESTS.format(pool=site.pool))
    site.apply(
        site.workload("web", PODS, "900m") + site.workload("guarded", 1, "100m")
        + site.workload("kept", 1, "100m", '{karpenter.sh/do-not-disrupt: "true"}')
    )  # fmt: skip
    for reached in sorted(rng.uniform(0.0, 0.8) for _ in range(KILLS_UP)):
        site.killed(rng, lambda reached=reached: len(site.names("nodeclaims")) > reached * PODS / 8)  # type: ignore[misc]  # a default binds the loop's value
    with site.karpenter() as up:
        until("all pods run", lambda: len(site.running("web")), lambda count: count == PODS, by=up)
        held = until("held pods run", lambda: site.running(*HELD), lambda found: len(found) == len(HELD), by=up)
    _assert_pairs(site)
    peak = len(site.names("nodes"))
    site.kubectl("scale", "deployment", "web", "--replicas=0")
    for left in sorted((rng.uniform(0.2, 0.95) for _ in range(KILLS_DOWN)), reverse=True):
        site.killed(rng, lambda left=left: len(site.names("nodes")) < left * peak)  # type: ignore[misc]  # as above
    with site.karpenter() as down:
        for kind in ("nodes", "nodeclaims"):
            until(f"only {kind} with held pods are left", lambda kind=kind: len(site.names(kind)),  # type: ignore[misc]  # as above
                  lambda count: count == len(set(held.values())), by=down)  # fmt: skip
        assert site.running(*HELD) == held, "held pods were moved"
        _assert_pairs(site)
        site.kubectl("delete", "deployments/web", "deployments/kept", "deployments/guarded", "pdb/guarded")
        # The claims are the pool's, and are deleted with it; each takes its node along.
        site.kubectl("delete", "nodepool", site.pool, "--wait=false")
        until("nothing is left", lambda: site.names("nodes") + site.names("nodeclaims"), lambda names: not names,
              by=down)  # fmt: skip


def _assert_pairs(site: Site) -> None:
    """Every claim has its node and every node its claim: nothing was launched twice, or forgotten."""
    claims = {claim["metadata"]["name"]: claim["status"].get("nodeName") for claim in site.items("nodeclaims")}
    nodes = {node["metadata"]["name"]: node["spec"]["providerID"] for node in site.items("nodes")}
    assert sorted(filter(None, claims.values())) == sorted(nodes)
    assert len(claims) == len(nodes)
    assert len(set(nodes.values())) == len(nodes)
