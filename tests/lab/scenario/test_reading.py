from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from holokube.kube.timeformat import format_time
from holokube.lab.scenario.behaviour import PodBehaviour
from holokube.lab.scenario.curves import Constant, Cron, Diurnal, Due, Poisson, Step, Steps, Trace, TraceArrivals
from holokube.lab.scenario.faults import ApiErrors, NodeSilence, SlowBoot, SpotReclaim, StockOut, ZoneLoss
from holokube.lab.scenario.file_values import Row
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.lab.scenario.reading import read_scenario
from tests.lab.scenario.texts import DEPLOYMENT, JOB, spec, workload, written

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*/scenario.yaml"))
VARIANTS = sorted((ROOT / "examples").glob("*/with*-*.yaml"))


def read(folder: Path, text: str) -> Scenario:
    return read_scenario(written(folder, text))


def test_the_least_scenario_has_defaults_for_all_the_rest(tmp_path: Path) -> None:
    text = spec("duration: 1d\n")
    scenario = read(tmp_path, text)
    assert (scenario.name, scenario.duration_s, scenario.seed, scenario.sampling_s) == ("trial", 86_400.0, 1, 60.0)
    assert scenario.start_s == 1_767_571_200.0
    assert scenario.policies == (PolicySpec("none"),)
    assert scenario.cluster.objects == ()
    assert scenario.catalog is None
    assert (scenario.workloads, scenario.faults, scenario.assertions) == ((), (), ())
    assert scenario.text == text
    assert scenario.path == str(tmp_path / "scenario.yaml")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("24h", 86_400), ("1d", 86_400), ("1d12h", 129_600)],
)
def test_durations_are_gos_and_days(text: str, seconds: float, tmp_path: Path) -> None:
    assert read(tmp_path, spec(f"duration: {text}\n")).duration_s == seconds


@pytest.mark.parametrize(
    ("text", "curve"),
    [
        ("7", Constant(7)),
        ("{kind: constant, replicas: 3}", Constant(3)),
        ("{kind: steps, points: [{at: 0s, replicas: 1}, {at: 5m, replicas: 2}]}", Steps((Step(0, 1), Step(300, 2)))),
        ("{kind: diurnal, low: 2, high: 9}", Diurnal(2, 9)),
        (
            "{kind: diurnal, low: 2, high: 9, peak: 14:30, noise: 0.1, every: 1m, period: 20h}",
            Diurnal(2, 9, 52_200.0, 0.1, 60.0, 72_000.0),
        ),
        ("{kind: diurnal, low: 2, high: 9, peak: 7h}", Diurnal(2, 9, 25_200.0)),
        ('{kind: cron, initial: 1, rules: [{schedule: "@hourly", replicas: 4}]}', Cron(1, (Due("@hourly", 4),))),
        ("{kind: trace, file: trace.csv, scale: 2}", Trace((Row(0.0, 4), Row(90.0, 5), Row(300.0, 6)), 2.0)),
    ],
)
def test_curves_are_read(text: str, curve: object, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at, replicas\n0,4\n90.0,5\n\n5m,6\n")
    assert read(tmp_path, workload(f"curve: {text}\n")).workloads[0].curve == curve


@pytest.mark.parametrize(
    ("text", "arrivals"),
    [
        ("{kind: poisson, perHour: 1.5, from: 1m}", Poisson(1.5, 60.0)),
        ("{kind: trace, file: trace.csv}", TraceArrivals((Row(3.0, 1), Row(4.0, 1)))),
    ],
)
def test_arrivals_are_read(text: str, arrivals: object, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at\n3\n4\n")
    assert read(tmp_path, workload(f"arrivals: {text}\n", JOB)).workloads[0].arrivals == arrivals


def test_faults_are_read_with_the_fields_of_their_kinds(tmp_path: Path) -> None:
    scenario = read(tmp_path, spec("""\
        duration: 10h
        policies: [karpenter]
        faults:
        - {kind: zone-loss, at: 1h, until: 2h, zone: test-zone-a}
        - {kind: spot-reclaim, at: 1h, share: 0.5, notice: 30s}
        - {kind: spot-reclaim, at: 1h, until: 3h, perHour: 20, zone: test-zone-b}
        - {kind: stock-out, at: 0s, instanceTypes: [m-4x-amd64-linux], zones: [test-zone-c], capacityTypes: [spot]}
        - {kind: slow-boot, at: 1h, factor: 3, extra: 1m}
        - {kind: api-errors, at: 1h, share: 0.1, kinds: [Node], verbs: [patch], code: 503}
        - {kind: node-silence, at: 1h, selector: "pool=a", count: 3}
    """))
    assert [fault.arguments for fault in scenario.faults] == [
        ZoneLoss("test-zone-a"),
        SpotReclaim(share=0.5, notice_s=30.0),
        SpotReclaim(per_hour=20.0, zone="test-zone-b"),
        StockOut(("m-4x-amd64-linux",), (), ("test-zone-c",), ("spot",)),
        SlowBoot(3.0, 60.0),
        ApiErrors(0.1, ("Node",), ("patch",), 503),
        NodeSilence("pool=a", 3),
    ]
    assert [fault.kind for fault in scenario.faults] == [
        "zone-loss", "spot-reclaim", "spot-reclaim", "stock-out", "slow-boot", "api-errors", "node-silence",
    ]  # fmt: skip
    assert (scenario.faults[0].at_s, scenario.faults[0].until_s) == (3600.0, 7200.0)


def test_manifests_stand_in_place_or_in_files_relative_to_the_scenario(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "many.yaml").write_text("{kind: A, apiVersion: v1, metadata: {name: a}}\n---\n"
                                      "{kind: B, apiVersion: v1, metadata: {name: b}}\n")  # fmt: skip
    text = workload("", DEPLOYMENT + "- file: manifests/many.yaml\n- manifests/many.json\n")
    (folder / "many.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [
        {"kind": "C", "apiVersion": "v1", "metadata": {"name": "c"}}]}))  # fmt: skip
    found = read(tmp_path, text).workloads[0].manifests
    assert [obj["kind"] for obj in found] == ["Deployment", "A", "B", "C"]


def test_the_text_of_a_scenario_has_the_files_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{kind: A, apiVersion: v1, metadata: {name: a}}\n")
    (tmp_path / "large.yaml").write_text("{kind: B, apiVersion: v1, metadata: {name: b}}\n" + "#\n" * 50_000)
    text = workload("", "- a.yaml\n- large.yaml\n" + DEPLOYMENT)
    found = read(tmp_path, text).text
    assert found.startswith(text)
    appendix = found.removeprefix(text).splitlines()
    assert appendix[:4] == ["", "# --- a.yaml ---", "# {kind: A, apiVersion: v1, metadata: {name: a}}", ""]
    assert appendix[4] == "# --- large.yaml ---"
    assert appendix[5].startswith("# 100047 bytes, too much to be shown here; SHA-256 ")
    assert read_scenario(written(tmp_path, found, "again.yaml")).workloads == read(tmp_path, text).workloads


def test_a_dump_of_kubectl_is_made_new_for_a_workload(tmp_path: Path) -> None:
    living = {"uid": "1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 3,
              "managedFields": [], "ownerReferences": [{"uid": "2"}]}  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **living}, "status": {"phase": "Running"},
           "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    labels = {"app": "a", "batch.kubernetes.io/controller-uid": "1", "job-name": "j"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": labels, **living},
           "spec": {"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
                    "template": {"metadata": {"labels": labels}, "spec": pod["spec"]}}}  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod, job]}))
    made_pod, made_job = read(tmp_path, workload("", "- file: dump.json\n")).workloads[0].manifests
    assert made_pod == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                        "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    assert made_job["metadata"] == {"name": "j", "labels": {"app": "a"}}
    assert "selector" not in made_job["spec"]
    assert made_job["spec"]["template"]["metadata"]["labels"] == {"app": "a"}


def test_a_snapshot_is_taken_over_as_it_was(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "1", "resourceVersion": "4"},
            "status": {"capacity": {"cpu": "4"}}}  # fmt: skip
    snapshot = json.dumps({"kind": "List", "apiVersion": "v1", "items": [node]}).encode()
    (tmp_path / "cluster.json.gz").write_bytes(gzip.compress(snapshot))
    scenario = read(tmp_path, spec("duration: 1h\ncluster:\n  snapshots: [cluster.json.gz]\n  manifests:\n  - "
                                   "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"))  # fmt: skip
    assert scenario.cluster.objects[0] == node
    assert scenario.cluster.objects[1]["kind"] == "Namespace"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", "2027-03-01T12:00:06Z"),
        ("start: 2026-02-01T00:00:00Z\n", "2026-02-01T00:00:00Z"),
    ],
)
def test_a_run_does_not_begin_before_the_snapshot_it_begins_with_unless_told(
    tmp_path: Path, start: str, expected: str
) -> None:
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2027-02-01T00:00:00Z"},
         "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2027-03-01T12:00:05.5Z"}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "deletionTimestamp": "2027-03-02T00:00:00Z"},
         "status": {"startTime": "soonZ"}},
    ]  # fmt: skip
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    scenario = read(tmp_path, spec(f"duration: 1h\n{start}cluster: {{snapshots: [cluster.json]}}\n"))
    assert format_time(scenario.start_s) == expected


def test_copies_are_workloads_with_numbers(tmp_path: Path) -> None:
    manifests = DEPLOYMENT.replace("name: web}", "name: web-$(copy)}").replace("app: web}", 'app: "web-$(copy)"}')
    scenario = read(tmp_path, workload("copies: 11\ncurve: 3\n", manifests))
    assert [one.name for one in scenario.workloads][:3] == ["web-00", "web-01", "web-02"]
    last = scenario.workloads[10].manifests[0]
    assert last["metadata"]["name"] == "web-10"
    assert last["spec"]["selector"] == {"matchLabels": {"app": "web-10"}}
    assert last["spec"]["template"]["metadata"]["labels"] == {"app": "web-10"}


def test_nodes_are_made_of_a_template_and_put_into_zones(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {labels: {pool: a}}\n"
                                        "status: {capacity: {cpu: '8', memory: 32Gi, pods: '110'}}\n")  # fmt: skip
    cluster = read(
        tmp_path, spec("duration: 1h\ncluster: {nodes: 3, nodeTemplate: node.yaml, zones: [a, b]}\n")
    ).cluster
    nodes = [cluster.node_maker.render(f"n-{number}", number) for number in range(cluster.nodes)]
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes] == ["a", "b", "a"]
    assert nodes[2]["metadata"]["labels"]["pool"] == "a"
    assert nodes[2]["status"]["capacity"]["cpu"] == "8"


@pytest.mark.parametrize(
    ("text", "name", "start"), [("kubelet", "kubelet", None), ("{base: fast, pods: {start: 3s}}", "fast", "3s")]
)
def test_a_profile_has_a_name_or_fields(text: str, name: str, start: str | None, tmp_path: Path) -> None:
    cluster = read(tmp_path, spec(f"duration: 1h\ncluster: {{profile: {text}}}\n")).cluster
    assert cluster.profile_name == name
    assert start is None or cluster.profile.pods.start == start


def test_a_node_group_of_the_catalogue_has_its_price_labels_and_size(tmp_path: Path) -> None:
    scenario = read(tmp_path, spec("""\
        duration: 1h
        catalog:
        - name: big
          resources: {cpu: "8", memory: 32Gi, pods: "110"}
          offerings: [{zone: a, capacityType: on-demand, price: 0.5}, {zone: b, capacityType: spot, price: 0.1}]
        policies:
        - kind: cluster-autoscaler
          nodeGroups:
          - {instanceType: big, max: 7}
          - {instanceType: big, name: cheap, capacityType: spot, min: 1, initial: 2, boot: {min: 30s, max: 1m}}
    """))
    first, second = scenario.policies[0].node_groups
    prefix = "cluster-autoscaler.kwok.nodegroup/"
    assert first["metadata"]["name"] == "big-a-on-demand"
    assert first["metadata"]["annotations"] == {
        prefix + "name": "big-a-on-demand", prefix + "price-per-hour": "0.5", prefix + "min-count": "0",
        prefix + "max-count": "7",
    }  # fmt: skip
    assert first["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "big"
    assert first["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert first["status"]["capacity"]["cpu"] == "8"
    assert second["metadata"]["annotations"] == {
        prefix + "name": "cheap", prefix + "price-per-hour": "0.1", prefix + "min-count": "1",
        prefix + "max-count": "200", prefix + "desired-count": "2", prefix + "boot-delay": "30s..1m0s",
    }  # fmt: skip
    assert second["metadata"]["labels"]["karpenter.sh/capacity-type"] == "spot"


def test_anchors_and_merges_of_yaml_are_understood(tmp_path: Path) -> None:
    text = workload("curve: &day {kind: diurnal, low: 1, high: 9}\n")
    text += "  - name: other\n    curve: {<<: *day, high: 5}\n    manifests:\n"
    text += "    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: o},"
    text += " spec: {template: {spec: {containers: [{}]}}}}\n"
    assert read(tmp_path, text).workloads[1].curve == Diurnal(1, 5)


def test_pods_of_a_workload_live_by_the_profile_unless_told(tmp_path: Path) -> None:
    assert read(tmp_path, workload("")).workloads[0].behaviour == PodBehaviour()


def test_there_are_examples_for_everything_that_people_ask_first() -> None:
    names = {path.parent.name for path in EXAMPLES}
    assert names >= {
        "quick-start", "node-affinity", "ca-against-karpenter", "spot-reclaim-storm", "zone-failure",
        "daemonset-sizing", "day-of-1000-nodes",
    }  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_is_right(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.name == path.parent.name
    assert scenario.description
    assert scenario.workloads
    for workload_ in scenario.workloads:
        if workload_.curve is None and workload_.arrivals is None:
            assert any(obj["kind"] in ("DaemonSet", "Deployment", "StatefulSet") for obj in workload_.manifests)


def test_there_are_variants_among_the_examples() -> None:
    assert [path.name for path in VARIANTS] == ["without-sizing.yaml", "with-affinity.yaml"]


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_variant_of_an_example_changes_it(path: Path) -> None:
    base = path.parent / "scenario.yaml"
    plain, varied = read_scenario(base), read_scenario(base, variants=[path])
    assert (plain.workloads, plain.cluster, plain.policies) != (varied.workloads, varied.cluster, varied.policies)


def test_an_example_is_read_from_wherever_it_was_copied_to(tmp_path: Path) -> None:
    for path in EXAMPLES:
        target = tmp_path / path.parent.name
        shutil.copytree(path.parent, target)
        assert read_scenario(target / "scenario.yaml").name == path.parent.name
