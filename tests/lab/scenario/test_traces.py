"""Traces of other clusters in scenarios: read, complained of, and played."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holokube.lab.formats import write_timeline
from holokube.lab.formats.run_recording import record_run
from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.errors import ScenarioError
from holokube.lab.scenario.model import Scenario
from holokube.lab.scenario.reading import read_scenario
from tests.lab.formats.traces import write_trace
from tests.lab.scenario.texts import spec, written

DATA = Path(__file__).parents[1] / "formats" / "data"


def read(folder: Path, trace: str, more: str = "") -> Scenario:
    for path in DATA.iterdir():
        shutil.copy(path, folder)
    return read_scenario(written(folder, spec(f"duration: 10m\n{more}trace: {trace}\n")))


def test_without_a_trace_there_is_none(tmp_path: Path) -> None:
    assert read_scenario(written(tmp_path, spec("duration: 10m\n"))).timeline is None


def test_a_simkube_trace_is_read_with_run_times(tmp_path: Path) -> None:
    write_trace(tmp_path)
    timeline = read(tmp_path, "{format: simkube, files: [trace.sktrace]}").timeline
    assert timeline is not None
    assert [change.at_s for change in timeline.changes] == [0, 0, 60, 205]
    template = timeline.changes[1].object["spec"]["jobTemplate"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"holokube.dev/run-time": "30s"}


def test_a_part_of_openb_is_taken_faster_and_its_nodes_belong_to_the_cluster(tmp_path: Path) -> None:
    files = "files: [openb_node_list.csv, openb_pod_list.csv]"
    scenario = read(tmp_path, f"{{format: openb, {files}, from: 10000s, until: 10500s, speed: 10, nodes: true}}")
    timeline = scenario.timeline
    assert timeline is not None
    assert timeline.duration_s == 50
    assert [obj["kind"] for obj in timeline.objects] == ["Namespace", "Pod", "Pod", "Pod"]
    assert [obj["metadata"]["name"] for obj in scenario.cluster.objects] == [
        "openb-node-0000", "openb-node-0123", "openb-node-0124",
    ]  # fmt: skip
    without = read(tmp_path, f"{{format: openb, {files}}}")
    assert without.cluster.objects == ()


@pytest.mark.parametrize(
    ("trace", "field", "what"),
    [
        ("{files: [dump.yaml]}", "spec.trace.format", "is missing"),
        ("{format: kwok}", "spec.trace.files", "is missing"),
        ("{format: kwok, files: []}", "spec.trace.files", "is empty"),
        ("{format: etcd, files: [a.db]}", "spec.trace.format", "'etcd' is none of"),
        ("{format: kwok, files: [none.yaml]}", "spec.trace.files", "cannot read"),
        ("{format: simkube, files: [dump.yaml]}", "spec.trace.files", "is not msgpack"),
        ("{format: kwok, files: [dump.yaml, dump.yaml]}", "spec.trace.files", "a kwok trace is one file"),
        ("{format: kubectl, files: [dump.yaml], from: 5m, until: 1m}", "spec.trace.until", "is not after from"),
        ("{format: kubectl, files: [dump.yaml], from: 5m}", "spec.trace.files", "there is nothing between"),
        ("{format: kubectl, files: [dump.yaml], speed: 0}", "spec.trace.speed", "out of range"),
        ("{format: kubectl, files: [dump.yaml], sped: 2}", "spec.trace.sped", "there is no such field"),
        ("dump.yaml", "spec.trace", "is expected"),
    ],
)
def test_mistakes_are_told_with_file_line_and_field(tmp_path: Path, trace: str, field: str, what: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, trace)
    (problem,) = caught.value.problems
    assert (problem.field, problem.mark.line) == (field, 6)
    assert what in problem.what
    assert problem.remedy


def test_a_run_plays_the_trace(tmp_path: Path) -> None:
    write_trace(tmp_path)
    scenario = read(tmp_path, "{format: simkube, files: [trace.sktrace]}", "cluster: {nodes: 2}\n")
    result = run_scenario(scenario, scenario.policies[0])
    web = [pod for pod in result.pods if pod.workload == "shop/Deployment/web"]
    assert [pod.created_s for pod in web] == [0, 0, 60, 60, 60]
    jobs = [pod for pod in result.pods if pod.workload.startswith("default/CronJob/hello")]
    assert [pod.end for pod in jobs] == ["done", "done", "deleted"], "the CronJob goes while the third one runs"
    assert [round((pod.ended_s or 0) - (pod.ready_s or 0)) for pod in jobs[:2]] == [30, 30]
    assert not [one for one in result.decisions if one.kind == "trace"]


def test_what_the_server_refuses_is_in_the_journal(tmp_path: Path) -> None:
    bad = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad, namespace: default}\n"
    (tmp_path / "bad.yaml").write_text(bad)
    scenario = read(tmp_path, "{format: kubectl, files: [bad.yaml]}")
    (refused,) = [one for one in run_scenario(scenario, scenario.policies[0]).decisions if one.kind == "trace"]
    assert (refused.decision, refused.component) == ("refused", "scenario")
    assert "cannot apply Deployment default/bad" in refused.reasons[0]


RECORDED = """\
duration: 30m
workloads:
- name: web
  curve: {kind: steps, points: [{at: 0s, replicas: 2}, {at: 5m, replicas: 9}, {at: 12m, replicas: 3}]}
  manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
- name: batch
  arrivals: {kind: poisson, perHour: 20}
  behaviour: {runTime: 3m}
  manifests:
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: batch}
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]}
policies: [cluster-autoscaler]
"""


@pytest.mark.parametrize("format", ["kwok", "simkube"])
def test_a_recorded_run_played_again_costs_about_the_same(tmp_path: Path, format: str) -> None:
    first = read_scenario(written(tmp_path, spec(RECORDED)))
    original = run_scenario(first, first.policies[0])
    write_timeline(format, record_run(first, first.policies[0]), tmp_path / "recorded")
    text = f"duration: 30m\ntrace: {{format: {format}, files: [recorded]}}\npolicies: [cluster-autoscaler]\n"
    again = read_scenario(written(tmp_path, spec(text)))
    replayed = run_scenario(again, again.policies[0])
    assert replayed.summary["pods_created"] == original.summary["pods_created"]
    assert replayed.summary["node_launches"] == original.summary["node_launches"]
    assert replayed.summary["cost_usd"] == pytest.approx(original.summary["cost_usd"], rel=0.02)
