"""Every kind of mistake in a scenario file is told with file, line, field and a remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holokube.base.errors import UsageError
from holokube.lab.scenario.errors import Problem, ScenarioError
from holokube.lab.scenario.reading import read_scenario
from tests.lab.scenario.texts import DEPLOYMENT, HEAD, JOB, spec, workload, written

HERE = "# HERE"
"""Marks in a text the line that a message must name."""

POD = "- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}\n"
GROUP = "policies:\n- kind: cluster-autoscaler\n  nodeGroups:\n"


def pool(group: str, kind: str) -> str:
    """A policy with a NodePool that names a class, and no class."""
    reference = f"nodeClassRef: {{group: {group}, kind: {kind}, name: general}}"
    return (
        f"duration: 1h\npolicies:\n- kind: karpenter\n  manifests: {HERE}\n"
        "  - apiVersion: karpenter.sh/v1\n    kind: NodePool\n    metadata: {name: shop}\n"
        f"    spec: {{template: {{spec: {{requirements: [], {reference}}}}}}}\n"
    )


# What is wrong -> the file, the field, words of the problem, words of the remedy.
MISTAKES: dict[str, tuple[str, str, str, str]] = {
    "the file is empty": ("", "", "is empty", "kind: Scenario"),
    "a manifest has a field that is not of its kind": (
        workload("", DEPLOYMENT.replace("    selector:", f"    replcas: 3 {HERE}\n    selector:")),
        "spec.workloads[0].manifests[0].spec.replcas", "no such field", "replicas",
    ),
    "a container has a field that is not one's": (
        workload("", DEPLOYMENT.replace("resources:", "resorces:").replace("}]\n", f"}}] {HERE}\n")),
        "spec.workloads[0].manifests[0].spec.template.spec.containers[0].resorces", "no such field", "resources",
    ),
    "a request is no quantity": (
        workload("", DEPLOYMENT.replace("500m", "500mm").replace("}]\n", f"}}] {HERE}\n")),
        "spec.workloads[0].manifests[0].spec.template.spec.containers[0].resources.requests.cpu", "quantity", "Correct",
    ),
    "a manifest has a value of another type": (
        workload("", DEPLOYMENT.replace("    selector:", f"    replicas: many {HERE}\n    selector:")),
        "spec.workloads[0].manifests[0].spec.replicas", "int32", "Correct",
    ),
    "a manifest has a kind that is misspelt": (
        workload("", DEPLOYMENT.replace("kind: Deployment", f"kind: Deploymnt {HERE}")),
        "spec.workloads[0].manifests[0].kind", "no Deploymnt in apps/v1", "Deployment",
    ),
    "a manifest has a version that is gone": (
        workload("", DEPLOYMENT.replace("apps/v1", "extensions/v1beta1").replace("Deployment", f"Deployment {HERE}")),
        "spec.workloads[0].manifests[0].kind", "no Deployment in extensions/v1beta1", "kubectl api-resources",
    ),
    "a NodePool has a field that is not one's": (
        spec("duration: 1h\npolicies:\n- kind: karpenter\n  manifests:\n  - apiVersion: karpenter.sh/v1\n"
             "    kind: NodePool\n    metadata: {name: p}\n"
             f"    spec: {{disruption: {{consolidateAftr: 5m}}}} {HERE}\n"),
        "spec.policies[0].manifests[0].spec.disruption.consolidateAftr", "no such field", "consolidateAfter",
    ),
    "a NodePool has an old version": (
        spec("duration: 1h\npolicies:\n- kind: karpenter\n  manifests:\n  - apiVersion: karpenter.sh/v1beta1\n"
             f"    kind: NodePool {HERE}\n    metadata: {{name: p}}\n"),
        "spec.policies[0].manifests[0].kind", "no NodePool in karpenter.sh/v1beta1", "karpenter.sh/v1",
    ),
    "the file is a list": (f"- a {HERE}\n", "", "a list", "kind: Scenario"),
    "the YAML is broken": (HEAD + f"  duration: [1h {HERE}\n  seed: 1\n", "", "is not YAML", "indentation"),
    "a tab indents": (HEAD + f"  seed: 1\n\tduration: 1h {HERE}\n", "", "is not YAML", "tabs"),
    "there are two documents": (spec("duration: 1h\n") + f"---\nkind: X {HERE}\n", "", "second document", "one per"),
    "a field is there twice": (spec(f"duration: 1h\nduration: 2h {HERE}\n"), "spec.duration", "twice", "Keep one"),
    "a field has a tag": (spec(f"duration: !duration 1h {HERE}\n"), "", "tag", "Leave the tag out"),
    "the version is another": (
        spec("duration: 1h\n").replace("v1alpha1", f"v7 {HERE}"), "apiVersion", "is not holokube.dev", "apiVersion:",
    ),
    "the kind is another": (
        spec("duration: 1h\n").replace("Scenario", f"Scenery {HERE}"), "kind", "is not Scenario", "kind: Scenario",
    ),
    "the name is missing": (
        spec("duration: 1h\n").replace("{name: trial}", f"{{}} {HERE}"), "metadata.name", "missing", "my-scenario",
    ),
    "the name is no name": (
        spec("duration: 1h\n").replace("{name: trial}", f"{{name: My Trial}} {HERE}"), "metadata.name", "no name",
        "lower case",
    ),
    "a field of metadata is unknown": (
        spec("duration: 1h\n").replace("{name: trial}", f"{{name: trial, lables: {{}}}} {HERE}"), "metadata.lables",
        "no such field", "labels",
    ),
    "spec is missing": (
        f"apiVersion: holokube.dev/v1alpha1 {HERE}\nkind: Scenario\nmetadata: {{name: a}}\n", "spec", "is missing",
        "duration: 24h",
    ),
    "a field of spec stands too high": (
        spec("duration: 1h\n") + f"seed: 4 {HERE}\n", "seed", "no such field", "below spec",
    ),
    "a field is misspelt": (spec(f"duration: 1h\nsed: 4 {HERE}\n"), "spec.sed", "no such field", "mean seed?"),
    "a field is in snake case": (
        spec(f"duration: 1h\ncluster:\n  node_sizing: true {HERE}\n"), "spec.cluster.node_sizing", "no such field",
        "mean nodeSizing?",
    ),
    "the duration is missing": (spec(f"seed: 1 {HERE}\n"), "spec.duration", "is missing", "`duration: 5m`"),
    "a value is missing": (spec(f"duration: {HERE}\n"), "spec.duration", "has no value", "`duration: 5m`"),
    "a duration has no unit": (spec(f"duration: 90 {HERE}\n"), "spec.duration", "no unit", "90s"),
    "a duration has a wrong unit": (spec(f"duration: 3 weeks {HERE}\n"), "spec.duration", "no duration", "1d"),
    "a duration is zero": (spec(f"duration: 0s {HERE}\n"), "spec.duration", "above zero", "24h"),
    "a duration is negative": (spec(f"duration: -1h {HERE}\n"), "spec.duration", "above zero", "24h"),
    "the seed is a text": (spec(f"duration: 1h\nseed: many {HERE}\n"), "spec.seed", "whole number", "such as 10"),
    "the seed is negative": (spec(f"duration: 1h\nseed: -1 {HERE}\n"), "spec.seed", "out of range", "from 0"),
    "the start is no time": (spec(f"duration: 1h\nstart: monday {HERE}\n"), "spec.start", "RFC 3339", "2026-01-05"),
    "the description is a number": (
        spec(f"duration: 1h\ndescription: 3 {HERE}\n"), "spec.description", "text is expected", "quotes",
    ),
    "sampling is longer than the run": (
        spec(f"duration: 1h\nsampling: 2h {HERE}\n"), "spec.sampling", "longer than the run", "shorter",
    ),
    "workloads are no list": (
        spec(f"duration: 1h\nworkloads: {HERE}\n  name: a\n"), "spec.workloads", "a list is", "- ",
    ),
    "a workload has no manifests": (
        spec(f"duration: 1h\nworkloads:\n- name: web {HERE}\n"), "spec.workloads[0].manifests", "is missing",
        "web.yaml",
    ),
    "a workload's manifests are empty": (
        spec(f"duration: 1h\nworkloads:\n- name: web\n  manifests: [] {HERE}\n"), "spec.workloads[0].manifests",
        "is empty", "web.yaml",
    ),
    "two workloads have one name": (
        spec(f"duration: 1h\nworkloads:\n- name: a\n  manifests:\n  {POD}- name: a {HERE}\n  manifests:\n  "
             + POD.replace("name: p", "name: q")),
        "spec.workloads[1].name", "also the name of workloads[0]", "of its own",
    ),
    "two workloads have one object": (
        spec(f"duration: 1h\nworkloads:\n- name: a\n  manifests:\n  {POD}- name: b\n  manifests: {HERE}\n  " + POD),
        "spec.workloads[1].manifests", "Pod default/p", "of its own",
    ),
    "a manifest has no kind": (
        workload("", f"- {{apiVersion: v1, metadata: {{name: a}}}} {HERE}\n"), "spec.workloads[0].manifests[0].kind",
        "is missing", "Say what it is",
    ),
    "a manifest has no name": (
        workload("", f"- apiVersion: v1\n  kind: Pod\n  metadata: {{}} {HERE}\n"),
        "spec.workloads[0].manifests[0].metadata.name", "is missing", "name",
    ),
    "a manifest has no version": (
        workload("", f"- kind: Deploymnt {HERE}\n  metadata: {{name: a}}\n"),
        "spec.workloads[0].manifests[0].apiVersion", "is missing", "mean Deployment?",
    ),
    "a label of a manifest is a number": (
        workload("", f"- apiVersion: v1\n  kind: Pod\n  metadata: {{name: a, labels: {{tier: 1}}}} {HERE}\n"),
        "spec.workloads[0].manifests[0].metadata.labels[tier]", "1 is no text", "quotes",
    ),
    "a manifest has no containers": (
        spec(f"duration: 1h\nworkloads:\n- name: a\n  manifests: {HERE}\n"
             "  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}\n"),
        "spec.workloads[0].manifests", "no containers", "containers",
    ),
    "a manifest is a number": (
        workload("", f"- 7 {HERE}\n"), "spec.workloads[0].manifests[0]", "no manifest", "file: NAME",
    ),
    "a file of manifests is not there": (
        workload("", f"- file: nowhere.yaml {HERE}\n"), "spec.workloads[0].manifests[0]", "nowhere.yaml",
        "name of the file",
    ),
    "a file stands next to fields": (
        workload("", f"- file: a.yaml\n  kind: Pod {HERE}\n"), "spec.workloads[0].manifests[0].kind", "next to file",
        "either file",
    ),
    "a curve has no kind": (
        workload(f"curve: {{low: 1, high: 2}} {HERE}\n"), "spec.workloads[0].curve.kind", "is missing", "diurnal",
    ),
    "a curve's kind is misspelt": (
        workload(f"curve: {{kind: diurnl, low: 1, high: 2}} {HERE}\n"), "spec.workloads[0].curve.kind", "is none of",
        "mean diurnal?",
    ),
    "a curve is upside down": (
        workload(f"curve:\n  kind: diurnal\n  low: 9 {HERE}\n  high: 2\n"), "spec.workloads[0].curve.low",
        "above high", "at most high",
    ),
    "a share is above one": (
        workload(f"curve:\n  kind: diurnal\n  low: 1\n  high: 2\n  noise: 5 {HERE}\n"),
        "spec.workloads[0].curve.noise", "out of range", "from 0 to 1",
    ),
    "a time of day is none": (
        workload(f"curve:\n  kind: diurnal\n  low: 1\n  high: 2\n  peak: 27:00 {HERE}\n"),
        "spec.workloads[0].curve.peak", "no time of day", "23:59",
    ),
    "replicas are a fraction": (
        workload(f"curve: 1.5 {HERE}\n"), "spec.workloads[0].curve", "whole number", "such as",
    ),
    "steps do not rise": (
        workload("curve:\n  kind: steps\n  points:\n  - {at: 2m, replicas: 1}\n"
                 f"  - {{at: 1m, replicas: 2}} {HERE}\n"),
        "spec.workloads[0].curve.points[1].at", "not later", "Sort",
    ),
    "there are no steps": (
        workload(f"curve:\n  kind: steps\n  points: [] {HERE}\n"), "spec.workloads[0].curve.points", "is empty", "Add",
    ),
    "a step lies after the period": (
        workload(f"curve:\n  kind: steps\n  every: 1m\n  points:\n  - {{at: 2m, replicas: 1}} {HERE}\n"),
        "spec.workloads[0].curve.points[0].at", "end of every", "earlier",
    ),
    "a cron schedule is none": (
        workload(f"curve:\n  kind: cron\n  initial: 1\n  rules:\n  - schedule: at noon {HERE}\n    replicas: 2\n"),
        "spec.workloads[0].curve.rules[0].schedule", "no cron schedule", "0 8 * * 1-5",
    ),
    "a trace is not there": (
        workload(f"curve:\n  kind: trace\n  file: nowhere.csv {HERE}\n"), "spec.workloads[0].curve.file",
        "nowhere.csv", "name of the file",
    ),
    "a curve has nothing to scale": (
        workload(f"curve: 3 {HERE}\n", JOB), "spec.workloads[0].curve", "needs replicas, and has Job", "Deployment",
    ),
    "arrivals have nothing to make": (
        workload(f"arrivals: {{kind: poisson, perHour: 3}} {HERE}\n"), "spec.workloads[0].arrivals",
        "needs a Job or Pod", "Add one",
    ),
    "arrivals stand next to a curve": (
        workload(f"curve: 3\narrivals: {{kind: poisson, perHour: 3}} {HERE}\n", DEPLOYMENT + JOB),
        "spec.workloads[0].arrivals", "next to curve", "two workloads",
    ),
    "nothing can arrive": (
        workload(f"arrivals:\n  kind: poisson\n  perHour: 0 {HERE}\n", JOB), "spec.workloads[0].arrivals.perHour",
        "out of range", "above 0",
    ),
    "arrivals end before they begin": (
        workload(f"arrivals:\n  kind: poisson\n  perHour: 1\n  from: 2h\n  until: 1h {HERE}\n", JOB),
        "spec.workloads[0].arrivals.until", "not after from", "later",
    ),
    "a distribution says too little": (
        workload(f"behaviour:\n  startUp: {{min: 1s}} {HERE}\n"), "spec.workloads[0].behaviour.startUp",
        "too little", "max",
    ),
    "a distribution has a wrong field": (
        workload(f"behaviour:\n  startUp: {{min: 1s, maximum: 2s}} {HERE}\n"),
        "spec.workloads[0].behaviour.startUp.maximum", "no such field", "max",
    ),
    "a distribution is upside down": (
        workload(f"behaviour:\n  startUp: {{min: 5s, max: 2s}} {HERE}\n"),
        "spec.workloads[0].behaviour.startUp.max", "below min", "smallest",
    ),
    "a template cannot draw": (
        workload(f"behaviour:\n  startUp: {{mean: 5s}} {HERE}\n"), "spec.workloads[0].behaviour.startUp",
        "exponential", "min and max",
    ),
    "some pods of a template fail": (
        workload(f"behaviour:\n  failure:\n    share: 0.5 {HERE}\n"), "spec.workloads[0].behaviour.failure.share",
        "all or not at all", "arrivals",
    ),
    "a failure is unknown": (
        workload(f"behaviour:\n  failure:\n    reason: OomKilled {HERE}\n"),
        "spec.workloads[0].behaviour.failure.reason", "is none of", "mean OOMKilled?",
    ),
    "a usage curve is none": (
        workload(f"behaviour:\n  cpuUsage: wavy(1) {HERE}\n"), "spec.workloads[0].behaviour.cpuUsage",
        "no curve 'wavy'", "60%",
    ),
    "copies share a name": (
        spec(f"duration: 1h\nworkloads:\n- name: a\n  copies: 3\n  manifests: {HERE}\n  {POD}"),
        "spec.workloads[0].manifests", "3 copies of one name", "$(copy)",
    ),
    "there is no policy": (spec(f"duration: 1h\npolicies: [] {HERE}\n"), "spec.policies", "is empty", "karpenter"),
    "a policy is unknown": (
        spec(f"duration: 1h\npolicies:\n- carpenter {HERE}\n"), "spec.policies[0]", "is none of", "mean karpenter?",
    ),
    "a flag is unknown": (
        spec(f"duration: 1h\npolicies:\n- kind: cluster-autoscaler\n  flags: [--expandr=price] {HERE}\n"),
        "spec.policies[0].flags", "--expandr", "--expander",
    ),
    "a flag has a wrong value": (
        spec(f"duration: 1h\npolicies:\n- kind: karpenter\n  flags: [--batch-max-duration=soon] {HERE}\n"),
        "spec.policies[0].flags", "batch-max-duration", "",
    ),
    "no policy has flags": (
        spec(f"duration: 1h\npolicies:\n- kind: none\n  flags: [--v=4] {HERE}\n"), "spec.policies[0].flags",
        "none has no flags", "Leave them out",
    ),
    "Karpenter has node groups": (
        spec("duration: 1h\npolicies:\n- kind: karpenter\n"
             f"  nodeGroups: [{{instanceType: m-4x-amd64-linux}}] {HERE}\n"),
        "spec.policies[0].nodeGroups", "not for karpenter", "NodePools",
    ),
    "an instance type is unknown": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd46-linux {HERE}\n"),
        "spec.policies[0].nodeGroups[0].instanceType", "no type", "mean m-4x-amd64-linux?",
    ),
    "a zone has no offer": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd64-linux\n    zone: zone-a {HERE}\n"),
        "spec.policies[0].nodeGroups[0].zone", "not offered in zone", "mean test-zone-a?",
    ),
    "a capacity type has no offer": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd64-linux\n    capacityType: sport {HERE}\n"),
        "spec.policies[0].nodeGroups[0].capacityType", "not offered as", "mean spot?",
    ),
    "a group's limits are crossed": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd64-linux\n    min: 5 {HERE}\n    max: 2\n"),
        "spec.policies[0].nodeGroups[0].min", "above max", "at most max",
    ),
    "a group begins outside of its limits": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd64-linux\n    max: 5\n    initial: 9 {HERE}\n"),
        "spec.policies[0].nodeGroups[0].initial", "not between", "from 0 to 5",
    ),
    "a node group is no Node": (
        spec(f"duration: 1h\n{GROUP}  {POD.rstrip()} {HERE}\n"), "spec.policies[0].nodeGroups[0]", "is a Pod", "Nodes",
    ),
    "a group's annotation is wrong": (
        spec(f"duration: 1h\n{GROUP}  - apiVersion: v1 {HERE}\n    kind: Node\n    metadata:\n      name: a\n      "
             "annotations: {cluster-autoscaler.kwok.nodegroup/max-count: lots}\n"),
        "spec.policies[0].nodeGroups[0]", "max-count", "docs/cluster-autoscaler.md",
    ),
    "the number of nodes is negative": (
        spec(f"duration: 1h\ncluster:\n  nodes: -3 {HERE}\n"), "spec.cluster.nodes", "out of range", "from 0",
    ),
    "zones are there without nodes": (
        spec(f"duration: 1h\ncluster:\n  zones: [a] {HERE}\n"), "spec.cluster.zones", "there are none", "nodes: 10",
    ),
    "a profile is not there": (
        spec(f"duration: 1h\ncluster:\n  profile: fats {HERE}\n"), "spec.cluster.profile", "fats", "fast",
    ),
    "a field of a profile is unknown": (
        spec(f"duration: 1h\ncluster:\n  profile: {{pods: {{strat: 1}}}} {HERE}\n"), "spec.cluster.profile",
        "strat", "docs/hollow-nodes.md",
    ),
    "a node template is no Node": (
        spec(f"duration: 1h\ncluster:\n  nodes: 1\n  nodeTemplate: {{apiVersion: v1, kind: Pod}} {HERE}\n"),
        "spec.cluster.nodeTemplate", "not a v1 Node", "Node manifest",
    ),
    "yes or no is a text": (
        spec(f'duration: 1h\ncluster:\n  nodeSizing: "on" {HERE}\n'), "spec.cluster.nodeSizing", "true or false",
        "without quotes",
    ),
    "a snapshot is not there": (
        spec(f"duration: 1h\ncluster:\n  snapshots: [cluster.yaml] {HERE}\n"), "spec.cluster.snapshots[0]",
        "cluster.yaml", "name of the file",
    ),
    "a catalogue is not there": (
        spec(f"duration: 1h\ncatalog: types.json {HERE}\n"), "spec.catalog", "types.json", "Correct it",
    ),
    "a catalogue is wrong": (
        spec(f"duration: 1h\ncatalog: [{{name: a}}] {HERE}\n"), "spec.catalog[0].offerings", "offerings", "Correct it",
    ),
    "an offering says nothing of its capacity type": (
        spec("duration: 1h\ncatalog:\n- name: a\n  resources: {cpu: 1, memory: 1Gi}\n  offerings:\n"
             f"  - {{zone: z, price: 1}} {HERE}\n"),
        "spec.catalog[0].offerings[0].capacityType", "a text is expected", "#catalogues",
    ),
    "two node groups have one name": (
        spec(f"duration: 1h\n{GROUP}  - instanceType: m-4x-amd64-linux\n  - instanceType: m-4x-amd64-linux {HERE}\n"),
        "spec.policies[0].nodeGroups[1]", "also the name of nodeGroups[0]", "name: spare",
    ),
    "a node template has a capacity that is none": (
        spec(f"duration: 1h\ncluster:\n  nodes: 1\n  nodeTemplate:\n    apiVersion: v1\n    kind: Node\n"
             f"    status: {{capacity: {{cpu: two}}}} {HERE}\n"),
        "spec.cluster.nodeTemplate.status.capacity.cpu", "cannot be read", "Correct it",
    ),
    "there are samples without end": (
        spec(f"duration: 1h\nsampling: 1ns {HERE}\n"), "spec.sampling", "more than 1,000,000 samples", "1s or more",
    ),
    "a NodePool names a class of another cloud": (
        spec(pool("karpenter.k8s.aws", "EC2NodeClass")), "spec.policies[0].manifests",
        "shop names EC2NodeClass.karpenter.k8s.aws 'general'", "kind: KWOKNodeClass, name: general}",
    ),
    "a NodePool names a class that is not there": (
        spec(pool("karpenter.kwok.sh", "KWOKNodeClass")), "spec.policies[0].manifests",
        "'general', which is not there", "Write a KWOKNodeClass of that name",
    ),
    "a stock-out names a type that is not in the catalogue": (
        spec(f"duration: 1h\nfaults:\n- {{kind: stock-out, at: 1m, instanceTypes: [m-4x-amd64]}} {HERE}\n"),
        "spec.faults[0].instanceTypes[0]", "no type 'm-4x-amd64'", "m-4x-amd64-linux",
    ),
    "a stock-out names a group that nobody has": (
        spec(f"duration: 1h\n{GROUP}  - {{instanceType: m-4x-amd64-linux, name: workers}}\n"
             f"faults:\n- {{kind: stock-out, at: 1m, groups: [worker]}} {HERE}\n"),
        "spec.faults[0].groups[0]", "no node group or NodePool", "Did you mean workers?",
    ),
    "a stock-out names a capacity type that is none": (
        spec(f"duration: 1h\nfaults:\n- {{kind: stock-out, at: 1m, capacityTypes: [Spot]}} {HERE}\n"),
        "spec.faults[0].capacityTypes[0]", "no capacity type", "Did you mean spot?",
    ),
    "requests of a kind fail that is none": (
        spec(f"duration: 1h\nfaults:\n- {{kind: api-errors, at: 1m, share: 1, kinds: [Nodez]}} {HERE}\n"),
        "spec.faults[0].kinds[0]", "no kind 'Nodez'", "Did you mean Node?",
    ),
    "the name of a file has a zero in it": (
        workload("", f'- "web\\0.yaml" {HERE}\n'), "spec.workloads[0].manifests[0]", "no name of a file", "Check",
    ),
    "a share is asserted in percent": (
        spec(f"duration: 1h\nassertions:\n- cpu_allocated_share > 60 {HERE}\n"), "spec.assertions[0]",
        "no share is 60", "60%",
    ),
    "a fault has no kind": (
        spec(f"duration: 1h\nfaults:\n- at: 1m {HERE}\n"), "spec.faults[0].kind", "is missing", "zone-loss",
    ),
    "a fault's field is another's": (
        spec(f"duration: 1h\nfaults:\n- kind: zone-loss\n  at: 1m\n  zone: test-zone-a\n  share: 1 {HERE}\n"
             "policies: [karpenter]\n"),
        "spec.faults[0].share", "no such field", "until",
    ),
    "a fault comes after the end": (
        spec(f"duration: 1h\nfaults:\n- kind: stock-out\n  at: 2h {HERE}\n"), "spec.faults[0].at", "after the end",
        "earlier",
    ),
    "a fault ends before it begins": (
        spec(f"duration: 1h\nfaults:\n- kind: stock-out\n  at: 20m\n  until: 10m {HERE}\n"), "spec.faults[0].until",
        "not after at", "later",
    ),
    "a fault is in no zone": (
        spec("duration: 1h\ncluster: {nodes: 3, zones: [zone-a, zone-b]}\n"
             f"faults:\n- kind: zone-loss\n  at: 1m\n  zone: zone-c {HERE}\n"),
        "spec.faults[0].zone", "no node can be in", "mean zone-",
    ),
    "a reclaim does not say how many": (
        spec(f"duration: 1h\nfaults:\n- kind: spot-reclaim {HERE}\n  at: 1m\n"), "spec.faults[0]", "how many",
        "share: 0.5",
    ),
    "a reclaim has no end": (
        spec(f"duration: 1h\nfaults:\n- kind: spot-reclaim {HERE}\n  at: 1m\n  perHour: 5\n"), "spec.faults[0].until",
        "needs an end", "until: 8h",
    ),
    "a reclaim says it twice": (
        spec("duration: 1h\nfaults:\n- kind: spot-reclaim\n  at: 1m\n  until: 2m\n  share: 1\n"
             f"  perHour: 5 {HERE}\n"),
        "spec.faults[0].perHour", "two ways", "Keep share or perHour",
    ),
    "a slow boot is not slow": (
        spec(f"duration: 1h\nfaults:\n- kind: slow-boot {HERE}\n  at: 1m\n"), "spec.faults[0]", "nothing slower",
        "factor: 3",
    ),
    "a verb is unknown": (
        spec(f"duration: 1h\nfaults:\n- kind: api-errors\n  at: 1m\n  share: 0.1\n  verbs: [crate] {HERE}\n"),
        "spec.faults[0].verbs[0]", "is none of", "mean create?",
    ),
    "a selector is none": (
        spec(f"duration: 1h\nfaults:\n- kind: node-silence\n  at: 1m\n  selector: a in b {HERE}\n"),
        "spec.faults[0].selector", "no label selector", "pool=spot",
    ),
    "an assertion is none": (
        spec(f"duration: 1h\nassertions: [cheap] {HERE}\n"), "spec.assertions[0]", "no assertion", "pending_p99_s < 60",
    ),
    "a measure is unknown": (
        spec(f'duration: 1h\nassertions: ["pending_p95_s < 60"] {HERE}\n'), "spec.assertions[0]", "no measure",
        "mean pending_p9",
    ),
    "a comparison is unknown": (
        spec(f'duration: 1h\nassertions: ["evictions =< 60"] {HERE}\n'), "spec.assertions[0]", "no comparison", "<=",
    ),
    "a bound is no number": (
        spec(f'duration: 1h\nassertions: ["cost_usd < ten"] {HERE}\n'), "spec.assertions[0]", "no number", "such as",
    ),
}  # fmt: skip


def the_problems(path: Path) -> list[Problem]:
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    return list(caught.value.problems)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_its_field_and_a_remedy(mistake: str, tmp_path: Path) -> None:
    text, field, what, remedy = MISTAKES[mistake]
    path = written(tmp_path, text)
    problems = the_problems(path)
    assert len(problems) == 1, problems
    (problem,) = problems
    line = next((number for number, one in enumerate(text.splitlines(), 1) if HERE in one), 1)
    assert problem.mark.source == str(path)
    assert problem.mark.line in _lines_of(mistake, line), str(problem)
    assert problem.mark.column >= 1
    assert problem.field == field
    assert what in problem.what, str(problem)
    assert remedy in problem.remedy, str(problem)
    assert problem.remedy[0].isupper() or problem.remedy[0] in "`-$", str(problem)


def _lines_of(mistake: str, line: int) -> tuple[int, ...]:
    """YAML itself notices that something is not closed only later, and a list where it begins."""
    if mistake in ("the YAML is broken", "workloads are no list") or "manifests" in MISTAKES[mistake][1]:
        return (line, line + 1)
    return (line,)


def test_there_are_at_least_thirty_kinds_of_mistakes() -> None:
    assert len({(field, what) for _, field, what, _ in MISTAKES.values()}) >= 30


def test_a_message_is_one_line_with_file_line_column_field_and_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, spec("duration: 1h\nsed: 4\n"))
    with pytest.raises(UsageError) as caught:
        read_scenario(path)
    assert str(caught.value) == f"{path}:6:3: spec.sed: there is no such field. Did you mean seed?"
    assert "docs/scenario.md" in caught.value.hint


def test_all_mistakes_of_a_file_are_told_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = spec("""\
        sed: 1
        duration: forever
        cluster: {nodes: few, nodeSizing: 1}
        workloads:
        - name: web
          copies: 0
          curve: {kind: diurnal, low: a, high: b, hight: 1}
          manifests: [{file: a.yaml}, {file: b.yaml}]
        - name: B
          manifests: 3
        policies: [carpenter, {kind: cluster-autoscaler, name: 7}]
        faults: [{kind: zone-loss}, {kind: rain}]
        assertions: [a < 1, b < 1]
    """)
    problems = the_problems(written(tmp_path, text))
    told = [problem.field.removeprefix("spec.") for problem in problems]
    assert told == [
        "sed", "duration", "cluster.nodes", "cluster.nodeSizing", "workloads[0].copies", "workloads[0].curve.low",
        "workloads[0].curve.high", "workloads[0].curve.hight", "workloads[0].manifests[0]",
        "workloads[0].manifests[1]", "workloads[1].name", "workloads[1].manifests", "policies[0]", "policies[1].name",
        "faults[0].at", "faults[0].zone", "faults[1].kind", "assertions[0]", "assertions[1]",
    ]  # fmt: skip
    lines = [problem.mark.line for problem in problems]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("rows", "what", "remedy"),
    [
        ("", "trace.csv:1: there is no column at", "at,replicas"),
        ("time,replicas\n1,2\n", "trace.csv:1: there is no column at", "at,replicas"),
        ("at,replicas\n", "has no rows", "0,5"),
        ("at,replicas\n0,1\n5,many\n", "trace.csv:3: replicas 'many' is no whole number", "0 or more"),
        ("at,replicas\n0,-1\n", "trace.csv:2: replicas '-1' is no whole number", "0 or more"),
        ("at,replicas\n0,1\n\nsoon,2\n", "trace.csv:4: at 'soon' is no duration", "5m"),
        ("at,replicas\n5,1\n3,2\n", "trace.csv:3: 3 is earlier", "Sort"),
        ("at,replicas\n-5,1\n", "trace.csv:2: at '-5' is out of range", "from the start"),
        ("at,replicas\n0,99999999999\n", "trace.csv:2: replicas 99999999999 is out of range", "to 1000000"),
        ("at,replicas\n5\n", "trace.csv:2: has 1 cells, not 2", "each column"),
    ],
)
def test_a_mistake_in_a_trace_is_told_with_the_line_of_the_trace(
    rows: str, what: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "trace.csv").write_text(rows)
    (problem,) = the_problems(written(tmp_path, workload("curve: {kind: trace, file: trace.csv}\n")))
    assert problem.field == "spec.workloads[0].curve.file"
    assert what in problem.what
    assert remedy in problem.remedy


def test_replicas_of_a_trace_may_not_become_too_many(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at,replicas\n0,1000\n")
    curve = "curve: {kind: trace, file: trace.csv, scale: 5000}\n"
    (problem,) = the_problems(written(tmp_path, workload(curve)))
    assert problem.field == "spec.workloads[0].curve.scale"
    assert "more than 1,000,000 replicas" in problem.what


def test_node_groups_are_not_blamed_for_a_catalogue_that_is_wrong(tmp_path: Path) -> None:
    groups = "policies:\n- kind: cluster-autoscaler\n  nodeGroups: [{instanceType: mine}]\n"
    (problem,) = the_problems(written(tmp_path, spec(f"duration: 1h\ncatalog: [{{name: mine}}]\n{groups}")))
    assert problem.field == "spec.catalog[0].offerings"


def test_an_object_that_is_not_of_its_type_is_told_with_the_line_of_its_file(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("- ", "", 1).replace("\n  ", "\n")
    (tmp_path / "web.yaml").write_text(f"{text}---\n{text.replace('selector:', 'slector:')}")
    (problem,) = the_problems(written(tmp_path, workload("", "- file: web.yaml\n")))
    assert re.search(r"web\.yaml, line 1\d: spec\.slector: there is no such field", problem.what), problem
    assert problem.remedy == "Did you mean selector?"


def test_an_object_without_a_kind_is_told_with_the_line_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT.replace("- ", "", 1).replace("\n  ", "\n") + "---\nspec: {}\n")
    (problem,) = the_problems(written(tmp_path, workload("", "- file: web.yaml\n")))
    assert re.search(r"web\.yaml, line \d+: apiVersion: is missing", problem.what), problem


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    (problem,) = the_problems(tmp_path / "nowhere.yaml")
    assert "cannot be read: No such file" in problem.what


def test_a_file_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(b"kind: Scenario\nname: \xff\n")
    (problem,) = the_problems(path)
    assert (problem.mark.line, problem.what) == (2, "is not text in UTF-8")


def test_a_text_of_aliases_without_end_is_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    (problem,) = the_problems(written(tmp_path, bomb))
    assert "excessive aliasing" in problem.what
