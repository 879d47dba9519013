"""A recording of a living cluster: complete, in order, and good enough to be played again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.client.resources import DEPLOYMENTS, JOBS, NODES, PODS
from holokube.kube.types import JsonObject
from holokube.lab.formats import Change, Timeline, read_timeline, write_timeline
from holokube.lab.formats.kwok import read_kwok
from holokube.lab.formats.recording import Recording
from holokube.lab.formats.replaying import Replay
from holokube.lab.formats.workload import with_run_times, workload_of
from holokube.testing.cluster import Cluster
from tests.builders import deployment, pod

JOB: JsonObject = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "once", "namespace": "default"},
    "spec": {
        "template": {
            "metadata": {"annotations": {"holokube.dev/run-time": "40s"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        }
    },
}


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Timeline, list[JsonObject]]]:
    """Two minutes in which a Deployment grows, a Job runs and a Deployment goes; and what was there at the end."""
    with Cluster(nodes=2) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment("old")))
        cluster.pass_time(10)
        with Recording(cluster.clock, cluster.store) as recording:
            cluster.pass_time(5)
            cluster.run(cluster.client.create(DEPLOYMENTS, deployment("web", replicas=2, app="web")))
            cluster.run(cluster.client.create(JOBS, JOB))
            cluster.pass_time(20)
            cluster.run(cluster.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, namespace="default"))
            cluster.run(cluster.client.delete(DEPLOYMENTS, "old", "default", propagation="Background"))
            cluster.pass_time(95)
        buckets = ("deployments.apps", "pods")
        at_end = [stored.obj for bucket in buckets for _, stored in cluster.store.list(bucket).items]
        cluster.pass_time(5)
        yield recording.timeline(), at_end


def test_the_changes_lead_from_the_beginning_to_the_end(recorded: tuple[Timeline, list[JsonObject]]) -> None:
    timeline, at_end = recorded
    assert timeline.duration_s == 120
    assert [obj["metadata"]["name"] for obj in timeline.objects if obj["kind"] == "Deployment"] == ["old"]
    assert [change.at_s for change in timeline.changes] == sorted(change.at_s for change in timeline.changes)
    found = [obj for obj in timeline.state_at(120) if obj["kind"] in ("Deployment", "Pod")]
    assert sorted(map(_name, found)) == sorted(map(_name, at_end))
    assert {_name(obj): obj for obj in found} == {_name(obj): obj for obj in at_end}


def test_lives_of_pods_belong_to_the_topmost_owner(recorded: tuple[Timeline, list[JsonObject]]) -> None:
    lives = {life.owner.name: life.runs for life in recorded[0].lives}
    assert set(lives) == {"old", "web", "once"}
    (job,) = lives["once"]
    assert job is not None
    assert job.end_s is not None
    assert job.end_s - job.start_s == 40
    (old,) = lives["old"]
    assert old is not None
    assert old.end_s is not None
    assert 25 <= old.end_s <= 60
    assert [run.end_s for run in lives["web"] if run] == [None, None, None]


def test_its_workload_is_what_the_user_did(recorded: tuple[Timeline, list[JsonObject]]) -> None:
    workload = with_run_times(workload_of(recorded[0], nodes=False))
    assert [_name(obj) for obj in workload.objects if obj["kind"] != "StorageClass"] == ["Deployment old"]
    told = [(change.at_s, change.method, _name(change.object)) for change in workload.changes]
    assert told == [
        (5, "apply", "Deployment web"), (5, "apply", "Job once"), (25, "apply", "Deployment web"),
        (25, "delete", "Deployment old"),
    ]  # fmt: skip
    job = workload.changes[1].object
    assert "selector" not in job["spec"]
    assert job["spec"]["template"]["metadata"]["annotations"] == {"holokube.dev/run-time": "40s"}


def test_a_kwok_recording_of_it_says_the_same(recorded: tuple[Timeline, list[JsonObject]], tmp_path: Path) -> None:
    timeline, at_end = recorded
    assert write_timeline("kwok", timeline, tmp_path / "r.yaml") == []
    assert timeline.start_s is not None
    again = read_kwok(tmp_path / "r.yaml", base_s=timeline.start_s)
    found = {_name(obj): _plain(obj) for obj in again.state_at(120) if obj["kind"] in ("Deployment", "Pod")}
    assert found == {_name(obj): _plain(_without_version(obj)) for obj in at_end}


def test_a_simkube_trace_of_it_plays_the_same_workload(
    recorded: tuple[Timeline, list[JsonObject]], tmp_path: Path
) -> None:
    write_timeline("simkube", recorded[0], tmp_path / "t.sktrace")
    trace = read_timeline("simkube", [tmp_path / "t.sktrace"])
    with Cluster(nodes=2) as cluster:
        problems: list[str] = []
        replay = Replay(cluster.clock, cluster.client, with_run_times(trace), problems.append)
        begin_s = cluster.clock.monotonic()
        cluster.run(replay.run())
        assert cluster.clock.monotonic() - begin_s == 25
        cluster.pass_time(95)
        assert problems == []
        pods = cluster.run(cluster.client.list(PODS, "default")).items
        assert sorted(pod["status"]["phase"] for pod in pods) == ["Running"] * 3 + ["Succeeded"]
        names = [obj["metadata"]["name"] for obj in cluster.run(cluster.client.list(DEPLOYMENTS)).items]
        assert names == ["web"]


def test_a_replay_makes_namespaces_and_waits_for_their_accounts() -> None:
    lonely = pod("lonely", "new")
    with Cluster(nodes=1) as cluster:
        problems: list[str] = []
        cluster.run(Replay(cluster.clock, cluster.client, Timeline((lonely,)), problems.append).run())
        assert problems == []
        assert cluster.run(cluster.client.get(PODS, "lonely", "new"))["metadata"]["name"] == "lonely"


def test_a_replay_changes_only_what_changed_and_tells_what_is_refused() -> None:
    web = deployment("web", replicas=1)
    more = deployment("web", replicas=4)
    wrong = {**deployment("bad"), "spec": {"replicas": -1}}
    unknown = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}}
    patch = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}}
    changes = (
        Change(1.0, "apply", more), Change(2.0, "apply", wrong), Change(3.0, "apply", unknown),
        Change(4.0, "delete", deployment("gone")), Change(5.0, "patch", patch),
    )  # fmt: skip
    with Cluster(objects=[{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]) as cluster:
        problems: list[str] = []

        async def play() -> None:
            labelled = {**web, "metadata": {**web["metadata"], "labels": {"kept": "yes"}}}
            await cluster.client.create(DEPLOYMENTS, labelled)
            await Replay(cluster.clock, cluster.client, Timeline((web,), changes), problems.append).run()

        cluster.run(play())
        found = cluster.run(cluster.client.get(DEPLOYMENTS, "web", "default"))
        assert (found["spec"]["replicas"], found["metadata"]["labels"]) == (4, {"kept": "yes"})
        assert [problem.split(":")[0] for problem in problems] == ["2 s", "3 s"]
        assert "cannot apply Deployment default/bad" in problems[0]
        assert "cannot apply Thing t" in problems[1]
        labels = cluster.run(cluster.client.get(NODES, "n"))["metadata"]["labels"]
        assert labels == {"a": "b"}


def _name(obj: JsonObject) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def _plain(value: Any) -> Any:
    """Without nulls, which mean the same as nothing, and which a patch cannot say."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if part is not None}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _without_version(obj: JsonObject) -> JsonObject:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": meta}
