"""Why a node would not do."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.scale_up.reasons import Rejection, rejection_of
from tests.cluster_autoscaler.scale_up.objects import node, pod, snapshot

FIELD = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}]}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
          "labelSelector": {"matchLabels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("spec", "predicate", "reasons"),
    [
        ({}, "TaintToleration", ("node(s) had untolerated taint(s)",)),
        ({"tolerated": True, "cpu": "9", "memory": "99Gi"}, "NodeResourcesFit",
         ("Insufficient cpu", "Insufficient memory")),
        ({"tolerated": True, "nodeSelector": {"tier": "b"}}, "NodeAffinity",
         ("node(s) didn't match Pod's node affinity/selector",)),
        ({"tolerated": True, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": FIELD}}},
         "NodeAffinity", ()),
        ({"tolerated": True, "topologySpreadConstraints": [SPREAD]}, "PodTopologySpread",
         ("node(s) didn't match pod topology spread constraints (missing required label)",)),
        ({"tolerated": True,
          "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
         "InterPodAffinity", ("node(s) didn't match pod affinity rules",)),
        ({"tolerated": True, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
         "VolumeRestrictions", ('persistentvolumeclaim "none" not found',)),
    ],
)  # fmt: skip
def test_the_first_filter_that_refuses_gives_its_reasons(
    spec: dict[str, Any], predicate: str, reasons: tuple[str, ...]
) -> None:
    spec = dict(spec)
    if spec.pop("tolerated", False):
        spec["tolerations"] = [{"operator": "Exists"}]
    cluster = snapshot(node("n", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    found = rejection_of(cluster.state, cluster.class_of(pod("p", **spec)), cluster.row("n"))
    assert found == Rejection(reasons, predicate)


def test_a_node_that_will_do_is_not_refused() -> None:
    cluster = snapshot(node("n"))
    assert rejection_of(cluster.state, cluster.class_of(pod("p")), cluster.row("n")) is None
