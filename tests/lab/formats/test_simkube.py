"""SimKube's traces: read as its tracer writes them, written so that its driver can play them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holokube.base.errors import UsageError
from holokube.lab.formats import Change, PodLives, Ref, Run, Timeline, read_timeline, read_workload, write_timeline
from holokube.lab.formats.simkube import read_simkube, write_simkube
from tests.builders import deployment, node, pod
from tests.lab.formats.traces import POD_HASH, START, cron_job, simkube_trace, write_trace

HELLO = Ref("batch/v1", "CronJob", "default", "hello")


def test_a_trace_becomes_changes_counted_from_its_first_event(tmp_path: Path) -> None:
    timeline = read_simkube(write_trace(tmp_path))
    told = [(change.at_s, change.method, change.object["metadata"]["name"]) for change in timeline.changes]
    assert told == [(0, "apply", "web"), (0, "apply", "hello"), (60, "apply", "web"), (205, "delete", "hello")]
    assert (timeline.start_s, timeline.duration_s, timeline.objects) == (START, 205, ())
    assert timeline.changes[2].object["spec"]["replicas"] == 5


def test_lifecycles_become_runs(tmp_path: Path) -> None:
    (life,) = read_simkube(write_trace(tmp_path)).lives
    assert life == PodLives(HELLO, (Run(38, 68), Run(98, 148), Run(158, None), None), POD_HASH)


def test_kinds_are_named_with_and_without_a_group(tmp_path: Path) -> None:
    lifecycles = {
        ("karpenter.sh/v1.NodePool", "pool"): {1: ["Empty"]},
        ("/v1.Pod", "a/p"): {2: ["Empty"]},
        ("v1.Pod", "a/q"): {3: []},
    }
    owners = [life.owner for life in read_simkube(write_trace(tmp_path, pod_lifecycles=lifecycles)).lives]
    pool = Ref("karpenter.sh/v1", "NodePool", "", "pool")
    assert owners == [pool, Ref("v1", "Pod", "a", "p"), Ref("v1", "Pod", "a", "q")]


def test_a_trace_survives_being_read_and_written(tmp_path: Path) -> None:
    first = read_simkube(write_trace(tmp_path))
    assert write_timeline("simkube", first, tmp_path / "again.sktrace") == []
    again = read_simkube(tmp_path / "again.sktrace")
    bare = cron_job()
    del bare["metadata"]["annotations"]
    deleted = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hello", "namespace": "default"}}
    expected = (
        first.changes[0],
        replace(first.changes[1], object=bare),
        first.changes[2],
        replace(first.changes[3], object=deleted),
    )
    assert again == replace(first, changes=expected)


def test_a_written_trace_has_every_field_that_simkube_demands(tmp_path: Path) -> None:
    pods = pod("lonely", "shop")
    timeline = Timeline(
        (deployment("web", "shop"), node("n")), (Change(7.9, "apply", pods),),
        (PodLives(Ref("v1", "Pod", "shop", "lonely"), (Run(8.5, 20.2),)),), float(START), 30.5,
    )  # fmt: skip
    encoded, left_out = write_simkube(timeline)
    trace: dict[str, Any] = msgspec.msgpack.decode(encoded)
    assert list(trace) == ["version", "config", "events", "index", "pod_lifecycles"]
    assert trace["version"] == 2
    assert trace["config"] == {
        "trackedObjects": {"apps/v1.Deployment": {}, "v1.Pod": {"trackLifecycle": True, "skipOwned": True}}
    }
    assert [event["ts"] - START for event in trace["events"]] == [0, 7, 31]
    assert trace["pod_lifecycles"] == {("v1.Pod", "shop/lonely"): {0: [{"Finished": [START + 8, START + 20]}]}}
    assert {kind: sorted(names) for kind, names in trace["index"].items()} == {
        "apps/v1.Deployment": ["shop/web"], "v1.Pod": ["shop/lonely"],
    }  # fmt: skip
    assert all(0 <= value < 2**64 for names in trace["index"].values() for value in names.values())
    assert left_out == {}, "nodes are no part of a workload, so that they are not missed"


def test_what_lives_in_no_namespace_is_left_out_and_told(tmp_path: Path) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    notes = write_timeline("simkube", Timeline((space, deployment("web", "shop"))), tmp_path / "t.sktrace")
    assert notes == ["1 of kind Namespace, which live in no namespace"]


def test_what_is_made_again_in_the_second_of_its_deletion_comes_in_an_event_of_its_own() -> None:
    web = deployment("web", "shop")
    changes = (Change(5.1, "delete", web), Change(5.2, "apply", deployment("web", "shop", 3)))
    trace = msgspec.msgpack.decode(write_simkube(Timeline((web,), changes, (), 0.0, 5.2))[0])
    shape = [(event["ts"], len(event["applied_objs"]), len(event["deleted_objs"])) for event in trace["events"]]
    assert shape == [(0, 1, 0), (5, 0, 1), (5, 1, 0), (6, 0, 0)]


def test_a_patch_of_something_unknown_cannot_be_written() -> None:
    patch = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"priority": 1}}
    with pytest.raises(UsageError, match=r"Pod a/p is patched at 3 s"):
        write_simkube(Timeline((), (Change(3.0, "patch", patch),)))


def test_a_run_takes_the_median_time_of_a_cron_jobs_pods_and_leaves_deployments_alone(tmp_path: Path) -> None:
    workload = read_workload("simkube", [write_trace(tmp_path)])
    web, hello = (change.object for change in workload.changes[:2])
    template = hello["spec"]["jobTemplate"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"holokube.dev/run-time": "30s"}
    assert "annotations" not in web["spec"]["template"]["metadata"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 1}, "trace version 1 is not 2"),
        ({"events": []}, "has no events"),
        ({"events": {}}, "has no events"),
        ({"events": [{"applied_objs": []}]}, r"events\[0\]: ts is None"),
        ({"events": [{"ts": 1.5, "applied_objs": [], "deleted_objs": []}]}, r"events\[0\]: ts is 1.5"),
        ({"events": [{"ts": 1, "applied_objs": []}]}, r"events\[0\].deleted_objs is not a list"),
        ({"events": [{"ts": 1, "applied_objs": [3], "deleted_objs": []}]}, r"applied_objs\[0\]: a int where an object"),
        (
            {"events": [{"ts": 1, "applied_objs": [{"kind": "Pod"}], "deleted_objs": []}]},
            r"events\[0\].applied_objs\[0\]: the object has no apiVersion",
        ),
        (
            {"events": [{"ts": ts, "applied_objs": [], "deleted_objs": []} for ts in (5, 4)]},
            r"events\[1\].ts goes back in time",
        ),
        ({"pod_lifecycles": []}, "pod_lifecycles is not a map"),
        ({"pod_lifecycles": {"v1.Pod": {}}}, "not a pair of a kind and a name"),
        ({"pod_lifecycles": {("Pod", "a/b"): {}}}, "'Pod' is not of the form group/version.Kind"),
        ({"pod_lifecycles": {("v1.Pod", "a/b"): []}}, "is not a map"),
        ({"pod_lifecycles": {("v1.Pod", "a/b"): {"x": []}}}, "'x' is not a hash with a list"),
        ({"pod_lifecycles": {("v1.Pod", "a/b"): {1: ["Done"]}}}, "'Done' is none of Empty, Running and Finished"),
    ],
)
def test_a_bad_trace_is_refused_with_the_place(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_simkube(write_trace(tmp_path, **changed))
    assert "trace.sktrace" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("field", ["version", "config", "events", "index", "pod_lifecycles"])
def test_a_trace_without_a_field_is_refused(tmp_path: Path, field: str) -> None:
    trace = simkube_trace()
    del trace[field]
    path = tmp_path / "t.sktrace"
    path.write_bytes(msgspec.msgpack.encode(trace))
    with pytest.raises(UsageError, match=f"has no '{field}'"):
        read_simkube(path)


@pytest.mark.parametrize("content", [b"", b"\xc1", b"not a trace", msgspec.msgpack.encode([1]), b"\x85\xa7version"])
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.sktrace"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"t\.sktrace (is not msgpack|holds a)"):
        read_simkube(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*No such file"):
        read_timeline("simkube", [tmp_path / "none.sktrace"])
