"""kwokctl's recordings: read into whole objects, written as patches that lead there again."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.errors import UsageError
from holokube.kube.types import JsonObject
from holokube.lab.formats import Change, Timeline, guess_format, read_timeline, read_workload, write_timeline
from holokube.lab.formats.kwok import DEFAULT_BASE_S, read_kwok, write_kwok
from tests.builders import deployment, node, pod

DATA = Path(__file__).parent / "data" / "recording.yaml"
BASE = "2026-01-05T00:00"


def with_uid(obj: JsonObject, uid: str = "u") -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}}


def test_patches_become_whole_objects_in_the_order_of_time() -> None:
    timeline = read_kwok(DATA)
    assert [obj["kind"] for obj in timeline.objects] == ["Namespace", "Node"]
    told = [(change.at_s, change.method, change.object["kind"]) for change in timeline.changes]
    assert told == [
        (1.5, "apply", "Deployment"), (3, "apply", "Deployment"), (4, "apply", "Deployment"), (9, "delete", "Node"),
    ]  # fmt: skip
    last = timeline.changes[2].object
    images = [container["image"] for container in last["spec"]["template"]["spec"]["containers"]]
    assert images == ["registry.example/app:2", "registry.example/side:1"], "lists are merged by name"
    assert last["status"] == {"replicas": 2}, "an earlier patch that was written later"
    assert timeline.changes[3].object["metadata"]["uid"], "the last state is known"


def test_times_are_counted_from_the_beginning() -> None:
    timeline = read_kwok(DATA)
    assert timeline.objects[1]["metadata"]["creationTimestamp"] == "2026-01-04T23:59:30Z"
    assert timeline.changes[0].object["metadata"]["creationTimestamp"] == f"{BASE}:01.500000Z"
    assert timeline.start_s == DEFAULT_BASE_S
    later = read_kwok(DATA, base_s=DEFAULT_BASE_S + 86_400)
    assert later.objects[1]["metadata"]["creationTimestamp"] == "2026-01-05T23:59:30Z"


def test_a_recording_survives_being_read_and_written(tmp_path: Path) -> None:
    first = read_kwok(DATA)
    assert write_timeline("kwok", first, tmp_path / "again.yaml") == []
    assert read_kwok(tmp_path / "again.yaml") == first


def test_a_written_change_has_kwoks_fields_and_relative_times(tmp_path: Path) -> None:
    web = with_uid(deployment("web", "shop", 2))
    web["metadata"] |= {"creationTimestamp": f"{BASE}:02Z", "resourceVersion": "7", "managedFields": [{}]}
    more: JsonObject = {**web, "spec": {**web["spec"], "replicas": 3}}
    changes = (
        Change(2.0, "apply", web),
        Change(2.5, "apply", more),
        Change(3.0, "apply", {**more}),
        Change(4.0, "delete", more),
    )
    documents = list(yaml.safe_load_all("".join(write_kwok(Timeline((), changes, (), DEFAULT_BASE_S, 4.0)))))
    assert [(entry["method"], entry["durationNanosecond"]) for entry in documents] == [
        ("create", 2_000_000_000), ("patch", 2_500_000_000), ("delete", 4_000_000_000),
    ], "a change that changes nothing is not worth a document"  # fmt: skip
    created, patched, deleted = documents
    assert created["apiVersion"] == "action.kwok.x-k8s.io/v1alpha1"
    assert created["kind"] == "ResourcePatch"
    assert created["resource"] == {"group": "apps", "version": "v1", "resource": "deployments"}
    assert created["target"] == {"name": "web", "namespace": "shop"}
    meta = created["template"]["metadata"]
    assert meta["creationTimestamp"] == "$(time-offset-nanosecond 2000000000)"
    assert not {"resourceVersion", "managedFields"} & set(meta)
    assert patched["template"] == {"spec": {"replicas": 3}}
    assert "template" not in deleted


def test_changes_at_one_moment_keep_their_order_by_nanoseconds(tmp_path: Path) -> None:
    """A replay of kwok's sorts by time, and not stably."""
    changes = tuple(Change(2.0, "apply", with_uid(pod(f"p{number}"))) for number in range(3))
    timeline = Timeline((), (*changes, Change(2.0, "delete", changes[0].object)), (), None, 2.0)
    documents = list(yaml.safe_load_all("".join(write_kwok(timeline))))
    times = [entry["durationNanosecond"] for entry in documents]
    assert times == [2_000_000_000, 2_000_000_001, 2_000_000_002, 2_000_000_003]
    write_timeline("kwok", timeline, tmp_path / "r.yaml")
    assert read_kwok(tmp_path / "r.yaml") == timeline


def test_custom_resources_are_patched_without_knowing_their_type(tmp_path: Path) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "x", "uid": "1"},
        "spec": {"group": "karpenter.sh", "names": {"kind": "NodePool", "plural": "nodepools"}},
    }  # fmt: skip
    pool: JsonObject = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default", "uid": "2"},
        "spec": {"weight": 1, "limits": {"cpu": "10"}},
    }  # fmt: skip
    heavier = {**pool, "spec": {"weight": 2}}
    changes = (Change(1.0, "apply", heavier), Change(2.0, "delete", heavier))
    timeline = Timeline((crd, pool), changes, (), DEFAULT_BASE_S, 2.0)
    write_timeline("kwok", timeline, tmp_path / "r.yaml")
    assert "resource: nodepools" in (tmp_path / "r.yaml").read_text()
    read = read_kwok(tmp_path / "r.yaml")
    assert (read.objects, read.changes) == (timeline.objects, timeline.changes)


def test_the_kind_of_an_unknown_resource_is_learnt_from_the_objects(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    policy = {"apiVersion": "x.example/v1", "kind": "Policy", "metadata": {"name": "a"}}
    gone = {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePatch", "method": "delete",
        "resource": {"group": "x.example", "version": "v1", "resource": "policies"}, "target": {"name": "a"},
    }  # fmt: skip
    path.write_text(yaml.safe_dump_all([policy, gone]))
    assert read_kwok(path).changes[0].object == policy
    path.write_text(yaml.safe_dump_all([gone]))
    with pytest.raises(UsageError, match=r"document 1: nothing says which kind policies\.x\.example are"):
        read_kwok(path)


def test_a_patch_of_an_object_that_was_never_shown_stays_a_patch(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    patch = {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePatch", "method": "patch",
        "durationNanosecond": 5, "resource": {"version": "v1", "resource": "pods"},
        "target": {"name": "p", "namespace": "a"}, "template": {"spec": {"nodeName": "n"}},
    }  # fmt: skip
    path.write_text(yaml.safe_dump_all([node("n"), patch]))
    (change,) = read_kwok(path).changes
    assert change.method == "patch"
    assert change.object == {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"nodeName": "n"},
    }  # fmt: skip


def test_the_workload_of_a_recording_leaves_out_what_components_did() -> None:
    workload = read_workload("kwok", [DATA])
    assert [obj["kind"] for obj in workload.objects] == ["Namespace", "Node"]
    assert workload.objects[1]["status"]["capacity"]["cpu"] == "4"
    assert "uid" not in workload.objects[1]["metadata"]
    assert [change.at_s for change in workload.changes] == [1.5, 4], "neither the status nor the node that went"
    assert "status" not in workload.changes[1].object


def test_gzipped_recordings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml.gz"
    path.write_bytes(gzip.compress(DATA.read_bytes()))
    assert read_kwok(path) == read_kwok(DATA)


def test_a_recording_is_told_from_a_dump() -> None:
    assert guess_format(DATA) == "kwok"
    assert guess_format(Path(__file__).parent / "data" / "dump.yaml") == "kubectl"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "replace"}, r"document 2: method is 'replace'"),
    "no method": ({"method": None}, "method is None"),
    "template": ({"template": None}, "create of Deployment shop/web has no template"),
    "duration": ({"durationNanosecond": "1s"}, "durationNanosecond is '1s'"),
    "negative": ({"durationNanosecond": -1}, "durationNanosecond is -1"),
    "resource": ({"resource": None}, "resource and target are needed"),
    "version": ({"resource": {"group": "apps", "resource": "deployments"}}, "resource.version, resource.resource or"),
    "target": ({"target": {"namespace": "shop"}}, "target.name is missing"),
    "apiVersion": ({"apiVersion": "action.kwok.x-k8s.io/v2"}, "apiVersion is 'action.kwok.x-k8s.io/v2'"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_change_is_refused_with_its_document(tmp_path: Path, what: str) -> None:
    changed, message = BAD[what]
    good = {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePatch", "method": "create",
        "durationNanosecond": 1,
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "target": {"name": "web", "namespace": "shop"}, "template": deployment("web", "shop"),
    }  # fmt: skip
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump_all([node("n"), {**good, **changed}]))
    with pytest.raises(UsageError, match=message) as caught:
        read_kwok(path)
    assert caught.value.hint
    assert "document 2" in caught.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no objects"),
        (b"a: [", "is not YAML"),
        (b"\x00\xff\x80", "is not text"),
        (b"\x1f\x8bgarbage", "cannot read|is not text"),
        (b"- 1\n", "document 1: a list where an object should be"),
        (b"kind: Pod\n", "the object has no apiVersion"),
        (b"apiVersion: v1\nkind: List\nitems: [{kind: Pod, apiVersion: v1}]\n", r"items\[0\]: the object has no"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_timeline("kwok", [path])


def test_an_object_after_the_first_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(DATA.read_text() + "---\napiVersion: v1\nkind: Node\nmetadata: {name: late}\n")
    with pytest.raises(UsageError, match="document 7: a plain object after the first ResourcePatch"):
        read_kwok(path)


VALUES = st.sampled_from(["1", "on", "0o7", "x", ""])
LABELS = st.dictionaries(st.sampled_from(["a", "b", "y", "1e3"]), VALUES, max_size=3)
CONTAINERS = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, min_size=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LABELS, CONTAINERS, st.booleans()), min_size=1, max_size=6))
def test_any_sequence_of_versions_is_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, versions: list[tuple[dict[str, str], list[str], bool]]
) -> None:
    changes: list[Change] = []
    for number, (labels, names, gone) in enumerate(versions):
        obj = with_uid(pod("p", containers=[{"name": name, "image": f"i{number % 2}"} for name in names]))
        obj["metadata"]["labels"] = labels
        if changes and changes[-1].method == "apply" and changes[-1].object == obj:
            continue
        changes.append(Change(float(number), "apply", obj))
        if gone:
            changes.append(Change(number + 0.5, "delete", obj))
    timeline = Timeline((node("n"),), tuple(changes), (), None, changes[-1].at_s)
    path = tmp_path_factory.mktemp("kwok") / "r.yaml"
    path.write_text("".join(write_kwok(timeline)))
    assert read_kwok(path) == timeline
