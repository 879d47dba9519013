"""NodePools to try on API servers: one with everything, and many that are wrong."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from holokube.kube.types import JsonObject


def requirement(key: str, operator: str, *values: str, **more: Any) -> JsonObject:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


def node_pool(name: str = "default", *, spec: JsonObject | None = None, **node: Any) -> JsonObject:
    """The least that a pool needs; ``node`` goes into the template's spec, ``spec`` into the pool's."""
    template = {
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
            **node,
        }
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **(spec or {})},
    }


def labelled(labels: dict[str, str]) -> JsonObject:
    pool = node_pool()
    pool["spec"]["template"]["metadata"] = {"labels": labels}
    return pool


def static_pool(**spec: Any) -> JsonObject:
    return node_pool(spec={"replicas": 3, **spec})


def without(field: str) -> JsonObject:
    pool = copy.deepcopy(node_pool())
    del pool["spec"]["template"]["spec"][field]
    return pool


WITH_EVERYTHING = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: with-everything
spec:
  template:
    metadata:
      labels: {billing-team: my-team}
      annotations: {example.com/owner: my-team}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      taints:
      - {key: example.com/special-taint, effect: NoSchedule}
      startupTaints:
      - {key: example.com/another-taint, value: "yes", effect: NoExecute}
      expireAfter: 1h30m
      terminationGracePeriod: 48h
      requirements:
      - {key: karpenter.kwok.sh/instance-family, operator: In, values: [c, m, s], minValues: 2}
      - {key: karpenter.kwok.sh/instance-cpu, operator: Gt, values: ["2"]}
      - {key: karpenter.kwok.sh/instance-cpu, operator: Lte, values: ["64"]}
      - {key: topology.kubernetes.io/zone, operator: NotIn, values: [test-zone-d]}
      - {key: kubernetes.io/arch, operator: In, values: [arm64, amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand, reserved]}
      - {key: example.com/team, operator: Exists}
      - {key: example.com/old, operator: DoesNotExist}
  disruption:
    consolidationPolicy: Balanced
    consolidateAfter: 1m
    budgets:
    - nodes: 10%
    - schedule: 0 9 * * mon-fri
      duration: 8h
      nodes: "0"
      reasons: [Drifted, Underutilized]
    - {schedule: "@daily", duration: 10m, nodes: "5"}
  limits: {cpu: "1000", memory: 1000Gi, nodes: 50}
  weight: 10
"""

_RESTRICTED = 'label domain "karpenter.sh" is restricted'
_INTEGER = "must have a single positive integer value"
_DURATION = "should match"

REFUSED: list[tuple[str, JsonObject, str]] = [
    ("no requirements", without("requirements"), "spec.template.spec.requirements: Required value"),
    ("no node class", without("nodeClassRef"), "spec.template.spec.nodeClassRef: Required value"),
    ("no template", {**node_pool(), "spec": {}}, "spec.template: Required value"),
    ("empty group", node_pool(nodeClassRef={"group": "", "kind": "K", "name": "n"}), "group may not be empty"),
    ("empty kind", node_pool(nodeClassRef={"group": "g", "kind": "", "name": "n"}), "kind may not be empty"),
    ("empty name", node_pool(nodeClassRef={"group": "g", "kind": "K", "name": ""}), "name may not be empty"),
    ("group with version", node_pool(nodeClassRef={"group": "g/v1", "kind": "K", "name": "n"}), "should match"),
    ("In without values", node_pool(requirements=[requirement("a", "In")]), "'In' must have a value defined"),
    ("Gt without values", node_pool(requirements=[requirement("a", "Gt")]), _INTEGER),
    ("Gt of two", node_pool(requirements=[requirement("a", "Gt", "1", "2")]), _INTEGER),
    ("Lte below zero", node_pool(requirements=[requirement("a", "Lte", "-1")]), _INTEGER),
    ("unknown operator", node_pool(requirements=[requirement("a", "Is", "1")]), "Unsupported value"),
    ("too few values", node_pool(requirements=[requirement("a", "In", "b", minValues=2)]), "at least that many values"),
    ("minValues 0", node_pool(requirements=[requirement("a", "Exists", minValues=0)]), "greater than or equal to 1"),
    ("minValues 51", node_pool(requirements=[requirement("a", "Exists", minValues=51)]), "less than or equal to 50"),
    ("pool as requirement", node_pool(requirements=[requirement("karpenter.sh/nodepool", "In", "x")]),
     'label "karpenter.sh/nodepool" is restricted'),
    ("own domain", node_pool(requirements=[requirement("karpenter.sh/mine", "Exists")]), _RESTRICTED),
    ("own subdomain", node_pool(requirements=[requirement("a.karpenter.sh/b", "Exists")]), _RESTRICTED),
    ("provider's domain", node_pool(requirements=[requirement("karpenter.kwok.sh/mine", "Exists")]),
     'label domain "karpenter.kwok.sh" is restricted'),
    ("hostname", node_pool(requirements=[requirement("kubernetes.io/hostname", "In", "x")]),
     'label "kubernetes.io/hostname" is restricted'),
    ("no label key", node_pool(requirements=[requirement("a b", "Exists")]), "should match"),
    ("101 requirements", node_pool(requirements=[requirement(f"a{n}", "Exists") for n in range(101)]),
     "must have at most 100 items"),
    ("pool as label", labelled({"karpenter.sh/nodepool": "x"}), 'label "karpenter.sh/nodepool" is restricted'),
    ("hostname as label", labelled({"kubernetes.io/hostname": "x"}), 'label "kubernetes.io/hostname" is restricted'),
    ("own domain as label", labelled({"karpenter.sh/mine": "x"}), _RESTRICTED),
    ("no label value", labelled({"a": "b c"}), "should match"),
    ("taint without effect", node_pool(taints=[{"key": "a"}]), "taints[0].effect: Required value"),
    ("unknown effect", node_pool(startupTaints=[{"key": "a", "effect": "Never"}]), "Unsupported value"),
    ("taint without key", node_pool(taints=[{"key": "", "effect": "NoSchedule"}]), "at least 1 chars long"),
    ("expiry in days", node_pool(expireAfter="30d"), _DURATION),
    ("grace period Never", node_pool(terminationGracePeriod="Never"), _DURATION),
    ("negative wait", node_pool(spec={"disruption": {"consolidateAfter": "-1s"}}), _DURATION),
    ("unknown policy", node_pool(spec={"disruption": {"consolidationPolicy": "Always"}}), "Unsupported value"),
    ("schedule alone", node_pool(spec={"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]}}),
     "'schedule' must be set with 'duration'"),
    ("duration alone", node_pool(spec={"disruption": {"budgets": [{"nodes": "1", "duration": "1h"}]}}),
     "'schedule' must be set with 'duration'"),
    ("seconds", node_pool(spec={"disruption": {"budgets": [{"schedule": "@daily", "duration": "30s"}]}}), _DURATION),
    ("no schedule", node_pool(spec={"disruption": {"budgets": [{"schedule": "* *", "duration": "1h"}]}}),
     "should match"),
    ("101 %", node_pool(spec={"disruption": {"budgets": [{"nodes": "101%"}]}}), "should match"),
    ("number as nodes", node_pool(spec={"disruption": {"budgets": [{"nodes": 5}]}}), "must be of type string"),
    ("unknown reason", node_pool(spec={"disruption": {"budgets": [{"reasons": ["Expired"]}]}}), "Unsupported value"),
    ("reason twice", node_pool(spec={"disruption": {"budgets": [{"reasons": ["Empty", "Empty"]}]}}), "Duplicate value"),
    ("51 budgets", node_pool(spec={"disruption": {"budgets": [{"nodes": "1"}] * 51}}), "must have at most 50 items"),
    ("weight 0", node_pool(spec={"weight": 0}), "greater than or equal to 1"),
    ("weight 101", node_pool(spec={"weight": 101}), "less than or equal to 100"),
    ("limit", node_pool(spec={"limits": {"cpu": "many"}}), "should match"),
    ("negative replicas", node_pool(spec={"replicas": -1}), "greater than or equal to 0"),
    ("static with weight", static_pool(weight=5), "'weight' is not supported on static NodePools"),
    ("static with cpu limit", static_pool(limits={"cpu": "5"}), "only 'limits.nodes' is supported"),
    ("static with two limits", static_pool(limits={"cpu": "5", "nodes": "5"}), "only 'limits.nodes' is supported"),
]  # fmt: skip
"""What is wrong, the pool, and words of the server's answer."""

ACCEPTED: list[tuple[str, JsonObject]] = [
    ("never expires", node_pool(expireAfter="Never", spec={"disruption": {"consolidateAfter": "Never"}})),
    ("static", static_pool(limits={"nodes": 7})),
    ("budget as Go writes it",
     node_pool(spec={"disruption": {"budgets": [{"schedule": "@daily", "duration": "1h0m0s"}]}})),
    ("capacity type as label", labelled({"karpenter.sh/capacity-type": "spot"})),
    ("reservation", node_pool(requirements=[requirement("karpenter.kwok.sh/reservation-id", "Exists")])),
    ("negative operators", node_pool(requirements=[requirement("a", "NotIn", "b"), requirement("c", "DoesNotExist")])),
    ("zero as bound", node_pool(requirements=[requirement("a", "Gte", "0")])),
]  # fmt: skip


def yaml_of(text: str) -> JsonObject:
    """The object in a YAML text."""
    found: JsonObject = yaml.safe_load(text)
    return found
