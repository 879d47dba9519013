"""``holokube plan``: from files to a plan, in three forms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.cli.dump import Dump, Selection
from holokube.cli.plan import POLICIES
from holokube.client.resources import DEPLOYMENTS
from holokube.testing import Cluster
from tests.builders import deployment
from tests.cli.program import Inside, assert_two_lines
from tests.cluster_autoscaler.plan.snapshots import node, pods, replica_set, template
from tests.golden.cluster_autoscaler.compare import differences

_GOLDEN = Path(__file__).parents[1] / "golden" / "cluster_autoscaler"


def _write(path: Path, *objects: Any) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def _ok(inside: Inside, *arguments: str) -> str:
    result = inside("plan", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_scenario_is_answered_exactly_as_it_is_recorded(tmp_path: Path, inside: Inside) -> None:
    record = json.loads((_GOLDEN / "0001-down.json").read_text())
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(record["scenario"]))
    answer = json.loads(_ok(inside, "-f", str(path), "--policy", "cluster-autoscaler", "-o", "json"))
    assert set(answer) == {"loops"}
    assert differences(record, answer) == []


def test_a_scenario_may_be_yaml_and_so_may_the_answer(tmp_path: Path, inside: Inside) -> None:
    record = json.loads((_GOLDEN / "0000-up.json").read_text())
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(record["scenario"]))
    assert differences(record, yaml.safe_load(_ok(inside, "-f", str(path), "-o", "yaml"))) == []


def test_flags_behind_the_options_are_the_autoscaler_s(tmp_path: Path, inside: Inside) -> None:
    record = json.loads((_GOLDEN / "0000-up.json").read_text())
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(record["scenario"]))
    for flags in (("--max-nodes-total=5",), ("--", "--max-nodes-total", "5")):
        answer = json.loads(_ok(inside, "-f", str(path), "-o", "json", *flags))
        assert answer["loops"][0]["scaleUp"]["result"] == "LimitedByMaxNodesTotal"


def test_a_snapshot_in_several_files_and_folders_is_planned(tmp_path: Path, inside: Inside) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    _write(folder / "nodes.json", node("a", "blue"))
    packed = folder / "pods.yaml.gz"
    packed.write_bytes(gzip.compress(yaml.safe_dump_all(pods("w", 12)).encode()))
    (folder / "notes.txt").write_text("not read")
    controllers = _write(tmp_path / "rs.json", replica_set("w", 12))
    plan = json.loads(_ok(inside, "-f", str(folder), "-f", controllers, "-o", "json"))
    assert plan["groups"][0]["id"] == "blue" and plan["groups"][0]["after"] == 2
    assert len(plan["pods"]["placed"]) == 12


def test_the_snapshot_of_a_living_cluster_is_planned(tmp_path: Path, inside: Inside) -> None:
    wanted = deployment("web", replicas=40, app="web")
    requests = {"requests": {"cpu": "1", "memory": "7Gi"}}
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = requests
    with Cluster(nodes=1) as cluster:
        async def take() -> list[Any]:
            await cluster.client.create(DEPLOYMENTS, wanted)
            await cluster.clock.sleep(60)
            dump = Dump(cluster.client, Selection(), lambda *_: None)
            return [obj async for batch in dump.read() for obj in batch]

        objects = cluster.run(take())
    plan = json.loads(_ok(inside, "-f", _write(tmp_path / "c.json", *objects), "-o", "json"))
    assert plan["pods"]["pending"] == 8 and len(plan["pods"]["placed"]) == 8
    assert sorted((row["verdict"], row["pods"]) for row in plan["nodes"]) == [("comes", 8), ("stays", 32)]


def test_the_table_shows_what_comes_what_goes_why_and_what_is_wasted(tmp_path: Path, inside: Inside) -> None:
    cluster = _write(tmp_path / "c.json", node("idle", "blue"), replica_set("w", 8),
                     *pods("w", 8, nodeSelector={"ratio": "mem-16"}), *pods("x", 1, nodeSelector={"ratio": "none"}))
    groups = _write(tmp_path / "t.json", template("big", "mem-16", "128Gi", "0.9"))
    table = _ok(inside, "-f", cluster, "--templates", groups)
    assert "1 nodes come, 1 go, 0 stay; of 9 pending pods 1 stay pending." in table
    assert "Scale-up after 0 s: mem-16 0 -> 1 (max 200)" in table
    assert "node(s) didn't match Pod's node affinity/selector" in table
    (row,) = [line for line in table.splitlines() if line.startswith("mem-16-new-1")]
    assert row.split()[:11] == ["mem-16-new-1", "mem-16", "comes", "8", "8", "128Gi", "0", "72Gi", "0", "2Gi",
                                "NotUnderutilized:"]
    assert any(line.split() == ["idle", "blue", "goes"] for line in table.splitlines())
    assert "0.0000 -> 0.9000 USD per hour" in table


def test_the_table_of_a_scenario_shows_each_loop(tmp_path: Path, inside: Inside) -> None:
    for name in ("0001-down", "0020-up", "0000-up"):
        record = json.loads((_GOLDEN / f"{name}.json").read_text())
        path = tmp_path / "scenario.json"
        path.write_text(json.dumps(record["scenario"]))
        table = _ok(inside, "-f", str(path))
        assert table.count("Loop ") == len(record["scenario"]["loops"])
        for unremovable in record["runs"][0]["loops"][0]["scaleDown"]["unremovable"]:
            assert unremovable["node"] in table and unremovable["reason"] in table


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "neither JSON nor YAML"),
        ("nodeGroups: []\nnode: []", "scenario.yaml: Object contains unknown field `node`"),
        ("kind: List\napiVersion: v1\nitems: []", "holds no Kubernetes objects"),
        ("kind: Pod\nmetadata: {}", "no kind or no metadata.name"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_fault(
    tmp_path: Path, inside: Inside, content: str, message: str
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(content)
    result = inside("plan", "-f", str(path))
    assert result.returncode == 2
    assert message in result.stderr
    assert_two_lines(result.stderr)


def test_objects_that_the_server_would_not_take_are_named(tmp_path: Path, inside: Inside) -> None:
    bad = pods("w", 1)[0]
    bad["spec"]["containers"] = []
    result = inside("plan", "-f", _write(tmp_path / "c.json", node("a", "blue"), bad))
    assert result.returncode == 2
    assert "w-p-0" in result.stderr


def test_a_scenario_is_planned_by_itself(tmp_path: Path, inside: Inside) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"nodeGroups": []}))
    other = _write(tmp_path / "c.json", node("a"))
    assert "planned by itself" in inside("plan", "-f", str(path), "-f", other).stderr
    assert "has its own node groups" in inside("plan", "-f", str(path), "--templates", other).stderr


def test_templates_are_nodes(tmp_path: Path, inside: Inside) -> None:
    cluster = _write(tmp_path / "c.json", node("a"))
    wrong = _write(tmp_path / "t.json", *pods("w", 1))
    result = inside("plan", "-f", cluster, "--templates", wrong)
    assert result.returncode == 2
    assert "t.json, line 1: a template must be a Node" in result.stderr


def test_an_empty_folder_is_an_error(tmp_path: Path, inside: Inside) -> None:
    assert "has no .json or .yaml files" in inside("plan", "-f", str(tmp_path)).stderr


@pytest.mark.parametrize("flag", ["--expender=price", "--expander=best"])
def test_a_wrong_flag_is_an_error(tmp_path: Path, inside: Inside, flag: str) -> None:
    result = inside("plan", "-f", _write(tmp_path / "c.json", node("a")), flag)
    assert result.returncode == 2
    assert flag.split("=")[0] in result.stderr


def test_flags_that_do_nothing_are_told(tmp_path: Path, inside: Inside) -> None:
    result = inside("plan", "-f", _write(tmp_path / "c.json", node("a")), "--scale-down-candidates-pool-ratio=0.2")
    assert result.returncode == 0
    assert "Warning: --scale-down-candidates-pool-ratio does nothing" in result.stderr


def test_every_policy_of_the_table_can_be_loaded() -> None:
    import importlib

    assert all(callable(importlib.import_module(module).plan) for module in POLICIES.values())


def test_a_plan_touches_nothing(tmp_path: Path, inside: Inside) -> None:
    path = _write(tmp_path / "c.json", node("a", "blue"))
    before = Path(path).read_bytes()
    _ok(inside, "-f", path)
    assert Path(path).read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["c.json"]
