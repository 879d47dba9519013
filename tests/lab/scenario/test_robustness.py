"""Whatever a file says, the reader answers with a scenario or with problems that have a place and a remedy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.lab.scenario.changes import apply_overrides, merge_variant
from holokube.lab.scenario.document import Document, parse_document
from holokube.lab.scenario.errors import Problem, ScenarioError
from holokube.lab.scenario.model import Scenario
from holokube.lab.scenario.reading import build_scenario
from tests.lab.scenario.texts import DEPLOYMENT, JOB, spec

BASE = spec("""\
duration: 6h
seed: 3
start: 2026-01-05T09:00:00Z
sampling: 2m
description: all kinds of things
cluster: {nodes: 3, zones: [a, b], profile: {base: kubelet}, nodeSizing: true, manifests: [
  {apiVersion: v1, kind: Namespace, metadata: {name: a}}]}
catalog:
- name: big
  resources: {cpu: "8", memory: 32Gi, pods: "110"}
  offerings: [{zone: a, capacityType: on-demand, price: 0.5}, {zone: b, capacityType: spot, price: 0.1}]
workloads:
- name: web
  curve: {kind: diurnal, low: 1, high: 9, peak: 14:30, noise: 0.1, every: 5m}
  behaviour: {startUp: {min: 1s, max: 2s}, stopTime: 3s, cpuUsage: 60%}
  manifests:
MANIFESTS
- name: jobs
  arrivals: {kind: poisson, perHour: 3, until: 5h}
  behaviour: {runTime: {mean: 5m}, failure: {share: 0.5, after: 3s, reason: Error, exitCode: 3}}
  manifests:
JOBS
policies:
- none
- {kind: karpenter, flags: [--batch-max-duration=3s]}
- {kind: cluster-autoscaler, name: ca, nodeGroups: [{instanceType: big, max: 4, boot: {min: 1s, max: 9s}}]}
faults:
- {kind: zone-loss, at: 1h, until: 2h, zone: a}
- {kind: spot-reclaim, at: 1h, share: 0.5}
- {kind: api-errors, at: 1h, share: 0.1, kinds: [Node], verbs: [get]}
assertions: [pending_p99_s < 60, cpu_allocated_share > 50%]
""".replace("MANIFESTS", "".join(f"  {line}\n" for line in DEPLOYMENT.splitlines()))
   .replace("JOBS", "".join(f"  {line}\n" for line in JOB.splitlines())))  # fmt: skip

PLAIN: Any = yaml.load(BASE, Loader=yaml.BaseLoader)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            found += places(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            found += places(part, (*path, number))
    return found


words = st.sampled_from([
    "kind", "name", "at", "diurnal", "poisson", "1h", "-1", "big", "spot", "$(copy)", "1e999", "é\0", "namespace",
    "spec", "labels", "metadata", "template", "file", "nodes.csv", "14:30", "<<", "1_000", "~", "0x1f", "yes",
])  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def judge(read: Callable[[], Document]) -> None:
    """Nothing but a scenario comes of it, or problems that people can do something about."""
    found: Scenario | Sequence[Problem]
    try:
        found = build_scenario(read())
    except ScenarioError as error:
        found = error.problems
    if isinstance(found, Scenario):
        return
    assert found
    for problem in found:
        assert problem.what
        assert problem.remedy
        assert problem.mark.source


def test_the_base_is_right() -> None:
    scenario = build_scenario(parse_document(BASE, "base.yaml"))
    assert len(scenario.workloads) == 2
    assert len(scenario.policies) == 3


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_file_with_any_value_changed_is_read_or_refused_with_reasons(data: st.DataObject) -> None:
    plain = copy.deepcopy(yaml.safe_load(BASE))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([place for place in places(plain) if place]))
        owner = plain
        for step in path[:-1]:
            owner = owner[step]
        change = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "remove":
            del owner[path[-1]]
        elif change == "add" and isinstance(owner, dict):
            owner[data.draw(words | st.text(max_size=5))] = data.draw(anything)
        else:
            owner[path[-1]] = data.draw(anything)
    text = yaml.safe_dump(plain, sort_keys=False)
    judge(lambda: parse_document(text, "changed.yaml"))


@given(st.sampled_from([place for place in places(PLAIN) if place]), anything)
@settings(max_examples=100, deadline=None)
def test_any_override_is_taken_or_refused_with_reasons(path: tuple[Any, ...], value: Any) -> None:
    text = "".join(f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in path)
    judge(lambda: apply_overrides(parse_document(BASE, "base.yaml"), {text: value}))


@given(anything)
@settings(max_examples=100, deadline=None)
def test_any_variant_is_taken_or_refused_with_reasons(value: Any) -> None:
    text = yaml.safe_dump({"spec": {"workloads": value, "cluster": value}})
    judge(lambda: merge_variant(parse_document(BASE, "base.yaml"), parse_document(text, "variant.yaml")))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_or_refused_with_reasons(text: str) -> None:
    judge(lambda: parse_document(text, "text.yaml"))


@pytest.mark.parametrize("cut", range(0, len(BASE), 97))
def test_a_file_cut_off_anywhere_is_read_or_refused_with_reasons(cut: int) -> None:
    judge(lambda: parse_document(BASE[:cut], "cut.yaml"))
