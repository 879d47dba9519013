"""Alibaba's openb: the real columns, and clear words about rows that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from holokube.base.errors import UsageError
from holokube.lab.formats import Run, read_timeline, read_workload
from holokube.lab.formats.openb import GPU_MILLI, GPU_MODEL, NODE_COLUMNS, POD_COLUMNS, read_openb

DATA = Path(__file__).parent / "data"
NODES, PODS = DATA / "openb_node_list.csv", DATA / "openb_pod_list.csv"


def test_nodes_have_what_their_row_says() -> None:
    space, plain, gpus, _ = read_openb([PODS, NODES]).objects
    assert space["metadata"]["name"] == "openb"
    assert plain["status"]["capacity"] == {"cpu": "32000m", "memory": "262144Mi", "pods": "110"}
    assert gpus["status"]["allocatable"][GPU_MILLI] == "8000"
    assert gpus["metadata"]["labels"][GPU_MODEL] == "G2"
    assert GPU_MODEL not in plain["metadata"]["labels"]


def test_pods_come_in_order_of_time_and_ask_for_what_their_row_says() -> None:
    timeline = read_openb([PODS])
    assert [(change.at_s, change.method) for change in timeline.changes] == [
        (0, "apply"), (427, "apply"), (9437, "apply"), (10265, "apply"), (10300, "apply"), (10400, "apply"),
        (10900, "delete"),
    ]  # fmt: skip
    half, large, picky = (timeline.changes[place].object for place in (1, 2, 3))
    container = half["spec"]["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": "6000m", "memory": "12288Mi", GPU_MILLI: "460"}, "limits": {GPU_MILLI: "460"},
    }  # fmt: skip
    assert large["spec"]["containers"][0]["resources"]["requests"][GPU_MILLI] == "8000"
    required = picky["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["A10", "G2", "T4"]
    assert picky["metadata"]["annotations"] == {"holokube.dev/exit-code": "1"}


def test_pods_run_from_when_they_were_scheduled_until_they_were_deleted() -> None:
    timeline = read_openb([PODS])
    runs = {life.owner.name: life.runs for life in timeline.lives}
    assert runs["openb-pod-0001"] == (Run(447, 12902),)
    assert runs["openb-pod-0701"] == (Run(10405, None),)
    assert "openb-pod-0700" not in runs, "it was never scheduled"
    assert timeline.duration_s == 12902
    assert timeline.start_s is None


def test_a_part_of_the_trace_begins_with_what_runs_by_then_and_lets_it_run_on() -> None:
    part = read_workload("openb", [NODES, PODS], from_s=10_000, until_s=10_500, speed=2)
    names = [obj["metadata"]["name"] for obj in part.objects if obj["kind"] == "Pod"]
    assert names == ["openb-pod-0000", "openb-pod-0001", "openb-pod-0017"]
    running = {obj["metadata"]["name"]: obj["metadata"] for obj in part.objects if obj["kind"] == "Pod"}
    assert running["openb-pod-0017"]["annotations"]["holokube.dev/run-time"] == "6m24.5s"
    assert [(change.at_s, change.object["metadata"]["name"]) for change in part.changes] == [
        (132.5, "openb-pod-0615"), (150, "openb-pod-0700"), (200, "openb-pod-0701"),
    ]  # fmt: skip
    assert part.duration_s == 250
    later = read_workload("openb", [NODES, PODS], from_s=11_000)
    assert "openb-pod-0017" not in {obj["metadata"]["name"] for obj in later.objects}


def test_more_columns_than_needed_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(",".join(NODE_COLUMNS) + ",extra\nn,1000,1024,0,,x\n")
    assert [obj["metadata"]["name"] for obj in read_openb([path]).objects] == ["n"]


ROW = "p,1000,1024,0,0,,LS,Running,10,20,15"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither that of nodes nor that of pods"),
        ("a,b,c\n1,2,3\n", "neither that of nodes nor that of pods"),
        ("sn,cpu_milli,gpu,model\n", "the header has no column memory_mib"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "have no rows"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,lots,1,0,\n", r"x.csv, line 2: cpu_milli is 'lots', not a number"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,-5,1,0,\n", r"line 2: cpu_milli is '-5'"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0\n", r"line 2: the row has not 5 columns"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,,,\n", r"line 2: the row has not 5 columns"),
        ("sn,cpu_milli,memory_mib,gpu,model\n,1,1,0,\n", r"line 2: the name is empty"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,\nn,1,1,0,\n", r"line 3: n is there already, in .*line 2"),
        (",".join(POD_COLUMNS) + f"\n{ROW}\n{ROW.replace('p,', 'q,').replace(',20,', ',5,')}\n", "line 3: deletion"),
        (",".join(POD_COLUMNS) + f"\n{ROW.replace(',10,', ',soon,')}\n", "creation_time is 'soon'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        read_openb([path])
    assert "clusterdata" in caught.value.hint


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not text"):
        read_openb([path])
    with pytest.raises(UsageError, match="cannot read"):
        read_timeline("openb", [tmp_path / "none.csv"])
