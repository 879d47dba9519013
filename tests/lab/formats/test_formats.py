"""The door to all formats."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml

from holokube.base.errors import UsageError
from holokube.lab.formats import Change, PodLives, Ref, Run, Timeline, guess_format, read_timeline, write_timeline
from tests.builders import deployment, node, pod
from tests.lab.formats.traces import write_trace

DATA = Path(__file__).parent / "data"


def test_a_dump_is_a_timeline_in_which_nothing_changes() -> None:
    timeline = read_timeline("kubectl", [DATA / "dump.yaml"])
    assert [obj["kind"] for obj in timeline.objects] == ["Node", "Pod"]
    assert (timeline.changes, timeline.duration_s) == ((), 0)


def test_a_dump_with_something_that_is_no_object_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\nkind: Pod\n")
    with pytest.raises(UsageError, match=r"d\.yaml, line 5: the object has no apiVersion"):
        read_timeline("kubectl", [path])


def test_kubectl_files_show_one_moment(tmp_path: Path) -> None:
    done = PodLives(Ref("v1", "Pod", "default", "done"), (Run(1, 20),))
    came = (Change(5.0, "apply", pod("done")), Change(10.0, "apply", deployment("web")))
    changes = (*came, Change(30.0, "delete", node("n")))
    timeline = Timeline((node("n"),), changes, (done,), None, 60.0)
    for at_s, expected in ((None, ["web"]), (6.0, ["n", "done"]), (25.0, ["n", "web"])):
        for name in ("d.yaml", "d.json"):
            path = tmp_path / name
            assert write_timeline("kubectl", timeline, path, at_s=at_s) == []
            text = path.read_bytes()
            document = orjson.loads(text) if name == "d.json" else yaml.safe_load(text)
            assert (document["apiVersion"], document["kind"]) == ("v1", "List")
            assert [item["metadata"]["name"] for item in document["items"]] == expected
            again = read_timeline("kubectl", [path])
            assert [obj["metadata"]["name"] for obj in again.objects] == expected


def test_a_trace_without_nodes_and_what_components_made_says_so(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    made = pod("web-1-x")
    made = {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}
    timeline = Timeline((node("n"), node("m"), deployment("web"), made))
    assert write_timeline("simkube", timeline, tmp_path / "t.sktrace") == [
        "2 of kind Node, which are no part of a workload",
        "1 objects that components of the cluster made, and will make again",
    ]


def test_run_times_of_pods_that_are_not_there_are_not_missed(tmp_path: Path) -> None:
    lives = tuple(PodLives(Ref("v1", "Pod", "default", name), (Run(1, 20),)) for name in ("here", "later"))
    timeline = Timeline((pod("here"),), (), lives, None, 60.0)
    assert write_timeline("kwok", timeline, tmp_path / "r.yaml") == ["how long the pods of 1 owners ran"]


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "d.yaml"
    with pytest.raises(UsageError, match=f"^cannot write {path}: No such file or directory$"):
        write_timeline("kubectl", Timeline(), path)


def test_an_empty_moment_is_an_empty_list(tmp_path: Path) -> None:
    write_timeline("kubectl", Timeline(), tmp_path / "d.yaml")
    assert yaml.safe_load((tmp_path / "d.yaml").read_text())["items"] == []


def test_what_users_wrote_is_completed_for_kwok_since_it_goes_past_the_api_server(tmp_path: Path) -> None:
    timeline = read_timeline("simkube", [write_trace(tmp_path)])
    notes = write_timeline("kwok", timeline, tmp_path / "r.yaml")
    assert notes == ["how long the pods of 1 owners ran"]
    recording = read_timeline("kwok", [tmp_path / "r.yaml"])
    shop, web, hello, larger, gone = recording.changes
    assert shop.object["kind"] == "Namespace"
    assert web.object["metadata"]["uid"]
    assert web.object["spec"]["strategy"]["type"] == "RollingUpdate", "a default"
    assert larger.object["metadata"]["uid"] == web.object["metadata"]["uid"]
    assert (larger.at_s, larger.object["spec"]["replicas"], larger.object["metadata"]["generation"]) == (60, 5, 2)
    assert hello.object["spec"]["concurrencyPolicy"] == "Allow"
    assert (gone.at_s, gone.method) == (205, "delete")


def test_what_the_server_would_refuse_is_told(tmp_path: Path) -> None:
    wrong = {**deployment("bad"), "spec": {}}
    (note,) = write_timeline("kwok", Timeline((wrong,)), tmp_path / "r.yaml")
    assert note.startswith("0 s: cannot apply Deployment default/bad")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.sktrace"
    path.write_bytes(b"old")
    patch = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}}
    with pytest.raises(UsageError):
        write_timeline("simkube", Timeline((), (Change(1.0, "patch", patch),)), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.sktrace"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "expected"), [("a.sktrace", "simkube"), ("a.csv", "openb"), ("a.json", "kubectl"), ("a.yaml", "kubectl")]
)
def test_formats_are_guessed_by_name_and_content(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / name).write_text("{}")
    assert guess_format(tmp_path / name) == expected


def test_wrong_formats_and_numbers_of_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'etcd' to read"):
        read_timeline("etcd", [tmp_path])
    with pytest.raises(UsageError, match="needs a file"):
        read_timeline("kwok", [])
    with pytest.raises(UsageError, match="is one file, not 2"):
        read_timeline("kwok", [tmp_path, tmp_path])
    with pytest.raises(UsageError, match="'openb' cannot be written"):
        write_timeline("openb", Timeline(), tmp_path / "x.csv")
    with pytest.raises(UsageError, match="cannot read"):
        guess_format(tmp_path / "none.yaml")


def test_a_part_must_lie_forward_in_time_and_a_speed_above_zero() -> None:
    timeline = Timeline((), (Change(5.0, "apply", node("n")),), (), 100.0, 10.0)
    with pytest.raises(UsageError, match="nothing between 8 s and 4 s"):
        timeline.between(8, 4)
    with pytest.raises(UsageError, match="above 0"):
        timeline.scaled(0)
    assert timeline.between(5, 10).changes[0].at_s == 0
    assert timeline.between(6).objects == (node("n"),)
    assert timeline.between(6).start_s == 106
    assert timeline.scaled(1) is timeline
    at_end = Timeline((node("n"),), (Change(10.0, "delete", node("n")),), (), None, 10.0)
    assert len(at_end.between(4).changes) == 1
    assert at_end.between(4, 10).changes == ()


def test_a_part_keeps_how_long_pods_of_workloads_run() -> None:
    lives = (
        PodLives(Ref("batch/v1", "CronJob", "a", "cj"), (Run(10, 40), Run(70, 100), None)),
        PodLives(Ref("v1", "Pod", "a", "p"), (Run(10, 100),)),
        PodLives(Ref("v1", "Pod", "a", "done"), (Run(10, 40),)),
    )
    part = Timeline((pod("p", "a"), pod("done", "a")), (), lives, None, 200.0).between(50)
    assert part.lives == (
        PodLives(Ref("batch/v1", "CronJob", "a", "cj"), (Run(-40, -10), Run(20, 50), None)),
        PodLives(Ref("v1", "Pod", "a", "p"), (Run(0, 50),)),
    )
    assert part.objects == (pod("p", "a"),)
    assert part.scaled(2).lives[1].runs == (Run(0, 25),)
