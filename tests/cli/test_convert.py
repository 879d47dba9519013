"""``holokube convert``: from format to format, with words about what is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from holokube.cli.convert import _READ, _WRITE
from holokube.lab.formats import READ_FORMATS, WRITE_FORMATS, read_timeline
from tests.cli.program import Inside, assert_two_lines
from tests.lab.formats.traces import write_trace
from tests.lab.sweep.fakes import write_scenario

DATA = Path(__file__).parents[1] / "lab" / "formats" / "data"
NODES, PODS = str(DATA / "openb_node_list.csv"), str(DATA / "openb_pod_list.csv")


def test_the_command_knows_all_formats() -> None:
    assert (_READ, _WRITE) == (READ_FORMATS, WRITE_FORMATS), "they are repeated only so that --help need not load them"


def test_a_simkube_trace_becomes_a_recording_for_kwokctl(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "r.yaml"
    done = inside("convert", str(write_trace(tmp_path)), str(out), "--to", "kwok")
    assert done.returncode == 0
    assert "left out: how long the pods of 1 owners ran" in done.stderr
    assert "r.yaml (kwok): 0 objects, 4 changes in 205 s" in done.stderr
    assert done.stdout == ""
    kinds = [document["kind"] for document in yaml.safe_load_all(out.read_text())]
    assert kinds == ["ResourcePatch"] * 5


def test_openb_becomes_a_simkube_trace(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "t.sktrace"
    done = inside("convert", NODES, PODS, str(out))
    assert done.returncode == 0
    trace = read_timeline("simkube", [out])
    assert [change.method for change in trace.changes].count("apply") == 6
    assert len(trace.lives) == 5


def test_a_part_of_a_trace_is_taken_faster(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "t.sktrace"
    arguments = ("--after", "10000s", "--until", "10500s", "--speed", "10")
    assert inside("convert", NODES, PODS, str(out), *arguments).returncode == 0
    assert read_timeline("simkube", [out]).duration_s == 50


def test_a_moment_of_a_recording_becomes_a_list_for_kubectl(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "now.yaml"
    done = inside("convert", str(DATA / "recording.yaml"), str(out), "--to", "kubectl", "--at", "2s")
    assert done.returncode == 0
    names = [item["metadata"]["name"] for item in yaml.safe_load(out.read_text())["items"]]
    assert names == ["shop", "node-0", "web"]
    assert "left out: all other moments, " in done.stderr
    assert "now.yaml (kubectl): 3 objects, as they were after 2 s" in done.stderr
    done = inside("convert", str(DATA / "recording.yaml"), str(out), "--to", "kubectl", "--workload")
    (space, node, web) = yaml.safe_load(out.read_text())["items"]
    assert "uid" not in web["metadata"]
    assert (space["kind"], node["kind"]) == ("Namespace", "Node")


def test_a_scenario_is_run_for_it(inside: Inside, tmp_path: Path) -> None:
    write_scenario(tmp_path)
    out = tmp_path / "run.sktrace"
    for source in (tmp_path, tmp_path / "scenario.yaml"):
        done = inside("convert", str(source), str(out), "--policy", "none")
        assert done.returncode == 0, done.stderr
        trace = read_timeline("simkube", [out])
        assert [change.object["metadata"]["name"] for change in trace.changes] == ["web"]
        assert trace.duration_s == 600
    recording = tmp_path / "run.yaml"
    inside("convert", str(tmp_path), str(recording), "--policy", "none", "--to", "kwok")
    kinds = {change.object["kind"] for change in read_timeline("kwok", [recording]).changes}
    assert {"Deployment", "ReplicaSet", "Pod"} <= kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{data}/recording.yaml", "out.yaml"), "say which with --to kubectl or --to kwok"),
        (("{data}/recording.yaml", "out"), "does not tell a format"),
        (("{data}/recording.yaml", "out.csv", "--to", "openb"), "'openb' is not one of"),
        (("{data}/none.yaml", "out.json"), "cannot read"),
        (("{data}/recording.yaml", "out.json", "--at", "soon"), "'soon' is not a duration"),
        (("{data}/recording.yaml", "out.sktrace", "--at", "1s"), "--at is for kubectl files"),
        (("{data}/recording.yaml", "out.json", "--speed", "0"), "a speed must be above 0"),
        (("{data}/recording.yaml", "out.json", "--after", "1h"), "there is nothing between"),
        (("{data}/recording.yaml", "out.json", "--from", "simkube"), "is not msgpack"),
        (("{data}/recording.yaml", "out.json", "--policy", "none"), "--policy is for scenarios"),
        (("{data}/recording.yaml", "x.yaml", "out.json", "--from", "scenario"), "A scenario is one file, not 2"),
        (("{data}/recording.yaml", "out.json", "--from", "scenario"), "one scenario is expected"),
        (("{data}/recording.yaml",), "Missing argument"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = inside("convert", *(argument.format(data=DATA) for argument in arguments))
    assert done.returncode == 2
    assert message in assert_two_lines(done.stderr)[0]
    assert list(tmp_path.iterdir()) == []
